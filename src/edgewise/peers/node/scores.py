"""How a model does on samples that were held out, at all peers: sums over the network, after the
fit. Each peer tries its own model on its own samples; rows go nowhere."""

import asyncio
import logging
import time
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import logsumexp

from edgewise.peers.node.agreement import heard, tell
from edgewise.peers.node.masked_stages import (
    MaskedSumFailed,
    give_up,
    sums_of,
    told_numbers,
    total_heard,
)
from edgewise.peers.node.state import PeerState
from edgewise.peers.node.tree_sum import missing, place_of, report_of
from edgewise.peers.transport.links import Link
from edgewise.peers.transport.reports import UNIT, Report, exact, rounded
from edgewise.running.goodness import has_means, predictions
from edgewise.running.model_form import KINDS, ModelForm

log = logging.getLogger("edgewise.peers")

HELD_OUT = "held-out"  # the stage
GIVEN_UP = 15.0  # seconds without a neighbour, after which its samples are left out
TELL_EVERY = 10.0  # seconds


def wanted(peer: PeerState) -> bool:
    """Whether anybody holds samples out, and models are of a kind that can be tried on them."""
    return bool(peer.agreed_on.get("held_out")) and bool(ModelForm.of(peer.problem).kind)


def own_sums(peer: PeerState, x: np.ndarray) -> tuple[int, ...]:
    """Rows, labels that are right, the sum of log losses (of deviances, of labels that have means
    by a link), of y, of y^2, and of squared errors."""
    held, form = peer.held, ModelForm.of(peer.problem)
    least = peer.config.least_count
    if held is not None and 0 < len(held.y) < least:
        log.warning(
            "this peer's %d held-out samples are in no scores: it tells no sums of fewer than %d "
            "(least_count)",
            len(held.y),
            least,
        )
        held = None
    if held is None:
        return exact(np.zeros(6))
    standardized = peer.config.fit.standardize and peer.problem.scaling is not None
    X = peer.problem.scaling.apply(held.X) if standardized else held.X
    W, b = form.weights(x)
    z = np.asarray(X @ W.T) + b
    z = z if held.offset is None else z + held.offset[:, None]
    n = float(len(held.y))
    if form.classes is None:
        y = held.y.astype(np.float64)
        squares = sum(square(value) for value in y.tolist())
        loss: Any = peer.problem.loss
        wrong = float(np.sum((y - predictions(loss, z[:, 0])) ** 2))
        deviance = float(np.sum(loss.deviance(z[:, 0], y))) if has_means(loss) else 0.0
        return (*exact([n, 0.0, deviance, float(np.sum(y))]), squares, *exact([wrong]))
    z = np.concatenate([np.zeros_like(z), z], 1) if z.shape[1] == 1 else z
    true = np.searchsorted(form.classes, held.y)
    right = float(np.sum(z.argmax(1) == true))
    losses = logsumexp(z, axis=1) - z[np.arange(len(z)), true] if KINDS[form.kind].chances else [0]
    return exact([n, right, float(np.sum(losses)), 0.0, 0.0, 0.0])


def square(value: float) -> int:
    n, d = value.as_integer_ratio()
    return n * n * UNIT // (d * d)


def scores_of(peer: PeerState, total: Report) -> dict[str, Any]:
    """Over whom, and how well: what a fit of this kind is judged by."""
    form = ModelForm.of(peer.problem)
    known = dict(zip(("rows", "right", "log_loss", "y", "yy", "errors"), total.sums, strict=True))
    rows = int(rounded([known["rows"]])[0])
    absent = sorted(set(peer.agreed_on["peers"]) - set(total.ids))
    said: dict[str, Any] = {"rows": rows, "peers": list(total.ids), "missing": absent}
    if not rows:
        return said
    n = Fraction(known["rows"], UNIT)
    each = {k: Fraction(v, UNIT) / n for k, v in known.items()}
    if form.classes is not None:
        said["accuracy"] = float(each["right"])
        if KINDS[form.kind].chances:
            said["log_loss"] = float(each["log_loss"])
        return said
    spread = each["yy"] - each["y"] ** 2
    if has_means(peer.problem.loss):
        said["deviance"] = float(each["log_loss"])
    said["mse"] = float(each["errors"])
    said["r2"] = float(1 - each["errors"] / spread) if spread > 0 else None
    return said


def in_words(scores: dict[str, Any]) -> str:
    called = {
        "accuracy": "accuracy",
        "log_loss": "log loss",
        "deviance": "mean deviance",
        "mse": "mean squared error",
        "r2": "R²",
    }
    told = [f"{words} {scores[k]:.4g}" for k, words in called.items() if scores.get(k) is not None]
    at = f"on {scores['rows']} held-out samples of {len(scores['peers'])} peers: "
    lost = ", ".join(map(str, scores["missing"]))
    return at + ", ".join(told) + (f"; without peers {lost}, which were away" if lost else "")


# --- over all peers -------------------------------------------------------------------------------


async def score(peer: PeerState, x: np.ndarray, stop: asyncio.Event) -> dict[str, Any] | None:
    """None where this peer is stopped."""
    total = await total_after(peer, HELD_OUT, own_sums(peer, x), stop)
    return None if total is None else scores_of(peer, total._replace(sums=sums_of(peer, total)))


async def total_after(
    peer: PeerState, stage: str, numbers: tuple[int, ...], stop: asyncio.Event
) -> Report | None:
    """A sum after the fit. Who runs is waited for, who is away is not for long: the report says
    whose numbers are in it; under masks nobody can be left out. None where this peer is stopped,
    or where there is no such sum, and the log says why."""
    me, V, masked = peer.config.id, peer.config.nodes, peer.config.fit.masked
    began = time.monotonic()
    kept = peer.totals.get(stage)  # where it had finished before it was started again

    def waived() -> list[int]:
        return [j for j, link in peer.links.items() if given_up(link, stage, began)]

    def known() -> bool:
        if kept is not None and len(kept.sums) == len(numbers):
            return True  # others may have gone
        told, away = told_numbers(peer, stage, numbers), waived()
        if masked and away and total_heard(peer, stage) is None:
            raise MaskedSumFailed(f"peers {away} are away")
        if told is None:
            return False
        around = heard(peer, stage)
        report = report_of(stage, me, V, told, around, away, all_needed=masked)
        tell(peer, report)
        return report.total and len(report.sums) == len(numbers)

    told_at = began
    try:
        while not stop.is_set() and not known():
            await peer.wait(known, stop, 1.0)
            if time.monotonic() - told_at > TELL_EVERY:
                told_at, around = time.monotonic(), heard(peer, stage)
                late = missing(me, place_of(me, V, around), around, waived())
                log.info("waits for the %s sums of peers %s", stage, late or "farther away")
    except MaskedSumFailed as why:
        log.warning("no %s sums: %s; with masks nobody can be left out", stage, why)
        await give_up(peer, stage)
        return None
    return peer.totals.get(stage)


def given_up(link: Link, stage: str, began: float) -> bool:
    if link.connected or stage in link.reports.heard:
        return False
    return link.dropped or link.gone or time.monotonic() - max(link.last_heard, began) > GIVEN_UP
