"""Rules that peers follow by themselves: whom to wait for, when to go, what to believe."""

import asyncio
import time
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from uneven import problem_of

from edgewise.peers.config.peer_config import Fit
from edgewise.peers.node import termination
from edgewise.peers.node.checkpoint import identity
from edgewise.peers.node.handshake import ends_of_edge, settle_edge
from edgewise.peers.node.membership import draws_by
from edgewise.peers.node.peer import Peer
from edgewise.peers.node.stepper import facts_of
from edgewise.peers.node.termination import A_WHILE, LINGER, done_with
from edgewise.peers.transport.bounds import Bounds
from edgewise.peers.transport.edge_facts import EdgeFacts, NodeFacts
from edgewise.peers.transport.frames import (
    GREETING,
    VECTORS,
    VERSION,
    Frame,
    MessageFormat,
    ProtocolError,
    encode,
)
from edgewise.peers.transport.links import Link
from edgewise.peers.transport.reading_pace import FREE
from edgewise.peers.transport.wakeup import Wakeup

FORMAT = MessageFormat(1, 3, "float64")


def link(other=2, strict=False, **attributes):
    made = Link(1, other, strict, FORMAT, 21, Wakeup())
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def heard(round):
    return Frame(VECTORS, round, payload=np.zeros((1, 3)), turn=round - 7)


# --- whom to wait for -----------------------------------------------------------------------------


def waiting(*links):
    own = SimpleNamespace(strict=False, awaited=0, links=dict(enumerate(links)))
    own.members = list(own.links)
    return own


def test_a_silent_neighbour_is_waited_for_once_and_again_when_it_has_spoken():
    slow, quick = link(), link()
    own = waiting(slow, quick)
    for one in (slow, quick):
        one.receive(heard(7))
    assert Peer.ready(own)
    for one in (slow, quick):
        one.take_message(7)
    own.awaited = 1
    quick.receive(heard(8))
    assert not Peer.ready(own)
    Peer.lose_patience(own)  # with the slow one
    own.awaited = 2
    quick.receive(heard(9))
    assert Peer.ready(own)
    slow.receive(heard(8))
    assert not Peer.ready(own)


def test_one_that_floods_is_not_waited_for_while_it_does():
    """What it sent last is behind all that, and each of the turns on the way is another."""
    flooding, other = link(), link()
    own = waiting(flooding, other)
    own.awaited = 1000
    for round in range(7, 7 + FREE):
        flooding.receive(heard(round))
    other.receive(heard(7 + own.awaited))
    assert not Peer.ready(own), "so many may come of one that was away"
    flooding.receive(heard(50))
    assert Peer.ready(own)
    flooding.take_message(1000)
    flooding.receive(heard(51))
    assert not Peer.ready(own), "it keeps to one a round now"


def test_when_all_are_silent_they_are_waited_for_and_when_all_have_finished_nobody_is():
    one, other = link(), link()
    own = waiting(one, other)
    assert not Peer.ready(own)
    one.gone = other.gone = True
    assert Peer.ready(own)


def test_a_neighbours_converged_hops_count_with_the_message_that_it_came_with():
    one = link()
    one.receive(heard(7)._replace(converged_hops=2))
    assert one.converged_hops == 0
    one.take_message(7)
    assert one.converged_hops == 2


# --- when to go -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strict", "silent", "saved", "gone", "streams", "expected"),
    [
        (True, LINGER + 1, 40, False, 1, True),
        (True, 10 * A_WHILE, 39, False, 1, False),  # it may need round 39 again
        (True, A_WHILE + 1, 39, False, 0, True),  # started again when it had finished
        (True, LINGER + 1, 39, False, 0, False),
        (True, LINGER - 1, 40, False, 1, False),
        (False, LINGER + 1, 0, False, 1, False),  # it must hear that all is over, when it is back
        (False, 101.0, 0, False, 1, True),
        (False, LINGER + 1, 0, True, 1, True),
    ],
)
def test_how_long_a_finished_peer_stays_for_one_that_is_away(
    strict, silent, saved, gone, streams, expected
):
    config = SimpleNamespace(drop_after=100.0, nodes=3)
    own = SimpleNamespace(strict=strict, round=40, config=config)
    away = link(strict=strict, saved=saved, gone=gone, last_heard=time.monotonic() - silent)
    away.streams = streams
    assert done_with(own, away) == expected
    away.converged_hops = 3  # it knows that all is over
    assert done_with(own, away) == (expected or (not strict and silent > LINGER))
    away.connected = True
    assert not done_with(own, away)
    away.gone = away.farewell_sent = True
    assert done_with(own, away)


def test_all_farewells_are_saved_also_one_that_comes_while_another_is_saved(monkeypatch):
    first, second = link(2, strict=True), link(3, strict=True)
    first.farewell_sent = second.farewell_sent = True
    saved = []

    async def save(gone):
        second.gone = True  # meanwhile
        saved.append(gone)

    async def wait(*_):
        first.gone = True

    own = SimpleNamespace(
        strict=True, round=40, links={2: first, 3: second}, save=save, wait=wait, config=None
    )
    own.frame = lambda kind, other: Frame(kind, 40)
    monkeypatch.setattr(termination, "PARTING", 0.0)
    now = lambda _: ({id for id, one in own.links.items() if one.gone},)  # noqa: E731
    monkeypatch.setattr(termination.checkpoint, "contents", now)
    asyncio.run(termination.linger(own, asyncio.Event()))
    assert saved == [{2}, {2, 3}]


# --- what a checkpoint is for ---------------------------------------------------------------------


def owner(problem, strict=False, penalty=(), neighbours=(2,)):
    config = SimpleNamespace(agreed=dict, penalty=penalty)
    links = {id: link(id) for id in neighbours}
    own = facts_of(problem, len(neighbours))
    fit = Fit("pd")
    return SimpleNamespace(
        problem=problem,
        config=config,
        settled_fit=fit,
        links=links,
        facts=own,
        strict=strict,
        edges={},
    )


def test_a_checkpoint_is_of_these_data_and_this_penalty():
    problem, same, labels, numbers = (problem_of(7, 1) for _ in range(4))
    labels.labels = -labels.labels
    numbers.shards.X[0, 0] += 1e-9
    own = identity(owner(problem))
    assert identity(owner(same)) == own
    assert identity(owner(labels)) != own
    assert identity(owner(numbers)) != own
    assert identity(owner(problem, penalty=("l1:1",))) != own


def test_only_strict_peers_draw_by_the_seed_that_all_know():
    assert draws_by(Fit(mode="strict", seed=7)) == 7
    assert len({draws_by(Fit(mode="tolerant", seed=7)) for _ in range(3)} - {7}) == 3


def test_neighbours_may_change_in_tolerant_mode_alone():
    problem = problem_of(7, 1)
    marks = {s: identity(owner(problem, s, neighbours=(2,))) for s in (False, True)}
    others = {s: identity(owner(problem, s, neighbours=(2, 3))) for s in (False, True)}
    assert marks[False] == others[False]
    assert marks[True] != others[True]


# --- what must fit --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({}, None),
        ({"seed": 2}, "peer 2 has seed = 2, this peer 1: make them the same"),
        (
            {"method": "saga-pd"},
            "peer 2 has method = 'saga-pd', this peer 'pd': make them the same",
        ),
        ({"seed": None}, "peer 2 has seed = None, this peer 1: make them the same"),
        ({"of\nlater": 1}, r"peer 2 has 'of\nlater' = 1, this peer None: make them the same"),
        (
            {"seed": "x" * 500},
            f"peer 2 has seed = '{'x' * 199}..., this peer 1: make them the same",
        ),
    ],
)
def test_what_differs_is_named_whoever_has_it(change, named):
    facts = NodeFacts(2, 10, 1.0, 0.5)
    own = SimpleNamespace(
        config=SimpleNamespace(
            agreed=lambda: {"seed": 1, "method": "auto"}, id=1, schema=None, nodes=5
        ),
        settled_fit=Fit("pd"),  # what auto came to, which is compared
        problem=SimpleNamespace(size=3, classes=None, columns=None),
        facts=facts,
        facts_towards=lambda other: facts,
        edges={},
        agreeing=False,
        strict=False,
        own_size=None,
        bounds=Bounds(),
    )
    said = {
        "agreed": {"protocol": VERSION, "seed": 1, "method": "pd", "set": [], "unknowns": 3}
        | change,
        "facts": list(facts),
        "table": {"digest": None, "schema": None, "columns": None},
        "edge": None,
    }
    assert settle_edge(own, link(facts_sent=facts), said | {"oldest_kept": 0, "resume_at": 0}) == (
        named or ""
    )


# --- how an edge is weighed -----------------------------------------------------------------------

A, B, A_LATER = NodeFacts(2, 10, 1.0, 0.5), NodeFacts(3, 20, 2.0, 0.7), NodeFacts(4, 10, 1.0, 0.5)


@pytest.mark.parametrize("known_to_a", [None, EdgeFacts(A, B), EdgeFacts(A_LATER, B)])
@pytest.mark.parametrize("known_to_b", [None, EdgeFacts(B, A), EdgeFacts(B, A_LATER)])
def test_both_ends_weigh_an_edge_alike_whatever_each_remembers(known_to_a, known_to_b):
    def turned(pair):
        return None if pair is None else EdgeFacts(pair.other, pair.own)

    def end(me, own):
        return SimpleNamespace(config=SimpleNamespace(id=me), facts=own)

    at_a = ends_of_edge(
        end(1, A_LATER), link(2, pair=known_to_a, facts_sent=A_LATER), B, turned(known_to_b)
    )
    at_b = ends_of_edge(
        end(2, B), link(1, pair=known_to_b, facts_sent=B), A_LATER, turned(known_to_a)
    )
    assert at_a == turned(at_b)


# --- greetings ------------------------------------------------------------------------------------


class Anybody:
    def greet(self, link):
        return {}

    def meet(self, link, said):
        link.met = said


def talk(*texts):
    """A link that hears these first on as many streams, one opened after the other has begun."""

    async def all_of_them():
        one = link()
        gates = [asyncio.Event() for _ in texts]

        async def stream(text, gate):
            async def read():
                await gate.wait()
                return encode(Frame(GREETING, sender=2, receiver=1, payload=text))

            async def write(data):
                pass

            await one.run(SimpleNamespace(read=read, write=write, dialled=False), Anybody())

        tasks = []
        for text, gate in zip(texts, gates, strict=True):
            tasks.append(asyncio.ensure_future(stream(text, gate)))
            await asyncio.sleep(0)
        for gate in reversed(gates):
            gate.set()
            await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        return one, await asyncio.gather(*tasks, return_exceptions=True)

    return asyncio.run(all_of_them())


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 60_000,
        b'{"resume_at": 1e999, "incarnation": ""}',
        b'{"resume_at": -1, "incarnation": ""}',
        b'{"resume_at": NaN, "incarnation": ""}',
        b'{"resume_at": [], "incarnation": ""}',
        b"\xff\xfe",
    ],
)
def test_hostile_greetings_break_the_protocol(text):
    one, (outcome,) = talk(text)
    assert isinstance(outcome, ProtocolError)
    assert one.streams == 0


def test_a_late_greeting_over_a_stream_that_was_given_up_counts_for_nothing():
    one, (old, _) = talk(
        b'{"resume_at": 3, "incarnation": "old"}', b'{"resume_at": 9, "incarnation": "new"}'
    )
    assert isinstance(old, ConnectionError)
    assert (one.incarnation, one.next_round, one.streams) == ("new", 9, 1)
