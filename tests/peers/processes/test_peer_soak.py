"""Minutes of mischief, at random times and in random order (`make soak`)."""

import random
import shutil
import signal
import time
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from four_peers import simulated
from peer_process import Peers
from peers_at_rest import settled, stopped_models
from uneven import problem_of

import edgewise as ew
from edgewise.peers.config.peer_config import Fit

pytestmark = pytest.mark.soak

PEERS, TRICKS, KILLS, ROUNDS = 6, 25, 10, 20_000
GRAPH = ew.Graph.from_edges([*((i, (i + 1) % PEERS) for i in range(PEERS)), (0, 3), (1, 4)])
FIT = Fit("saga-pd", weights="node", ridge=1e-2, rounds=10**9, classes=(-1.0, 1.0), patience=0.2)


def problem():
    return problem_of(7, PEERS, loss=ew.Logistic(ridge=FIT.ridge), penalty=ew.L1(1e-3))


def mesh(folder, fit):
    return Peers(folder, problem(), GRAPH, fit, [("l1:1e-3",)] * PEERS)


def killed(peers, i, luck):
    peers.kill(i)
    time.sleep(3 * luck.random())
    peers.start(i)


def killed_without_its_folder(peers, i, luck):
    peers.kill(i)
    shutil.rmtree(peers.configs[i].out)
    peers.start(i)


def frozen(peers, i, luck):
    peers.running[i].send_signal(signal.SIGSTOP)
    time.sleep(12 * luck.random())  # beyond what it takes to find a line dead, at times
    peers.running[i].send_signal(signal.SIGCONT)


def stopped(peers, i, luck):
    """Once it is there: one that is still starting up just ends."""
    peers.until(lambda: peers.status(i).get("pid") == peers.running[i].pid, f"peer {i}")
    peers.running[i].terminate()
    assert peers.running[i].wait(60) == 0
    peers.start(i)


@pytest.mark.parametrize("seed", [1, 2])
def test_tolerant_peers_come_to_the_optimum_after_all_that(seed, tmp_path):
    luck = random.Random(seed)
    with mesh(tmp_path / "mesh", FIT) as peers:
        peers.start(*range(PEERS))
        peers.until_round(0, 50)
        for _ in range(TRICKS):
            trick = luck.choice([killed, killed_without_its_folder, frozen, stopped])
            trick(peers, luck.randrange(PEERS), luck)
            time.sleep(4 * luck.random())
            codes = {i: process.poll() for i, process in peers.running.items()}
            assert set(codes.values()) == {None}, codes
        around = {i: set(GRAPH.neighbours(i).tolist()) for i in range(PEERS)}
        settled(peers, range(PEERS), around)
        models = stopped_models(peers, range(PEERS))
    np.testing.assert_allclose(models, [ew.reference(problem()).x] * PEERS, atol=1e-8)


def test_strict_peers_end_where_they_would_have_after_many_kills(tmp_path):
    luck = random.Random(3)
    with mesh(tmp_path / "mesh", replace(FIT, mode="strict", rounds=ROUNDS)) as peers:
        peers.start(*range(PEERS))
        peers.until_round(0, 50)
        for _ in range(KILLS):
            victims = luck.sample(range(PEERS), luck.choice([1, 1, 2, 3]))
            for i in victims:
                peers.kill(i)
            peers.start(*victims)
            came_to = peers.status(victims[0])["rounds"]
            peers.until_round(victims[0], came_to + luck.randrange(5, 300))
        assert peers.ended() == [0] * PEERS
        models, rounds = peers.models()
    assert rounds == [ROUNDS] * PEERS
    expected = simulated(problem(), GRAPH, ROUNDS)
    np.testing.assert_allclose(models, expected, rtol=0, atol=1e-10)
