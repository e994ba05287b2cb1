"""What peers agree on before they fit: how many samples there are, and the columns' means and
spreads, as sums over all peers, which go up and down a tree of neighbours (`tree_sum`)."""

import asyncio
import json
import logging

import jax
import numpy as np

from edgewise.fileio import write_json
from edgewise.peers.node.checkpoint import data_digest
from edgewise.peers.node.fit_identity import Identity, identity_of, require_same
from edgewise.peers.node.generations import CHECKPOINT
from edgewise.peers.node.handshake import agreed
from edgewise.peers.node.masked_stages import (
    MaskedSumFailed,
    give_up,
    sums_of,
    told_numbers,
)
from edgewise.peers.node.own_problem import refitted, total_weight
from edgewise.peers.node.private_fit import make_private
from edgewise.peers.node.result import PeerError
from edgewise.peers.node.state import PeerState
from edgewise.peers.node.tree_sum import missing, place_of, report_of, told_to
from edgewise.peers.transport.reports import Report, exact, parts_of, rounded, sum_in
from edgewise.running.standardize import first_sums, scaling_of, second_sums

log = logging.getLogger("edgewise.peers")

SAMPLES, SPREAD = "samples", "spread"  # stages
COUNTS = 4  # numbers at the head of the first: samples, held out, peers with sparse columns, and
# the sum of case weights
AGREEMENT = "agreement.json"
TELL_EVERY = 10.0  # seconds


# --- one sum --------------------------------------------------------------------------------------


def heard(peer: PeerState, stage: str) -> dict[int, Report | None]:
    return {j: link.reports.heard.get(stage) for j, link in peer.links.items()}


def tell(peer: PeerState, report: Report) -> None:
    for j, link in peer.links.items():
        link.tell(told_to(j, report))
    if report.total:
        peer.totals[report.stage] = report


async def total_of(
    peer: PeerState, stage: str, own: np.ndarray, stop: asyncio.Event
) -> np.ndarray | None:
    """The sums over all peers, or None where this one is stopped before they are known."""
    numbers = exact(own)

    def known() -> bool:
        told = told_numbers(peer, stage, numbers)
        if told is None:
            return False
        report = report_of(stage, peer.config.id, peer.config.nodes, told, heard(peer, stage))
        tell(peer, report)
        return report.total and len(report.sums) == len(numbers)

    try:
        while not stop.is_set() and not known():
            await peer.wait(known, stop, TELL_EVERY)
            if not known():
                say_missing(peer, stage)
    except MaskedSumFailed as why:
        await give_up(peer, stage)
        raise PeerError(
            f"{why}: with masks nobody can be left out, so that no peer has the sum; start the fit "
            "anew at all peers"
        ) from None
    return None if stage not in peer.totals else rounded(sums_of(peer, peer.totals[stage]))


def say_missing(peer: PeerState, stage: str) -> None:
    around = heard(peer, stage)
    late = missing(peer.config.id, place_of(peer.config.id, peer.config.nodes, around), around)
    late = late or [j for j, report in around.items() if report is not None]
    log.info("waits for the sums of %s, which peers %s have yet to tell", stage, late)


# --- what the fit takes of them -------------------------------------------------------------------


async def agree(peer: PeerState, stop: asyncio.Event) -> bool:
    """Whether all is agreed on; the peer's problem is then as it is to be fitted."""
    X = peer.problem.shards.X
    dense = isinstance(X, np.ndarray)
    held = 0 if peer.held is None else len(peer.held.y)
    weight = total_weight(peer.problem)
    counts = np.array([len(peer.problem.labels), held, not dense, weight], np.float64)
    standardize = peer.config.fit.standardize
    sums = first_sums(X, np.ones(X.shape[0]))[1:] if standardize else np.zeros(0)
    first = await total_of(peer, SAMPLES, np.concatenate([counts, sums]), stop)
    if first is None:
        return False
    if standardize:
        about, unit = centre_of(first)
        own = second_sums(X, np.ones(X.shape[0]), about, unit)[1:]
        if await total_of(peer, SPREAD, own, stop) is None:
            return False
    keep(peer)
    with jax.enable_x64(True):
        take(peer)
    return True


def centre_of(first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the second sums are taken about, and their units."""
    sums, sizes = np.split(first[COUNTS:], 2)
    return sums / first[0], np.where(sizes > 0, sizes / first[0], 1.0)


def take(peer: PeerState) -> None:
    """The problem as it is to be fitted, of totals that are known."""
    total = peer.totals[SAMPLES]
    first, V = rounded(sums_of(peer, total)), len(total.ids)
    N, sparse = first[0], first[2]
    scaling = None
    if SPREAD in peer.totals:
        about, unit = centre_of(first)
        shift, square = np.split(rounded(sums_of(peer, peer.totals[SPREAD])), 2)
        scaling = scaling_of(about, unit, shift / N, square / N, not sparse, int(N))
    weight = V / first[3] if peer.config.weighs_samples else None
    peer.problem = refitted(peer.config, peer.problem, scaling, weight)
    make_private(peer)
    peer.agreed_on = {"samples": int(N), "peers": list(total.ids), "held_out": int(first[1])}
    peer.agreeing = False
    peer.count_neighbours()
    own = len(peer.problem.labels)
    log.info("%d samples at %d peers, %d of them here", N, V, own, extra=peer.agreed_on)
    if peer.config.id not in total.ids:
        log.warning(
            "the others had agreed on counts%s before this peer joined: its samples are not in "
            "them, and weigh as much as theirs",
            " and on the columns' means and spreads" if scaling is not None else "",
        )


# --- what is kept ---------------------------------------------------------------------------------


def identity(peer: PeerState) -> Identity:
    """The fit and this peer's data as they came."""
    held = 0 if peer.held is None else len(peer.held.y)
    peer.data_digest = data_digest(peer.problem)
    return identity_of(agreed(peer), data=peer.data_digest, held_out=held)


def keep(peer: PeerState) -> None:
    totals = {
        stage: {"ids": report.ids, "sums": list(map(parts_of, report.sums))}
        for stage, report in peer.totals.items()
    }
    path = peer.config.out / AGREEMENT
    try:
        write_json(path, {"fit": peer.agreed_for, "totals": totals})
    except OSError as problem:  # the neighbours know it too
        log.warning("%s is not written: %s; the run goes on", path, problem)


def recall(peer: PeerState) -> None:
    """What had been agreed on when this peer was stopped, if it is of this fit and these data."""
    peer.agreed_for = identity(peer)
    path = peer.config.out / AGREEMENT
    try:
        saved = json.loads(path.read_text())
        same = saved["fit"] == peer.agreed_for
        totals = {
            stage: Report(
                stage, 0, 0, None, tuple(of["ids"]), tuple(map(sum_in, of["sums"])), total=True
            )
            for stage, of in saved["totals"].items()
        }
    except FileNotFoundError:
        return
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        log.warning("%s cannot be read (%s): it is agreed on anew", path, problem)
        return
    if not same and (peer.config.out / CHECKPOINT).exists():
        require_same(saved["fit"], peer.agreed_for, peer.config.out / CHECKPOINT)
    if same:
        for report in totals.values():
            tell(peer, report)
        with jax.enable_x64(True):
            take(peer)
