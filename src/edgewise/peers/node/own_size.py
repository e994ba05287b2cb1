"""How large a peer's messages are, and how well a model can fit its data: found on its own data
alone, before it has heard of anybody.

It takes some steps among neighbours that say what it says, as if all had its data, and comes near
its own fit; then some among neighbours that stay at the start and pull it back.
"""

import time
from typing import Any, NamedTuple

import numpy as np

from edgewise.peers.node.stepper import Stepper
from edgewise.peers.transport.edge_facts import EdgeFacts

ROUNDS, HELD_ROUNDS = 200, 10  # among neighbours that follow, and that stay
LONGEST = 0.3  # seconds for each, once compiled; two rounds at least


class OwnSize(NamedTuple):
    vectors: np.ndarray  # (k,) the largest number of each vector of a message
    body: float  # and of a body of news
    pull: float  # how hard its data pull at an edge, all neighbours being at the start
    of_zeros: float  # mean loss of its samples by the model that runs begin from
    of_own_fit: float  # and by what this peer comes to alone, or near it


def own_size(alone: Stepper, degree: int, dual_noise: float) -> OwnSize:
    own = alone.own
    stepper = alone.among([EdgeFacts(own, own)] * max(degree, 1))
    carry = first = stepper.start()
    vectors, body = sizes(stepper, carry)
    of_zeros = float(look(stepper, carry, carry)["loss"])
    round = 0
    for follow, most in ((True, ROUNDS), (False, HELD_ROUNDS)):
        carry = take(stepper, carry, carry if follow else first, round)  # compiles
        begun, taken = time.perf_counter(), 1
        while taken < most and (taken < 2 or time.perf_counter() - begun < LONGEST):
            round, taken = round + 1, taken + 1
            carry = take(stepper, carry, carry if follow else first, round)
            more, wider = sizes(stepper, carry)
            vectors, body = np.maximum(vectors, more), max(body, wider)
        seen = look(stepper, carry, carry if follow else first)
        if follow:
            of_own_fit = float(seen["loss"])
    known = np.maximum(vectors, dual_noise)
    sound = np.where(np.isfinite(known), known, 0.0)  # a method that diverges bounds nothing
    pull = float(np.max(seen["pulls"], initial=0))
    body, pull = (a if np.isfinite(a) else 0.0 for a in (body, pull))
    return OwnSize(sound, body, pull, of_zeros, min(of_own_fit, of_zeros))


def around(stepper: Stepper, carry: Any) -> tuple[np.ndarray, ...]:
    """What is heard where all neighbours say what this peer does."""
    outbox = carry[1]
    degree = len(stepper.block.links.owner)
    news = stepper.outgoing_news(outbox)
    return stepper.gathered([stepper.outgoing(outbox, n) for n in range(degree)], [news] * degree)


def take(stepper: Stepper, carry: Any, neighbours: Any, round: int) -> Any:
    return stepper.step(carry, round, around(stepper, neighbours))[0]


def look(stepper: Stepper, carry: Any, neighbours: Any) -> dict[str, np.ndarray]:
    return stepper.look(carry, around(stepper, neighbours))


def sizes(stepper: Stepper, carry: Any) -> tuple[np.ndarray, float]:
    """Of what goes out now."""
    outbox = carry[1]
    vectors = np.abs(stepper.outgoing(outbox, 0)).max(axis=1, initial=0).astype(np.float64)
    news = np.asarray(stepper.outgoing_news(outbox))[stepper.method.news_head :]
    return vectors, float(np.abs(news).max(initial=0)) if len(news) else 0.0
