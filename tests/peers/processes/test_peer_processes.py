"""Peers as processes: the simulator's answer, whoever is killed, late, stopped or starts anew."""

import random
import shutil
import signal
import time
from dataclasses import replace

import jax
import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from peer_process import Peers
from uneven import problem_of

import edgewise as ew
from edgewise.methods.catalogue import make
from edgewise.peers.config.peer_config import Fit
from edgewise.peers.node.stepper import Stepper, facts_of
from edgewise.peers.transport.edge_facts import EdgeFacts
from edgewise.running.trace import COLUMNS

BLACK_HOLE = 6.0  # seconds
GRAPH = ew.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
PENALTIES = [("l1:1e-2",), ("box:-0.1,0.1",), (), ("l2-ball:0.3",)]
FIT = Fit("saga-pd", weights="node", ridge=1e-3, rounds=20_000, mode="strict", classes=(-1.0, 1.0))


def penalised(nodes):
    each = [ew.L1(1e-2), ew.Box(-0.1, 0.1), ew.NoPenalty(), ew.L2Ball(0.3)]
    return problem_of(7, nodes, penalty=[each[i % 4] for i in range(nodes)])


def simulated(problem, graph, method, rounds):
    return ew.solve(problem, graph, method.healing(), rounds=rounds, reference=False).X


# --- the computation alone ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "eta"),
    [
        ("saga-pd", None),
        pytest.param("svr-pd", None, marks=pytest.mark.exhaustive),
        ("lsvr-pd", None),
        ("pdmm", None),
        pytest.param("d-admm", None, marks=pytest.mark.exhaustive),
        pytest.param("pg-extra", 0.1, marks=pytest.mark.exhaustive),
        ("nids", 0.1),
        pytest.param("newton-pd", None, marks=pytest.mark.exhaustive),
    ],
)
def test_one_node_at_a_time_is_the_simulator(name, eta):
    problem, graph, rounds = penalised(6), ew.Graph.random(6, 9, 1), 40
    with jax.enable_x64(True):
        own = [problem.only([i]) for i in range(6)]
        facts = [facts_of(part, int(graph.degrees[i])) for i, part in enumerate(own)]
        around = [graph.neighbours(i).tolist() for i in range(6)]
        peers = [
            Stepper(own[i], i, make(name, eta), 0, np.dtype(float), facts[i]).among(
                [EdgeFacts(facts[i], facts[j]) for j in around[i]]
            )
            for i in range(6)
        ]
        carries = [peer.start() for peer in peers]
        sent = [outbox for _, outbox in carries]
        for round in range(rounds):
            came = [
                [peers[j].outgoing(sent[j], around[j].index(i)) for j in around[i]]
                for i in range(6)
            ]
            news = [[peers[j].outgoing_news(sent[j]) for j in around[i]] for i in range(6)]
            after = [
                peer.step(carry, round, peer.gathered(*got))
                for peer, carry, *got in zip(peers, carries, came, news, strict=True)
            ]
            carries, sent = map(list, zip(*after, strict=True))
        models = [p.method.answer(c[0])[0] for p, c in zip(peers, carries, strict=True)]
    expected = simulated(problem, graph, make(name, eta), rounds)
    close = 1e-8 if name == "newton-pd" else 1e-12  # its matrices are rounded to float32
    np.testing.assert_allclose(np.stack(models), expected, rtol=0, atol=close)


# --- strict ---------------------------------------------------------------------------------------


def four(folder, **fit):
    return Peers(folder, penalised(4), GRAPH, replace(FIT, **fit), PENALTIES)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    order = random.Random(4).sample(range(4), 4)
    with four(tmp_path_factory.mktemp("peers"), tol=1e-7) as peers:
        for i in order:
            peers.start(i)
            time.sleep(0.3)
        assert peers.ended() == [0, 0, 0, 0]
        assert not any("is away" in peers.said(i) for i in range(4))  # they took their leave
        return peers.models()


def test_four_peers_come_to_the_simulators_models(undisturbed):
    models, rounds = undisturbed
    expected = simulated(penalised(4), GRAPH, make("saga-pd"), rounds[0])
    np.testing.assert_allclose(models, expected, rtol=0, atol=1e-10)


def test_all_stop_at_the_same_round_when_all_are_below_the_tolerance(undisturbed):
    models, rounds = undisturbed
    assert len(set(rounds)) == 1
    assert rounds[0] < FIT.rounds
    assert rounds[0] % 10 == 4  # V after a look: hops are counted with a new residual alone
    assert np.abs(models - ew.reference(penalised(4)).x).max() < 1e-6


def test_three_kills_and_a_damaged_checkpoint_change_nothing_at_all(undisturbed, tmp_path):
    with four(tmp_path / "mesh", tol=1e-7) as peers:
        peers.start(0, 1, 2, 3)
        peers.until_round(1, 100)
        peers.kill(1)
        checkpoint = peers.configs[1].out / "checkpoint.bin"
        data = bytearray(checkpoint.read_bytes())
        data[len(data) // 2] ^= 0x40
        checkpoint.write_bytes(data)
        peers.start(1)
        peers.until(lambda: peers.said(1).count("goes on from round") == 1, "a restart")
        peers.until_round(3, 400)
        peers.kill(3)
        peers.kill(0)
        peers.start(0, 3)
        assert peers.ended() == [0, 0, 0, 0]
        assert [peers.said(i).count("goes on from round") for i in range(4)] == [1, 1, 0, 1]
        assert "checkpoint.bin is damaged" in peers.said(1)
        assert "the one before it serves" in peers.said(1)
        rows = (peers.configs[1].out / "trace.csv").read_text().splitlines()[1:]
        sent = [float(row.split(",")[COLUMNS.index("bytes_sent")]) for row in rows]
        assert sent == sorted(sent), "what was sent before the restart counts on"
        assert not any("cut off" in peers.said(i) for i in range(4))
        models, rounds = peers.models()
    assert rounds == undisturbed[1]
    assert np.array_equal(models, undisturbed[0])


MANY = ew.Graph.from_edges([(i, (i + 1) % 8) for i in range(8)] + [(0, 4), (1, 5), (2, 6)])


@pytest.mark.parametrize("graph", [GRAPH, pytest.param(MANY, marks=pytest.mark.exhaustive)])
def test_peers_mix_and_one_of_them_is_asked_to_stop_and_comes_back(tmp_path, graph):
    problem, rounds, all_of_them = penalised(graph.nodes), 1000, range(graph.nodes)
    fit = replace(FIT, method="nids", eta=0.1, rounds=rounds)
    with Peers(tmp_path / "mesh", problem, graph, fit, graph.nodes // 4 * PENALTIES) as peers:
        peers.start(*all_of_them)
        peers.until_round(1, 50)
        assert peers.running[1].poll() is None
        peers.running[1].send_signal(signal.SIGTERM)
        peers.until(lambda: peers.running[1].poll() is not None, "the end of peer 1")
        assert peers.running[1].returncode == 0
        stopped = int(np.load(peers.configs[1].out / "model.npz")["round"])
        assert 50 <= stopped < rounds
        assert peers.status(1)["state"] == "stopped"
        peers.start(1)
        assert peers.ended() == [0 for _ in all_of_them]
        assert f"goes on from round {stopped}\n" in peers.said(1)
        models, ended = peers.models()
    assert ended == [rounds for _ in all_of_them]
    expected = simulated(problem, graph, make("nids", 0.1), rounds)
    np.testing.assert_allclose(models, expected, rtol=0, atol=1e-10)


# --- tolerant -------------------------------------------------------------------------------------


def test_a_peer_that_loses_all_and_one_in_a_black_hole_leave_the_answer_as_it_is(tmp_path):
    fit = {"mode": "tolerant", "patience": 2.0, "tol": 1e-8, "rounds": 10**8}
    with four(tmp_path / "mesh", **fit) as peers:
        peers.start(0, 1, 2, 3)
        peers.until_round(1, 100)
        peers.kill(1)
        shutil.rmtree(peers.configs[1].out)
        peers.running[3].send_signal(signal.SIGSTOP)
        came_to, again = peers.status(0)["rounds"], time.monotonic() + BLACK_HOLE
        peers.until_round(0, came_to + 300)  # the others do not wait, but for once
        time.sleep(max(0.0, again - time.monotonic()))
        peers.running[3].send_signal(signal.SIGCONT)
        peers.start(1)
        assert peers.ended() == [0, 0, 0, 0]
        assert "goes on from round" not in peers.said(1)
        models, rounds = peers.models()
    assert max(rounds) < 10**8
    assert np.abs(models - ew.reference(penalised(4)).x).max() < 1e-6


# --- neighbours that do not fit together ----------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*has one neighbour")
def test_both_ends_stop_and_name_what_differs_and_with_whom(tmp_path):
    with Peers(tmp_path / "mesh", problem_of(7, 2), ew.Graph.path(2), FIT) as peers:
        other = peers.configs[1]
        peers.change(replace(other, fit=replace(other.fit, ridge=0.5)))
        peers.start(0, 1)
        assert all(code > 0 for code in peers.ended())
        assert "peer 1 has ridge = 0.5, this peer 0.001" in peers.said(0)
        assert "peer 0 has ridge = 0.001, this peer 0.5" in peers.said(1)


# --- neighbours that are away in the end ----------------------------------------------------------


def test_one_that_never_comes_back_is_named_and_nobody_calls_it_success(tmp_path):
    fit = {"mode": "tolerant", "patience": 0.3, "tol": 1e-6, "rounds": 10**8, "ridge": 0.1}
    problem = problem_of(7, 4, loss=ew.Logistic(ridge=0.1))
    with Peers(tmp_path / "mesh", problem, GRAPH, replace(FIT, **fit), drop_after=1.0) as peers:
        peers.start(0, 1, 2, 3)
        peers.until_round(1, 10)
        peers.kill(1)
        assert peers.ended() == [3, -signal.SIGKILL, 3, 3]
        for i in (0, 2):
            assert "neighbour 1 is away" in peers.said(i)
            assert "met by those that are left" in peers.said(i)
        assert "a neighbour has lost one of its own" in peers.said(3), "1 is no neighbour of 3"
        left = [np.load(peers.configs[i].out / "model.npz")["x"] for i in (0, 2, 3)]
    optimum = ew.reference(problem.only([0, 2, 3])).x
    np.testing.assert_allclose(left, [optimum] * 3, atol=1e-5)
