"""A peer's checkpoint: all that it needs to go on as if it had never stopped."""

import json
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import jax
import jax.numpy as jnp
import numpy as np

from edgewise.checkpoint import write
from edgewise.errors import CheckpointError
from edgewise.peers.frames import VECTORS, Frame
from edgewise.peers.links import Link

FILE = "checkpoint.npz"


def collect(carry: Any, links: dict[int, Link]) -> dict[str, np.ndarray]:
    """What was sent and not yet saved by its receiver goes in too: this peer may be the only one
    that still has it. What came is kept in tolerant mode alone: in strict it is sent again."""
    arrays = {f"leaf{k}": np.asarray(a) for k, a in enumerate(jax.tree.leaves(carry))}
    for other, link in links.items():
        for round, data in link.outgoing.items():
            arrays[f"out{other}.{round}"] = np.frombuffer(data, np.uint8)
        if not link.strict:
            arrays |= {f"in{other}.{round}": frame.payload for round, frame in link.mail.items()}
    return arrays


def save(folder: Path, head: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    write(folder / FILE, head, arrays)


def load(folder: Path, mark: str) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
    """Head and arrays of the checkpoint, if there is one; it must be of this very fit."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as file:
            head = json.loads(str(file["head"]))
            arrays = {name: file[name] for name in file.files if name != "head"}
        same = head["mark"] == mark
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as problem:
        raise CheckpointError(
            f"{path} is no readable checkpoint ({problem}): delete it to start anew"
        ) from problem
    if not same:
        raise CheckpointError(
            f"{path} is of another fit (other data, method, neighbours or seed): delete it, or "
            "give another folder as out"
        )
    return head, arrays


def restore(carry: Any, arrays: dict[str, np.ndarray], links: dict[int, Link]) -> Any:
    """The carry of the checkpoint, in the form of a new one; messages go back to their links."""
    leaves, tree = jax.tree.flatten(carry)
    for name, value in arrays.items():
        if name.startswith(("out", "in")):
            other, _, round = name.removeprefix("out").removeprefix("in").partition(".")
            link = links.get(int(other))
            if link is None:
                continue
            if name.startswith("out"):
                link.outgoing[int(round)] = value.tobytes()
            else:
                link.mail[int(round)] = Frame(VECTORS, payload=value)
    return jax.tree.unflatten(
        tree, [jnp.array(arrays[f"leaf{k}"], copy=True) for k in range(len(leaves))]
    )
