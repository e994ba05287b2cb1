"""Couplings between processes over TLS: one with data, two with costs alone and other sizes."""

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from network_calls import said
from peer_process import Peers

import edgewise as ew
from edgewise.peers.config.peer_config import Fit


def test_one_is_killed_and_all_come_to_the_optimum(tmp_path):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(12, 2))
    problem = ew.Problem(
        [(X, X @ [1.0, -1.0]), None, None],
        ew.Squared(ridge=0.1),
        penalty=[None, None, ew.Budget([1.0, 1.0], 1.0, 0.0, 0.9)],
        cost=[None, ew.Quadratic([1.0, 2.0, 0.5], [0.0, 1.0, -1.0]), ew.Linear([1.0, 1.5])],
    )
    graph, A = ew.Graph.ring(3), rng.normal(size=(2, 3))
    between = {
        (0, 1): ew.Coupling(np.eye(2), A, c=[0.5, -0.2]),
        (1, 2): ew.Coupling([[1.0, 0, 0]], [[-1.0, 0]], c=0.1, sense="<="),
        (0, 2): ew.NetworkLasso(0.05),
    }
    star = ew.reference(problem, graph=graph, between=between)
    fit = Fit(tol=1e-9, rounds=10**7, patience=0.3)
    with Peers(tmp_path / "mesh", problem, graph, fit, between=between) as peers:
        peers.start(0, 1, 2)
        peers.until_round(2, 20)
        peers.kill(2)
        peers.start(2)
        assert peers.ended() == [0, 0, 0], peers.said(2)
        assert "peer 1: finished after" in peers.said(1)
        assert "; violation " in peers.said(1)
        files = [dict(np.load(peers.configs[i].out / "model.npz")) for i in range(3)]
        last = said("status", str(peers.folder))["peers"]
    for file, x in zip(files, star.X, strict=True):
        np.testing.assert_allclose(file["x"], x, atol=1e-7)
    for i, j in between:
        for one, other in ((i, j), (j, i)):
            found = files[one][f"multipliers_{other}"]
            np.testing.assert_allclose(found, star.multipliers[i, j], atol=1e-6)
    assert all(one["violation"] < 1e-8 for one in last)
    assert sum(one["objective"] for one in last) == pytest.approx(star.objective, abs=1e-7)
