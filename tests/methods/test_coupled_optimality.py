"""Couplings: the transcript by itself, iterates against it, CVXPY's optimum, consensus as a special
case, costs, multipliers, refusals."""

from functools import cache
from itertools import islice, pairwise

import argmin_numpy
import coupled_cases as cases
import couplings_numpy as plain
import numpy as np
import pytest
from coupled_cases import Case, case
from numpy.testing import assert_allclose

import edgewise as ew
from edgewise.errors import EdgewiseError

METHODS = ["pd", "saga-pd", "svr-pd-es", "lsvr-pd", "pdmm", "d-admm"]


def solve(made, method="auto", **options):
    options = {"reference": False, "tol": 1e-9, "rounds": 20_000, **options}
    return ew.solve(made.problem(), made.graph(), method, between=made.between(), **options)


def apart(X, Y):
    return max(np.abs(a - b).max() for a, b in zip(X, Y, strict=True))


# --- the cases and the transcript, by themselves --------------------------------------------------


def test_the_cases_are_what_they_say():
    rows = np.concatenate([case(name).optimum.active for name in cases.NAMES])
    assert 8 <= rows.sum() <= len(rows) - 8, "rows <= that hold with equality, and others"
    for name in cases.NAMES:
        made = case(name)
        assert made.violation(made.optimum.X) < 1e-9
        assert min(curvature_left(made)) > 0.01, "one optimum only"
        if len(made.optimum.active):
            assert 0 < made.optimum.active.sum() < len(made.optimum.active)
    fused = [np.linalg.norm(a) < 1e-6 for a in differences(case("lasso"))]
    assert True in fused
    assert False in fused


def differences(made):
    X = made.optimum.X
    return [t.A @ X[t.i] + t.B @ X[t.j] - t.c for t in made.terms]


def curvature_left(made):
    """Of the sum of costs, where rows "=" let models move."""
    ends = np.r_[0, np.cumsum(made.sizes)]
    H = np.zeros((ends[-1],) * 2)
    for i, node in enumerate(made.nodes):
        own = slice(ends[i], ends[i + 1])
        H[own, own] = node.Q
        if node.X is not None:
            z = node.X @ made.optimum.X[i]
            bend = 1 / (2 + 2 * np.cosh(z)) if made.loss == "logistic" else np.ones(len(z))
            H[own, own] += node.X.T @ (bend[:, None] * node.X) / len(z)
    rows = [np.zeros((1, ends[-1]))]
    for t in made.terms:
        row = np.zeros((len(t.c), ends[-1]))
        row[:, ends[t.i] : ends[t.i + 1]], row[:, ends[t.j] : ends[t.j + 1]] = t.A, t.B
        rows += [] if t.is_price else [row[[s == "=" for s in t.kind]]]
    _, s, Vt = np.linalg.svd(np.vstack(rows))
    free = Vt[(s > 1e-9).sum() :]
    return np.linalg.eigvalsh(free @ H @ free.T)


def steps(made):
    return 1 / np.maximum(made.L, 0.3)  # of a linear cost L is zero


def transcript(made, step, rho, rounds, theta=1.0):
    """x(0)..x(rounds)."""
    eta = steps(made)
    local = {
        "exact": lambda: plain.exact(made.gradient, made.prox, made.L),
        "kept": lambda: plain.kept(made.gradient, made.prox, eta),
        "majorised": lambda: plain.majorised(made.gradient, made.prox, eta),
    }[step]()
    start = [made.prox(i, np.zeros(n), 1.0) for i, n in enumerate(made.sizes)]
    run = plain.pdmm(made.terms, [rho] * len(made.terms), local, start, theta)
    return list(islice(run, rounds + 1))


@pytest.mark.parametrize(
    ("name", "step", "theta", "rounds", "within"),
    [
        ("equalities", "exact", 1.0, 100, 1e-10),
        ("equalities", "majorised", 1.0, 600, 1e-10),
        ("inequalities", "exact", 0.5, 150, 1e-10),
        ("deficient", "exact", 0.5, 200, 1e-10),
        ("deficient", "kept", 1.0, 1500, 1e-6),
        ("both", "majorised", 1.0, 1500, 1e-6),
        ("sparse", "majorised", 1.0, 800, 1e-9),
        ("lasso", "majorised", 1.0, 400, 1e-6),
        ("lasso_of_some", "exact", 1.0, 60, 1e-8),
        ("squares_and_huber", "majorised", 1.0, 300, 1e-6),
        ("shared", "kept", 1.0, 120, 1e-8),
    ],
)
def test_the_transcript_reaches_cvxpys_optimum(name, step, theta, rounds, within):
    made = case(name)
    end = transcript(made, step, 1.0, rounds, theta)[-1]
    assert apart(end, made.optimum.X) < within


@pytest.mark.parametrize("penalised", [False, True])
def test_of_consensus_the_transcript_is_that_of_consensus(penalised):
    made = consensus(penalised)
    rho, graph = 0.7, made.graph()
    expected = argmin_numpy.pdmm(
        graph,
        [rho] * graph.edge_count,
        argmin_numpy.exact(made.gradient, made.prox, made.L),
        np.zeros((4, 3)),
    )
    got = transcript(made, "exact", rho, 15)
    assert apart(got[-1], got[0]) > 0.1
    for x, X in zip(got, expected, strict=False):
        assert_allclose(x, X, atol=1e-12, rtol=0)


@pytest.mark.parametrize("step", ["kept", "majorised"])
@pytest.mark.parametrize("penalised", [False, True])
def test_of_consensus_the_transcript_is_the_edge_form(penalised, step):
    made, rho = consensus(penalised), 0.7
    method = ew.PrimalDual(ew.Full(), eta=steps(made), rho=rho, form="edge")
    expected = transcript(made, step, rho, 9)
    for rounds in (1, 9):
        result = ew.solve(made.problem(), made.graph(), method, rounds=rounds, reference=False)
        assert_allclose(result.X, expected[rounds], atol=1e-12, rtol=0)


@pytest.mark.parametrize("penalised", [False, True])
def test_of_consensus_half_the_way_with_twice_the_weight_is_d_admm(penalised):
    made, rho = consensus(penalised), 0.3
    graph, zero = made.graph(), np.zeros((4, 3))
    solver = argmin_numpy.exact(made.gradient, made.prox, made.L)
    expected = argmin_numpy.d_admm(graph, [rho] * graph.edge_count, solver, zero, zero)
    for x, X in zip(transcript(made, "exact", 2 * rho, 15, 0.5), expected, strict=False):
        assert_allclose(x, X, atol=1e-12, rtol=0)


@cache
def consensus(penalised, loss="logistic"):
    rng = np.random.default_rng(3)
    nodes = [cases.with_data(rng, 3, loss, rows=6, cost=False) for _ in range(4)]
    for node in nodes:
        node.penalty = cases.Penalty("l1", (0.02,)) if penalised else None
    pairs = [(0, 1), (0, 3), (1, 2), (2, 3)]
    terms = [cases.same(i, j, nodes, [0, 1, 2], ("=",) * 3) for i, j in pairs]
    return Case(nodes, terms, loss, 0.1, for_all=lambda: ew.Coupling())


# --- the optimum ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", cases.NAMES)
def test_by_default_it_reaches_cvxpys_optimum(name):
    made = case(name)
    result = solve(made)
    assert result.converged, result.message
    assert [len(x) for x in result.X] == made.sizes
    assert apart(result.X, made.optimum.X) < 1e-6
    assert result.violation < 1e-6
    assert made.violation(result.X) < 1e-6
    assert result.objective == pytest.approx(made.optimum.objective, abs=1e-6)
    assert not np.isnan(result.trace["violation"][-1])


@pytest.mark.parametrize("name", ["both", "shared"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_reaches_it(method, name):
    made = case(name)
    result = solve(made, method, rounds=100_000)
    assert result.converged, result.message
    assert apart(result.X, made.optimum.X) < 1e-6


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", cases.NAMES)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_reaches_every_optimum(method, name):
    test_every_method_reaches_it(method, name)


# --- iterates -------------------------------------------------------------------------------------

AT = (1, 2, 9)


@pytest.mark.parametrize("name", ["equalities", "both", "deficient", "squares_and_huber", "shared"])
@pytest.mark.parametrize("method", ["pd", "pdmm", "d-admm"])
def test_iterates_are_those_of_the_transcript(method, name):
    made, rho = case(name), 0.6
    eta = steps(made)
    chosen = {
        "pd": lambda: ew.PrimalDual(ew.Full(), eta=eta, rho=rho, form="edge"),
        "pdmm": lambda: ew.PDMM(rho=rho, tol=1e-13),
        "d-admm": lambda: ew.DADMM(rho=rho, tol=1e-13),
    }[method]()
    got = [solve(made, chosen, rounds=k, record_every=k, tol=None).X for k in AT]
    step, theta, times = {
        "pd": ("kept", 1, 1),
        "pdmm": ("exact", 1, 1),
        "d-admm": ("exact", 0.5, 2),  # as of consensus: above
    }[method]
    expected = transcript(made, step, times * rho, AT[-1], theta)
    assert min(apart(a, b) for a, b in pairwise(expected)) > 1e-4
    for k, X in zip(AT, got, strict=True):
        assert apart(X, expected[k]) < 1e-10, k


@pytest.mark.parametrize("penalised", [False, True])
@pytest.mark.parametrize("method", ["pd", "saga-pd", "pdmm", "d-admm"])
def test_couplings_to_be_the_same_give_consensus(method, penalised):
    made, rho = consensus(penalised), 0.3
    chosen = {
        "pd": lambda: ew.PrimalDual(ew.Full(), rho=rho, form="edge"),
        "saga-pd": lambda: ew.PrimalDual(ew.SAGA(), rho=rho, form="edge"),
        "pdmm": lambda: ew.PDMM(rho=rho, tol=1e-14),
        "d-admm": lambda: ew.DADMM(rho=rho, tol=1e-14),
    }[method]()
    options = {"rounds": 25, "record_every": 25, "reference": False}
    usual = ew.solve(made.problem(), made.graph(), chosen, **options)
    ours = ew.solve(made.problem(), made.graph(), chosen, between=ew.Coupling(), **options)
    assert np.abs(usual.X).max() > 0.05
    assert_allclose(ours.X, usual.X, atol=1e-12, rtol=0)
    if method.endswith("pd"):  # the others minimise in another way
        assert ours.trace["oracle_calls"][-1] == usual.trace["oracle_calls"][-1]


# --- multipliers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["equalities", "inequalities", "both", "lasso", "dispatch"])
def test_multipliers_are_those_of_stationarity(name):
    made = case(name)
    result = solve(made)
    assert set(result.multipliers) == set(made.edges)
    by_edge = {}
    for t in made.terms:
        by_edge.setdefault((min(t.i, t.j), max(t.i, t.j)), []).append(t)
    pull = [made.gradient(i, x) for i, x in enumerate(result.X)]
    for edge, terms in by_edge.items():
        lam = result.multipliers[edge]
        assert len(lam) == sum(len(t.c) for t in terms)
        for t in terms:
            own, lam = lam[: len(t.c)], lam[len(t.c) :]
            pull[t.i] = pull[t.i] + t.A.T @ own
            pull[t.j] = pull[t.j] + t.B.T @ own
            if t.is_price:
                assert np.linalg.norm(own) < t.weight + 1e-6
                continue
            slack = t.c - t.A @ result.X[t.i] - t.B @ result.X[t.j]
            for each, room, sense in zip(own, slack, t.kind, strict=True):
                if sense == "<=":
                    assert each > -1e-6
                    assert abs(each * room) < 1e-5
    for i, x in enumerate(result.X):
        assert_allclose(made.prox(i, x - pull[i], 1.0), x, atol=2e-6)


def test_the_sign_of_a_multiplier_by_hand():
    """x^2/2 and y^2/2 with x + y = 2: both 1, and the multiplier -1."""
    two = ew.Problem(cost=[ew.Quadratic(1.0, np.zeros(1)), ew.Quadratic(1.0, np.zeros(1))])
    tie = ew.Coupling([[1.0]], [[1.0]], [2.0])
    result = ew.solve(two, ew.Graph.path(2), between=tie, tol=1e-10)
    assert_allclose(np.concatenate(result.X), 1, atol=1e-7)
    assert_allclose(result.multipliers[0, 1], -1, atol=1e-6)


# --- costs ----------------------------------------------------------------------------------------


def test_costs_are_exact():
    """Three nodes in a row: 6 and 4 samples, and none; sizes 2, 3, 1."""
    rng = np.random.default_rng(0)
    nodes = [
        cases.with_data(rng, 2, "squared", 6),
        cases.with_data(rng, 3, "squared", 4),
        cases.quadratic(rng, 1),
    ]
    points = [rng.normal(size=n) for n in (2, 3, 1)]
    terms = [cases.tied(rng, nodes, points, 0, 1, 2), cases.tied(rng, nodes, points, 1, 2, 1)]
    made = Case(nodes, terms, "squared")
    at = np.array([0, 5, 10])
    options = {"rounds": 10, "record_every": 5, "tol": None}
    # a node without data asks its cost, which is one call
    for method, first, each in (("pd", 0, 11), ("saga-pd", 11, 3)):
        result = solve(made, method, rho=1.0, **options)
        assert [x.shape for x in result.X] == [(2,), (3,), (1,)]
        assert list(result.trace["rounds"]) == list(at)
        assert_allclose(result.trace["oracle_calls"] * 3, first + each * at)
        assert list(result.trace["vectors_sent"]) == list(2 * 2 * at)
        per = result.trace["bytes_sent"][1:] / at[1:]
        # two messages an edge: lam, a and a number, of as many rows as the edge has
        assert_allclose(per, 8 * 2 * ((2 * 2 + 1) + (2 * 1 + 1)))


# --- refusals -------------------------------------------------------------------------------------


@cache
def line():
    costs = [ew.Quadratic(np.ones(n), np.ones(n)) for n in (2, 3, 1)]
    return ew.Problem(cost=costs), ew.Graph.path(3)


def on_line(between, method="auto", **options):
    problem, graph = line()
    return ew.solve(problem, graph, method, between=between, **{"rounds": 2000, **options})


def test_sizes_come_from_costs_and_shards():
    assert list(line()[0].sizes) == [2, 3, 1]
    mixed = ew.Problem(
        [(np.ones((4, 2)), np.ones(4)), None, (np.ones((5, 3)), np.ones(5))],
        ew.Squared(),
        cost=[None, ew.Linear(np.ones(4)), None],
    )
    assert list(mixed.sizes) == [2, 4, 3]


A2, B3, B1 = np.ones((1, 2)), np.ones((1, 3)), np.ones((1, 1))


@pytest.mark.parametrize(
    ("between", "words"),
    [
        (lambda: {(0, 1): ew.Coupling(A2, A2), (1, 2): ew.Coupling(B3, B1)}, ["0", "1", "3"]),
        (lambda: {(0, 1): ew.Coupling(B3, B3), (1, 2): ew.Coupling(B3, B1)}, ["0", "1", "2"]),
        (lambda: ew.Coupling(), ["0", "1"]),
        (lambda: {(0, 1): ew.Coupling(A2, B3)}, ["1", "2"]),
        (lambda: {(0, 2): ew.Coupling(A2, B1)}, ["0", "2"]),
        (lambda: ew.Shared([0, 1]), ["1", "2"]),
        (lambda: ew.NetworkLasso(1.0), ["0", "1"]),
        (lambda: ew.NetworkLasso([1.0, 2.0, 3.0], on=[0]), ["3", "2"]),
        (lambda: "consensus", ["consensus"]),
    ],
)
def test_what_does_not_fit_is_refused(between, words):
    with pytest.raises(EdgewiseError) as said:
        on_line(between())
    for word in words:
        assert word in str(said.value)


def test_the_end_that_does_not_fit_is_named():
    for edge, term, node in (((0, 1), (A2, A2), 1), ((1, 0), (A2, A2), 1), ((0, 1), (B3, B3), 0)):
        with pytest.raises(EdgewiseError) as said:
            on_line({edge: ew.Coupling(*term), (1, 2): ew.Coupling(B3, B1)})
        assert f"node {node}" in str(said.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ew.Coupling(A2, B3, sense=">="),
        lambda: ew.Coupling(A2, B3, sense=["=", "<="]),
        lambda: ew.Coupling(A2, B3, c=[1.0, 2.0]),
        lambda: ew.Coupling(A2, np.ones((2, 3))),
        lambda: ew.Coupling(A2 * np.nan, B3),
        lambda: ew.Coupling(A2, B3, c=np.inf),
        lambda: ew.NetworkLasso(-1.0),
        lambda: ew.NetworkLasso(1.0, norm=3),
        lambda: ew.NetworkHuber(1.0, delta=0.0),
        lambda: ew.NetworkRidge(np.nan),
        lambda: ew.Quadratic(np.diag([1.0, -1.0]), np.zeros(2)),
        lambda: ew.Quadratic([1.0, -1.0]),
        lambda: ew.Quadratic(np.array([[1.0, 0.5], [0.0, 1.0]])),
        lambda: ew.Quadratic(np.eye(2), np.zeros(3)),
        lambda: ew.Quadratic(1.0),
        lambda: ew.Linear([[1.0]]),
        lambda: ew.Linear([np.nan]),
        lambda: ew.Budget([1.0, 1.0], 3.0, 0.0, 1.0),
        lambda: ew.Problem(cost=[]),
        lambda: ew.Problem(cost=[None, ew.Linear([1.0])]),
        lambda: ew.Problem([None, (np.ones((2, 1)), np.ones(2))], ew.Squared()),
    ],
)
def test_what_makes_no_sense_is_refused(make):
    with pytest.raises(EdgewiseError) as said:
        on_line({(0, 1): make(), (1, 2): ew.Coupling(B3, B1)})
    assert len(str(said.value).split()) > 3


@pytest.mark.parametrize("method", ["extra", "newton-pd", "dgd", "nids"])
def test_methods_without_a_coupled_form_are_refused(method):
    with pytest.raises(EdgewiseError, match=method):
        on_line(ew.Shared([0]), method)


CONTRADICTIONS = {
    "zeros": lambda: (
        [None, None],
        ew.Coupling(np.zeros((1, 1)), np.zeros((1, 1)), [1.0]),
    ),
    "boxes": lambda: ([ew.Box(0.0, 1.0), ew.Box(2.0, 3.0)], ew.Coupling()),
    "rows": lambda: ([None, None], ew.Coupling([[1.0], [1.0]], [[1.0], [1.0]], [0.0, 1.0])),
    "both ways": lambda: (
        [None, None],
        ew.Coupling([[1.0], [-1.0]], [[1.0], [-1.0]], [0.0, -1.0], sense="<="),
    ),
}


@pytest.mark.parametrize("method", ["auto", "pd", "d-admm"])
@pytest.mark.parametrize("which", CONTRADICTIONS)
def test_what_nothing_satisfies_is_said_and_never_converged(which, method):
    penalties, tie = CONTRADICTIONS[which]()
    costs = [ew.Quadratic(1.0, np.ones(1)), ew.Quadratic(2.0, -np.ones(1))]
    problem = ew.Problem(cost=costs, penalty=penalties)
    try:
        result = ew.solve(problem, ew.Graph.path(2), method, between=tie, rounds=2000)
    except EdgewiseError as said:
        text = str(said)
    else:
        assert not result.converged
        assert result.violation > 0.1
        text = result.message
    assert any(word in text for word in ("satisf", "feasib", "contradict", "violat", "meet")), text
    assert "(0, 1)" in text
