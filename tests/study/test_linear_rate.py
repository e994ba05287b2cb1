"""Certificates of linear rates, held against quadratics, the literal algorithm, and runs."""

import numpy as np
import pytest

import edgewise as ew
from edgewise.errors import MethodError
from edgewise.study.linear_rate import (
    Class,
    ModeTerms,
    balanced_steps,
    class_of,
    dynamics,
    linear_rate,
    rule_of_thumb,
    worst_quadratic,
)

pytest.importorskip("cvxpy", reason="the extra edgewise[theory] is not installed")

NODES, SAMPLES = 6, 4
RING, IRREGULAR = (
    ew.Graph.ring(NODES),
    ew.Graph.from_edges([(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)]),
)


def squares(nodes=NODES, ridge=0.1):
    """Each sample sees one coordinate, as every node's other samples do: all nodes' Hessians are
    the same diagonal matrix, from the ridge (a coordinate that none sees) to the longest row."""
    rows = np.diag(np.array([1.0, 0.7, 0.3, 0.0]))
    y = np.random.default_rng(0).standard_normal((nodes, SAMPLES))
    return ew.Problem([(rows, labels) for labels in y], ew.Squared(ridge=ridge))


def balanced(problem, graph, gradient):
    eta, rho = balanced_steps(problem, graph, gradient)
    return ew.PrimalDual(gradient, eta=eta, rho=rho)


@pytest.mark.parametrize("graph", [RING, IRREGULAR], ids=["ring", "irregular"])
def test_whole_gradients_are_as_slow_as_certified_on_a_quadratic_of_the_class(graph):
    problem = squares(graph.nodes)
    method = balanced(problem, graph, ew.Full())
    rate = linear_rate(problem, graph, method)
    assert rate.quadratics < rate.factor < 1
    assert 1 - rate.factor > 0.98 * (1 - rate.quadratics)
    start = np.random.default_rng(1).standard_normal((graph.nodes, problem.size))
    run = ew.solve(problem, graph, method, rounds=int(rate.rounds(1e-18)), record_every=1, X0=start)
    t, size = run.trace["rounds"], run.trace["bregman"]
    late = (size < 1e-9 * size[0]) & (size > 1e-16 * size[0])
    measured = np.exp(np.polyfit(t[late], np.log(size[late]), 1)[0])
    assert 1 - measured == pytest.approx(1 - rate.quadratics, rel=0.1)


def test_condition_and_graph_add_up():
    """Over classes at random, from even to bad graphs, conditions and steps."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        kappa = 10 ** rng.uniform(-0.5, 2)
        smooth = kappa * rng.uniform(0.2, 1)
        second = 1 - 10 ** -rng.uniform(0, 4)
        modes = np.unique([1, second, *rng.uniform(-1, second, 6)])
        kind = Class(modes, kappa, smooth * 10 ** -rng.uniform(0.5, 4), smooth)
        assert 0.99 < (1 - worst_quadratic(kind)) / rule_of_thumb(kind) < 2.01


def literal_change(problem, graph, method, rate, moved=1.0, table_size=1.0):
    """V at a random state, and its expectation a round later: saga-pd as printed in PrimalDual's
    docstring, all samples that a node may draw enumerated. The noise of nodes is independent, so
    the expectation of a quadratic form is that at the mean and the sum of the nodes' variances."""
    rng = np.random.default_rng(1)
    V, n, K = graph.nodes, problem.size, SAMPLES
    eta, rho, ridge = np.asarray(method.eta), float(method.rho), float(problem.loss.ridge)
    A = np.zeros((V, V))
    for i, j in graph.edges:
        A[i, j] = A[j, i] = rho
    D = A.sum(1)
    rows = np.asarray(problem.shards.X).reshape(V, K, n)
    # everything is the distance from the optimum: the optimum is zero, and so are its gradients
    x, u, old = moved * rng.standard_normal((3, V, n))
    values, basis = np.linalg.eigh(A / np.sqrt(np.outer(D, D)))
    ends = np.abs(np.abs(values) - 1) < 1e-9  # what the state's sums say there
    root = np.sqrt(D)[:, None]
    inner = basis.T @ (x * root), basis.T @ (u / root)
    known = np.where(values[:, None] > 0, 2 * inner[0] - inner[1], 2 * inner[0] + inner[1])
    old = root * (basis @ np.where(ends[:, None], known, basis.T @ (old / root)))
    # remembered gradients, along their rows
    table = table_size * rng.standard_normal((V, K, n)) * rows

    modes = np.round(np.clip(values, -1, 1), 10)
    P = [rate.proof.P[int(np.argmin(abs(rate.of.modes - a)))] for a in modes]

    def form(x, u, old):
        parts = [basis.T @ (x * root), basis.T @ (u / root), basis.T @ (old / root)]
        return sum(
            np.einsum("an,ab,bn->", s, M, s)
            for k, M in enumerate(P)
            for s in [np.stack([p[k] for p in parts[: len(M)]])]
        )

    def errors(table):
        return (table**2).sum(2).mean(1) / D

    now = form(x, u, old) + rate.proof.tau / rate.of.share * errors(table).sum()
    fresh = np.einsum("vkn,vn->vk", rows, x)[:, :, None] * rows
    G = fresh - table + table.mean(1)[:, None] + ridge * x[:, None]  # (V, K, n) by the draw

    def after(g):
        new = (x / eta[:, None] - g + u) / (1 / eta + D)[:, None]
        return new, old + 2 * (A @ new - D[:, None] * x), u

    later = form(*after(G.mean(1)))
    for i in range(V):  # the variance of node i's draw alone
        for k in range(K):
            g = G.mean(1)
            g[i] = G[i, k]
            here = np.array(after(g)) - np.array(after(G.mean(1)))
            later += form(*here) / K
    swapped = errors(table) * (1 - 1 / K) + errors(fresh) / K
    return now, later + rate.proof.tau / rate.of.share * swapped.sum()


@pytest.mark.parametrize("graph", [RING, IRREGULAR], ids=["ring", "irregular"])
def test_the_proof_of_saga_holds_for_the_literal_algorithm(graph):
    problem = squares(graph.nodes)
    method = balanced(problem, graph, ew.SAGA())
    rate = linear_rate(problem, graph, method)
    for sizes in [(1, 1), (1, 0), (0, 1), (1, 5)]:  # of the state, and of what is remembered
        now, later = literal_change(problem, graph, method, rate, *sizes)
        assert 0 < later <= rate.factor * now
    assert 1 - rate.factor > 0.9 * (1 - rate.quadratics)


def test_noise_and_memory_count_for_what_they_are_where_the_bounds_are_attained():
    """Sample k sees coordinate k alone: there a sample's gradient changes by L_s <g, x> squared,
    no less. p and tau weigh the noise and what is remembered anew, beside what is there without."""
    K, ridge, p, tau = 3, 0.2, 1.7, 0.6
    problem = ew.Problem([(np.eye(K), np.zeros(K))] * NODES, ew.Squared(ridge=ridge))
    method = balanced(problem, RING, ew.SAGA())
    kind = class_of(problem, RING, method)
    D = 2 * float(method.rho)
    x = np.random.default_rng(0).standard_normal(K) / np.sqrt(D)  # of one node, before scaling
    own = x / K
    change, size = (x**2).sum() / K / D, (own**2).sum() / D  # Q, and the samples' part squared
    terms = ModeTerms(kind, *dynamics(0.5, kind.kappa))
    P = np.zeros((3, 3))
    form = terms.left(P, 1.0, 0.0, p, tau) - terms.left(P, 1.0, 0.0, 0.0, 0.0)
    # by coordinate: x times the root of D, and the gradient over it
    states = np.array([x * np.sqrt(D), 0 * x, 0 * x, (own + ridge * x) / np.sqrt(D)])
    found = np.einsum("ac,ab,bc->", states, form, states)
    assert found == pytest.approx(p * (change - size) + tau * change, rel=1e-9)


def test_what_no_proof_covers_is_refused():
    problem = squares()
    eta, rho = balanced_steps(problem, RING)
    for wrong, method, words in [
        (problem, ew.PrimalDual(ew.SVRG(), eta=eta, rho=rho), "SVRG"),
        (problem, "extra", "saga-pd"),
        (problem, ew.PrimalDual(ew.SAGA(), eta=eta * np.arange(1, NODES + 1), rho=rho), "alike"),
        (problem, ew.PrimalDual(ew.SAGA(), eta=20 * eta, rho=rho / 20), "too long"),
        (squares(ridge=0.0), ew.PrimalDual(ew.SAGA(), eta=eta, rho=rho), "ridge"),
    ]:
        with pytest.raises(MethodError, match=words):
            linear_rate(wrong, RING, method)
    sparse = ew.Problem(problem.shards, problem.loss, ew.L1(0.1))
    with pytest.raises(MethodError, match="penalty"):
        linear_rate(sparse, RING, "saga-pd")
