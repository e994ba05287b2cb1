"""How many rounds peers come to over lines with a delay, in one process."""

import asyncio

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from memory_peers import MemoryPeers, run
from uneven import problem_of

import edgewise as ew
from edgewise.peers.config.peer_config import Fit
from edgewise.peers.operations import mesh

DELAY = 0.04  # seconds, one way: long against a step, on a busy machine too
RIDGE = 0.3
MODES = "strict", "tolerant"
GRAPH = ew.Graph.circulant(5)  # with cycles of three


def peers_of(folder, monkeypatch, delay, **fit):
    fit = Fit("pdmm", weights="node", ridge=RIDGE, classes=(-1.0, 1.0), **fit)
    made = mesh.create(folder, GRAPH, fit, [()] * 5, lambda i: "127.0.0.1", 40000, 2)
    problem = problem_of(4, 5, loss=ew.Logistic(ridge=RIDGE))
    (folder / "data").mkdir()
    for i, (X, y) in enumerate(problem.shards):
        np.savez(folder / "data" / f"peer{i}.npz", X=X, y=y)
    return problem, MemoryPeers(made, monkeypatch, delay)


def ways_a_round(mode, folder, monkeypatch, rounds=55):
    """Seconds of a round over those of one way, after a moment in which one peer stood still and
    two messages of each neighbour came to it together."""
    _, peers = peers_of(folder, monkeypatch, DELAY, mode=mode, rounds=rounds, patience=2.0)
    moments = []

    async def peers_run():
        peers.start(*range(5))
        await peers.until_round(0, 11)
        slow = peers.peers[0].saving = asyncio.get_running_loop().create_future()  # a slow disk
        await peers.until_round(0, 20)
        await asyncio.sleep(5 * DELAY)
        slow.set_result(None)
        await peers.until_round(0, 22)
        for i, j in ((0, 1), (2, 3), (1, 4)):  # streams that begin anew, one after the other
            await asyncio.sleep(DELAY)
            peers.peers[i].links[j].close()
        await peers.until_round(0, 34)
        for round in range(35, rounds - 2):
            while peers.round(0) < round:
                await asyncio.sleep(0.001)
            moments.append((asyncio.get_running_loop().time(), peers.round(0)))
        return await peers.results()

    found = run(peers_run())
    assert {result.rounds for result in found.values()} == {rounds}
    (began, first), (ended, last) = moments[0], moments[-1]
    return (ended - began) / (last - first) / DELAY


def test_a_round_takes_one_way_in_both_modes(tmp_path, monkeypatch):
    seen = []
    for attempt in range(4):  # on a machine that is busy with other things
        each = [ways_a_round(m, tmp_path / f"{m}{attempt}", monkeypatch) for m in MODES]
        seen.append(each[1] / each[0])
        if seen[-1] < 1.4:
            break
    assert min(seen) < 1.4  # with one flag for an edge it was 2


def test_who_was_away_neither_holds_the_others_nor_is_held_and_all_arrive(tmp_path, monkeypatch):
    fit = {"tol": 1e-9, "rounds": 10**6, "patience": 0.2}
    problem, peers = peers_of(tmp_path / "m", monkeypatch, 0.005, **fit)

    async def peers_run():
        peers.start(*range(5))
        await peers.until_round(2, 10)
        await peers.kill(2)
        gone_at = peers.round(1)
        await peers.until_round(1, gone_at + 40)
        peers.start(2)
        return await peers.results()

    found = run(peers_run())
    assert all(result.ending.met for result in found.values())
    best = ew.reference(problem).x
    # tol bounds residuals, not distances: where peers were late one model was 5e-7 off
    assert max(np.abs(result.x - best).max() for result in found.values()) < 2e-6
