"""ASVR-PD: the default neither stalls nor oscillates, the paper's variant is the paper's."""

from functools import cache

import jax
import numpy as np
import pytest

import edgewise as ew
from edgewise.data.synthetic import epsilon_like
from edgewise.engines.native import simulator
from edgewise.gradients import ASVRG
from edgewise.methods.primal_dual import PrimalDual
from edgewise.running.trajectory import Trajectory

GRAPH = ew.Graph.random(nodes=8, edges=14, seed=0)


@cache
def logistic(ridge, samples=40, how="iid"):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8 * samples, 10))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(rng.random(len(X)) < 1 / (1 + np.exp(-4 * X @ rng.standard_normal(10))), 1, -1)
    shards = ew.split(X, y, nodes=8, how=how, seed=0)
    problem = ew.Problem(shards, loss=ew.Logistic(ridge=ridge))
    return problem, ew.reference(problem)


@cache
def trace(ridge, **data):
    problem, star = logistic(ridge, **data)
    return ew.solve(problem, GRAPH, "asvr-pd", 4000, record_every=20, reference=star).trace


def states(gradient, rounds, **data):
    """The estimator's memory after every round, as `solve` runs it."""
    problem, _ = logistic(0.0, **data)
    with jax.enable_x64(True):
        executor = simulator(problem, GRAPH, PrimalDual(gradient), 0, np.dtype("float64"))
        run = Trajectory(executor)
        run.start(executor.origin())
        for _ in range(rounds):
            run.advance(1)
            yield jax.tree.map(np.asarray, run.carry[0].memory)


@pytest.mark.parametrize(("ridge", "round_", "level"), [(1e-2, 2000, 1e-8), (0.0, 4000, 1e-5)])
def test_the_default_does_not_stall(ridge, round_, level):
    t = trace(ridge)
    assert (t["bregman"][t["rounds"] >= round_] < level).all()


@pytest.mark.parametrize("data", [{"how": "label"}, {"samples": 1}])
def test_the_default_takes_uneven_and_tiny_shards(data):
    assert trace(1e-2, **data)["bregman"][-1] < 1e-10


@pytest.mark.parametrize("ridge", [0.0, 1e-2])
def test_the_default_does_not_oscillate(ridge):
    b = np.maximum(trace(ridge)["bregman"], 1e-14)  # below that it is rounding
    worst_to_come = np.maximum.accumulate(b[::-1])[::-1]
    best_so_far = np.minimum.accumulate(b)
    assert (worst_to_come[10:] <= 5 * best_so_far[:-10]).all()


def test_the_default_is_stable_where_the_curvature_is_attained():
    """Least squares in one dimension: every sample has the full curvature, so that the coin's
    factor 1/p meets nothing that would soften it."""
    rng = np.random.default_rng(0)
    X = np.sign(rng.standard_normal((8 * 30, 1)))
    problem = ew.Problem(
        ew.split(X, X[:, 0] + rng.standard_normal(240), nodes=8), loss=ew.Squared()
    )
    assert ew.solve(problem, GRAPH, "asvr-pd", rounds=3000).trace["bregman"][-1] < 1e-8


def test_the_default_beats_saga_where_the_problem_is_ill_conditioned():
    """Not so where it is well conditioned without any ridge: on `logistic(0.0)` SAGA wins."""
    X, y = epsilon_like(8 * 40, 40)
    problem = ew.Problem(ew.split(X, y, nodes=8), loss=ew.Logistic())
    star = ew.reference(problem)
    ours, saga = (
        ew.solve(problem, GRAPH, m, 20000, record_every=100, reference=star).trace
        for m in ("asvr-pd", "saga-pd")
    )
    there = np.flatnonzero(ours["bregman"] <= saga["bregman"][-1])[0]
    assert ours["oracle_calls"][there] < saga["oracle_calls"][-1] / 2
    assert ours["rounds"][there] < saga["rounds"][-1] / 4


def test_the_momentum_of_the_paper_decays_as_printed():
    K, betas, lengths, started = 40, [0.5], [], 0
    for t, m in enumerate(states(ASVRG(floor=0.0), 450)):
        if t > 0 and m.extra.done[0] == 0:  # the round that opens a new epoch
            lengths.append(t - started)
            b = betas[-1]
            betas.append((np.sqrt(b**4 + 4 * b**2) - b**2) / 2)
            started = t
        np.testing.assert_allclose(m.extra.beta, betas[-1], rtol=1e-12)
        np.testing.assert_allclose(m.extra.ask, betas[-1], rtol=1e-12)
    assert len(betas) >= 4
    assert lengths == [np.ceil(K / b) for b in betas[:-1]]
    for s, b in enumerate(betas[1:], 2):
        assert (1 - b) / b**2 == pytest.approx(1 / betas[s - 2] ** 2)  # what the proof asks for
        assert b <= 2 / (s + 3)


def test_the_values_of_the_papers_experiments():
    *_, m = states(ASVRG(momentum=0.99, ask=0.2, floor=0.0), 60)
    beta = (np.sqrt(0.99**4 + 4 * 0.99**2) - 0.99**2) / 2
    np.testing.assert_allclose(m.extra.beta, beta)  # the second epoch: 41 rounds are over
    np.testing.assert_allclose(m.extra.ask, 0.2 * beta / 0.99)


def test_the_steps():
    s = logistic(1e-2)[0].smoothness
    np.testing.assert_allclose(ASVRG(floor=0.0).theory_step(s), 0.4 / s.sample)
    np.testing.assert_allclose(ASVRG().auto_step(s), 0.75 / (0.5 * s.sample))  # 40 * 1e-2 / 3 L
    flat = logistic(0.0)[0].smoothness
    np.testing.assert_allclose(ASVRG().auto_step(flat), 0.75 / (0.1 * flat.sample))
    np.testing.assert_allclose(ASVRG(ask=0.2, momentum=0.3).auto_step(s), 1 / s.sample)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("how", ["iid", "size"])
def test_calls_are_counted_exactly(batch, how):
    """2 min(batch, K) per hit, K per epoch and for the first snapshot."""
    K = logistic(0.0, how=how)[0].counts
    length = np.ceil(K / batch)
    last, hits, rounds = K, 0, 200
    for t, m in enumerate(states(ASVRG(batch=batch), rounds, how=how)):
        spent = m.calls - last - np.where((t > 0) & (t % length == 0), K, 0)
        assert np.isin(spent / (2 * np.minimum(batch, K)), (0, 1)).all()
        hits, last = hits + (spent > 0), m.calls
    assert np.mean(hits) == pytest.approx(rounds / 2, abs=5 * np.sqrt(rounds / 4 / 8))
