"""Each cause by data that have just that one; what is advised makes the run arrive."""

import re

import numpy as np
import pytest

import edgewise as ew
from edgewise.errors import DivergenceWarning, ProblemError, ReferenceWarning
from edgewise.problem.common_points import conflict
from edgewise.running.ending import rounded, slope, spectral_gap

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
Y = X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=60)
NOISY = np.where(X @ [1.0, -1.0, 0.0] + rng.normal(size=60) > 0, 1, -1)
RING = ew.Graph.ring(6)


def squares(rows=X, nodes=6, **options):
    return ew.Problem(ew.split(rows, Y, nodes, seed=1), ew.Squared(ridge=0.05), **options)


def solve(problem, method="saga-pd", rounds=300, graph=RING, **options):
    given = {"reference": False, "tol": 1e-6, **options}
    return ew.solve(problem, graph, method, rounds, **given)


def short(words, *args, **options):
    """A run that ends short of its goal and says these words."""
    result = solve(*args, **options)
    assert not result.converged
    assert re.search(words, result.explanation), result.message
    assert result.message.endswith(result.explanation)
    return result


def arrives(*args, **options):
    result = solve(*args, **options)
    assert result.converged, result.message
    assert result.explanation == ""


def test_too_few_rounds_are_counted_and_are_enough():
    found = short("it still falls, tenfold in", squares(), rounds=300)
    more = int(re.search(r"rounds=(\d+)", found.explanation)[1])
    assert 300 < more < 3000
    arrives(squares(), rounds=more)


def test_wide_columns_are_named():
    wide = X * [1, 300, 1]
    words = r"column 1 is [23]\.?\d?e\+02 times as wide as column \d: standardise .*--scale"
    short(words, squares(wide), "pd", rounds=400)
    arrives(squares(wide / wide.std(0)), "pd", rounds=2000)
    arrives(squares(wide), "auto", rounds=400)
    shards = ew.split(wide, Y, 6, seed=1, columns=["age", "income", "height"])
    named = ew.Problem(shards, ew.Squared(ridge=0.05))
    short("column 'income' is", named, "pd", rounds=400)


def test_long_rows_are_told_and_auto_goes_by_none():
    long = X.copy()
    long[7] *= 60
    found = short(r'times as long as the mean row.*take method="auto"', squares(long), rounds=400)
    node = int(re.search(r"a row of node (\d)", found.explanation)[1])
    lengths = [np.linalg.norm(rows, axis=1).max() for rows, _ in squares(long).shards]
    assert node == np.argmax(lengths)
    arrives(squares(long), "auto")


def test_a_long_path_is_told_and_more_edges_help():
    path = ew.Graph.path(30)
    found = short("spectral gap", squares(nodes=30), "pd", rounds=300, graph=path)
    V, edges = map(int, re.search(r"Graph.random\((\d+), (\d+)\)", found.explanation).groups())
    arrives(squares(nodes=30), "pd", rounds=2000, graph=ew.Graph.random(V, edges))


def test_float32_has_a_floor():
    options = {"tol": 1e-10, "record_every": 20, "rounds": 600}
    short('as float32 comes: take dtype="float64"', squares(), "pdmm", dtype="float32", **options)
    arrives(squares(), "pdmm", **options)


def test_float64_has_one_too():
    found = short("as float64 comes", squares(), "pdmm", tol=1e-25, record_every=20, rounds=800)
    goal = float(re.search(r"tol of (\S+)", found.explanation)[1])
    arrives(squares(), "pdmm", tol=goal, rounds=800)


def test_classes_without_mistakes_want_a_ridge():
    clear = np.where(X[:, 0] > 0, 1, -1)
    shards = ew.split(X, clear, 6)
    words = "can be told apart without a mistake.*give a ridge, as Logistic\\(ridge=1e-3\\)"
    short(words, ew.Problem(shards, "logistic"), "pd", tol=1e-8)
    arrives(ew.Problem(shards, ew.Logistic(ridge=1e-3)), "auto", tol=1e-8)
    hinge = solve(ew.Problem(shards, "smoothed-hinge"), "pd", rounds=20, tol=1e-12)
    assert "ridge" not in hinge.explanation
    three = ew.split(X, np.digitize(X[:, 0], [-0.5, 0.5]), 6)
    mixed = solve(ew.Problem(three, "multinomial"), "pd", rounds=50)
    assert "without a mistake" not in mixed.explanation


def test_a_node_of_one_class_is_named():
    nearly = np.where(X @ [1, 0.2, 0] + 0.05 * rng.normal(size=60) > 0, 1, -1)
    cuts = np.array_split(np.argsort(nearly, kind="stable"), 6)
    shards = [(X[at], nearly[at]) for at in cuts]
    words = r"node 0 and \d more have samples of one class only.*give a ridge"
    short(words, ew.Problem(shards, "logistic"), "pd")
    arrives(ew.Problem(shards, ew.Logistic(ridge=1e-3)), "auto", rounds=2000)


def test_noise_that_stays():
    words = "sampled and stay noisy.*use saga-pd"
    short(words, squares(), "spd", rounds=500)
    arrives(squares(), "saga-pd", rounds=4000)
    short("ends near the optimum alone, however long", squares(), "dgd-full", rounds=300)


def test_a_step_too_long():
    logistic = ew.Problem(ew.split(X, NOISY, 6), ew.Logistic(ridge=0.01))
    found = short("the step may be too long", logistic, "pd", rounds=400, eta=60.0)
    assert float(re.search(r"eta=([\d.]+)", found.explanation)[1]) == 15
    arrives(logistic, "pd", rounds=4000, eta="auto")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_that_no_float_can_square():
    huge = X * [1, 1, 1e25]
    with pytest.warns(DivergenceWarning, match="column 2 has numbers up to"):
        short("whose squares float32 cannot hold", squares(huge), "pd", dtype="float32")


def test_bounds_that_do_not_meet():
    own = [ew.Box(0, 1), *[None] * 4, ew.Box(2, 3)]
    words = "no point satisfies both penalties, those of nodes 0 and 5 .coordinate 0."
    with pytest.warns(ReferenceWarning, match=words):
        short(words, squares(penalty=own), "pd", rounds=50, reference=True)


PLANE = ew.HalfSpace([1.0, 1.0, 1.0], -2.0)


@pytest.mark.parametrize(
    ("own", "nodes"),
    [
        ([PLANE, ew.NonNegative(), ew.L1(1)], (0, 1)),
        ([ew.Simplex(), ew.L1(1), ew.L1Ball(0.9)], (0, 2)),
        ([ew.Budget([1, 1, 0], 3), ew.Box(0, 1), ew.Box(-2, 2)], (0, 1)),
        ([ew.Box([2, -1, -1], 3), ew.L2Ball(1.9), ew.Box(-9, 9)], (0, 1)),
        ([ew.HalfSpace([-1, -1, 0], -2), ew.L2Ball(1.4), None], (0, 1)),
        ([ew.HalfSpace([-1, -1, 0], -2), ew.L2Ball(1.42), None], None),
        ([ew.HalfSpace([-1, 0, 0], -1), ew.HalfSpace([0, -1, 0], -1), ew.L1Ball(1.5)], (0, 1, 2)),
        ([ew.HalfSpace([-1, 0, 0], -1), ew.HalfSpace([0, -1, 0], -1), ew.L1Ball(2.0)], None),
        ([ew.Box(0, 1), ew.Box(1, 2), ew.Simplex(3.0)], None),
        ([ew.L1(1), None, ew.SquaredL2(2)], None),
    ],
)
def test_who_disagrees(own, nodes):
    made = ew.Problem([(np.eye(3), np.ones(3))] * 3, "squared", own)
    found = conflict(made.penalty, 3)
    assert (None if found is None else found.nodes) == nodes


def test_a_penalty_that_contradicts_itself_is_refused():
    with pytest.raises(ProblemError, match=r"no point satisfies the penalty, HalfSpace"):
        squares(penalty=PLANE & ew.NonNegative())


def test_figures():
    at = np.arange(0, 100, 10)
    assert slope(at, 5 * 10 ** (-at / 50)) == pytest.approx(-np.log(10) / 50)
    assert spectral_gap(ew.Graph.complete(5)) == pytest.approx(1.25)
    assert spectral_gap(ew.Graph.ring(8)) == pytest.approx(1 - np.cos(2 * np.pi / 8))
    assert [rounded(n) for n in (0.2, 7.1, 123, 99_900)] == [1, 8, 130, 100_000]
