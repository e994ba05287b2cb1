"""Peers with a loss that is not convex: all take pd, and end at one stationary point."""

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from memory_peers import MemoryPeers, run
from scipy.special import expit

import edgewise as ew
from edgewise.peers.config.peer_config import Fit
from edgewise.peers.operations import mesh

NODES, RIDGE, TOL = 3, 0.1, 1e-7


def test_they_end_at_a_stationary_point(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = np.where(X @ [1.0, -1.0, 0.5] + 0.5 * rng.standard_normal(60) > 0, 1, -1)
    fit = Fit(loss="sigmoid", ridge=RIDGE, tol=TOL, classes=(-1, 1))
    made = mesh.create(
        tmp_path / "m", ew.Graph.ring(NODES), fit, [()] * NODES, lambda i: "127.0.0.1", 40000, 2
    )
    (tmp_path / "m" / "data").mkdir()
    for i, rows in enumerate(np.array_split(np.arange(60), NODES)):
        np.savez(tmp_path / "m" / "data" / f"peer{i}.npz", X=X[rows], y=y[rows])
    peers = MemoryPeers(made, monkeypatch)

    async def work():
        peers.start(*range(NODES))
        return await peers.results()

    for result in run(work()).values():
        assert result.converged, result.message
        s = expit(-y * (X @ result.x))
        slope = X.T @ (-y * s * (1 - s)) / len(y) + RIDGE * result.x
        assert np.abs(slope).max() < 10 * TOL
        assert np.abs(result.x).max() > 0.05
        assert "a stationary point, as the loss is not convex" in result.message
        assert "optimum" not in result.message
    for peer in peers.peers.values():
        assert peer.settled_fit.method == "pd"
