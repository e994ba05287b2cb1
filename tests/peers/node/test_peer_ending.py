"""How a peer's run ends: in words, in an exit code, and on what evidence."""

import json
import time
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from edgewise.cli.peer_status import residual_of
from edgewise.peers.node import absence
from edgewise.peers.node.absence import absences, count_lost_hops
from edgewise.peers.node.ending import Absence, Ending
from edgewise.peers.node.maintenance import waits_for
from edgewise.peers.node.termination import agree_to_stop, deserter, why_finished
from edgewise.peers.transport.frames import (
    FAREWELL,
    NEVER,
    NO_LOSS,
    VECTORS,
    Frame,
    MessageFormat,
    decode,
    encode,
)
from edgewise.peers.transport.links import Link
from edgewise.peers.transport.wakeup import Wakeup

FORMAT = MessageFormat(1, 3, "float64")
TOL, V = 1e-6, 5


def link(other=2, strict=False, **attributes):
    made = Link(1, other, strict, FORMAT, 21, Wakeup())
    for name, value in {"connected": True, "responsive": True, **attributes}.items():
        setattr(made, name, value)
    return made


def peer(strict=False, links=(), **attributes):
    fit = SimpleNamespace(tol=TOL, rounds=100, seconds=None, patience=1.0)
    config = SimpleNamespace(fit=fit, nodes=V, record_every=10, drop_after=None)
    own = {
        "strict": strict,
        "config": config,
        "links": {k.other: k for k in links},
        "round": 60,
        "residual": 1e-1,
        "converged_hops": 0,
        "lost_hops": None,
        "privacy": None,
        "below_tol_at": -1,
        "stop_at": 100 if strict else NEVER,
        "stop_reason": "rounds",
        "seconds": lambda: 300.0,
    }
    return SimpleNamespace(**{**own, **attributes})


# --- what is said, and the exit code -----------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "code", "words"),
    [
        (("converged", 70, 1e-8, TOL, V, True), 0, ["finished", "tol 1e-06 met by all 5 peers"]),
        (("rounds", 100, 15.4, TOL, V, False), 1, ["last of its rounds", "NOT met: give more"]),
        (("rounds", 100, 1e-9, TOL, V, False), 1, ["met here, and not known to be met by all 5"]),
        (("seconds", 100, 15.4, TOL, V, False), 1, ["time was up", "NOT met"]),
        (("rounds", 100, 15.4, None, V, False), 0, ["no tol was given"]),
        (("stopped", 100, 15.4, TOL, V, False), 0, ["stopped after 100 rounds", "NOT met"]),
        (
            ("rounds", 8000, 5e-16, 1e-8, V, False, {2: Absence(90, False)}),
            3,
            ["neighbour 2 is away, last heard in round 90", "nobody's optimum", "not known to be"],
        ),
        (
            ("converged", 8000, 5e-16, 1e-8, V, True, {2: Absence(90, True)}),
            3,
            ["met by those that are left", "without its data"],
        ),
        (
            ("stopped", 0, np.inf, TOL, V, False, {2: Absence(0, False)}),
            0,
            ["neighbour 2 is away, never heard: the model is without its data"],
        ),
        (("converged", 80, 0.0, TOL, V, True, {}, 2), 3, ["a peer 2 hops away has lost one"]),
        (("deserted", 12, 6e-2, TOL, V, False, {}, None, 0), 3, ["peer 0 has left", "cannot"]),
    ],
)
def test_each_end_says_why_and_has_its_exit_code(known, code, words):
    end = Ending(*known)
    assert end.exit_code == code
    assert all(word in end.message for word in words), end.message
    assert json.loads(json.dumps(end.table()))["exit_code"] == code


# --- who was away ------------------------------------------------------------------------------


def test_a_neighbour_that_is_silent_or_hung_up_or_was_dropped_is_away_and_others_are_not():
    long_ago = time.monotonic() - 2 * absence.LEAST_SILENCE
    around = [
        link(0),
        link(2, connected=False, heard_at=40),
        link(3, last_heard=long_ago, heard_at=30),
        link(4, dropped=True),
        link(5, connected=False, gone=True),  # it has finished
        link(6, connected=False, converged_hops=V),  # it knows that all have converged
    ]
    own = peer(links=around)
    assert absences(own) == {2: Absence(40, False), 3: Absence(30, False), 4: Absence(0, True)}
    assert absences(peer(strict=True, links=around)) == {}


def test_news_of_a_loss_goes_hop_by_hop_and_dies_out_when_the_lost_one_is_back():
    """A path of peers 0 to 4 that tell each other at once; 0 has a neighbour that was dropped."""
    lost = link(9, dropped=True)
    path = [peer(links=[link(j) for j in (i - 1, i + 1) if 0 <= j < V]) for i in range(V)]
    path[0].links[9] = lost

    def tell():
        for one in path:
            count_lost_hops(one)
        for i, one in enumerate(path):
            for j in {i - 1, i + 1} & set(one.links):
                one.links[j].lost_hops = path[j].lost_hops

    for _ in range(V):
        tell()
    assert [one.lost_hops for one in path] == [0, 1, 2, 3, 4]
    lost.dropped = False
    for _ in range(2 * V):
        tell()
    assert [one.lost_hops for one in path] == [None] * V


def test_a_residual_is_shown_with_whom_it_does_not_speak_of():
    one = {"residual": 7.4e-17, "away": {"2": 115}, "lost_hops": 1}
    assert residual_of(one) == "7.40e-17 (without 2 since round 115)"
    assert residual_of(one | {"away": {}}) == "7.40e-17 (a neighbour lost one)"
    assert residual_of(one | {"away": {}, "lost_hops": 2}) == "7.40e-17 (one is lost further off)"
    assert residual_of(one | {"away": {}, "lost_hops": None}) == "7.40e-17"


def test_hops_to_a_loss_go_over_the_wire():
    for said, known in ((2, 2), (NO_LOSS, None)):
        frame = Frame(VECTORS, 7, lost_hops=said, sender=2, receiver=1, payload=np.zeros((1, 3)))
        one = link(2)
        one.receive(decode(encode(frame), 2, 1, FORMAT))
        one.take_message(7)
        assert one.lost_hops == known
        assert one.heard_at == 7


def test_waiting_for_the_absent_scales_with_the_run():
    now = time.monotonic()
    assert waits_for(peer(), link(last_heard=now)) == pytest.approx(300, abs=1)
    assert waits_for(peer(seconds=lambda: 2.0), link(last_heard=now)) == 30
    assert waits_for(peer(seconds=lambda: 1e6), link(last_heard=now)) == 3600
    own = peer()
    own.config.drop_after = 5.0
    assert waits_for(own, link(last_heard=now)) == 5


# --- a stop needs evidence ---------------------------------------------------------------------


def test_a_false_stop_is_not_believed_and_its_sender_is_counted():
    liar = link(0, strict=True, stop=62)
    own = peer(strict=True, links=[liar])
    agree_to_stop(own)
    assert (own.stop_at, liar.stop) == (100, 62), "evidence may still come"
    own.round = 62
    agree_to_stop(own)
    assert own.stop_at == 100
    assert liar.protocol_errors == 1
    assert liar.stop == NEVER


def test_a_stop_is_believed_where_the_own_residual_was_small_on_the_way():
    own = peer(strict=True, links=[link(0, strict=True, stop=65)], below_tol_at=50)
    agree_to_stop(own)
    assert (own.stop_at, own.stop_reason) == (65, "converged")
    assert why_finished(own) is None
    own.round = 65
    assert why_finished(own) == "converged"
    too_long_ago = peer(strict=True, links=[link(0, strict=True, stop=405)], below_tol_at=50)
    too_long_ago.round, too_long_ago.stop_at = 400, 1000
    agree_to_stop(too_long_ago)
    assert too_long_ago.stop_at == 1000


def test_a_stop_in_a_round_that_is_over_is_not_passed_on(caplog):
    """Whoever did so would be cut off by its neighbours for it, again and again."""
    liar = link(0, strict=True, stop=59)
    own = peer(strict=True, links=[liar], below_tol_at=50)
    agree_to_stop(own)
    assert (own.stop_at, liar.stop, liar.protocol_errors) == (100, NEVER, 1)
    assert "all stop at round 59, and this peer is at round 60" in caplog.text


def test_own_counters_stop_all_and_a_time_limit_may_be_anothers():
    own = peer(strict=True, converged_hops=V)
    agree_to_stop(own)
    assert (own.stop_at, own.stop_reason) == (60 + V, "converged")
    timed = peer(strict=True, links=[link(0, strict=True, stop=65)])
    timed.config.fit.seconds = 1e9
    agree_to_stop(timed)
    assert (timed.stop_at, timed.stop_reason) == (65, "seconds")


def test_a_strict_neighbour_that_has_left_is_not_waited_for():
    other = link(2, strict=True)
    own = peer(strict=True, links=[other])
    assert deserter(own) is None
    other.awaited_round = 60
    other.receive(Frame(VECTORS, 60, payload=np.zeros((1, 3))))
    other.receive(Frame(FAREWELL, 60))
    assert deserter(own) is None, "its message is here"
    own.round = 61
    assert deserter(own) == 2


def test_news_after_all_agreed_are_waited_out_but_not_for_ever():
    """One that was away comes back and lifts the residual: no end without success yet."""
    around = [link(converged_hops=V)]
    own = peer(links=around, converged_hops=V, looked_at=60, below_tol_at=50, residual=3 * TOL)
    own.config.fit.rounds = 10**6
    assert why_finished(own) is None
    own.residual = TOL
    assert why_finished(own) == "converged"
    own.residual, own.round, own.looked_at = 3 * TOL, 360, 360
    assert why_finished(own) == "converged", "neighbours that have finished answer no more"
    own.round, own.looked_at = 351, 350
    assert why_finished(own) is None, "it ends at a look"
    own.round, own.looked_at = 60, -1
    assert why_finished(own) is None, "started again meanwhile, it goes on too"


def test_what_a_waiting_peer_cannot_do_is_not_blamed_on_the_frame_that_woke_it():
    def impossible():
        raise OSError

    waiting = Wakeup()
    waiting.awaited = impossible
    waiting.frame_came()
    assert waiting.is_set()
