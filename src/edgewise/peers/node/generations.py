"""Two generations of a peer's checkpoint: where the newest is damaged, the one before serves.

In strict mode a peer that comes back from the one before needs messages that are older, so that
neighbours are told of the older of the two (`PeerState.saved`), and keep messages from there on.
"""

import logging
from pathlib import Path
from typing import Any

import numpy as np

from edgewise.errors import CheckpointError
from edgewise.fileio import second_name
from edgewise.peers.node.fit_identity import Identity, require_same
from edgewise.running.checkpoint_file import read, write

log = logging.getLogger("edgewise.peers")

CHECKPOINT, PREVIOUS = "checkpoint.bin", "checkpoint.previous.bin"
Checkpoint = tuple[dict[str, Any], dict[str, np.ndarray]]  # head and arrays


def write_next(folder: Path, head: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """The newest, and the one that was is the one before."""
    write(folder / CHECKPOINT, head, arrays, keep=folder / PREVIOUS)


def read_newest(folder: Path, fit: Identity) -> Checkpoint | None:
    """Of this very fit: the newest that is whole; None where there is none, which is how a peer is
    made to start anew. One that served in the place of a damaged one has that one's name then, so
    that the damaged one is never kept."""
    newest, previous = folder / CHECKPOINT, folder / PREVIOUS
    if not newest.exists():
        previous.unlink(missing_ok=True)  # of a run that is to be forgotten
        return None
    try:
        return read_one(newest, fit)
    except (OSError, ValueError, KeyError, TypeError) as damage:
        try:
            found = read_one(previous, fit)
        except (OSError, ValueError, KeyError, TypeError, CheckpointError) as other:
            none = isinstance(other, FileNotFoundError)
            also = "there is none before it" if none else f"nor is {previous.name} ({other})"
            raise CheckpointError(
                f"{newest} is no readable checkpoint ({damage}), and {also}: delete it to start "
                "anew"
            ) from damage
        log.warning(
            "%s is damaged (%s): the one before it serves, of round %d. Look after that disk",
            newest,
            damage,
            found[0]["round"],
        )
        second_name(previous, newest)
        return found


def read_one(path: Path, fit: Identity) -> Checkpoint:
    head, arrays = read(path)
    require_same(head.get("fit"), fit, path)
    return head, arrays
