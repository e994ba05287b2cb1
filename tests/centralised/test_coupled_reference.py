"""The centralised answer where edges carry couplings: against CVXPY, the optimality conditions
written out, answers by hand; what has no answer, and what is refused."""

import warnings

import coupled_cases as cases
import couplings_numpy as plain
import cvxpy as cp
import jax.numpy as jnp
import numpy as np
import pytest
from coupled_cases import case
from numpy.testing import assert_allclose

import edgewise as ew
from edgewise.centralised import coupled_reference as central
from edgewise.errors import EdgewiseError, ProblemError, ReferenceWarning


def apart(X, Y):
    return max(np.abs(a - b).max() for a, b in zip(X, Y, strict=True))


@pytest.fixture(scope="module", params=cases.NAMES)
def solved(request):
    made = case(request.param)
    problem = made.problem()
    return made, ew.reference(problem, graph=made.graph(), between=made.between())


def test_the_optimum_is_that_of_cvxpy(solved):
    made, star = solved
    assert star.reached
    assert star.residual <= 1e-10
    assert star.iterations < 60, "Newton's steps go wrong"
    assert [len(x) for x in star.X] == made.sizes
    assert apart(star.X, made.optimum.X) < 1e-6
    assert_allclose(star.objective, made.optimum.objective, rtol=1e-9)
    assert star.violation < 1e-9


def test_the_optimality_conditions_hold(solved):
    """x_i = prox(x_i - grad f_i - pull_i), and l = prox of phi* at l + d."""
    made, star = solved
    pull = [np.zeros(n) for n in made.sizes]
    assert sorted(star.multipliers) == made.edges
    misfit, rows = [], []
    for edge, given in star.multipliers.items():
        duals = given
        for t in (t for t in made.terms if {t.i, t.j} == {*edge}):
            own, duals = duals[: len(t.c)], duals[len(t.c) :]
            pull[t.i] = pull[t.i] + t.A.T @ own
            pull[t.j] = pull[t.j] + t.B.T @ own
            parts = t.A @ star.X[t.i], t.B @ star.X[t.j], -t.c
            misfit.append(own - plain.half_way(t, 2.0, own + sum(parts)))
            rows += [np.abs(part) for part in parts]
        assert not len(duals)
    slopes = [made.gradient(i, x) for i, x in enumerate(star.X)]
    own = [
        x - made.prox(i, x - g - p, 1.0)
        for i, (x, g, p) in enumerate(zip(star.X, slopes, pull, strict=True))
    ]
    scale = 1 + np.linalg.norm(np.concatenate(slopes)) + np.linalg.norm(np.concatenate(pull))
    assert np.linalg.norm(np.concatenate(own)) <= 1e-10 * scale
    length = 1 + np.linalg.norm(np.concatenate(rows))
    assert np.linalg.norm(np.concatenate(misfit)) <= 1e-10 * length


# --- by hand --------------------------------------------------------------------------------------


def test_transport_with_many_optima():
    """Two units from corner 0 of a square to corner 2, at a price of 1 a road: any mixture of both
    ways costs 4; a road takes one and a half."""
    around = ew.Graph.ring(4)
    order = [around.neighbours(i).tolist() for i in range(4)]
    costs, rules, between = [], [], {}
    for start in (2.0, 0.0, -2.0, 0.0):
        # out into either road, then in from either; half the price at each end
        costs.append(ew.Linear(np.full(4, 0.5)))
        rules.append(ew.Budget([1.0, 1, -1, -1], start, 0, 1.5))
    for i, j in around.edges.tolist():
        A, B = np.zeros((2, 4)), np.zeros((2, 4))
        here, there = order[i].index(j), order[j].index(i)
        A[[0, 1], [here, 2 + here]], B[[0, 1], [2 + there, there]] = 1, -1
        between[i, j] = ew.Coupling(A, B)
    star = ew.reference(ew.Problem(cost=costs, penalty=rules), graph=around, between=between)
    assert star.reached
    assert_allclose(star.objective, 4, atol=1e-9)
    assert_allclose([x @ [1, 1, -1, -1] for x in star.X], [2, 0, -2, 0], atol=1e-9)
    assert all(x.min() >= 0 and x.max() <= 1.5 for x in star.X), "boxes hold exactly"


def test_budgets_and_a_bound():
    """Each of two shares out 1 and wants all of it in the first place; together 1/2 may be there:
    the slope there is 1/4 - 1, that of the other place 3/4."""
    costs = [ew.Quadratic(1.0, np.array([-1.0, 0.0]))] * 2
    problem = ew.Problem(cost=costs, penalty=ew.Budget([1.0, 1.0], 1.0, 0.0, 1.0))
    first = [[1.0, 0.0]]
    bound = ew.Coupling(first, first, 0.5, sense="<=")
    star = ew.reference(problem, graph=ew.Graph.path(2), between=bound)
    assert star.reached
    assert_allclose(star.X, [[0.25, 0.75]] * 2, atol=1e-10)
    assert_allclose(star.objective, 0.125, atol=1e-10)
    assert_allclose(star.multipliers[0, 1], [1.5], atol=1e-9)


def test_rows_that_nearly_repeat_each_other():
    """x = y and x + z / 1000 = y + 1 / 1000, so z = 1: a slope of 11, multipliers of 11,000.
    It had stopped 10 away from z, as duals grew too slowly."""
    costs = [ew.Quadratic(1.0, np.array([0.0, 10.0])), ew.Quadratic(1.0, np.ones(1))]
    rows = ew.Coupling([[1.0, 0.0], [1.0, 1e-3]], [[-1.0], [-1.0]], [0.0, 1e-3])
    star = ew.reference(ew.Problem(cost=costs), graph=ew.Graph.path(2), between=rows)
    assert star.reached
    assert_allclose(np.concatenate(star.X), [-0.5, 1, -0.5], atol=1e-6)
    assert_allclose(star.multipliers[0, 1], [11_000.5, -11_000], rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_do_not_matter(scale):
    """min (x^2 + y^2)/2, x + y = 2, in other units of the cost, and of x and y."""
    for cost, length in ((scale, 1.0), (1.0, scale)):
        costs = [ew.Quadratic(cost, np.zeros(1))] * 2
        tie = ew.Coupling([[1.0]], [[1.0]], 2 * length)
        star = ew.reference(ew.Problem(cost=costs), graph=ew.Graph.path(2), between=tie)
        assert star.reached
        assert_allclose(star.X, length, rtol=1e-8)
        assert_allclose(star.multipliers[0, 1], -cost * length, rtol=1e-8)


def test_penalties_that_tie_coordinates():
    """A simplex, a ball, groups: their prox has a Jacobian with more than a diagonal."""
    rng = np.random.default_rng(0)
    q = rng.normal(size=(3, 4))
    penalties = [ew.Simplex(2.0), ew.L2Ball(1.0), ew.GroupL2(0.5, [0, 0, 1, 1])]
    costs = [ew.Linear(q[0]), ew.Linear(q[1]), ew.Quadratic(1.0, 3 * q[2])]
    problem = ew.Problem(cost=costs, penalty=penalties)
    huber = ew.NetworkHuber(0.4, 0.3)
    star = ew.reference(problem, graph=ew.Graph.path(3), between=huber)
    assert star.reached
    x, above = cp.Variable((3, 4)), cp.Variable(2)
    cost = q[0] @ x[0] + q[1] @ x[1] + cp.sum_squares(x[2]) / 2 + 3 * q[2] @ x[2]
    cost += 0.5 * np.sqrt(2) * (cp.norm2(x[2, :2]) + cp.norm2(x[2, 2:]))
    rules = [x[0] >= 0, cp.sum(x[0]) == 2, cp.norm2(x[1]) <= 1]
    rules += [cp.norm2(x[i] - x[i + 1]) <= above[i] for i in (0, 1)]
    program = cp.Problem(cp.Minimize(cost + 0.4 * cp.sum(cp.huber(above, 0.3))), rules)
    program.solve(solver=cp.CLARABEL)
    assert_allclose(star.objective, program.value, rtol=1e-7)
    assert_allclose(star.X, x.value, atol=1e-3)


def samples(nodes=4, labels=None):
    rng = np.random.default_rng(1)
    parts = [(rng.normal(size=(6, 2)), rng.normal(size=6)) for _ in range(nodes)]
    return parts if labels is None else [(X, labels(X)) for X, _ in parts]


def test_a_custom_loss_is_as_its_formula():
    price, ring = ew.NetworkLasso(0.1), ew.Graph.ring(4)
    known = ew.Problem(samples(), ew.Squared(), ew.L1(0.05))
    own = ew.CustomLoss(lambda x, d, y: (jnp.dot(d, x) - y) ** 2 / 2)
    star = ew.reference(known, graph=ring, between=price)
    again = ew.reference(ew.Problem(samples(), own, ew.L1(0.05)), graph=ring, between=price)
    assert again.reached
    assert apart(star.X, again.X) < 1e-8
    assert again.iterations < 60


def test_all_equal_is_the_other_reference():
    """Between left out: models are equal. The two solvers share nothing but losses."""
    problem = ew.Problem(samples(), ew.Huber(), ew.L1(0.05))
    one = ew.reference(problem)
    star = ew.reference(problem, graph=ew.Graph.ring(4))
    assert_allclose(star.X, np.tile(one.x, (4, 1)), atol=1e-8)
    assert_allclose(star.objective, one.objective, rtol=1e-10)


# --- kept, short, impossible, refused -------------------------------------------------------------


def pair(penalties=None, costs=None):
    costs = costs or [ew.Quadratic(1.0, np.ones(1)), ew.Quadratic(2.0, -np.ones(1))]
    return ew.Problem(cost=costs, penalty=penalties or [None, None])


def test_it_is_kept_with_the_problem():
    problem, path = pair(), ew.Graph.path(2)
    tie, other = ew.Coupling(c=1.0), ew.Coupling(c=2.0)
    star = ew.reference(problem, graph=path, between=tie)
    assert ew.reference(problem, graph=path, between=tie) is star
    assert ew.reference(problem, tol=1e-8, graph=path, between=tie) is star
    assert ew.reference(problem, tol=1e-11, graph=path, between=tie) is not star
    far = ew.reference(problem, graph=path, between=other)
    assert_allclose(far.X[0] - far.X[1], 2.0, atol=1e-9)


def test_too_few_iterations_are_said():
    problem, path, tie = pair(), ew.Graph.path(2), ew.Coupling(c=1.0)
    with pytest.warns(ReferenceWarning, match="iterations"):
        short = ew.reference(problem, iterations=1, graph=path, between=tie)
    assert not short.reached
    assert short.iterations == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ew.reference(problem, graph=path, between=tie).reached


@pytest.mark.parametrize(
    ("penalties", "tie"),
    [
        ([ew.Box(0.0, 1.0), ew.Box(2.0, 3.0)], ew.Coupling()),
        (None, ew.Coupling([[1.0], [-1.0]], [[1.0], [-1.0]], [0.0, -1.0], sense="<=")),
    ],
)
def test_what_nothing_satisfies_is_named(penalties, tie):
    with pytest.warns(ReferenceWarning, match=r"no point satisfies.*\(0, 1\)"):
        star = ew.reference(pair(penalties), graph=ew.Graph.path(2), between=tie)
    assert not star.reached
    assert star.violation > 0.1


def test_edges_that_contradict_each_other_are_named():
    """a - b = 1, b - c = 1, a - c = 1; d is apart from that."""
    costs = [ew.Quadratic(1.0, np.zeros(1))] * 4
    square = ew.Graph(4, [(0, 1), (0, 2), (1, 2), (2, 3)])
    with pytest.warns(ReferenceWarning) as said:
        star = ew.reference(ew.Problem(cost=costs), graph=square, between=ew.Coupling(c=1.0))
    assert not star.reached
    text = str(said[0].message)
    assert all(edge in text for edge in ("(0, 1)", "(0, 2)", "(1, 2)"))
    assert "(2, 3)" not in text


def test_a_cost_that_falls_without_end_is_said():
    problem = pair(costs=[ew.Linear([1.0]), ew.Linear([1.0])])
    with pytest.warns(ReferenceWarning, match="fall without end"):
        assert not ew.reference(problem, graph=ew.Graph.path(2)).reached


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: ew.reference(pair(), between=ew.Coupling()), "graph="),
        (lambda: ew.reference(pair()), "graph="),
        (lambda: ew.reference(pair(), graph=ew.Graph.path(3)), "3 nodes, the problem 2"),
        (lambda: ew.reference(pair(), graph=[(0, 1)]), "is no Graph"),
        (lambda: ew.reference(pair(), tol=0.0, graph=ew.Graph.path(2)), "tol is 0.0"),
        (lambda: ew.reference(pair(), iterations=0, graph=ew.Graph.path(2)), "iterations is 0"),
        (lambda: ew.reference("data", graph=ew.Graph.path(2)), "is no Problem"),
        (
            lambda: ew.reference(
                ew.Problem(samples(2), ew.Squared(), intercept=True), graph=ew.Graph.path(2)
            ),
            "intercept",
        ),
    ],
)
def test_refusals(ask, words):
    with pytest.raises(EdgewiseError, match=words):
        ask()


def test_what_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(central, "MOST_UNKNOWNS", 1)
    with pytest.raises(ProblemError, match=r"2 unknowns together.*reference=False"):
        ew.reference(pair(), graph=ew.Graph.path(2))
