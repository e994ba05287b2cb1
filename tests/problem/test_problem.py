"""What a problem holds, how smooth it says it is, what it refuses."""

import catalogue
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from catalogue import EACH, FEATURES, NODES, gradient, parts, samples
from numpy.testing import assert_allclose, assert_array_equal

import edgewise as ew
from edgewise.errors import DataError, ProblemError, UnknownName
from edgewise.problem.block import Links

NO_LINKS = Links(None, None, None, None, None)


@pytest.fixture
def uneven():
    """Shards of 1 to 29 samples, with rows of different lengths."""
    X, y = samples("sign")
    X = X * np.linspace(0.2, 2, len(X))[:, None]
    cuts = [1, 30, 37, 41, 50]
    return list(zip(np.split(X, cuts), np.split(y, cuts), strict=True))


def block_of(problem, dtype=np.float64):
    return problem.block(NO_LINKS, dtype)


# --- shapes --------------------------------------------------------------------------------------


def test_shapes(uneven):
    problem = ew.Problem(uneven, ew.Logistic(ridge=0.1))
    assert (problem.nodes, problem.size, problem.free) == (NODES, FEATURES, 0)
    assert_array_equal(problem.counts, [1, 29, 7, 4, 9, 10])
    assert problem.own(2) == slice(30, 37)
    assert_array_equal(problem.labels[problem.own(4)], uneven[4][1])
    assert problem.scale is None
    assert "6 nodes, 60 samples, 5 unknowns, Logistic" in repr(problem)


@pytest.mark.parametrize(
    ("loss", "intercept", "size"),
    [
        (ew.Logistic(), True, FEATURES + 1),
        (ew.Multinomial(), False, 3 * FEATURES),
        (ew.Multinomial(), True, 3 * FEATURES + 3),
        (ew.CustomLoss(lambda x, d, y: (x.sum() - y) ** 2, size=9), False, 9),
        (ew.CustomLoss(lambda x, d, y: (x @ d - y) ** 2), False, FEATURES),
    ],
)
def test_size(loss, intercept, size):
    kind = "class" if isinstance(loss, ew.Multinomial) else "sign"
    problem = ew.Problem(parts(kind), loss, intercept=intercept)
    assert problem.size == size
    assert problem.loss.outputs == (3 if kind == "class" else 1)
    assert ew.reference(problem).x.shape == (size,) or not loss.linear


def test_labels_are_encoded_over_all_nodes_together():
    X = np.ones((2, 1))
    problem = ew.Problem([(X, ["no", "no"]), (X, ["yes", "yes"])], ew.Logistic())
    assert_array_equal(problem.labels, [-1, -1, 1, 1])
    assert_array_equal(problem.encode(np.array(["yes", "no"])), [1, -1])
    with pytest.raises(DataError, match=r"'maybe'.* is none of the classes .*no.*yes"):
        problem.encode(np.array(["maybe"]))
    many = ew.Problem([(X, [5, 9]), (X, [7, 5])], ew.Multinomial())
    assert_array_equal(many.labels, [0, 2, 1, 0])
    assert_array_equal(many.encode(np.array([7, 9])), [1, 2])
    assert_array_equal(ew.Problem([(X, [5, 9])], ew.Squared()).encode(np.array([3])), [3.0])


def test_same_penalty():
    def same(penalty):
        return ew.Problem(parts("sign"), ew.Logistic(), penalty).same_penalty

    assert same(ew.L1(0.1))
    assert same(None)
    assert same([ew.L1(0.1) for _ in range(NODES)])
    assert not same([ew.L1(0.1)] * (NODES - 1) + [ew.L1(0.2)])
    assert not same([ew.L1(0.1)] * (NODES - 1) + [ew.NonNegative()])


# --- the block: what estimators see --------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_block_values_and_gradients(uneven, kind):
    loss = ew.Logistic(ridge=0.3)
    X = np.random.default_rng(1).normal(size=(NODES, FEATURES))
    with jax.enable_x64(True):
        problem = ew.Problem([(kind(A), y) for A, y in uneven], loss)
        b = block_of(problem)
        assert b.labels.dtype == jnp.float64
        values = [catalogue.value(loss, part, x) for part, x in zip(uneven, X, strict=True)]
        assert_allclose(b.values(jnp.asarray(X)), values, rtol=1e-13)
        gradients = [gradient(loss, part, x) for part, x in zip(uneven, X, strict=True)]
        found = b.full(jnp.asarray(X)) + b.ridge(jnp.asarray(X))
        assert_allclose(found, gradients, rtol=1e-12, atol=1e-14)


def test_block_in_float32(uneven):
    with jax.enable_x64(True):
        b = block_of(ew.Problem(uneven, ew.Logistic(ridge=0.3), ew.L1(0.1)), np.float32)
        leaves = [a for a in jax.tree.leaves(b) if a.dtype.kind == "f"]
    assert len(leaves) >= 4
    assert all(a.dtype == np.float32 for a in leaves)


@pytest.mark.parametrize("loss", [ew.Logistic(ridge=0.3), ew.Multinomial(ridge=0.3)])
def test_intercept_is_outside_ridge_and_penalty(loss):
    kind = "class" if isinstance(loss, ew.Multinomial) else "sign"
    problem = ew.Problem(parts(kind), loss, ew.L1(0.2), intercept=True)
    outputs = problem.loss.outputs
    X = np.random.default_rng(1).normal(size=(NODES, problem.size))
    W, bias = X[:, :-outputs], X[:, -outputs:]
    with jax.enable_x64(True):
        b = block_of(problem)
        assert_allclose(b.ridge(jnp.asarray(X)), np.hstack([0.3 * W, 0 * bias]))
        assert_allclose(b.penalty.value(jnp.asarray(X)), 0.2 * np.abs(W).sum(1))
        moved = b.penalty.prox(jnp.asarray(X), jnp.full((NODES, 1), 0.5))
        assert_allclose(moved, np.hstack([np.sign(W) * np.maximum(np.abs(W) - 0.1, 0), bias]))
        found = b.full(jnp.asarray(X))
    for i, (A, y) in enumerate(parts(kind)):
        weights = W[i].reshape(outputs, -1)
        z = A @ weights.T + bias[i]
        s = catalogue.slopes(loss, z if outputs > 1 else z[:, 0], y).reshape(len(y), -1) / len(y)
        assert_allclose(found[i], np.append((s.T @ A).ravel(), s.sum(0)), rtol=1e-12, atol=1e-14)


# --- smoothness ----------------------------------------------------------------------------------


LOSSES = [
    (ew.Logistic(ridge=0.1), 0.25),
    (ew.Squared(), 1.0),
    (ew.SmoothedHinge(width=0.5, ridge=0.2), 2.0),
]


@pytest.mark.quick_if(lambda intercept, kind, **_: intercept == (kind is sp.csr_array))
@pytest.mark.parametrize(("loss", "curvature"), LOSSES)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_smoothness_against_eigenvalues(uneven, loss, curvature, intercept, kind):
    problem = ew.Problem([(kind(X), y) for X, y in uneven], loss, intercept=intercept)
    s = problem.smoothness
    for i, (X, _) in enumerate(uneven):
        rows = np.hstack([X, np.ones((len(X), 1))]) if intercept else X
        largest = curvature * (rows**2).sum(1).max() + loss.ridge
        top = curvature * np.linalg.eigvalsh(rows.T @ rows / len(rows))[-1] + loss.ridge
        assert_allclose(s.sample[i], largest, rtol=1e-12)
        assert top * (1 - 1e-12) <= s.mean[i] <= min(1.06 * top, largest * (1 + 1e-12))


def test_smoothness_of_a_multinomial_loss():
    """Against the largest eigenvalue of a sample's own Hessian, at its worst point."""
    problem = ew.Problem(parts("class"), ew.Multinomial(ridge=0.1))
    worst = np.array([[0.5, -0.5, 0], [-0.5, 0.5, 0], [0, 0, 0]])  # p = (1/2, 1/2, 0)
    for i, (X, _) in enumerate(parts("class")):
        tops = [np.linalg.eigvalsh(np.kron(worst / 2, np.outer(d, d)))[-1] for d in X]
        assert_allclose(problem.smoothness.sample[i], max(tops) + 0.1, rtol=1e-10)


def test_smoothness_sees_weights(uneven):
    weight = np.random.default_rng(2).uniform(0.5, 3, 60)
    problem = ew.Problem(uneven, ew.Squared(), weights="sample", sample_weight=weight)
    first = 0
    for i, (X, _) in enumerate(uneven):
        a = weight[first : first + len(X)] * len(X) * NODES / weight.sum()
        first += len(X)
        top = np.linalg.eigvalsh((X.T * a) @ X / len(X))[-1]
        assert_allclose(problem.smoothness.sample[i], (a * (X**2).sum(1)).max(), rtol=1e-12)
        assert top * (1 - 1e-12) <= problem.smoothness.mean[i] <= 1.06 * top * (1 + 1e-12)


def test_expected_smoothness_goes_from_sample_to_mean(uneven):
    s = ew.Problem(uneven, ew.Logistic()).smoothness
    assert_array_equal(s.expected(1), s.sample)
    assert_allclose(s.expected(29), s.mean, rtol=1e-12)  # all of the largest shard
    assert_allclose(s.expected(10_000), s.mean, rtol=1e-12)
    some = s.expected(4)
    assert_allclose(some[3], s.mean[3], rtol=1e-12)  # that shard has four samples
    b, K = 4, 29  # Gower et al. 2019, sampling without replacement
    by_hand = (K - b) / (b * (K - 1)) * s.sample[1] + K * (b - 1) / (b * (K - 1)) * s.mean[1]
    assert_allclose(some[1], by_hand, rtol=1e-12)
    assert s.mean[1] < some[1] < s.sample[1]


def test_all_zero_rows_leave_a_step():
    problem = ew.Problem([(np.zeros((3, 2)), [0.0, 1, 2])], ew.Squared())
    assert problem.smoothness.sample[0] > 0
    assert np.isfinite(1 / problem.smoothness.sample[0])
    assert problem.smoothness.mean[0] > 0


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_smoothness_of_a_custom_loss_is_found(uneven, kind):
    """|A x|^2-like: the truth for (d.x - y)^2 is 2 |d|^2, whatever x is."""
    loss = ew.CustomLoss(lambda x, d, y: (d @ x - y) ** 2, ridge=0.1)
    problem = ew.Problem([(kind(X), y) for X, y in parts("number")], loss)
    truth = [2 * (X**2).sum(1).max() + 0.1 for X, _ in parts("number")]
    assert (problem.smoothness.sample >= np.array(truth) / 2).all()
    assert (problem.smoothness.sample <= 2 * np.array(truth)).all()
    assert_allclose(problem.smoothness.sample, truth, rtol=0.06)  # rows here all have norm one


def test_smoothness_of_a_custom_loss_as_given(uneven):
    loss = ew.CustomLoss(lambda x, d, y: (d @ x - y) ** 2, smoothness=7.0, ridge=0.5)
    assert_allclose(ew.Problem(uneven, loss).smoothness.sample, 7.5)
    weight = np.where(np.arange(60) == 5, 4.0, 1.0)  # node 1 holds sample 5 and 28 more
    weighted = ew.Problem(uneven, loss, sample_weight=weight).smoothness.sample
    assert_allclose(weighted, [7.5, 7 * 4 * 29 / 32 + 0.5, 7.5, 7.5, 7.5, 7.5])


# --- weights -------------------------------------------------------------------------------------


def total_gradient(problem, x):
    """sum_i grad f_i(x)"""
    with jax.enable_x64(True):
        X = jnp.broadcast_to(jnp.asarray(x), (problem.nodes, problem.size))
        b = block_of(problem)
        return np.asarray((b.full(X) + b.ridge(X)).sum(0))


def test_weights_by_sample(uneven):
    """(V/N) times the sum over all samples, however they are split."""
    x = np.linspace(-1, 1, FEATURES)
    X, y = np.vstack([X for X, _ in uneven]), np.concatenate([y for _, y in uneven])
    found = total_gradient(ew.Problem(uneven, ew.Logistic(), weights="sample"), x)
    assert_allclose(found, NODES * gradient(ew.Logistic(), (X, y), x), rtol=1e-12)
    by_node = total_gradient(ew.Problem(uneven, ew.Logistic()), x)
    assert_allclose(by_node, sum(gradient(ew.Logistic(), p, x) for p in uneven), rtol=1e-12)
    assert np.abs(by_node - found).max() > 1e-2


@pytest.mark.parametrize("weights", ["node", "sample"])
def test_sample_weight_through_split(weights):
    """Given in the order of the data, they reach their samples in whatever order those lie."""
    X, y = samples("sign")
    weight = np.random.default_rng(8).uniform(0, 2, len(y))
    shards = ew.split(X, y, nodes=NODES, how="size", seed=3, alpha=3.0)
    assert not np.array_equal(shards.order, np.arange(len(y)))
    problem = ew.Problem(shards, ew.Logistic(), weights=weights, sample_weight=weight)
    x = np.linspace(-1, 1, FEATURES)
    slope = catalogue.slopes(ew.Logistic(), X @ x, y)
    if weights == "sample":
        expected = NODES * (weight * slope) @ X / weight.sum()
    else:
        expected = 0
        for i in range(NODES):
            own = shards.order[problem.own(i)]
            expected = expected + (weight[own] * slope[own]) @ X[own] / weight[own].sum()
    assert_allclose(total_gradient(problem, x), expected, rtol=1e-12)


def test_values_are_weighted_too(uneven):
    weight = np.random.default_rng(2).uniform(0.5, 3, 60)
    problem = ew.Problem(uneven, ew.Squared(), weights="sample", sample_weight=weight)
    X, y = np.vstack([X for X, _ in uneven]), np.concatenate([y for _, y in uneven])
    x = np.linspace(-1, 1, FEATURES)
    with jax.enable_x64(True):
        X_all = jnp.broadcast_to(jnp.asarray(x), (NODES, FEATURES))
        found = np.asarray(block_of(problem).values(X_all))
    assert_allclose(found.sum(), NODES * weight @ (X @ x - y) ** 2 / 2 / weight.sum(), rtol=1e-12)


def test_sample_weight_in_the_order_of_the_shards(uneven):
    weight = np.arange(60.0) + 1
    problem = ew.Problem(uneven, ew.Squared(), sample_weight=weight)
    own = weight[problem.own(2)]
    assert_allclose(problem.scale[problem.own(2)], own * 7 / own.sum())


def test_equal_weights_are_none(uneven):
    x = np.linspace(-1, 1, FEATURES)
    for weights in ("node", "sample"):
        plain = ew.Problem(uneven, ew.Logistic(), weights=weights)
        equal = ew.Problem(uneven, ew.Logistic(), weights=weights, sample_weight=np.full(60, 3.0))
        assert_allclose(total_gradient(plain, x), total_gradient(equal, x), rtol=1e-12)


def test_whole_weights_are_repeated_samples():
    repeats = np.random.default_rng(5).integers(1, 4, NODES * EACH)
    weighted = ew.Problem(parts("sign"), ew.Logistic(ridge=0.1), sample_weight=repeats)
    more = [
        (np.repeat(A, k, 0), np.repeat(b, k))
        for (A, b), k in zip(parts("sign"), np.split(repeats, NODES), strict=True)
    ]
    repeated = ew.Problem(more, ew.Logistic(ridge=0.1))
    assert_allclose(ew.reference(weighted).x, ew.reference(repeated).x, atol=1e-10)


# --- refusals ------------------------------------------------------------------------------------


def refuse(error, match, shards=None, loss=None, **options):
    shards = parts("sign") if shards is None else shards
    with pytest.raises(error, match=match):
        ew.Problem(shards, ew.Logistic() if loss is None else loss, **options)


def test_refuses_what_is_no_loss():
    refuse(ProblemError, r"is not a loss: use Logistic\(\), .*CustomLoss\(fn\)", loss=3)
    refuse(ProblemError, "is not a loss", loss=lambda x, d, y: 0.0)


def test_refuses_an_intercept_for_a_custom_loss():
    loss = ew.CustomLoss(lambda x, d, y: (d @ x - y) ** 2)
    refuse(ProblemError, "no intercept: make it part of your function", loss=loss, intercept=True)


def test_refuses_unknown_weights():
    refuse(UnknownName, "'samples': did you mean 'sample'", weights="samples")


@pytest.mark.parametrize(
    ("weight", "match"),
    [
        (np.ones(59), r"shape \(59,\): give 60, one per sample"),
        (np.ones((60, 1)), r"shape \(60, 1\): give 60"),
        (np.full(60, np.nan), "must be finite and not negative"),
        (np.full(60, np.inf), "must be finite and not negative"),
        (-np.ones(60), "must be finite and not negative"),
        (np.repeat([1.0, 0, 1], [10, 10, 40]), "zero for all of node 1: drop the node, or weigh"),
    ],
)
def test_refuses_sample_weights(weight, match):
    refuse(DataError, match, sample_weight=weight)


def test_refuses_weights_that_are_all_zero():
    match = "zero for every sample: give some a positive weight"
    refuse(DataError, match, weights="sample", sample_weight=np.zeros(60))


def test_takes_a_node_without_weight_where_samples_count():
    weight = np.repeat([1.0, 0, 1], [10, 10, 40])
    problem = ew.Problem(parts("sign"), ew.Logistic(), weights="sample", sample_weight=weight)
    assert_array_equal(problem.scale[problem.own(1)], 0)


@pytest.mark.parametrize(
    ("penalty", "match"),
    [
        ([ew.L1(0.1)] * 5, "5 penalties for 6 nodes: give one, or one per node"),
        (ew.Box(np.zeros(4), np.ones(4)), "does not fit: give vectors of 5 entries"),
        (ew.L1, "is no penalty: give an object with value"),
        (0.1, "is no penalty: give an object with value"),
        (ew.GroupL2(0.1, [0, 1]), "does not fit: give vectors of 5 entries"),
    ],
)
def test_refuses_penalties_that_do_not_fit(penalty, match):
    refuse(ProblemError, match, penalty=penalty)


def test_penalty_vectors_leave_the_intercept_out():
    ew.Problem(parts("sign"), ew.Logistic(), ew.HalfSpace(np.ones(5), 1.0), intercept=True)
    match = "give vectors of 5 entries"
    refuse(ProblemError, match, penalty=ew.HalfSpace(np.ones(6), 1.0), intercept=True)


def test_refuses_labels_by_the_loss():
    refuse(DataError, "needs two classes", shards=[(np.eye(2), [1, 1])])
    refuse(DataError, "use Multinomial", shards=[(np.eye(3), [1, 2, 3])])
    refuse(DataError, "Squared needs numbers", shards=[(np.eye(2), ["a", "b"])], loss=ew.Squared())


def test_refuses_shards_that_do_not_fit():
    unequal = ew.Problem([(np.eye(2), [0, 1]), (np.eye(3), [0, 1, 1])], ew.Logistic())
    with pytest.raises(ProblemError, match="say what holds between neighbours"):
        ew.solve(unequal, ew.Graph.path(2))
    named = [(pd.DataFrame(np.eye(n), columns=list("abc"[:n])), np.arange(n) % 2) for n in (3, 2)]
    with pytest.raises(ProblemError, match=r'node 1 has no column "c", .* 0\): give every'):
        ew.solve(ew.Problem(named, ew.Logistic()), ew.Graph.path(2))
    refuse(ProblemError, 'node 1 has no column "c".*no intercept', shards=named, intercept=True)
    refuse(DataError, "give at least one", shards=[])
    refuse(DataError, r"NaN.*drop that sample", shards=[(np.full((2, 2), np.nan), [0, 1])])


def test_a_stream_takes_no_weights():
    X, y = samples("sign")
    stream = ew.Stream(lambda node, size, rng: (X[:size], y[:size]), ew.split(X, y, nodes=NODES))
    refuse(ProblemError, "a stream has no weights and no", shards=stream, weights="sample")
    refuse(ProblemError, "a stream has no weights", shards=stream, sample_weight=np.ones(60))
    assert ew.Problem(stream, ew.Logistic()).nodes == NODES
