"""Standard errors of a fit of all peers: sums over the network, after the fit. Each peer works out
its own matrices, at the mean of all peers' models; everybody ends with the same table."""

import asyncio
import logging

import numpy as np

from edgewise.errors import DisclosureError, InputError
from edgewise.inference.estimates import Inference
from edgewise.inference.estimation import Wanted, estimation, require_inference
from edgewise.peers.config.peer_config import PeerConfig
from edgewise.peers.node import agreement
from edgewise.peers.node.masked_stages import sums_of
from edgewise.peers.node.scores import total_after
from edgewise.peers.node.state import PeerState
from edgewise.peers.transport.reports import exact, rounded
from edgewise.problem.problem import Problem

log = logging.getLogger("edgewise.peers")

STAGE = "summary"


def require_estimates(config: PeerConfig, problem: Problem) -> None:
    """Raises InputError before the fit, where there would be no table after it, or where this peer
    tells no matrix of so few samples."""
    if config.fit.summary is None:
        return
    try:
        require_inference(problem, debias=False)
    except InputError as refused:
        raise InputError(
            f"{config.path}: fit.summary: {refused}; peers have no debias, so leave one out"
            if "debias" in str(refused)
            else f"{config.path}: fit.summary: {refused}"
        ) from None
    least, count = config.least_count, int(problem.counts[0])
    if count < least:
        raise DisclosureError(
            f"{config.path}: this peer has {count} samples, and tells no matrix of fewer than "
            f"{least}: leave the peer or fit.summary out, or let it tell of fewer "
            "(peer.least_count)"
        )


async def estimate(peer: PeerState, x: np.ndarray, stop: asyncio.Event) -> Inference | None:
    """None where there is no table; the log says why."""
    wanted = Wanted(peer.config.fit.summary or "auto")
    model = await added(peer, "model", x, stop)
    if model is None:
        return None
    steps = estimation(peer.problem, model / peer.config.nodes, wanted)
    try:
        ask = next(steps)
        for part in range(1, 10):
            total = await added(peer, str(part), ask(peer.problem, 0), stop)
            if total is None:
                return None
            ask = steps.send(total)
    except StopIteration as done:
        made: Inference = done.value
        made.write(peer.config.out)
        agreement.keep(peer)  # for a restart that meets nobody any more
        return made
    except InputError as refused:
        log.warning("no standard errors: %s", refused)
    except OSError as problem:
        log.warning("summary.txt and summary.json are not written: %s", problem)
    return None


async def added(
    peer: PeerState, part: str, own: np.ndarray, stop: asyncio.Event
) -> np.ndarray | None:
    """The sums of all peers, or None where some are away."""
    total = await total_after(peer, f"{STAGE} {part}", exact(own), stop)
    if total is None:
        return None
    absent = sorted(set(peer.agreed_on["peers"]) - set(total.ids))
    if absent:
        log.warning("no standard errors, as peers %s were away after the fit", absent)
        return None
    return rounded(sums_of(peer, total))
