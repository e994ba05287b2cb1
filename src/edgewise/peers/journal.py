"""A peer's checkpoint: all that it needs to go on as if it had never stopped."""

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import jax
import jax.numpy as jnp
import numpy as np

from edgewise.errors import CheckpointError
from edgewise.peers.frames import VECTORS, Frame
from edgewise.peers.links import Link
from edgewise.peers.local import Facts
from edgewise.peers.meeting import agreed

if TYPE_CHECKING:
    from edgewise.peers.peer import Peer

FILE = "checkpoint.npz"


def collect(peer: "Peer") -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Head and arrays. What was sent and not yet saved by its receiver goes in too: this peer may
    be the only one that still has it. What came is kept in tolerant mode alone: in strict it is
    sent again."""
    head = {
        "mark": mark_of(peer),
        "round": peer.round,
        "seconds": peer.seconds(),
        "calm": peer.calm,
        "stop_at": peer.stop_at,
        "facts": {str(k): list(f) for k, f in peer.facts.items()},
        "trace": peer.trace,
    }
    arrays = {f"leaf{k}": np.asarray(a) for k, a in enumerate(jax.tree.leaves(peer.carry))}
    for other, link in peer.links.items():
        for round, data in link.outgoing.items():
            arrays[f"out{other}.{round}"] = np.frombuffer(data, np.uint8)
        if not link.strict:
            arrays |= {f"in{other}.{round}": frame.payload for round, frame in link.mail.items()}
    return head, arrays


def mark_of(peer: "Peer") -> str:
    """Of the fit, the data and the neighbours that a checkpoint is for."""
    known = json.dumps([agreed(peer), list(peer.own), sorted(peer.links)])
    return hashlib.sha256(known.encode()).hexdigest()


def remember(peer: "Peer") -> dict[str, np.ndarray] | None:
    """Put the peer where the last checkpoint left off; its arrays, if there is one."""
    found = load(peer.config.out, mark_of(peer))
    if found is None:
        return None
    head, arrays = found
    peer.facts = {int(k): Facts(*v) for k, v in head["facts"].items()}
    peer.round = peer.saved = head["round"]
    peer.before, peer.trace = head["seconds"], head["trace"]
    peer.calm, peer.stop_at = head["calm"], head["stop_at"]
    for link in peer.links.values():
        link.need = peer.round
    return arrays


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
