import cvxpy as cp
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edgewise.errors import ProblemError
from edgewise.problem.penalties import (
    L1,
    Box,
    ElasticNet,
    GroupL2,
    HalfSpace,
    L1Ball,
    L2Ball,
    NonNegative,
    NoPenalty,
    Simplex,
    SquaredL2,
)
from edgewise.problem.stacked_penalties import same, stack

SIZE = 7
NORMAL = np.array([1.0, -2.0, 0.5, 0.0, 3.0, -1.0, 0.2])
GROUPS = [5, -1, 5, 5, 2, -1, 2]

CATALOGUE = {
    "none": NoPenalty(),
    "l1": L1(0.7),
    "l1-zero": L1(0),
    "squared": SquaredL2(0.3),
    "elastic": ElasticNet(0.4, 0.6),
    "group": GroupL2(0.5, GROUPS),
    "box": Box(-0.5, 1),
    "box-vector": Box(np.linspace(-1, 0, SIZE), [0, 1, 2, 3, np.inf, 1, 0]),
    "nonnegative": NonNegative(),
    "simplex": Simplex(),
    "simplex-large": Simplex(4.0),
    "l1-ball": L1Ball(1.5),
    "l2-ball": L2Ball(0.8),
    "half-space": HalfSpace(NORMAL, -0.4),
    "sum-on-a-plane": ElasticNet(0.4, 0.6) + Box(-0.5, 1) + HalfSpace(NORMAL, -0.4),
    "sum-split": GroupL2(0.5, GROUPS) + Box(-0.5, 1),
}
FUNCTIONS = {"none", "l1", "l1-zero", "squared", "elastic", "group", "sum-on-a-plane", "sum-split"}
SETS = [name for name in CATALOGUE if name not in FUNCTIONS]


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield


@pytest.fixture(params=CATALOGUE)
def penalty(request):
    return CATALOGUE[request.param]


def points(count, seed=0, scale=2.0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(count, SIZE)) * scale)


@jax.jit
def rows(penalty, X, t):
    return jax.vmap(lambda x: penalty.prox(x, t))(X)


@jax.jit
def values(penalty, X):
    return jax.vmap(penalty.value)(X)


@jax.jit
def slopes(penalty, X, D, t):
    return jax.vmap(lambda x, d: jax.jvp(lambda x: penalty.prox(x, t), (x,), (d,))[1])(X, D)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("t", [0.05, 1.0, 6.0])
def test_prox_satisfies_its_variational_inequality(penalty, t):
    X = points(200)
    P = rows(penalty, X, t)
    U = jnp.concatenate([rows(penalty, points(200, 1), 1.0), rows(penalty, 9 * points(200, 2), t)])
    at_p, at_u = values(penalty, P), values(penalty, U)
    assert jnp.isfinite(at_p).all()
    assert jnp.isfinite(at_u).all()
    slope = ((X - P) / t) @ U.T - ((X - P) / t * P).sum(1)[:, None]
    assert (at_u[None] >= at_p[:, None] + slope - 1e-9).all()


@pytest.mark.usefixtures("x64")
def test_prox_is_firmly_nonexpansive(penalty):
    X, Y = points(200, 3), points(200, 4, scale=0.8)
    P, Q = rows(penalty, X, 0.9), rows(penalty, Y, 0.9)
    assert (((P - Q) ** 2).sum(1) <= ((P - Q) * (X - Y)).sum(1) + 1e-12).all()


@pytest.mark.usefixtures("x64")
def test_prox_derivative(penalty):
    """Against central differences at random points, which are smooth points almost surely."""
    X, D = points(200, 5), points(200, 6, scale=1.0)
    slope = slopes(penalty, X, D, 0.6)
    difference = rows(penalty, X + 1e-7 * D, 0.6) - rows(penalty, X - 1e-7 * D, 0.6)
    np.testing.assert_allclose(slope, difference / 2e-7, atol=1e-6)


def test_no_derivative_is_nan_at_ties(penalty):
    X = jnp.array([0.0, 1.0, -3.0])[:, None] * jnp.ones(SIZE)
    assert jnp.isfinite(slopes(penalty, X, jnp.ones_like(X), 0.6)).all()
    assert not jnp.isnan(jax.jit(jax.vmap(jax.grad(penalty.value)))(X)).any()


@pytest.mark.parametrize("wide", [False, True])
def test_float32_stays_float32(penalty, wide):
    with jax.enable_x64(wide):
        X, t = points(3).astype(jnp.float32), jnp.asarray(0.3)
        P = rows(penalty, X, t)
        at_p = values(penalty, P)
        assert P.dtype == at_p.dtype == slopes(penalty, X, X, t).dtype == jnp.float32
        assert jnp.isfinite(at_p).all()
        block = stack(penalty, 3, SIZE)
        moved = jax.eval_shape(block.prox, X, jnp.full((3, 1), t))
        assert moved.dtype == jax.eval_shape(block.value, X).dtype == jnp.float32


@pytest.mark.usefixtures("x64")
def test_float64_stays_float64(penalty):
    assert jax.eval_shape(penalty.prox, points(1)[0], 0.5).dtype == jnp.float64
    assert jax.eval_shape(penalty.value, points(1)[0]).dtype == jnp.float64


@pytest.mark.parametrize("make", [Simplex, L1Ball, L2Ball])
@pytest.mark.parametrize("size", [10, 20_000])
def test_projections_stay_feasible_in_float32(make, size):
    x = jnp.asarray(np.random.default_rng(0).normal(size=size) * 30 + 5, jnp.float32)
    for scale in (1.0, 30.0, 1e4):
        p = rows(make(2.0), scale * x[None], 1.0)[0]
        order = {Simplex: 1, L1Ball: 1, L2Ball: 2}[make]
        assert abs(np.linalg.norm(np.asarray(p, np.float64), order) - 2) < 1e-5
        assert make(2.0).value(p) == 0


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", SETS)
def test_indicators_tell_inside_from_outside(name):
    penalty, X = CATALOGUE[name], points(200, 7)
    P = rows(penalty, X, 1.0)
    outside = jnp.linalg.norm(X - P, axis=1) > 1e-3
    assert outside.any()
    assert (values(penalty, X) == jnp.where(outside, jnp.inf, 0)).all()
    just_off = P + 1e-4 * (X - P) / jnp.linalg.norm(X - P, axis=1, keepdims=True)
    assert (values(penalty, just_off)[outside] == jnp.inf).all()


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("penalty", "value"),
    [
        (NoPenalty(), 0.0),
        (L1(0.5), 0.5 * 28),
        (SquaredL2(0.5), 0.25 * 140),
        (ElasticNet(2.0, 0.5), 2 * 28 + 0.25 * 140),
        (GroupL2(2.0, [0, 0, 1, 1, 1, 1, 1]), 2 * (np.sqrt(2 * 5) + np.sqrt(5 * 135))),
    ],
)
def test_values(penalty, value):
    x = jnp.array([1.0, -2, 3, -4, 5, -6, 7])
    np.testing.assert_allclose(penalty.value(x), value)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("norm", "dual_ball"),
    [
        (L1(0.7), Box(-0.7, 0.7)),
        (GroupL2(0.7 / np.sqrt(SIZE), [0] * SIZE), L2Ball(0.7)),
        (NonNegative(), Box(-np.inf, 0)),
    ],
)
def test_moreau(norm, dual_ball):
    """x = prox_{th}(x) + t proj(x/t): the dual ball of a norm, the polar of a cone."""
    X, t = points(200, 8), 1.7
    np.testing.assert_allclose(rows(norm, X, t) + t * rows(dual_ball, X / t, 1.0), X, atol=1e-12)


def group_norm(u):
    parts = [np.flatnonzero(np.array(GROUPS) == g) for g in set(GROUPS)]
    return 0.5 * sum(np.sqrt(len(part)) * cp.norm(u[part]) for part in parts)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("name", "objective", "constraints"),
    [
        ("l1-ball", None, lambda u: [cp.norm1(u) <= 1.5]),
        ("simplex-large", None, lambda u: [u >= 0, cp.sum(u) == 4]),
        ("half-space", None, lambda u: [NORMAL @ u <= -0.4]),
        ("group", group_norm, lambda u: []),
        ("elastic", lambda u: 0.4 * cp.norm1(u) + 0.3 * cp.sum_squares(u), lambda u: []),
    ],
)
def test_prox_against_cvxpy(name, objective, constraints):
    for x in np.asarray(points(3, 9)):
        u = cp.Variable(SIZE)
        h = objective(u) if objective else 0
        problem = cp.Problem(cp.Minimize(h + cp.sum_squares(u - x) / (2 * 0.8)), constraints(u))
        problem.solve(solver=cp.CLARABEL)
        np.testing.assert_allclose(CATALOGUE[name].prox(jnp.asarray(x), 0.8), u.value, atol=1e-5)


class Capped:
    """A user's penalty that is no pytree, and is neither hashable nor equal to itself."""

    __hash__ = None

    def __init__(self, cap):
        self.cap = cap

    def __eq__(self, other):
        return False

    def value(self, x):
        return jnp.where((x <= self.cap + 1e-6).all(), 0.0, jnp.inf)

    def prox(self, x, t):
        return jnp.minimum(x, self.cap)


@jax.tree_util.register_pytree_node_class
class Drift:
    """A user's penalty c·x whose leaf is stacked."""

    def __init__(self, c):
        self.c = c

    def tree_flatten(self):
        return [self.c], None

    @classmethod
    def tree_unflatten(cls, _, leaves):
        return cls(*leaves)

    def value(self, x):
        return self.c * x.sum()

    def prox(self, x, t):
        return x - t * self.c


CAP = Capped(0.2)
STACKS = {
    "one": CATALOGUE["elastic"],
    "one-vector": CATALOGUE["box-vector"],
    "one-empty": NoPenalty(),
    "one-user": Capped(0.5),
    "one-user-pytree": Drift(0.3),
    "parameters": [L1(lam) for lam in (0.1, 0.5, 0.0, 2, 1.0, 0.3)],
    "shapes": [Box(-1, 1), CATALOGUE["box-vector"], Box(0, 1), NoPenalty(), Box(0, 2), Box(-9, 9)],
    "classes": [L1(0.1), SquaredL2(0.1), L1(0.9), Simplex(2), GroupL2(1, GROUPS), SquaredL2(3)],
    "lookalikes": [L1(0.4), SquaredL2(0.4), L1Ball(0.4), L2Ball(0.4), Simplex(0.4), L1(0.4)],
    "users": [CAP, Capped(-0.4), L1(0.2), CAP, Drift(0.1), Drift(-2.0)],
}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("free", [0, 2])
def test_stack_equals_node_by_node(name, free):
    nodes = 6
    given = STACKS[name]
    each = given if isinstance(given, list) else [given] * nodes
    block = stack(given, nodes, SIZE + free, free)
    X = jnp.concatenate([points(nodes, 10), 7 + jnp.arange(nodes * free).reshape(nodes, free)], 1)
    t = jnp.linspace(0.2, 1.5, nodes)[:, None]
    P = jax.jit(lambda block, X, t: block.prox(X, t))(block, X, t)
    at_p = jax.jit(lambda block, X: block.value(X))(block, P)
    assert P.shape == X.shape
    assert at_p.shape == (nodes,)
    for i, penalty in enumerate(each):
        if isinstance(penalty, Capped):
            p = penalty.prox(X[i, :SIZE], t[i, 0])
        else:
            p = rows(penalty, X[i : i + 1, :SIZE], t[i, 0])[0]
        np.testing.assert_allclose(P[i, :SIZE], p, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(at_p[i], penalty.value(p), rtol=1e-12)
    assert (P[:, SIZE:] == X[:, SIZE:]).all()
    assert all(leaf.shape[0] == nodes for leaf in jax.tree.leaves(block))


def test_jit_is_shared_between_equal_stacks_only():
    compiled = []

    @jax.jit
    def prox(block, X, t):
        compiled.append(block)
        return block.prox(X, t)

    X, t = jnp.ones((2, SIZE)), jnp.ones((2, 1))
    for given, expected in [(CAP, 0.2), (CAP, 0.2), (Capped(0.6), 0.6), (Capped(0.7), 0.7)]:
        assert jnp.allclose(prox(stack(given, 2, SIZE), X, t), expected)
    assert len(compiled) == 3
    prox(stack(L1(0.1), 2, SIZE), X, t)
    prox(stack([L1(0.2), L1(0.5)], 2, SIZE), X, t)
    assert len(compiled) == 4


def test_stack_of_a_traced_parameter():
    def total(lam):
        return stack(L1(lam), 3, SIZE).value(jnp.ones((3, SIZE))).sum()

    assert jnp.allclose(jax.jit(jax.grad(total))(0.5), 3 * SIZE)
    mixed = jax.jit(lambda lam: stack([L1(lam), L1(1.0)], 2, SIZE).value(jnp.ones((2, SIZE))))
    assert jnp.allclose(mixed(0.5), jnp.array([0.5 * SIZE, SIZE]))


def test_same():
    assert same(L1(0.1))
    assert same([L1(0.1), L1(0.1)])
    assert same([CAP, CAP])
    assert same([Box(0, [1, 2]), Box(0, [1, 2])])
    assert not same([L1(0.1), L1(0.2)])
    assert not same([L1(0.1), SquaredL2(0.1)])
    assert not same([Capped(1), Capped(1)])
    assert not same([Box(0, [1, 2]), Box(0, 1)])
    assert not same([Box(0, 1), Box(0, 1), Box(0, 2)])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: L1(-0.1), "L1: lam is -0.1: give a finite number from 0 up"),
        (lambda: L1(np.nan), "lam is nan"),
        (lambda: L1("much"), "lam is 'much'"),
        (lambda: L1([0.1, 0.2]), "give a finite number"),
        (lambda: SquaredL2(jnp.asarray(-1.0)), "SquaredL2: lam"),
        (lambda: ElasticNet(1, -1), "ElasticNet: l2 is -1"),
        (lambda: GroupL2(-1, [0, 1]), "GroupL2: lam"),
        (lambda: GroupL2(1, [0.5, 1]), "groups.*an integer per coefficient"),
        (lambda: GroupL2(1, 3), "groups"),
        (lambda: Box(1, 0), "lower <= upper"),
        (lambda: Box([0, 2], 1), "lower <= upper"),
        (lambda: Box([0, 2], [1, 2, 3]), "lengths differ"),
        (lambda: Box(np.nan, 1), "lower is nan"),
        (lambda: Simplex(0), "Simplex: radius is 0: give a finite number above 0"),
        (lambda: L1Ball(-1), "radius"),
        (lambda: L2Ball(np.inf), "radius"),
        (lambda: HalfSpace([0, 0], 1), "not all 0"),
        (lambda: HalfSpace(3, 1), "a is 3: give a finite vector"),
        (lambda: HalfSpace([1, 0], np.inf), "b is inf"),
        (lambda: stack([L1(1)], 2, SIZE), "1 penalties for 2 nodes: give one, or"),
        (lambda: stack([], 2, SIZE), "0 penalties"),
        (lambda: stack(3.0, 2, SIZE), "3.0 is no penalty: give an object"),
        (lambda: stack([L1(1), None], 2, SIZE), "None is no penalty"),
        (lambda: stack(NonNegative, 2, SIZE), "NonNegative'> is no penalty"),
        (lambda: same([L1(1), "l1"]), "'l1' is no penalty"),
        (lambda: stack(Box([0, 0], 1), 2, SIZE), f"Box.*give vectors of {SIZE} entries"),
        (lambda: stack(GroupL2(1, [0, 0]), 2, SIZE), "GroupL2"),
        (lambda: stack(HalfSpace(NORMAL, 1), 2, SIZE, free=1), f"of {SIZE - 1} entries"),
        (lambda: stack([L1(1), HalfSpace([1, 1], 1)], 2, SIZE), "HalfSpace"),
    ],
)
def test_errors_say_what_to_do(build, message):
    with pytest.raises(ProblemError, match=message):
        build()
