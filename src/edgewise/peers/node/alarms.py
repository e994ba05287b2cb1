"""Signs that a neighbour does not say what its data say, or that a peer's own data are not what the
others take them for. An alarm is for people: the run goes on.

What a peer has to hold a model against is what its data come to alone (`OwnSize`): mean losses of
its samples, without ridge or penalty. Where silos differ, the joint model fits none of them as well
as their own models would. It fits one far worse if what it loses against the own fit is more than
twice what that gains over a model of zeros; of few samples more, as chance alone makes some misfit.
"""

import logging

import numpy as np

from edgewise.peers.node.edge_watch import at_bound
from edgewise.peers.node.own_size import OwnSize
from edgewise.peers.node.state import PeerState
from edgewise.problem.problem import Problem

log = logging.getLogger("edgewise.peers")

LOOKS = 5  # in a row before it is an alarm: runs overshoot
FAR_WORSE = 2.0  # times what the own fit gains over zeros, of many samples
BY_CHANCE = 2.0  # over the root of their number: what is added to 1 of that
LEAST_GAIN = 0.05  # part of the loss of zeros that counts as gained, where a fit gains nothing
ALONE = 10.0  # times all else that pulls


def watch(peer: PeerState, measured: dict[str, np.ndarray]) -> bool:
    """After every look: alarms come when they have held for some, and go when they hold no more.
    Whether the model is sound by this look."""
    own = peer.own_size
    if own is None:
        return False
    peer.pulls = dict(zip(peer.members, map(float, measured.get("pulls", ())), strict=False))
    rows = zip(peer.members, measured.get("edge_duals", ()), strict=False)
    peer.edge_watch.see({j: np.asarray(dual, np.float64) for j, dual in rows})
    samples, weight = counted(peer.problem)
    peer.loss = float(measured["loss"]) / weight
    data_pull = max(own.pull * weight, float(measured["data_pull"]))
    found = {
        "fit": misfit(own, peer.loss, samples, peer.pulls),
        "pull": lone_pull(data_pull, peer.pulls),
        "on": peer.edge_watch.pulls_on(own.pull * weight),
        "bound": at_bound(peer.pulls, measured.get("radius", ())),
        "cut": cut_messages(peer.cut),
    }
    for kind, text in found.items():
        peer.alarm_looks[kind] = peer.alarm_looks.get(kind, 0) + 1 if text else 0
        if peer.alarm_looks[kind] == LOOKS:
            log.warning("ALARM: %s", text)
        if peer.alarm_looks[kind] >= LOOKS:
            peer.alarms[kind] = text
        else:
            peer.alarms.pop(kind, None)
    return not any(found.values())


def counted(problem: Problem) -> tuple[int, float]:
    """Its samples, and how much the mean of their losses counts."""
    return int(problem.counts[0]), 1.0 if problem.scale is None else float(problem.scale.mean())


def misfit(own: OwnSize, loss: float, samples: int, pulls: dict[int, float]) -> str:
    gain = max(own.of_zeros - own.of_own_fit, LEAST_GAIN * abs(own.of_zeros))
    allowed = FAR_WORSE * (1 + BY_CHANCE / np.sqrt(samples))
    if loss - own.of_own_fit <= allowed * gain or own.of_zeros == 0:
        return ""
    hardest = max(pulls, key=lambda j: pulls[j], default=None)
    who = "" if hardest is None else f"; peer {hardest} pulls hardest"
    return (
        f"the joint model fits this peer's data far worse (loss {loss:.3g}) than a model of zeros "
        f"({own.of_zeros:.3g}), its own fit comes to {own.of_own_fit:.3g}: its data are unlike the "
        f"others', or somebody's data or labels are not what they should be, or one lies{who}"
    )


def lone_pull(data: float, pulls: dict[int, float]) -> str:
    """At rest the pulls of all edges and of the own data add up to zero, so that none is alone."""
    if len(pulls) < 2 or not data:
        return ""
    hardest = max(pulls, key=lambda j: pulls[j])
    rest = data + sum(pull for j, pull in pulls.items() if j != hardest)
    if pulls[hardest] <= ALONE * rest:
        return ""
    return (
        f"peer {hardest} pulls alone, {pulls[hardest] / rest:.0f} times as hard as this peer's "
        "data and all other neighbours together"
    )


def cut_messages(neighbours: set[int]) -> str:
    """A message that was cut is no message of the optimum's."""
    if not neighbours:
        return ""
    return (
        f"what it sends to peers {sorted(neighbours)} is beyond what they take, and is cut: tol "
        "cannot be met; somebody lies, or has labels or columns in other units"
    )
