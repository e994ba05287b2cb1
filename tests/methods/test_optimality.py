"""Every method reaches the optimum, as judged by `catalogue`, scikit-learn and CVXPY."""

from functools import cache
from itertools import pairwise

import catalogue
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from catalogue import DIFFERENT, EXACT, GRAPHS, NODES, PROBLEMS, gradient, parts, prox, samples
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, Ridge

import edgewise as ew

OTHERS = [m for m in EXACT if m not in ("saga-pd", "asvr-pd")] + ["asvr-pd"]  # that one last
RUNS = [
    *(("saga-pd", problem, "random") for problem in PROBLEMS),
    *(("saga-pd", "l1-logistic", graph) for graph in GRAPHS if graph != "random"),
    ("saga-pd", "each-its-own", "star"),
    ("saga-pd", "each-its-own-too", "ring"),
    *(
        (method, problem, graph)
        for method in OTHERS
        for problem, graph in [
            ("simplex", "complete"),
            ("each-its-own", "random"),  # between these three, every kind of penalty
            ("each-its-own-too", "random"),
        ]
    ),
    *(("newton-pd", problem, "random") for problem in PROBLEMS if problem not in DIFFERENT),
    *(("newton-pd", "l1-logistic", graph) for graph in GRAPHS if graph != "random"),
]


def size(graph):
    """Nodes and samples: two each where there are many nodes."""
    return graph.nodes, max(NODES * catalogue.EACH, 2 * graph.nodes)


@cache
def run(method, problem, graph):
    graph = GRAPHS[graph]
    slow = graph.nodes > NODES or graph.degrees.max() == NODES - 1 > graph.degrees.min()  # stars
    rounds = EXACT[method] * (4 if slow else 1)
    made = PROBLEMS[problem].problem(*size(graph))
    return ew.solve(made, graph, method, rounds=rounds, record_every=rounds, reference=False)


# of every kind of loss, two penalties of one for all, and all of them at once
QUICK = {"l2-logistic", "lasso", "multinomial", "huber", "hinge", "simplex", *DIFFERENT}


def is_quick(method, problem, graph):
    if method != "saga-pd":
        return problem == "each-its-own"
    return problem in QUICK if graph == "random" else graph in ("wide-star", "single", "pair")


@pytest.mark.quick_if.with_args(is_quick)
@pytest.mark.parametrize(("method", "problem", "graph"), RUNS)
def test_reaches_the_optimum(method, problem, graph):
    result, shape = run(method, problem, graph), size(GRAPHS[graph])
    center = result.X.mean(0)
    assert_allclose(result.x, center, rtol=1e-15, atol=1e-15)  # it has zeros where they belong
    assert_allclose(result.X, np.broadcast_to(center, result.X.shape), atol=1e-10)
    assert catalogue.residual(PROBLEMS[problem], center, *shape) <= 1e-10
    assert_allclose(center, catalogue.optimum(problem, *shape), atol=1e-5)  # as CVXPY can


@pytest.mark.parametrize("problem", DIFFERENT)
def test_says_so_where_every_node_has_its_own_penalty(problem):
    """Duals may swing between two subgradients for ever: the residual must see through that."""
    made = PROBLEMS[problem].problem()
    options = {"rounds": EXACT["saga-pd"], "record_every": 1000, "reference": False}
    result = ew.solve(made, GRAPHS["random"], "saga-pd", tol=1e-9, **options)
    assert result.converged, result.message
    assert result.trace["residual"][-1] <= 1e-9
    # The duals certify it: they add up to zero, and at each node d_i - grad f_i is in dh_i.
    assert_allclose(result.duals.sum(0), 0, atol=1e-9)
    shards = parts(PROBLEMS[problem].target)
    for h, d, part in zip(made.penalty, result.duals, shards, strict=True):
        v = d - gradient(made.loss, part, result.x)
        assert_allclose(prox(h, result.x + v, 1.0), result.x, atol=1e-8)


# --- methods with a floor ------------------------------------------------------------------------


@pytest.mark.quick_if(lambda problem: problem != "each-its-own-too")
@pytest.mark.parametrize("problem", ["l2-logistic", *DIFFERENT])
def test_plain_stochastic_gradients_stop_at_a_floor_that_falls_with_eta(problem):
    floors, off = [], []
    for eta in (0.4, 0.1, 0.025):
        options = {"rounds": 6000, "record_every": 200, "eta": eta, "reference": False}
        run = ew.solve(PROBLEMS[problem].problem(), GRAPHS["random"], "spd", **options)
        floors.append(run.trace["consensus"][15:].mean())
        off.append(np.abs(run.X - catalogue.optimum(problem)).max())
        assert not run.converged
    assert off[0] > off[2]
    assert 1e-3 < off[2] < 0.3
    for above, below in pairwise(floors):
        assert 1.5 < above / below < 8  # four for four times less eta, or two, if noise rules


@pytest.mark.quick_if(lambda problem: problem != "each-its-own-too")
@pytest.mark.parametrize("problem", ["l2-logistic", *DIFFERENT])
def test_function_values_alone_stop_at_the_accuracy_of_differences(problem):
    options = {"rounds": 8000, "record_every": 8000, "reference": False}
    result = ew.solve(PROBLEMS[problem].problem(), GRAPHS["random"], "sk-pd-fd", **options)
    assert_allclose(result.X, np.broadcast_to(result.x, result.X.shape), atol=1e-6)
    off = np.abs(result.x - catalogue.optimum(problem)).max()
    if problem == "l2-logistic":
        assert 1e-10 < catalogue.residual(PROBLEMS[problem], result.x) < 1e-6
    assert off < 1e-5


def test_a_coarser_difference_has_a_higher_floor():
    method = ew.PrimalDual(ew.SEGA(ew.FiniteDifference(step=1e-3)))
    options = {"rounds": 8000, "record_every": 8000, "reference": False}
    result = ew.solve(PROBLEMS["l2-logistic"].problem(), GRAPHS["random"], method, **options)
    # each coordinate off by up to L step / 2, with L at most 0.25 + 0.1, at six nodes
    assert 1e-5 < catalogue.residual(PROBLEMS["l2-logistic"], result.x) < 6 * 0.35 * 1e-3


# --- scikit-learn --------------------------------------------------------------------------------


def by_scikit_learn(problem):
    """(1/N) sum loss + ridge/2 |x|^2 + h: the problem's objective over the number of nodes."""
    case = PROBLEMS[problem]
    X, y = samples(case.target)
    N, exactly = len(y), {"fit_intercept": False, "tol": 1e-14, "max_iter": 100_000}
    match problem:
        case "l2-logistic" | "multinomial":
            # gtol is 1e-14 times the count: beyond the line search's rounding, it stops by itself
            exactly["tol"] = 1e-10
            model = LogisticRegression(C=1 / (N * 0.1), solver="newton-cholesky", **exactly)
        case "l1-logistic":
            both = 0.03 + 0.1
            exactly["max_iter"] = 3000
            model = LogisticRegression(
                C=1 / (N * both), l1_ratio=0.03 / both, solver="saga", **exactly
            )
        case "lasso":
            model = Lasso(alpha=0.03, **exactly)
        case "elastic-net":
            model = ElasticNet(alpha=0.03 + 0.1, l1_ratio=0.03 / (0.03 + 0.1), **exactly)
        case "ridge":
            model = Ridge(alpha=N * 0.1, fit_intercept=False, solver="cholesky")
    return model.fit(X, y).coef_.ravel()


@pytest.mark.filterwarnings("ignore:.*(Singular|Line search|max_iter|penalty).*")
@pytest.mark.parametrize(
    "problem", ["l2-logistic", "multinomial", "l1-logistic", "lasso", "elastic-net", "ridge"]
)
def test_agrees_with_scikit_learn(problem):
    assert_allclose(run("saga-pd", problem, "random").x, by_scikit_learn(problem), atol=1e-7)


@pytest.mark.filterwarnings("ignore:.*(Singular|Line search|max_iter|penalty).*")
@pytest.mark.parametrize("lam", [0.0, 0.03])
def test_intercept(lam):
    """Outside ridge and penalty, as in scikit-learn."""
    X, y = samples("sign")
    problem = ew.Problem(
        parts("sign"), ew.Logistic(ridge=0.1), ew.L1(lam) if lam else None, intercept=True
    )
    options = {"rounds": 6000, "record_every": 6000, "reference": False}
    result = ew.solve(problem, GRAPHS["random"], "saga-pd", **options)
    both = lam + 0.1
    kind = {"solver": "saga"} if lam else {"solver": "newton-cholesky"}
    model = LogisticRegression(
        C=1 / (len(y) * both), l1_ratio=lam / both, tol=1e-13, max_iter=3000, **kind
    ).fit(X, y)
    assert abs(model.intercept_[0]) > 0.1
    assert_allclose(result.x, [*model.coef_[0], *model.intercept_], atol=1e-7)
    assert_allclose(result.X, np.broadcast_to(result.x, result.X.shape), atol=1e-10)


# --- forms of the same problem -------------------------------------------------------------------


@cache
def with_gaps(target):
    """Samples of which many entries are zero, and one row all of them."""
    X, y = samples(target)
    X = np.where(np.random.default_rng(3).random(X.shape) < 0.5, X, 0)
    X[17] = 0
    return X, y


@pytest.mark.parametrize(
    ("method", "problem"),
    [("saga-pd", "l1-logistic"), ("svr-pd", "l1-logistic"), ("saga-pd", "multinomial")],
)
def test_sparse_is_dense(method, problem):
    case = PROBLEMS[problem]
    X, y = with_gaps(case.target)
    X_parts, y_parts = np.split(X, NODES), np.split(y, NODES)
    runs = []
    for kind in (np.asarray, sp.csr_array):
        made = ew.Problem(
            [(kind(a), b) for a, b in zip(X_parts, y_parts, strict=True)], case.loss, case.penalty
        )
        options = {"rounds": 100, "record_every": 100}
        runs.append(ew.solve(made, GRAPHS["random"], method, **options))
    assert np.abs(runs[0].X - runs[0].x).max() > 1e-7  # on their way still
    assert_allclose(runs[0].X, runs[1].X, atol=1e-10)
    assert_allclose(runs[0].trace["bregman"], runs[1].trace["bregman"], rtol=1e-8, atol=1e-14)


def test_sample_weights_make_the_split_irrelevant():
    X, y = samples("sign")
    answers = []
    for how, seed in [("size", 0), ("size", 1)]:
        shards = ew.split(X, y, nodes=NODES, how=how, seed=seed, alpha=2.0)
        made = ew.Problem(shards, ew.Logistic(ridge=0.1), ew.L1(0.03), weights="sample")
        options = {"rounds": 20_000, "record_every": 20_000, "reference": False}
        answers.append(ew.solve(made, GRAPHS["random"], "saga-pd", **options).x)
    assert_allclose(answers[0], answers[1], atol=1e-8)
    # with equal shards weights="node" is the same
    assert_allclose(answers[0], run("saga-pd", "l1-logistic", "random").x, atol=1e-8)


def test_a_weight_is_as_many_samples():
    X, y = samples("sign")
    repeats = np.random.default_rng(5).integers(0, 4, len(y))
    shards = ew.split(X, y, nodes=NODES, seed=4)
    made = ew.Problem(
        shards, ew.Logistic(ridge=0.1), ew.L1(0.03), weights="sample", sample_weight=repeats
    )
    options = {"rounds": 20_000, "record_every": 20_000, "reference": False}
    weighted = ew.solve(made, GRAPHS["random"], "saga-pd", **options).x
    whole = [(np.repeat(X, repeats, 0), np.repeat(y, repeats))]
    assert_allclose(weighted, catalogue.cvxpy_solve(whole, made.loss, made.penalty), atol=1e-7)


def test_float32_runs():
    case = PROBLEMS["l1-logistic"]
    options = {"rounds": 4000, "record_every": 4000, "dtype": "float32", "reference": False}
    result = ew.solve(case.problem(), GRAPHS["random"], "saga-pd", **options)
    off = np.abs(result.X - catalogue.optimum("l1-logistic")).max()
    assert 1e-9 < off < 1e-5  # and it was not float64 in disguise
    assert result.X.dtype == np.float64


def test_float32_data_in_a_float64_run():
    """Narrow data stay narrow, yet the answer is that of their values, to float64 accuracy."""
    case = PROBLEMS["l1-logistic"]
    narrow = [(X.astype(np.float32), y) for X, y in parts(case.target)]
    made = ew.Problem(narrow, case.loss, case.penalty)
    assert made.shards.X.dtype == np.float32
    options = {"rounds": 4000, "record_every": 4000, "reference": False}
    result = ew.solve(made, GRAPHS["random"], "saga-pd", **options)
    wide = [(X.astype(np.float64), y) for X, y in narrow]
    total = sum(gradient(case.loss, part, result.x) for part in wide)
    moved = prox(case.penalty, result.x - 0.01 * total, 0.01 * NODES)
    assert np.abs(result.x - moved).max() / 0.01 <= 1e-10


@pytest.mark.parametrize(
    ("problem", "graph"), [("each-its-own", "random"), ("l1-logistic", "wide-star")]
)
def test_edge_form(problem, graph):
    graph = GRAPHS[graph]
    method = ew.PrimalDual(ew.SAGA(), form="edge")
    rounds = 4000 if graph.nodes == NODES else 16_000  # as many as in node form
    options = {"rounds": rounds, "record_every": rounds, "reference": False}
    result = ew.solve(PROBLEMS[problem].problem(*size(graph)), graph, method, **options)
    assert_allclose(result.X, np.broadcast_to(result.x, result.X.shape), atol=1e-10)
    assert catalogue.residual(PROBLEMS[problem], result.x, *size(graph)) <= 1e-10


# --- losses of one's own -------------------------------------------------------------------------


def logistic_by_hand(x, d, y):
    return jnp.log1p(jnp.exp(-y * (d @ x)))


@pytest.mark.parametrize("method", ["saga-pd", "svr-pd"])
def test_custom_loss_reaches_the_same_optimum(method):
    made = ew.Problem(parts("sign"), ew.CustomLoss(logistic_by_hand, ridge=0.1), ew.L1(0.03))
    options = {"rounds": 4000, "record_every": 4000}
    result = ew.solve(made, GRAPHS["random"], method, **options)
    assert_allclose(result.X, np.broadcast_to(result.x, result.X.shape), atol=1e-10)
    assert catalogue.residual(PROBLEMS["l1-logistic"], result.x) <= 1e-10
    assert abs(result.trace["bregman"][-1]) < 1e-12


# --- drawn at random -----------------------------------------------------------------------------


PENALTIES = {
    "l1": lambda size: ew.L1(0.1 * size),
    "box": lambda size: ew.Box(-size, size / 2),
    "group": lambda size: ew.GroupL2(0.1 * size, catalogue.GROUPS),
    "l1-ball": lambda size: ew.L1Ball(2 * size),
}


@st.composite
def counts(draw):
    """Four nodes' shares of 24 samples, one of them always 12: shapes are compiled once."""
    a = draw(st.integers(1, 10))
    return draw(st.permutations([12, a, 12 - a - (b := draw(st.integers(1, 11 - a))), b]))


@settings(max_examples=6, deadline=None, derandomize=True, database=None)
@given(
    counts=counts(),
    edges=st.permutations([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]),
    penalty=st.sampled_from(sorted(PENALTIES)),
    strength=st.floats(0.01, 1),
    method=st.sampled_from(["saga-pd", "svr-pd"]),
    seed=st.integers(0, 2**31 - 1),
)
def test_any_small_problem(counts, edges, penalty, strength, method, seed):
    rng = np.random.default_rng(seed)
    graph = ew.Graph.from_edges(edges[:4], nodes=4)
    if not graph.connected:  # four edges on four nodes: a triangle and a node apart
        apart = int(np.argmin(graph.degrees))
        graph = ew.Graph.from_edges([*graph.edges[:-1], (apart, (apart + 1) % 4)], nodes=4)
    graph.require_connected()
    X = rng.normal(size=(24, 5))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.normal(size=24) + X @ rng.normal(size=5)
    cuts = np.cumsum(counts)[:-1]
    shards = list(zip(np.split(X, cuts), np.split(y, cuts), strict=True))
    loss, h = ew.Squared(ridge=0.1), PENALTIES[penalty](strength)
    options = {"rounds": 40_000, "record_every": 4000, "tol": 1e-9, "reference": False}
    result = ew.solve(ew.Problem(shards, loss, h), graph, method, seed=seed, **options)
    total = sum(gradient(loss, part, result.x) for part in shards)
    moved = prox(h, result.x - 0.01 * total, 0.04)
    assert np.linalg.norm(result.x - moved) / 0.01 <= 1e-8
    assert_allclose(result.X, np.broadcast_to(result.x, result.X.shape), atol=1e-7)


# --- what the trace says -------------------------------------------------------------------------


@pytest.mark.parametrize("problem", ["l1-logistic", "huber", "multinomial", "each-its-own"])
def test_trace(problem):
    case, graph = PROBLEMS[problem], GRAPHS["random"]
    made = case.problem()
    star = ew.reference(made)
    result = ew.solve(made, graph, "saga-pd", rounds=60, record_every=20)
    trace, X = result.trace, result.X
    assert list(trace["rounds"]) == [0, 20, 40, 60]

    shards, penalties = parts(case.target), catalogue.listed(case.penalty, NODES)
    gap = catalogue.objective(case, X) - catalogue.objective(case, np.tile(star.x, (NODES, 1)))
    assert_allclose(trace["objective_gap"][-1], gap, atol=1e-12)

    slopes = np.array([gradient(case.loss, part, star.x) for part in shards])
    v = star.subgradients if problem in DIFFERENT else np.tile(-slopes.mean(0), (NODES, 1))
    bregman = gap - ((slopes + v) * (X - star.x)).sum()
    assert bregman > 1e-5  # on its way still
    assert_allclose(trace["bregman"][-1], bregman, rtol=1e-10, atol=1e-14)
    assert (trace["bregman"] >= 0).all()

    center = X.mean(0)
    spread = np.sqrt(np.mean([np.sum((x - center) ** 2) for x in X]))
    assert spread > 1e-4
    assert_allclose(trace["consensus"][-1], spread, rtol=1e-12)

    curvature = {"Logistic": 0.25, "Multinomial": 0.5}.get(type(case.loss).__name__, 1.0)
    L = np.array([curvature * (A**2).sum(1).max() + case.loss.ridge for A, _ in shards])
    if problem in DIFFERENT:
        duals = result.duals - result.duals.mean(0)
        terms = zip(penalties, shards, X, duals, L, strict=True)
        own = [
            L_i * (x - prox(h, x - (gradient(case.loss, part, x) - d) / L_i, 1 / L_i))
            for h, part, x, d, L_i in terms
        ]
        inside = np.linalg.norm(own)
    else:
        t = 1 / L.sum()
        total = sum(gradient(case.loss, part, center) for part in shards)
        inside = np.linalg.norm(center - prox(case.penalty, center - t * total, t * NODES)) / t
    between = [L.mean() * (X[i] - X[j]) for i, j in graph.edges]
    residual = np.hypot(inside, np.linalg.norm(between))
    assert residual > 1e-3
    assert_allclose(trace["residual"][-1], residual, rtol=1e-9)


def test_trace_with_weights():
    weight = np.random.default_rng(2).uniform(0.5, 3, NODES * catalogue.EACH)
    shards, loss = parts("sign"), ew.Logistic(ridge=0.1)
    made = ew.Problem(shards, loss, weights="sample", sample_weight=weight)
    star = ew.reference(made)
    result = ew.solve(made, GRAPHS["random"], "saga-pd", rounds=40, record_every=20)
    bregman = 0.0
    for x, w, (X, y) in zip(result.X, np.split(weight, NODES), shards, strict=True):
        z, at = X @ x, X @ star.x
        each = catalogue.values(loss, z, y) - catalogue.values(loss, at, y)
        each -= catalogue.slopes(loss, at, y) * (z - at)
        bregman += NODES * w @ each / weight.sum() + 0.05 * np.sum((x - star.x) ** 2)
    assert bregman > 1e-5
    assert_allclose(result.trace["bregman"][-1], bregman, rtol=1e-10)
