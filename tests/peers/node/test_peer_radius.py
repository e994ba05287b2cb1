"""Peers whose edges pull no harder than a radius: as configured, killed and started, regrouped."""

import jax
import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from memory_peers import MemoryPeers, run

import edgewise as ew
from edgewise.peers.config.peer_config import Fit
from edgewise.peers.node.stepper import Stepper, facts_of
from edgewise.peers.operations import mesh
from edgewise.peers.transport.edge_facts import EdgeFacts

V, N, RIDGE = 4, 3, 0.2
RNG = np.random.default_rng(1)
PARTS = [
    (RNG.standard_normal((12, N)) + 0.2 * i, np.sign(RNG.standard_normal(12))) for i in range(V)
]
ROBUST = ew.PrimalDual(ew.SAGA(batch=4), local="auto", radius="auto")


def test_configured_peers_find_the_optimum_of_all_also_after_a_kill(tmp_path, monkeypatch):
    fit = Fit(
        method="lt-saga-pd",
        set=("batch=4", "radius=auto"),
        ridge=RIDGE,
        weights="node",
        tol=1e-7,
        patience=0.2,
    )
    made = mesh.create(
        tmp_path / "m", ew.Graph.ring(V), fit, [()] * V, lambda i: "127.0.0.1", 40000, 2
    )
    (tmp_path / "m" / "data").mkdir()
    for i, (X, y) in enumerate(PARTS):
        np.savez(tmp_path / "m" / "data" / f"peer{i}.npz", X=X, y=y)
    peers = MemoryPeers(made, monkeypatch, checkpoint_every=10, record_every=10)

    async def work():
        peers.start(*range(V))
        await peers.until_round(1, 25)
        await peers.kill(1)
        peers.start(1)
        return await peers.results()

    optimum = ew.reference(ew.Problem(PARTS, ew.Logistic(ridge=RIDGE))).x
    for i, result in run(work()).items():
        assert peers.peers[i].stepper.block.links.radius is not None
        assert not result.ending.alarms
        np.testing.assert_allclose(result.x, optimum, atol=1e-5)


def test_a_new_neighbour_begins_and_the_others_go_on():
    problem = ew.Problem(PARTS, ew.Logistic(ridge=RIDGE)).only([0])
    with jax.enable_x64(True):
        own = facts_of(problem, 2)
        pair = EdgeFacts(own, own)
        alone = Stepper(problem, 0, ROBUST, 0, np.dtype(float), own)
        two = alone.among([pair, pair])
        carry = two.start()
        for t in range(5):
            heard = two.gathered([RNG.standard_normal((1, N)) for _ in range(2)])
            carry, _ = two.step(carry, t, heard)
        three = alone.among([pair, pair, pair])
        state, (sent,) = three.regrouped(carry, [1, None, 0], 0.0)
        before, (sent_before,) = carry
        rho, X = np.asarray(three.block.links.rho), np.asarray(state.X)
        for now, was in ((state.edges.z, before.edges.z), (sent, sent_before)):
            np.testing.assert_array_equal(now[0], was[1])
            np.testing.assert_array_equal(now[2], was[0])
        np.testing.assert_allclose(sent[1], rho[1] * X[0])  # no dual yet
        np.testing.assert_allclose(state.edges.z[1], rho[1] * X[0])
