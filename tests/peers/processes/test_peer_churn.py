"""Neighbours that come and go while the others run: all that are there come to their optimum."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from peer_process import Peers, free_ports
from peers_at_rest import settled, stopped_models
from uneven import problem_of

import edgewise as ew
from edgewise.peers.config.peer_config import Fit, read
from edgewise.peers.operations import mesh

FIT = Fit("saga-pd", weights="node", ridge=1e-2, rounds=10**8, classes=(-1.0, 1.0), patience=0.3)


def optimum(problem, ids):
    return ew.reference(problem.only(ids)).x


@pytest.mark.parametrize(
    "method", ["saga-pd", pytest.param("newton-pd", marks=pytest.mark.exhaustive)]
)
@pytest.mark.filterwarnings("ignore:.*has one neighbour")
def test_one_joins_one_leaves_and_one_never_comes_back(tmp_path, method):
    problem = problem_of(7, 5, loss=ew.Logistic(ridge=FIT.ridge))
    edges = ew.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
    fit = replace(FIT, method=method)
    with Peers(tmp_path / "mesh", problem.only([0, 1, 2, 3]), edges, fit, drop_after=3.0) as peers:
        peers.start(0, 1, 2, 3)
        around = {0: {1, 2, 3}, 1: {0, 2}, 2: {0, 1, 3}, 3: {0, 2}}
        settled(peers, [0, 1, 2, 3], around)

        join(peers, 4, [1, 3], problem)
        around = {0: {1, 2, 3}, 1: {0, 2, 4}, 2: {0, 1, 3}, 3: {0, 2, 4}, 4: {1, 3}}
        settled(peers, [0, 1, 2, 3, 4], around)
        assert "goes on from round" not in peers.said(4)

        mesh.leave(peers.folder, 2)
        around = {0: {1, 3}, 1: {0, 4}, 3: {0, 4}, 4: {1, 3}}
        settled(peers, [0, 1, 3, 4], around)
        assert "peer 2 is no neighbour any more" in peers.said(0)
        peers.until(lambda: "does not take it for a neighbour" in peers.said(2), "a refusal")

        peers.kill(3)
        peers.until(lambda: "peer 3 is dropped" in peers.said(4), "3 dropped")
        around = {0: {1}, 1: {0, 4}, 4: {1}}
        settled(peers, [0, 1, 4], around)
        without = stopped_models(peers, [0, 1, 4])
        assert "neighbour 3 is away" in peers.said(4)
        np.testing.assert_allclose(without, [optimum(problem, [0, 1, 4])] * 3, atol=1e-8)

        peers.start(0, 1, 3, 4)  # with checkpoints of several groups of neighbours
        around = {0: {1, 3}, 1: {0, 4}, 3: {0, 4}, 4: {1, 3}}
        settled(peers, [0, 1, 3, 4], around)
        again = stopped_models(peers, [0, 1, 3, 4])
    np.testing.assert_allclose(again, [optimum(problem, [0, 1, 3, 4])] * 4, atol=1e-8)


def join(peers, id, neighbours, problem):
    made, added = mesh.add(peers.folder, neighbours, None, None, 2)
    assert added == id
    address = f"127.0.0.1:{free_ports(1)[0]}"
    for config in made.peers.values():
        listed = [replace(n, address=address) if n.id == id else n for n in config.neighbours]
        peers.change(replace(read(config.path), neighbours=tuple(listed)))
    peers.change(replace(peers.configs[id], listen=address, metrics=None, drop_after=3.0))
    X, y = problem.shards[id]
    np.savez(peers.folder / f"data{id}.npz", X=X, y=y)
    peers.start(id)
