"""What a peer keeps when it ends, also where its disk is full: then the model goes elsewhere, and
the end says where."""

import hashlib
import json
import logging
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from edgewise.errors import InputError, ProblemError
from edgewise.fileio import replacing
from edgewise.peers.node import checkpoint
from edgewise.peers.node.ending import Ending
from edgewise.peers.node.handshake import agreed
from edgewise.peers.node.state import PeerState
from edgewise.running.fitted_model import FittedModel
from edgewise.running.model_form import ModelForm
from edgewise.running.result import provenance
from edgewise.running.run import CONVERGED

log = logging.getLogger("edgewise.peers")

MOST_PRINTED = 10_000  # numbers of a model that no file could be made of


def no_room(problem: OSError) -> InputError:
    return InputError(
        f"{problem.filename or 'a file'} cannot be written ({problem.strerror}): make room, or "
        "give another folder as out"
    )


async def save_at_last(peer: PeerState) -> str:
    """The last checkpoint, as both generations, so that nobody keeps messages for this peer any
    more. What went wrong, or nothing."""
    try:
        for _ in range(2):
            await peer.save(*checkpoint.contents(peer))
    except OSError as problem:
        return f"no checkpoint of round {peer.round}: {said(problem)}"
    return ""


def flush_trace(peer: PeerState) -> str:
    try:
        peer.trace.flush()
    except OSError as problem:
        return f"the last rows of the trace are lost: {said(problem)}"
    return ""


def save_model(
    peer: PeerState, x: np.ndarray, ending: Ending, multipliers: dict[int, np.ndarray]
) -> str:
    """model.npz and, where its models are of columns, model.json. What went wrong, or nothing."""
    told = {f"multipliers_{other}": a for other, a in multipliers.items()}
    arrays = {"x": x, "round": peer.round, "ending": json.dumps(ending_told(peer, ending)), **told}

    def plain(folder: Path) -> None:
        with replacing(folder / "model.npz") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]

    def whole(folder: Path) -> None:
        plain(folder)
        if peer.problem.cost is None:
            save_form(peer, x, ending, folder)

    try:
        whole(peer.config.out)
    except OSError as problem:
        return f"no model in its folder: {said(problem)}; {saved_elsewhere(peer, x, whole)}"
    return ""


def ending_told(peer: PeerState, ending: Ending) -> dict[str, Any]:
    """Of a private fit without what was measured on data: the file may go anywhere."""
    if peer.privacy is None:
        return ending.table()
    return {**ending.table(), "residual": None, "message": f"private: {peer.privacy}"}


def save_form(peer: PeerState, x: np.ndarray, ending: Ending, folder: Path) -> None:
    """As model.json, for `edgewise predict`; without it where its loss alone can tell."""
    done = ending.met or (ending.tol is None and peer.residual <= CONVERGED)
    how = (peer.round, bool(done), ending.message, peer.residual, peer.method_note)
    if peer.privacy is not None:  # the file may go anywhere: nothing in it is measured on data
        how = (peer.round, False, f"private: {peer.privacy}", float("nan"), peer.method_note)
    told = provenance(peer.settled_fit.method, *how)
    told |= {"peer": peer.config.id, **source_of(peer)}
    if peer.privacy is None:
        told["ending"] = ending.table()
    with suppress(ProblemError):  # it diverged
        FittedModel.of(ModelForm.of(peer.problem), x, told).write(folder)


def source_of(peer: PeerState) -> dict[str, Any]:
    """Of which network and data a model is."""
    config = peer.config
    weights = "sample" if config.weighs_samples else "node"
    return {
        "mesh": config.mesh,
        "peers": config.nodes,
        "config": text_digest(agreed(peer)),
        "schema": None if config.schema is None else config.schema.digest,
        "data": None if peer.privacy else peer.data_digest or checkpoint.data_digest(peer.problem),
        "weights": weights,
        "agreed_on": peer.agreed_on,
        "held_out": peer.scores,
    }


def text_digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def saved_elsewhere(peer: PeerState, x: np.ndarray, save: Callable[[Path], Any]) -> str:
    """In a folder for temporary files that only this user can read, or in the log."""
    with suppress(OSError):
        folder = Path(tempfile.mkdtemp(prefix=f"edgewise-peer{peer.config.id}-"))
        save(folder)
        return f"it is in {folder}"
    if len(x) <= MOST_PRINTED:
        log.error("its model, which no file could be made of: x = %s", json.dumps(x.tolist()))
        return "it is in the log"
    return "it is lost, but for the checkpoint"


def said(problem: OSError) -> str:
    return f"{problem.filename or 'a file'} cannot be written ({problem.strerror})"
