"""Penalties that add up and sets that intersect, against CVXPY."""

from functools import reduce
from operator import add

import cvxpy as cp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import edgewise as ew
from edgewise.backend.declared import declared
from edgewise.backend.pytree import pytree
from edgewise.errors import ProblemError
from edgewise.problem.from_text import penalty_of
from edgewise.problem.penalty_sum import PenaltySum, closed_form, takes_steps
from edgewise.problem.projections import splitting
from edgewise.problem.stacked_penalties import stack

N = 5
A, B = np.array([1.0, -2.0, 0.5, 0.0, 3.0]), np.array([0.3, 1.0, -1.0, 2.0, 0.5])
LOW, HIGH = np.array([-1.0, 0.2, -np.inf, 0, -0.3]), np.array([1.0, 2.0, 0.5, 1, np.inf])
GROUPS = [0, 0, 1, 1, 1]


class Shifted:
    """One's own, no pytree and with nothing but these two: |x - 1|₁."""

    def value(self, x):
        return jnp.abs(x - 1).sum()

    def prox(self, x, t):
        return x - jnp.clip(x - 1, -t, t)


@pytree()
class ShiftedPytree(Shifted):
    separable = True


def box(u, low=-0.5, high=1.0):
    """Finite bounds alone."""
    both = ((u, low, 1), (u, high, -1))
    kept = [(np.isfinite(np.broadcast_to(b, N)), np.broadcast_to(b, N), s) for _, b, s in both]
    return [cp.multiply(s, u[np.flatnonzero(k)]) >= s * b[k] for k, b, s in kept if k.any()]


def groups(u):
    return 0.5 * (np.sqrt(2) * cp.norm(u[:2]) + np.sqrt(3) * cp.norm(u[2:]))


# each: the penalty, and CVXPY's objective and constraints
PARTS = {
    "l1": (ew.L1(0.4), lambda u: 0.4 * cp.norm1(u), lambda u: []),
    "l2": (ew.SquaredL2(0.7), lambda u: 0.35 * cp.sum_squares(u), lambda u: []),
    "elastic": (
        ew.ElasticNet(0.2, 0.3),
        lambda u: 0.2 * cp.norm1(u) + 0.15 * cp.sum_squares(u),
        lambda u: [],
    ),
    "group": (ew.GroupL2(0.5, GROUPS), groups, lambda u: []),
    "box": (ew.Box(-0.5, 1), lambda u: 0, box),
    "bounds": (ew.Box(LOW, HIGH), lambda u: 0, lambda u: box(u, LOW, HIGH)),
    "nonneg": (ew.NonNegative(), lambda u: 0, lambda u: [u >= 0]),
    "half": (ew.HalfSpace(A, -0.4), lambda u: 0, lambda u: [A @ u <= -0.4]),
    "half2": (ew.HalfSpace(B, 0.1), lambda u: 0, lambda u: [B @ u <= 0.1]),
    "budget": (ew.Budget(A, 0.5, -2, 2), lambda u: 0, lambda u: [A @ u == 0.5, *box(u, -2, 2)]),
    "simplex": (ew.Simplex(1.5), lambda u: 0, lambda u: [u >= 0, cp.sum(u) == 1.5]),
    "l1-ball": (ew.L1Ball(1.2), lambda u: 0, lambda u: [cp.norm1(u) <= 1.2]),
    "l2-ball": (ew.L2Ball(0.9), lambda u: 0, lambda u: [cp.norm(u) <= 0.9]),
    "own": (Shifted(), lambda u: cp.norm1(u - 1), lambda u: []),
    "own-pytree": (ShiftedPytree(), lambda u: cp.norm1(u - 1), lambda u: []),
}
CLOSED = [
    *("l1 l1", "l1 l2", "l1 box", "l1 nonneg", "l2 bounds", "box nonneg", "elastic bounds"),
    *("box half", "bounds half", "l1 half", "elastic bounds half", "box budget", "l1 budget"),
    *("simplex box", "l1 simplex", "l2 half", "nonneg half", "l2 l1-ball", "l1 l1-ball"),
    *("l1-ball nonneg", "l2-ball nonneg", "l1 l2-ball", "l1 nonneg l2-ball", "box l2-ball"),
    *("l1 group", "l2 group", "l1 nonneg group l2-ball", "group l2-ball", "l1 box l2-ball"),
    *("l2 own", "own-pytree box", "own-pytree l2 nonneg"),
]
SPLIT = [
    *(
        "half half2",
        "l1 half half2",
        "box half half2",
        "group bounds",
        "group half",
        "l1 group box",
    ),
    *(
        "l1-ball bounds",
        "l1-ball l2-ball",
        "l2-ball half",
        "own l1",
        "own box",
        "own-pytree l1 box",
    ),
    *("own half own-pytree", "group half l2-ball l1", "l1-ball half"),
]


QUICK = [  # one of each formula, and of each way to split
    *("elastic bounds", "elastic bounds half", "l1-ball nonneg", "l1 nonneg group l2-ball"),
    *("l1 box l2-ball", "own-pytree box", "group bounds", "l1-ball half", "own half own-pytree"),
]


def made(name):
    return reduce(add, [PARTS[part][0] for part in name.split()])


def by_cvxpy(name, x, t, metric=None):
    u = cp.Variable(N)
    metric = np.full(N, 1 / t) if metric is None else metric
    cost = 0.5 * cp.sum_squares(cp.multiply(np.sqrt(metric), u - x))
    limits = []
    for part in name.split():
        cost += PARTS[part][1](u)
        limits += PARTS[part][2](u)
    cp.Problem(cp.Minimize(cost), limits).solve(solver=cp.CLARABEL)
    return u.value


def splits_of(h):
    """The same prox by splitting every part from every other."""

    def prox(x, t):
        first, *others = [part.prox for part in h.parts]
        return splitting(first, others, x, t)

    return prox


def points(count):
    return np.random.default_rng(3).normal(size=(count, N)) * 1.5


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


@pytest.mark.quick_if(lambda name: name in QUICK)
@pytest.mark.parametrize("name", CLOSED + SPLIT)
def test_prox_is_that_of_cvxpy_in_any_step_and_has_a_derivative(name):
    """Steps by node, and by coordinate where the penalty says that it takes these."""
    h, X = made(name), points(4)
    assert (closed_form(h.terms()._replace(l2=None)) is not None) == (name in CLOSED)
    block = stack([h] * 4, 4, N)
    prox = jax.jit(block.prox)
    t = np.array([[0.3], [1.0], [2.5], [0.05]])
    found = np.asarray(prox(X, t))
    for x, s, u in zip(X, t[:, 0], found, strict=True):
        assert_allclose(u, by_cvxpy(name, x, s), atol=5e-5)
    assert np.isfinite(block.value(found)).all()
    way = np.random.default_rng(4).normal(size=(4, N))
    slope = jax.jvp(lambda X: prox(X, t), (X,), (way,))[1]
    about = (prox(X + 1e-6 * way, t) - prox(X - 1e-6 * way, t)) / 2e-6
    assert_allclose(slope, about, atol=1e-5)
    apart = jax.jit(jax.vmap(splits_of(h)))  # and to more digits than CVXPY's
    assert_allclose(apart(X, t[:, 0]), found, atol=1e-8)
    if takes_steps(h):
        each = np.array([0.3, 1.0, 2.5, 0.05, 0.6])
        found = np.asarray(prox(X, np.tile(each, (4, 1))))
        assert_allclose(found[0], by_cvxpy(name, X[0], 1, 1 / each), atol=5e-5)


DATA = np.random.default_rng(0)
ROWS = DATA.normal(size=(40, N))
SHARDS = ew.split(ROWS, ROWS @ [2.0, -1, 0, 0.3, 0] + 0.1 * DATA.normal(size=40), nodes=4)


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("l1 bounds half", "newton-pd"),
        ("group box", "newton-pd"),
        ("box half half2", "newton-pd"),
        ("l1 nonneg l2-ball", "pdmm"),
        ("own half", "lt-saga-pd"),
        ("l1-ball half", "pd"),
    ],
)
def test_a_run_reaches_the_answer_of_cvxpy(name, method):
    problem = ew.Problem(SHARDS, ew.Squared(ridge=0.01), made(name))
    result = ew.solve(problem, ew.Graph.ring(4), method, rounds=20_000, tol=1e-8)
    assert result.converged, result.message
    u, cost, limits = cp.Variable(N), 0, []
    for rows, y in SHARDS:
        cost += cp.sum_squares(rows @ u - y) / (2 * len(y)) + 0.005 * cp.sum_squares(u)
    for part in name.split():
        cost += 4 * PARTS[part][1](u)
        limits += PARTS[part][2](u)
    cp.Problem(cp.Minimize(cost), limits).solve(solver=cp.CLARABEL)
    assert_allclose(result.x, u.value, atol=1e-5)
    star = ew.reference(problem)
    assert star.reached
    assert_allclose(result.x, star.x, atol=1e-6)


def test_three_penalties_of_a_node_each_of_its_own_kind():
    own = [ew.L1(0.1) + ew.Box(-0.5, 1), made("box half half2"), None, made("own nonneg l2")]
    problem = ew.Problem(SHARDS, ew.Squared(), own, intercept=True)
    result = ew.solve(problem, ew.Graph.ring(4), rounds=2000, tol=1e-8)
    assert result.converged, result.message
    u, b = cp.Variable(N), cp.Variable()
    cost = sum(cp.sum_squares(rows @ u + b - y) / (2 * len(y)) for rows, y in SHARDS)
    cost += 0.1 * cp.norm1(u) + cp.norm1(u - 1) + 0.35 * cp.sum_squares(u)
    limits = [*box(u), A @ u <= -0.4, B @ u <= 0.1, u >= 0]
    cp.Problem(cp.Minimize(cost), limits).solve(solver=cp.CLARABEL)
    assert_allclose(result.x, [*u.value, b.value], atol=1e-5)


def test_l1_and_squared_l2_take_the_compiled_rounds_of_an_elastic_net():
    both, net = ew.L1(0.1) + ew.SquaredL2(0.3), ew.ElasticNet(0.1, 0.3)
    assert declared(both) == declared(net) == "elastic-net"
    assert declared(both + ew.Box(-1, 1)) is None
    runs = [
        ew.solve(ew.Problem(SHARDS, ew.Squared(), h), ew.Graph.ring(4), "saga-pd", rounds=50).X
        for h in (both, net)
    ]
    assert_allclose(*runs, atol=1e-12)


def test_what_sums_say_of_themselves():
    assert str(ew.L1(0.1) + ew.Box(-1, 1)) == "L1(lam=0.1) + Box(lower=-1.0, upper=1.0)"
    assert str(ew.Box(-1, 1) & ew.NonNegative()) == "Box(lower=-1.0, upper=1.0) & NonNegative()"
    assert isinstance(sum([ew.L1(0.1), ew.Box(-1, 1), ew.NoPenalty()]), PenaltySum)
    one = ew.L1(0.1)
    assert one + ew.NoPenalty() is one
    said = {
        name: (made(name).separable, made(name).quadratic, made(name).diagonal)
        for name in ("l1 box", "l2 l2", "box half", "group box", "own l1")
    }
    assert said == {
        "l1 box": (True, False, True),
        "l2 l2": (True, True, True),
        "box half": (False, False, True),
        "group box": (False, False, False),
        "own l1": (False, False, False),
    }
    assert made("l2 elastic box").ridge == 1.0


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: ew.L1(1) + 3, "L1(lam=1.0) + 3: 3 is no penalty: give an object with value(x)"),
        (lambda: np.ones(2) + ew.L1(1), "is no penalty"),
        (lambda: ew.L1(1) & ew.Box(0, 1), "L1(lam=1.0) is no set, and & is where sets intersect"),
        (lambda: penalty_of("l1:1 & box:0,1"), "L1(lam=1.0) is no set, and & is where sets"),
        (lambda: ew.Box(0, 1) + ew.Box, "is no penalty: give an object"),
        (lambda: ew.Box(0, 1) & ew.Box(2, 3), "no point is within all bounds: widen one"),
        (lambda: stack(ew.L1(1) + ew.Box([0, 0], 1), 2, N), f"give vectors of {N} entries"),
        (lambda: stack(ew.Box([0, 0], 1) + ew.HalfSpace(A, 1), 2, N), f"vectors of {N} entries"),
    ],
)
def test_what_does_not_add_up_is_refused(build, words):
    with pytest.raises(ProblemError) as refused:
        build()
    assert words in str(refused.value)
