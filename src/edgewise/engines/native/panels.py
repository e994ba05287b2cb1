"""A carry of the simulator as the arrays that compiled rounds work on, and back."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.declared import declared
from edgewise.engines.native.estimators import (
    LSVRG,
    PASS_PIECES,
    SAGA,
    SEGA,
    CompiledFormula,
    FlatMemory,
    Pass,
    Samples,
)
from edgewise.engines.native.formulas import ESTIMATORS, LOSSES
from edgewise.engines.native.kernels import BETA, COLUMNS, GAIN, LINE, PART, Edges, PanelState
from edgewise.engines.native.soft_threshold import threshold_and_shrink
from edgewise.engines.wires import DirectWires
from edgewise.problem.block import Block

Numbers = np.ndarray[Any, Any]


def aligned(shape: tuple[int, ...], dtype: Any) -> Numbers:
    """Zeros that begin with a cache line: else every vector would straddle two."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + LINE, np.uint8)
    begin = -raw.ctypes.data % LINE
    return raw[begin : begin + size].view(dtype).reshape(shape)


def read_only(a: Any) -> Numbers:
    """So that arrays from JAX, which are, and others are of one type to Numba: it compiles once."""
    made = np.asarray(a).view()
    made.flags.writeable = False
    return made


def to_panels(rows: Any) -> Numbers:
    """(k, n) -> (panels, k, COLUMNS), filled up with zeros."""
    rows = np.asarray(rows)
    k, n = rows.shape
    made = aligned((-(-n // COLUMNS), k, COLUMNS), rows.dtype)
    for p in range(len(made)):
        part = rows[:, p * COLUMNS : (p + 1) * COLUMNS]
        made[p, :, : part.shape[1]] = part
    return made


def from_panels(a: Numbers, n: int) -> Array:
    return jnp.asarray(a.swapaxes(0, 1).reshape(a.shape[1], len(a) * COLUMNS)[:, :n])


def rule_of(method: Any, loss: Any) -> CompiledFormula:
    own = {"huber": "delta", "smoothed-hinge": "width"}.get(declared(loss) or "")
    return CompiledFormula(
        int(method.form == "edge"),
        ESTIMATORS.index(declared(method.gradient)),
        LOSSES.index(declared(loss)),
        0.0 if own is None else float(getattr(loss, own)),
        float(getattr(method.gradient, "stop", 0)),
        int(getattr(method.gradient, "length", None) is not None),
    )


def samples_of(p: Block, share: Numbers, batch: Numbers) -> Samples:
    scale = np.empty(0, p.labels.dtype) if p.scale is None else p.scale
    arrays = (p.rows.values, p.labels, scale, p.first, p.counts, share, batch)
    return Samples(*map(read_only, arrays))


def edges_of(p: Block, wires: DirectWires) -> Edges:
    begin = np.searchsorted(np.asarray(p.links.owner), np.arange(len(p.ids) + 1))
    rho = np.asarray(p.links.rho, np.float64)
    return Edges(*map(read_only, (begin.astype(np.int32), wires.other, wires.reverse, rho)))


def numbers_of(method: Any, p: Block, estimator: int) -> Numbers:
    """(v, NUMBERS) in float64, columns as `kernels` names them: what stays as it is in a run."""
    gamma = 1 / (1 / method.eta + p.links.total)
    ridge = 0 if estimator == SEGA else p.loss.ridge  # SEGA's coordinates have it in them
    softly = threshold_and_shrink(p.penalty.members[0], gamma)
    columns = (0, gamma, p.links.total, ridge, *softly, 1 / method.eta, 1, 1)
    made = [np.broadcast_to(np.asarray(a, np.float64), gamma.shape) for a in columns]
    return np.concatenate(made, 1)


def numbers_now(fixed: Numbers, p: Block, state: Any, batch: Numbers, estimator: int) -> Numbers:
    """With what changes in a run."""
    made = fixed.copy()
    if estimator == SAGA:
        made[:, PART] = batch / np.asarray(p.counts)
    if hasattr(state, "gain"):
        made[:, GAIN] = np.asarray(state.gain)[:, 0]
    if hasattr(state.memory.extra, "beta"):
        made[:, BETA] = np.asarray(state.memory.extra.beta)
    return made


def panels_of(
    state: Any, sent: Any, rule: CompiledFormula, to: Callable[[Any], Numbers] = to_panels
) -> PanelState:
    """`to` makes panels of (k, n)."""
    epoch = state.memory.extra
    trip, edge_form = getattr(epoch, "journey", None), rule.edge_form
    tosses = rule.estimator == LSVRG and to is to_panels  # else a node's own thread has its model
    start = np.zeros_like(state.X) if tosses else None
    unsummed = np.zeros_like(state.X) if edge_form else None
    parts = {
        "X": state.X,
        "mean": state.memory.mean,
        "S": None if edge_form else state.S,
        "R": None if edge_form else state.R,
        "sent": sent if edge_form else None,
        **dict.fromkeys(("even", "odd", "heard", "said"), unsummed),
        "total": getattr(epoch, "total", None),
        "start": start if trip is None else trip.start,
        "last": None if trip is None else trip.last,
        "center": getattr(epoch, "center", None),
    }
    made = {k: to(a) for k, a in parts.items() if a is not None}
    nothing = np.empty((0, *made["X"].shape[1:]), made["X"].dtype)
    return PanelState(**{k: made.get(k, nothing) for k in parts})


def memory_of(gradient: Any, p: Block, m: Any, panels: int) -> FlatMemory:
    """With copies of its own, but for a table that it changed before: that is changed again."""
    v = len(p.ids)
    counts, epoch = np.asarray(p.counts), m.extra
    done = length = shortest = longest = np.zeros(v, np.int64)
    path = np.zeros(v)
    ask = pace = floor = np.zeros(v)
    if hasattr(epoch, "center"):
        done, length, ask, pace, floor = momentum_of(gradient, counts, epoch)
    elif hasattr(epoch, "total"):
        done, length = np.array(epoch.done), np.array(epoch.length)
        shortest = gradient.shortest(p)
        longest = 2 * counts if gradient.longest is None else np.full(v, gradient.longest)
        path = path if epoch.journey is None else np.array(epoch.journey.path, np.float64)
    elif hasattr(epoch, "dtype"):
        done = np.array(epoch)
        length = 2 * counts if gradient.length is None else np.full(v, gradient.length)
    mine = isinstance(m.table, np.ndarray) and m.table.flags.writeable
    return FlatMemory(
        m.table if mine else np.array(m.table),
        *(np.array(m.calls), done, length, read_only(shortest), read_only(longest), path),
        *(ask, read_only(pace), read_only(floor)),
        np.zeros(v, bool),
        np.zeros((panels, v, 2)),
    )


def momentum_of(gradient: Any, counts: Numbers, epoch: Any) -> tuple[Numbers, ...]:
    """Of ASVRG: iterates done, an epoch's length, chances of asking, paces and floors."""
    v, steady, given = len(counts), gradient.floor is None, gradient.length
    rounds = counts / (gradient.batch if steady else 1) if given is None else np.asarray(given)
    length = rounds if steady else rounds / np.asarray(epoch.beta)
    pace, floor = np.full(v, rounds, np.float64), -1.0 if steady else gradient.floor
    whole = np.ceil(np.full(v, length)).astype(np.int64)
    ask = np.array(epoch.ask, np.float64)
    return np.array(epoch.done), whole, ask, pace, np.full(v, floor, np.float64)


def pass_of(rule: CompiledFormula, panels: int, dtype: Any) -> Pass:
    pieces = 0 if rule.estimator in (SAGA, SEGA) else PASS_PIECES
    wide = (pieces, panels * COLUMNS)
    return Pass(np.zeros((pieces, 4), np.int64), aligned(wide, dtype), aligned(wide, dtype))


def carry_of(
    old: Any,
    state: PanelState,
    memory: FlatMemory,
    numbers: Numbers,
    rows: Callable[[Numbers], Any],
    edge_form: bool,
) -> Any:
    """As the simulator has it; `rows` makes (k, n) of panels. The table stays NumPy's, to be
    changed in place by the next call."""
    epoch = old.memory.extra
    if hasattr(epoch, "center"):
        epoch = epoch._replace(
            center=rows(state.center),
            total=rows(state.total),
            done=jnp.asarray(memory.done),
            beta=jnp.asarray(numbers[:, BETA], epoch.beta.dtype),
            ask=jnp.asarray(memory.ask, epoch.ask.dtype),
        )
    elif hasattr(epoch, "total"):
        trip = epoch.journey
        if trip is not None:
            start, last = rows(state.start), rows(state.last)
            trip = trip._replace(
                start=start, last=last, path=jnp.asarray(memory.path, trip.path.dtype)
            )
        done, length = jnp.asarray(memory.done), jnp.asarray(memory.length)
        epoch = epoch._replace(total=rows(state.total), done=done, length=length, journey=trip)
    elif hasattr(epoch, "dtype"):
        epoch = jnp.asarray(memory.done)
    X = rows(state.X)
    kept = old.memory._replace(
        table=memory.table,
        mean=rows(state.mean),
        calls=jnp.asarray(memory.calls),
        extra=epoch,
    )
    if edge_form:
        return old._replace(X=X, memory=kept), (rows(state.sent),)
    gain = jnp.asarray(numbers[:, GAIN : GAIN + 1], X.dtype)
    S, R = rows(state.S), rows(state.R)
    return old._replace(X=X, S=S, R=R, gain=gain, memory=kept), (X,)
