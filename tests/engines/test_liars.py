"""Nodes that lie: what goes over the wires instead, and who cannot."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import edgewise as ew
from edgewise.engines.faulty_executor import FaultyExecutor
from edgewise.errors import GraphError, MethodError, UnknownName

V, N, LIAR, SINCE = 5, 2, 1, 2
GRAPH = ew.Graph.ring(V)
rng = np.random.default_rng(0)
SHARDS = [(rng.standard_normal((4, N)), rng.standard_normal(4)) for _ in range(V)]
PROBLEM = ew.Problem(SHARDS, ew.Squared(ridge=0.1))
ETA, RHO = 0.1, 0.7


def rounds_of(method, liars, rounds):
    """Outboxes as methods made them, and what was heard, round by round."""
    seen = []
    with jax.enable_x64(True):
        sim = FaultyExecutor(PROBLEM, GRAPH, method, 0, np.dtype(float), ew.Faults(liars=liars))
        carry = sim.start(np.zeros((V, N)) + np.arange(V)[:, None], None)
        for t in range(rounds):
            sent, before = np.array(carry[1][0]), np.array(carry[2].heard[0])
            carry, _ = sim.advance(carry, t, 1)
            seen.append((sent, before, np.array(carry[2].heard[0])))
    return seen


@pytest.mark.parametrize("attack", ["flip", "large", "drift", "model"])
def test_each_message_of_a_liar_is_the_lie_and_no_other(attack):
    method = ew.PrimalDual(ew.Full(), eta=ETA, rho=RHO, form="edge")
    liars = ew.Liars(attack=attack, nodes=LIAR, since=SINCE, strength=3.0)
    d = GRAPH.directed
    for t, (sent, before, heard) in enumerate(rounds_of(method, liars, 4)):
        lied = (d.owner == LIAR) & (t >= SINCE)
        said = heard[d.reverse]  # along each edge, as its owner said it
        assert_allclose(said[~lied], sent[~lied])
        if not lied.any():
            continue
        if attack in ("flip", "large"):
            assert_allclose(said[lied], {"flip": -3, "large": 3}[attack] * sent[lied])
        else:
            told = said[lied] - sent[lied] if attack == "drift" else said[lied] + before[lied]
            off = told / (2 * RHO)
            assert_allclose(np.linalg.norm(off, axis=1), 3)
            assert_allclose(off[0], off[1])  # it tells all the same


def test_whoever_pulls_hears_the_lie():
    seen = rounds_of(ew.EXTRA(ew.Full(), eta=ETA), ew.Liars(nodes=[LIAR], strength=2), 1)
    sent, _, heard = seen[0]
    d = GRAPH.directed
    assert_allclose(heard, np.where(d.other == LIAR, -2, 1)[:, None] * sent[d.other])


def test_one_that_always_names_its_model_takes_all_to_it():
    """What `docs/peers.md` says of plain methods."""
    liars = ew.Liars(attack="model", nodes=[LIAR], strength=5)
    result = ew.solve(
        PROBLEM, GRAPH, "pdmm", rounds=400, faults=ew.Faults(liars=liars), reference=False
    )
    others = np.delete(result.X, LIAR, axis=0)
    assert_allclose(np.linalg.norm(others, axis=1), 5, rtol=1e-3)
    assert np.ptp(others, axis=0).max() < 1e-2


def test_who_lies_is_drawn_from_the_seed_or_named():
    assert len(ew.Liars(0.1).who(20)) == 2
    assert (ew.Liars(0.3, seed=1).who(50) == ew.Liars(0.3, seed=1).who(50)).all()
    assert set(ew.Liars(0.3, seed=2).who(50)) != set(ew.Liars(0.3, seed=1).who(50))
    assert ew.Liars(nodes=[3, 1, 3]).who(5).tolist() == [1, 3]


def test_liars_that_make_no_sense_are_refused():
    for given, kind, message in (
        ({"share": 1.0}, MethodError, "part of the nodes that lie"),
        ({"attack": "gossip"}, UnknownName, "gossip"),
        ({"strength": -1}, MethodError, "positive number"),
        ({"nodes": [-1]}, MethodError, "nodes is"),
        ({"since": -1}, MethodError, "since is"),
    ):
        with pytest.raises(kind, match=message):
            ew.Liars(**given)
    with pytest.raises(MethodError, match="give edgewise"):
        ew.Faults(liars=0.1)
    with pytest.raises(GraphError, match="no node 9"):
        ew.solve(PROBLEM, GRAPH, "pdmm", faults=ew.Faults(liars=ew.Liars(nodes=9)))
    with pytest.raises(MethodError, match="made of an edge's weight"):
        ew.solve(PROBLEM, GRAPH, "extra", faults=ew.Faults(liars=ew.Liars(attack="model")))
