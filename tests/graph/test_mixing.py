"""Mixing weights: what each rule promises, and which matrices are refused."""

import warnings

import jax
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import edgewise as ew
from edgewise.engines.simulator import Simulator
from edgewise.errors import GraphError, UnknownName
from edgewise.graph import mixing
from edgewise.graph.mixing import LOCAL_RULES, RULES, laplacian, mixing_weights
from edgewise.methods.extra import EXTRA

RING = ew.Graph.ring(6)


def matrix(graph, weights):
    """W, entry by entry."""
    W = np.zeros((graph.nodes, graph.nodes))
    for (i, j), w in zip(graph.edges.tolist(), weights, strict=True):
        W[i, j] = W[j, i] = w
    return W + np.diag(1 - W.sum(1))


def slowest(W):
    """The largest modulus of an eigenvalue, that of the all-ones vector apart."""
    return np.sort(np.abs(np.linalg.eigvalsh(W)))[-2]


@st.composite
def graphs(draw):
    nodes = draw(st.integers(2, 14))
    edges = draw(st.integers(nodes - 1, nodes * (nodes - 1) // 2))
    return ew.Graph.random(nodes, edges, seed=draw(st.integers(0, 1000)))


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_every_rule_mixes(graph):
    for name in RULES:
        weights = mixing_weights(name, graph)
        assert weights.shape == (graph.edge_count,)
        assert (weights > 0).all(), name
        W = matrix(graph, weights)
        assert np.array_equal(W, W.T)
        np.testing.assert_allclose(W.sum(0), 1, atol=1e-14)
        assert slowest(W) < 1 - 1e-4, name
        rest = laplacian(graph, weights).toarray()
        np.testing.assert_allclose(np.eye(graph.nodes) - rest, W, atol=1e-14)
        if name != "best-constant":  # whose diagonal may be negative
            assert W.diagonal().min() > 0, name
        if name == "lazy-metropolis":
            assert np.linalg.eigvalsh(W).min() > 0
        np.testing.assert_allclose(mixing_weights(W, graph), weights, rtol=1e-15)


def test_rules_by_hand():
    path = ew.Graph.from_edges([(0, 1), (1, 2), (2, 3), (1, 3)])  # degrees 1, 3, 2, 2
    np.testing.assert_allclose(mixing_weights("metropolis", path), [1 / 4, 1 / 4, 1 / 4, 1 / 3])
    np.testing.assert_allclose(
        mixing_weights("lazy-metropolis", path), [1 / 8, 1 / 8, 1 / 8, 1 / 6]
    )
    np.testing.assert_allclose(mixing_weights("max-degree", path), [1 / 4] * 4)
    # the ring's Laplacian has the eigenvalues 2 - 2 cos(2 pi k / 6): least 1, largest 4
    np.testing.assert_allclose(mixing_weights("best-constant", RING), [2 / 5] * 6)


@settings(max_examples=25, deadline=None)
@given(graphs())
def test_best_constant_is_the_best_on_a_grid(graph):
    best = mixing_weights("best-constant", graph)[0]
    rate = slowest(matrix(graph, np.full(graph.edge_count, best)))
    for factor in np.r_[np.linspace(0.1, 0.99, 30), np.linspace(1.01, 3, 30)]:
        other = slowest(matrix(graph, np.full(graph.edge_count, factor * best)))
        assert other > rate, factor


@pytest.mark.parametrize("make", [ew.Graph.ring, ew.Graph.star, ew.Graph.complete])
def test_large_graphs_take_another_way_to_the_same_weight(make, monkeypatch):
    graph = make(60)
    direct = mixing_weights("best-constant", graph)
    given = matrix(graph, mixing_weights("metropolis", graph))
    second = mixing.second_largest(sp.csr_array(given))
    monkeypatch.setattr(mixing, "DENSE_NODES", 10)
    np.testing.assert_allclose(mixing_weights("best-constant", graph), direct, rtol=1e-8)
    np.testing.assert_allclose(mixing.second_largest(sp.csr_array(given)), second, atol=1e-8)


def test_a_long_path_has_its_known_eigenvalues():
    """Too close together for Lanczos: 2 - 2 cos(pi k / n), k = 0..n-1."""
    n = 2000
    L = laplacian(ew.Graph.from_edges([(i, i + 1) for i in range(n - 1)]), np.ones(n - 1))
    gap = 2 - 2 * np.cos(np.pi / n)
    np.testing.assert_allclose(mixing.smallest_eigenvalues(L), [0, gap], rtol=1e-6, atol=1e-14)
    np.testing.assert_allclose(mixing.largest_eigenvalue(L), 4 - gap, rtol=1e-14)
    slow = sp.eye_array(n, format="csr") - L / 4
    np.testing.assert_allclose(1 - mixing.second_largest(slow), gap / 4, rtol=1e-6)


def test_one_node_has_nobody_to_average_with():
    alone = ew.Graph.ring(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for mix in (*RULES, [[1.0]]):
            assert mixing_weights(mix, alone).shape == (0,)


# --- matrices that are given ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [np.asarray, sp.csr_array, sp.csc_matrix, sp.coo_array, np.ndarray.tolist]
)
def test_a_given_matrix_is_taken_as_it_is(kind):
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.1, 0.4, 6)
    np.testing.assert_allclose(mixing_weights(kind(matrix(RING, weights)), RING), weights)


def spoiled(i, j, value, both=True):
    W = matrix(RING, np.full(6, 0.3))
    W[i, j] += value
    if both:
        W[j, i] += value
        W[i, i] -= value
        W[j, j] -= value
    return W


@pytest.mark.parametrize(
    ("W", "message"),
    [
        (np.eye(5), r"has shape \(5, 5\): give \(6, 6\)"),
        (np.ones(6), r"has shape \(6,\)"),
        (spoiled(0, 1, 0.1, both=False), "not symmetric"),
        (matrix(RING, np.full(6, 0.3)) + 0.1 * np.diag(np.arange(6) == 2), "row 2 .* up to 1.1"),
        (spoiled(0, 3, 0.1), "joins nodes 0 and 3, the graph does not"),
        (spoiled(0, 1, np.nan), "not finite"),
        (np.eye(6), "does not mix"),
        (matrix(RING, [0.3, 0, 0.3, 0.3, 0.3, 0]), "does not mix"),  # falls apart
        (matrix(RING, np.full(6, 0.5)), "does not mix"),  # eigenvalue -1
        (matrix(RING, np.full(6, 0.3)) * 1j, "no real numbers"),
        (None, "mixing=None: give a rule's name"),
        (0.3, "mixing=0.3: give a rule's name"),
    ],
)
def test_other_matrices_are_refused(W, message):
    with pytest.raises(GraphError, match=message):
        mixing_weights(W, RING)


def test_names_are_checked():
    with pytest.raises(UnknownName, match="did you mean 'metropolis'"):
        mixing_weights("metropolys", RING)


# --- who needs them -------------------------------------------------------------------------------


def test_primal_dual_runs_build_no_mixing_weights(monkeypatch):
    def refuse(*args):
        raise AssertionError("mixing weights were built")

    for rules in (RULES, LOCAL_RULES):
        for name in rules:
            monkeypatch.setitem(rules, name, refuse)
    monkeypatch.setattr(mixing, "edge_weights", refuse)
    X, y = ew.data.epsilon_like(rows=24, features=3)
    problem = ew.Problem(ew.split(X, y, nodes=6), loss=ew.Logistic(ridge=0.1))
    for form in ("node", "edge"):
        method = ew.PrimalDual(ew.SAGA(), form=form)
        with jax.enable_x64(True):
            assert Simulator(problem, RING, method, 0, np.dtype(float)).block.links.mixing is None
        ew.solve(problem, RING, method, rounds=2, reference=False)
    with pytest.raises(AssertionError, match="mixing weights were built"):
        ew.solve(problem, RING, EXTRA(ew.Full()), rounds=2, reference=False)
