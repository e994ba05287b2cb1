"""Consensus by total variation: exact while honest duals fit, and a bound on what a liar does."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import edgewise as ew
from edgewise.engines.wires import connect, edge_duals
from edgewise.errors import MethodError
from edgewise.methods.clipped_edges import ClippedState, Taken, taken_in
from edgewise.methods.knowledge import whole_network

V, N, RIDGE = 6, 3, 0.1
GRAPH = ew.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (0, 2), (1, 4)])


def shards_of(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((V * 12, N))
    y = np.sign(X @ rng.standard_normal(N) + 0.5 * rng.standard_normal(len(X)))
    return [(X[i::V] + 0.3 * i, y[i::V]) for i in range(V)]


SHARDS = shards_of()
PROBLEM = ew.Problem(SHARDS, ew.Logistic(ridge=RIDGE))
TRAINED = ew.PrimalDual(ew.SAGA(), local="auto")


def slope(shard, x):
    """Of a node's mean loss and its ridge."""
    X, y = shard
    return -(X * (y / (1 + np.exp(y * (X @ x))))[:, None]).mean(0) + RIDGE * x


@pytest.fixture(scope="module")
def star():
    return ew.reference(PROBLEM)


@pytest.fixture(scope="module")
def largest(star):
    """The largest dual of an edge, of those of least norm that hold the optimum."""
    slopes = np.stack([slope(shard, star.x) for shard in SHARDS])
    return np.linalg.norm(edge_duals(GRAPH, slopes), axis=1).max()


@pytest.mark.parametrize(
    ("method", "faults"),
    [
        (ew.PrimalDual(ew.SAGA()), None),
        (TRAINED, None),
        (TRAINED, ew.Faults(drop=0.2, awake=0.6, wipe=(2, 60))),
    ],
)
def test_above_the_largest_dual_it_is_exact(method, faults, star, largest):
    robust = replace(method, radius=1.05 * largest)
    result = ew.solve(PROBLEM, GRAPH, robust, rounds=3000, tol=1e-9, faults=faults, reference=star)
    assert result.converged
    assert np.abs(result.X - star.x).max() < 1e-7


def test_below_it_is_the_optimum_of_total_variation(star, largest):
    radius = 0.3 * largest
    tv = ew.reference(PROBLEM, graph=GRAPH, between=ew.NetworkLasso(radius))
    assert np.abs(np.stack(tv.X) - star.x).max() > 1e-3, "nothing is clipped"
    robust = ew.PrimalDual(ew.SAGA(), local="auto", radius=radius)
    for faults in (None, ew.Faults(drop=0.2, awake=0.6)):
        result = ew.solve(PROBLEM, GRAPH, robust, rounds=3000, faults=faults, reference=False)
        assert np.abs(result.X - np.stack(tv.X)).max() < 1e-7


def test_the_radius_by_rule_holds_the_duals_of_these_data(largest):
    radius = ew.PrimalDual(ew.SAGA(), radius="auto").prepare(whole_network(PROBLEM, GRAPH))[1]
    i, j = GRAPH.edges.T
    least = np.minimum(PROBLEM.smoothness.mean[i], PROBLEM.smoothness.mean[j])
    most = np.maximum(GRAPH.degrees[i], GRAPH.degrees[j])
    np.testing.assert_allclose(radius["radius"], np.sqrt(least) / most)
    assert largest < radius["radius"].min()


def test_whatever_arrives_an_edge_pulls_with_no_more_than_its_radius():
    rng = np.random.default_rng(1)
    rho = rng.uniform(0.1, 3, len(GRAPH.edges))
    radius = rng.uniform(0.01, 1, len(GRAPH.edges))
    with jax.enable_x64(True):
        links, _ = connect(GRAPH, {"rho": rho, "radius": radius}, float)
        block = PROBLEM.block(None, float)._replace(links=links)
        X, z = (rng.standard_normal((k, N)) for k in (V, 2 * len(GRAPH.edges)))
        heard = rng.standard_normal(z.shape) * 10.0 ** rng.uniform(-3, 300, len(z))[:, None]
        heard[0, 1], heard[1], heard[2, 0] = np.nan, np.inf, 1.7e308
        taken = np.asarray(taken_in(block, ClippedState(X, None, Taken(z)), heard))
        pull = np.linalg.norm(np.asarray(links.rho)[:, None] * X[links.owner] - taken, axis=1)
    bound = np.asarray(links.radius)
    assert (pull <= bound + 1e-9).all()
    assert (pull[:2] == 0).all()  # what is no number says nothing
    assert pull[2] > 0.99 * bound[2]


@pytest.mark.filterwarnings("ignore::edgewise.errors.DivergenceWarning", "ignore:overflow")
@pytest.mark.parametrize("attack", ["flip", "large", "model"])
def test_a_liar_adds_no_more_than_the_radii_of_its_edges(attack):
    """To the sum of all that pulls at the honest, who then are together within that over mu."""
    radius, liar = 0.2, 3
    faults = ew.Faults(liars=ew.Liars(attack=attack, nodes=liar))
    robust = ew.PrimalDual(ew.SAGA(), local="auto", radius=radius)
    result = ew.solve(PROBLEM, GRAPH, robust, rounds=1500, faults=faults, reference=False)
    honest = [i for i in range(V) if i != liar]
    added = np.linalg.norm(sum(slope(SHARDS[i], result.X[i]) for i in honest))
    most = GRAPH.degrees[liar] * radius
    assert 0.5 * most < added < most * (1 + 1e-3)
    own = ew.reference(ew.Problem([SHARDS[i] for i in honest], ew.Logistic(ridge=RIDGE))).x
    assert np.ptp(result.X[honest], axis=0).max() < 1e-3  # they agree
    assert np.linalg.norm(result.X[honest] - own, axis=1).max() < most / (RIDGE * len(honest))
    plain = ew.solve(PROBLEM, GRAPH, TRAINED, rounds=1500, faults=faults, reference=False)
    worse = np.linalg.norm(sum(slope(SHARDS[i], plain.X[i]) for i in honest))
    assert not worse < 2 * most


@pytest.mark.parametrize(
    ("radius", "message"),
    [
        ("big", "radius='big': give 'auto'"),
        (0, "radius must be positive"),
        (np.ones(3), "radius has shape"),
    ],
)
def test_radii_that_are_none_are_refused(radius, message):
    with pytest.raises(MethodError, match=message):
        ew.solve(PROBLEM, GRAPH, ew.PrimalDual(ew.SAGA(), radius=radius), rounds=1)
