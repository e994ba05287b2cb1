"""A run's state on disk: written whole or not at all, and only ever resumed by the same run."""

import hashlib
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import jax
import jax.numpy as jnp
import numpy as np

from edgewise.errors import CheckpointError

if TYPE_CHECKING:
    from edgewise.solve import Run

INTERVAL = 10.0  # seconds between two writes, at least


class Keeper:
    """Saves now and then, and at the end; does nothing without a path."""

    def __init__(self, path: str | Path | None, fingerprint: str) -> None:
        self.path = None if path is None else Path(path)
        self.fingerprint, self.last = fingerprint, time.monotonic()

    def maybe_save(self, run: "Run") -> None:
        if time.monotonic() - self.last >= INTERVAL:
            self.save(run)

    def save(self, run: "Run") -> None:
        if self.path is None:
            return
        leaves = [np.asarray(a) for a in jax.tree.leaves(run.carry)]
        head = {
            "fingerprint": self.fingerprint,
            "round": run.round,
            "seconds": run.seconds,
        }
        part = self.path.with_name(self.path.name + ".part")
        part.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            np.savez(
                file,
                head=np.array(json.dumps(head)),
                rows=np.array(run.rows),
                **{f"leaf{k}": a for k, a in enumerate(leaves)},  # type: ignore[arg-type]
            )
            file.flush()
            os.fsync(file.fileno())
        part.replace(self.path)
        self.last = time.monotonic()


def load(path: str | Path, run: "Run", fingerprint: str) -> None:
    """Put the run where the checkpoint left it."""
    try:
        with np.load(path, allow_pickle=False) as file:
            head = json.loads(str(file["head"]))
            rows = file["rows"].tolist()
            leaves, tree = jax.tree.flatten(run.carry)
            if head["fingerprint"] == fingerprint:
                leaves = [jnp.array(file[f"leaf{k}"], copy=True) for k in range(len(leaves))]
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as problem:
        raise CheckpointError(
            f"{path} is no readable checkpoint ({problem}): delete it to start anew"
        ) from problem
    if head["fingerprint"] != fingerprint:
        raise CheckpointError(
            f"{path} was written by another run (other data, graph, method, steps or seed): "
            "give another path, or delete it to start anew"
        )
    run.carry = jax.tree.unflatten(tree, leaves)
    run.round, run.seconds, run.rows = head["round"], head["seconds"], rows


def fingerprint(run: "Run") -> str:
    """A digest of everything that decides how the run goes on. Data enter by sums, not whole."""
    digest = hashlib.sha256()

    def add(a: Any) -> None:
        digest.update(np.ascontiguousarray(a).tobytes())

    leaves, tree = jax.tree.flatten((run.method, run.simulator.network, run.simulator.block.links))
    digest.update(str(tree).encode())
    for leaf in leaves:
        add(leaf)
    for leaf in jax.tree.leaves((run.simulator.block.loss, run.simulator.block.penalty)):
        add(leaf)
    problem = run.problem
    add(jax.random.key_data(run.simulator.seed))
    add(problem.counts)
    add(problem.labels)
    add(np.asarray(problem.shards.X.sum(axis=0), np.float64))
    digest.update(f"{type(problem.loss).__name__} {run.dtype} {problem.size}".encode())
    return digest.hexdigest()
