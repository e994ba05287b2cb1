"""A run's state on disk: written whole or not at all, and only ever resumed by the same run."""

import hashlib
import json
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING
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
                apart=np.array(run.apart),
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
            rows, apart = file["rows"].tolist(), list(file["apart"])
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
    run.round, run.seconds, run.rows, run.apart = head["round"], head["seconds"], rows, apart


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


def fingerprint(run: "Run") -> str:
    """A digest of everything that decides how the run goes on: the method and the network, where
    it starts, and, for data, loss and penalty, what they say at a probe point, to seven digits."""
    digest = hashlib.sha256()
    leaves, tree = jax.tree.flatten((run.method, run.simulator.network, run.simulator.block.links))
    digest.update(re.sub(r" at 0x[0-9a-f]+", "", str(tree)).encode())
    block, X = run.gauge.block, run.simulator.view(run.carry)
    shape = (run.problem.nodes, run.problem.size)
    probe = jnp.asarray(np.random.default_rng(0).standard_normal(shape))
    said = [block.values(probe), block.penalty.prox(probe, jnp.ones((shape[0], 1)))]
    said.append(block.penalty.value(said[1]))
    rounded = [np.char.mod("%.6e", np.asarray(a, np.float64)) for a in (*said, *X)]
    for part in (*leaves, jax.random.key_data(run.simulator.seed), run.problem.counts, *rounded):
        digest.update(np.ascontiguousarray(part).tobytes())
    digest.update(f"{run.dtype} {run.problem.loss.outputs} {run.faults}".encode())
    return digest.hexdigest()
