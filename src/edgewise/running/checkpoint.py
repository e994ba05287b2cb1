"""A run's state on disk: written whole or not at all, and only ever resumed by the same run.

One process writes one file. Ranks of a cluster write one part each, then rank 0 the file that names
them: until then the former ones count. Any number of ranks can go on from either.
"""

import hashlib
import re
import time
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from edgewise.backend.programs import light
from edgewise.engines.base import Communicator, Executor
from edgewise.engines.early_rounds import is_numpy
from edgewise.engines.faults import Faults
from edgewise.errors import CheckpointError
from edgewise.graph.graph import Graph
from edgewise.problem.block import Block
from edgewise.problem.problem import Problem
from edgewise.running.checkpoint_file import CheckpointFile, write
from edgewise.running.evaluator import Evaluator

BESIDE = "couplings or first duals"
INTERVAL = 10.0  # seconds between two writes, at least


class Resumable(Protocol):
    """A run, as far as it is saved and gone on with."""

    problem: Problem
    graph: Graph
    faults: Faults | None
    executor: Executor
    communicator: Communicator
    evaluator: Evaluator
    method: Any
    dtype: Any
    carry: Any
    round: int
    seconds: float
    rows: list[list[float]]
    apart: list[np.ndarray]

    @property
    def is_root(self) -> bool: ...

    def view(self) -> tuple[Any, Any]: ...

    def beside_the_data(self) -> list[np.ndarray]: ...


class Checkpointer:
    """Saves now and then, and at the end; does nothing without a path."""

    def __init__(self, path: str | Path | None, fingerprint: dict[str, str]) -> None:
        self.path = None if path is None else Path(path)
        self.fingerprint, self.last = fingerprint, time.monotonic()

    def maybe_save(self, run: Resumable) -> None:
        if self.path is None:
            return
        due = run.is_root and time.monotonic() - self.last >= INTERVAL
        if run.communicator.agree(int(due)):
            self.save(run)

    def save(self, run: Resumable) -> None:
        if self.path is None:
            return
        communicator, leaves = run.communicator, jax.tree.leaves(run.carry)
        arrays = {f"leaf{k}": np.asarray(a) for k, a in enumerate(leaves)}
        head: dict[str, Any] = {"fingerprint": self.fingerprint, "round": run.round}
        head |= {"seconds": run.seconds, "early": is_numpy(run.carry)}
        history = {"rows": np.array(run.rows), "apart": np.array(run.apart)}
        parts: list[Path] = []
        if communicator.ranks > 1:
            ranks = range(communicator.ranks)
            parts = [part_of(self.path, run.round, rank, len(ranks)) for rank in ranks]
            nodes = np.asarray(run.executor.nodes).tolist()
            write(parts[communicator.rank], {"nodes": nodes}, arrays)
            communicator.agree(0)  # all parts are there
            head, arrays = head | {"parts": [part.name for part in parts]}, {}
        if run.is_root:
            write(self.path, head, history | arrays)
            for old in set(self.path.parent.glob(f"{self.path.name}.*-of-*")) - set(parts):
                old.unlink(missing_ok=True)
        self.last = time.monotonic()


def part_of(path: Path, round: int, rank: int, ranks: int) -> Path:
    return path.with_name(f"{path.name}.{round}.{rank}-of-{ranks}")


def load(path: str | Path, run: Resumable, fingerprint: dict[str, str]) -> None:
    """Put the run where the checkpoint left it."""
    path = Path(path)
    try:
        with CheckpointFile(path) as file:
            head, rows, apart = file.head, file["rows"].tolist(), list(file["apart"])
        differ = differences(head["fingerprint"], fingerprint)
        if not differ:
            files = [path.with_name(name) for name in head.get("parts", [path.name])]
            carry = read_carry(files, run)
            if not (head.get("early") and is_numpy(run.carry)):  # it goes on as it would have
                carry = jax.tree.map(partial(jnp.array, copy=True), carry)
    except (OSError, ValueError, KeyError, IndexError, TypeError) as problem:
        raise CheckpointError(
            f"{path} is no readable checkpoint ({problem}): delete it to start anew"
        ) from problem
    if differ:
        raise CheckpointError(
            f"{path} was written by another run, which had other "
            f"{', '.join(differ)}: give the same, or another path, or delete it to start anew"
        )
    run.carry = carry
    run.round, run.seconds, run.rows, run.apart = head["round"], head["seconds"], rows, apart


def read_carry(files: list[Path], run: Resumable) -> Any:
    """A carry of the run's own nodes, from files that hold some nodes each."""
    own, every = run.executor.nodes, np.arange(run.graph.nodes)
    paths, tree = jax.tree_util.tree_flatten_with_path(run.carry)
    leaves = [np.array(a) for _, a in paths]
    for name in files:
        with CheckpointFile(name) as file:
            nodes = np.array(file.head.get("nodes", every))
            if own is None or len(nodes) == len(own) == len(every):
                leaves = [file[f"leaf{k}"] for k in range(len(leaves))]
                continue
            wanted = np.intersect1d(own, nodes)
            if not len(wanted):
                continue
            for k, (path, _) in enumerate(paths):
                theirs = file[f"leaf{k}"]
                if theirs.ndim == 0:
                    leaves[k] = theirs
                    continue
                sizes = rows_per_node(path, len(theirs), nodes, run)
                leaves[k][rows_of(own, sizes, wanted)] = theirs[rows_of(nodes, sizes, wanted)]
    return jax.tree.unflatten(tree, [np.array(a) for a in leaves])


def rows_per_node(path: Any, length: int, nodes: np.ndarray, run: Resumable) -> np.ndarray:
    """(V,) rows that a node has of an array: one; or, in an estimator's memory, one per sample; or
    one per edge. Where two of these agree in number they agree node by node, as none is zero."""
    if length == len(nodes):
        return np.ones(run.graph.nodes, np.int64)
    memory = any(getattr(key, "name", "") == "memory" for key in path)
    return run.problem.counts if memory else run.graph.degrees


def rows_of(nodes: np.ndarray, sizes: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Rows of the wanted nodes, in an array that has each node's rows one after another."""
    ends = np.cumsum(sizes[nodes])
    at = np.searchsorted(nodes, wanted)
    many = sizes[wanted]
    begin = np.repeat(ends[at] - many, many)
    return begin + np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)


def require_writable(path: str | Path) -> None:
    """Refuse a path that nothing could be written to, before the run rather than after it."""
    try:
        target = Path(path)
        if target.is_dir():
            raise CheckpointError(f"checkpoint {path} is a folder: give the name of a file in it")
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(target.name + ".part")
        part.touch()
        part.unlink()
    except (OSError, TypeError) as problem:
        raise CheckpointError(
            f"checkpoint {path!r} cannot be written ({problem}): give another path"
        ) from problem


@light
def at_probes(block: Block, probe: Any) -> tuple[Any, Any, Any]:
    moved = block.penalty.prox(probe, jnp.ones((len(block.ids), 1)))
    return block.values(probe), block.penalty.value(moved), moved


def fingerprint(run: Resumable) -> dict[str, str]:
    """Digests of everything that decides how the run goes on, by what users call it: the method and
    the network, where it starts, and, for data, loss and penalty, what they say at a probe point,
    to seven digits."""
    executor, block = run.executor, run.evaluator.block
    ids = np.asarray(block.ids)
    drawn = [np.random.default_rng(i).standard_normal((2, run.problem.size)) for i in ids]
    probe, other = np.stack(drawn, 1)
    losses, prices, moved = (np.asarray(a) for a in at_probes(block, probe))
    models, duals = (np.asarray(a, np.float64) for a in run.view())
    said = [losses, prices, *((a * other).sum(1) for a in (moved, models, duals))]
    rounded = np.char.mod("%.6e", run.communicator.gather(np.stack(said, 1)))
    leaves, tree = jax.tree.flatten((run.method, executor.weights))
    numbers, loss = jax.tree.flatten(block.loss)
    layout = "" if executor.nodes is not None else jax.tree.map(jnp.shape, run.carry)
    varying = None if run.faults is None else run.faults.links
    parts: dict[str, tuple[Any, ...]] = {
        "graph": (run.graph.edges, *([run.graph.open] if run.graph.one_way else [])),
        "samples a node": (run.problem.counts,),
        "loss": (loss, run.problem.loss.outputs, *numbers),
        "penalty": (rounded[:, 1:3],),
        BESIDE: tuple(run.beside_the_data()),
        "data or split": (rounded[:, 0],),
        "method": (tree, layout),
        "faults": (run.faults, *([] if varying is None else [varying.on])),
        "seed": (jax.random.key_data(executor.seed),),
        "dtype": (run.dtype,),
        "steps": tuple(leaves),
        "first models": (rounded[:, 3],),
        "first duals": (rounded[:, 4],),
    }
    return {name: digest_of(values) for name, values in parts.items()}


BEGINNINGS = {"graph", "samples a node", "penalty", BESIDE, "method", "dtype"}
CAUSES = {  # whose difference makes another differ, which then is not told
    "data or split": {"samples a node", "loss"},
    "method": {"graph", "samples a node", "dtype"},  # the shapes of its state
    "steps": {"data or split", *BEGINNINGS, "loss"},
    "first models": BEGINNINGS,
    "first duals": BEGINNINGS,
}


def differences(saved: Any, wanted: dict[str, str]) -> list[str]:
    """What differs between two runs, by name."""
    if not isinstance(saved, dict):
        return ["version of Edgewise"]
    differ = {name for name, digest in wanted.items() if saved.get(name) != digest}
    return [name for name in wanted if name in differ and not differ & CAUSES.get(name, set())]


def digest_of(values: tuple[Any, ...]) -> str:
    digest = hashlib.sha256()
    for value in values:
        if isinstance(value, np.ndarray | jax.Array):
            digest.update(np.ascontiguousarray(value).tobytes())
        else:
            digest.update(re.sub(r" at 0x[0-9a-f]+", "", f"{value}").encode())
    return digest.hexdigest()
