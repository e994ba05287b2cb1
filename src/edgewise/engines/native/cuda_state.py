"""A carry of the simulator as the arrays that a CUDA kernel works on, and back."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.declared import declared
from edgewise.backend.placed import placed
from edgewise.engines.native.cuda_device import Device, Shape, shape_of
from edgewise.engines.native.formulas import ESTIMATORS, LOSSES
from edgewise.engines.native.soft_threshold import bounds, threshold_and_shrink
from edgewise.engines.wires import DirectWires
from edgewise.methods.local_training import LOOKS
from edgewise.problem.block import Block

VALUES, APART = 66, 32  # as in `device.cu`
PATIENCE = 1 << 25  # looks at a word that others are to write: many seconds
# columns of a node's numbers, as `Numbers` there has them
NUMBERS = (
    "gamma", "rate", "degree", "ridge", "threshold", "shrink", "lower", "upper", "gain", "part",
    "enough", "of_loss", "stop",
)  # fmt: skip


class Run(NamedTuple):
    """Arrays on the device, or None, and whole numbers, as `Run` in `device.cu` has them."""

    rows: Any
    labels: Any
    scale: Any
    first: Any
    counts: Any
    picked: Any
    share: Any
    coins: Any
    bits: Any
    begin: Any
    other: Any
    reverse: Any
    rho: Any
    numbers: Any
    steps: Any
    X: Any
    S: Any
    R: Any
    mean: Any
    sent: Any
    table: Any
    total: Any
    start: Any
    last: Any
    path: Any
    done: Any
    length: Any
    shortest: Any
    longest: Any
    made: Any
    parts: Any
    margins: Any
    ready: Any
    passed: Any
    status: Any
    model: Any
    nodes: int
    columns: int
    samples: int
    blocks: int  # of a node
    edges: int
    width: int  # columns of a block
    batch: int
    rounds: int
    draws: int
    looks: int
    edge_form: int
    estimator: int
    loss: int
    stops: int
    patience: int


def words_of(device: Device, run: Run) -> np.ndarray:
    """One number of many bytes, which a kernel is given by value."""

    def word(a: Any) -> int:
        if isinstance(a, int):
            return a
        return 0 if a is None or a.size == 0 else device.address(a)

    flat = np.array([word(a) for a in run], np.int64)
    return flat.view(np.dtype((np.void, flat.nbytes)))


def numbers_of(method: Any, p: Block, batch: np.ndarray, dtype: Any) -> np.ndarray:
    """(v, NUMBERS), worked out as the plain rounds do."""
    eta, total = np.asarray(method.eta, dtype), np.asarray(p.links.total, dtype)
    gamma, (h, *_) = 1 / (1 / eta + total), p.penalty.members
    threshold, shrink = (np.asarray(a) for a in threshold_and_shrink(h, jnp.asarray(gamma)))
    lower, upper = bounds(h)
    own = {"huber": "delta", "smoothed-hinge": "width"}.get(declared(p.loss) or "")
    saga = declared(method.gradient) == "saga"
    local = declared(method) == "local-training"
    named = {
        "gamma": gamma,
        "rate": 1 / eta,
        "degree": total,
        "ridge": p.loss.ridge,
        "threshold": threshold,
        "shrink": shrink,
        "lower": lower,
        "upper": upper,
        "gain": 1,
        "part": (batch / np.asarray(p.counts))[:, None] if saga else 0,
        "enough": np.asarray(method.enough)[:, None] if local else 0,
        "of_loss": 0 if own is None else getattr(p.loss, own),
        "stop": getattr(method.gradient, "stop", 0),
    }
    each = [np.broadcast_to(np.asarray(named[k], dtype), gamma.shape) for k in NUMBERS]
    return np.concatenate(each, 1)


def shares_of(p: Block, batch: int, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """(v, b) of a node's samples in its gradient, as `Block.pick` has them, and (v,) how many."""
    size = np.minimum(np.asarray(p.counts), batch)
    live = np.arange(batch) < size[:, None]
    return (live / size[:, None]).astype(dtype), size


def shape_for(device: Device, method: Any, nodes: int, columns: int) -> Shape:
    """Where nodes take full passes at times of their own more blocks share the work of one: those
    of other nodes wait meanwhile, so that a multiprocessor may have some of both."""
    gradient, local = method.gradient, declared(method) == "local-training"
    alone = declared(gradient) == "lsvrg" or getattr(gradient, "stop", 0) > 0
    crowd = 2 if alone and not local else 1
    return shape_of(nodes, columns, device.multiprocessors, local, crowd)


def prepared(device: Device, method: Any, p: Block, wires: DirectWires, dtype: Any) -> Run:
    """All but draws and numbers of rounds; the state is not yet filled in."""
    local = declared(method) == "local-training"
    estimator = declared(method.gradient)
    (V,), N, E = p.counts.shape, len(p.labels), len(p.links.owner)
    n = p.rows.values.shape[1]
    shape = shape_for(device, method, V, n)
    H, epochs = shape.blocks, estimator in ("svrg", "plain-svrg")
    edge_form, stops = method.form == "edge", bool(getattr(method.gradient, "stop", 0))
    share, batch = shares_of(p, method.gradient.batch, dtype)

    def put(a: Any, kind: Any = dtype) -> Any:
        return device.borrow(np.ascontiguousarray(np.asarray(a), kind))

    def room(wanted: bool, *size: int, kind: Any = dtype) -> Any:
        return device.empty(size, kind) if wanted else None

    counts = np.asarray(p.counts)
    longest = getattr(method.gradient, "longest", None)
    return Run(
        rows=device.borrow(p.rows.values),
        labels=device.borrow(p.labels),
        scale=None if p.scale is None else device.borrow(p.scale),
        first=put(p.first, np.int32),
        counts=put(counts, np.int32),
        picked=None,
        share=put(share),
        coins=None,
        bits=None,
        begin=put(np.searchsorted(np.asarray(p.links.owner), np.arange(V + 1)), np.int32),
        other=put(wires.other, np.int32),
        reverse=put(wires.reverse, np.int32),
        rho=put(p.links.rho),
        numbers=put(numbers_of(method, p, batch, dtype)),
        steps=put(method.steps, np.int32) if local else None,
        X=device.empty((1 if local else 2, V, n), dtype),
        S=room(not edge_form, V, n),
        R=room(not edge_form, V, n),
        mean=device.empty((V, n), dtype),
        sent=room(edge_form, 2, E, n),
        table=device.empty((H, N), dtype),
        total=room(estimator == "svrg", V, n),
        start=room(stops, V, n),
        last=room(stops, V, n),
        path=room(stops, V, H),
        done=room(epochs, V, H, kind=np.int32),
        length=room(epochs, V, H, kind=np.int32),
        shortest=put(method.gradient.shortest(p), np.int32) if estimator == "svrg" else None,
        longest=put(2 * counts if longest is None else np.full(V, longest), np.int32),
        made=room(local, V, kind=np.int64),
        parts=device.empty((2, V, H, VALUES), dtype),
        margins=device.empty((H, N), dtype),
        ready=device.empty((V, H, APART), np.uint32),
        passed=device.empty((V, H, APART), np.uint32),
        status=device.empty((1,), np.uint32),
        model=device.empty((V, n), dtype),
        nodes=V,
        columns=n,
        samples=N,
        blocks=H,
        edges=E,
        width=shape.width,
        batch=method.gradient.batch,
        rounds=0,
        draws=method.random_draws,
        looks=LOOKS,
        edge_form=int(edge_form),
        estimator=ESTIMATORS.index(estimator),
        loss=LOSSES.index(declared(p.loss)),
        stops=int(stops),
        patience=PATIENCE,
    )


def fill(device: Device, run: Run, method: Any, carry: Any) -> None:
    """The state as the carry has it."""
    state, sent = carry
    memory, epoch = state.memory, state.memory.extra
    vectors: dict[str, Any] = {"mean": memory.mean}
    of_node: dict[str, Any] = {}
    device.put(run.X[0], state.X)
    for h in range(run.blocks):
        device.put(run.table[h], memory.table)
    if run.edge_form:
        device.put(run.sent[0], sent[0])
    else:
        vectors |= {"S": state.S, "R": state.R}
        numbers = device.take(run.numbers)
        numbers[:, NUMBERS.index("gain")] = np.asarray(state.gain)[:, 0]
        device.put(run.numbers, numbers)
    if hasattr(epoch, "total"):
        vectors["total"], trip = epoch.total, epoch.journey
        of_node |= {"done": epoch.done, "length": epoch.length}
        if trip is not None:
            vectors |= {"start": trip.start, "last": trip.last}
            of_node["path"] = trip.path
    elif hasattr(epoch, "dtype"):
        length = method.gradient.length
        twice = 2 * device.take(run.counts)
        of_node |= {"done": epoch, "length": twice if length is None else 0 * twice + length}
    for name, a in vectors.items():
        device.put(getattr(run, name), a)
    for name, a in of_node.items():  # all blocks of a node have them
        device.put(getattr(run, name), np.repeat(np.asarray(a)[:, None], run.blocks, 1))
    for words in (run.ready, run.passed, run.status, run.made):
        if words is not None:
            device.zero(words)


def carry_of(device: Device, run: Run, old: Any, batch: np.ndarray) -> Any:
    """The carry after the run's rounds; batch: (v,) samples that a node draws in one."""
    state, give = old[0], device.give
    memory, epoch = state.memory, state.memory.extra
    at, local = run.rounds % 2, run.made is not None
    X = run.X[0 if local else at]

    def of_node(a: Any, like: Any) -> Array:
        return placed(device.take(a)[:, 0], like.dtype)

    if hasattr(epoch, "total"):
        trip = epoch.journey
        if trip is not None:
            last, path = run.last if local else run.X[1 - at], of_node(run.path, trip.path)
            trip = trip._replace(start=give(run.start), last=give(last), path=path)
        done, length = of_node(run.done, epoch.done), of_node(run.length, epoch.length)
        epoch = epoch._replace(total=give(run.total), done=done, length=length, journey=trip)
    elif hasattr(epoch, "dtype"):
        epoch = of_node(run.done, epoch)
    steps = device.take(run.made) if local else run.rounds * batch
    passes = device.take(run.passed)[:, 0, 0].astype(np.int64)
    asked = steps * (1 if run.estimator == 0 else 2) + passes * device.take(run.counts)
    memory = memory._replace(
        table=give(run.table[0]),
        mean=give(run.mean),
        calls=placed(np.asarray(memory.calls) + asked),
        extra=epoch,
    )
    state = state._replace(X=give(X), memory=memory)
    if run.edge_form:
        return state, (give(run.sent[at]),)
    gain = placed(np.full_like(np.asarray(state.gain), 2))
    state = state._replace(S=give(run.S), R=give(run.R), gain=gain)
    return state, (state.X,)
