"""Peers with many unknowns, so that each message goes in many parts, and is read in many."""

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from four_peers import simulated
from peer_process import Peers

import edgewise as ew
from edgewise.peers.config.peer_config import Fit

SIZES = [  # unknowns: messages of 10 MB and of 100 MB, which take peers of 2.2 GB each
    1_250_000,
    pytest.param(12_500_000, marks=pytest.mark.soak),
]
SAMPLES, ENTRIES = 2, 200_000  # of a peer; of a sample
FIT = Fit("saga-pd", weights="node", ridge=0.1, mode="strict", rounds=4)


def sparse_problem(size, nodes):
    """A few samples, with entries all over the unknowns."""
    rng = np.random.default_rng(3)
    shards = []
    for _ in range(nodes):
        at = rng.integers(0, size, SAMPLES * ENTRIES)
        values = rng.standard_normal(at.size) / np.sqrt(ENTRIES)
        rows = np.repeat(np.arange(SAMPLES), ENTRIES)
        X = sp.coo_array((values, (rows, at)), shape=(SAMPLES, size)).tocsr()
        shards.append((X, np.array([-1.0, 1.0])))
    return ew.Problem(shards, ew.Logistic(ridge=FIT.ridge))


class SparsePeers(Peers):
    """Peers whose data files hold what is not zero only."""

    def __init__(self, folder, problem, graph, fit):
        super().__init__(folder, problem, graph, fit)
        for i, (X, y) in enumerate(problem.shards):
            parts = {name: getattr(X, name) for name in ("data", "indices", "indptr", "shape")}
            np.savez(self.folder / f"data{i}.npz", y=y, **parts)


@pytest.mark.filterwarnings("ignore:.*has one neighbour")
@pytest.mark.parametrize("size", SIZES)
def test_large_messages_come_to_the_simulators_models(size, tmp_path):
    problem, graph = sparse_problem(size, 2), ew.Graph.path(2)
    with SparsePeers(tmp_path / "mesh", problem, graph, FIT) as peers:
        peers.start(0, 1)
        assert peers.ended() == [0, 0]
        assert all(peers.status(i)["bytes_sent"] >= FIT.rounds * 8 * size for i in range(2))
        assert not any("cut off" in peers.said(i) for i in range(2))
        models, ended = peers.models()
    assert ended == [FIT.rounds] * 2
    assert np.count_nonzero(models) > 2 * ENTRIES
    np.testing.assert_allclose(models, simulated(problem, graph, FIT.rounds), rtol=0, atol=1e-12)
