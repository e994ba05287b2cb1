"""Each cause by data that have just that one; what is advised makes the run arrive."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

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
    words = r"column 1 is [23]\.?\d?e\+02 times as wide as column \d: standardise .*ew.standardize"
    short(words, squares(wide), "pd", rounds=400)
    arrives(squares(wide / wide.std(0)), "pd", rounds=2000)
    arrives(squares(wide), "auto", rounds=400)
    shards = ew.split(wide, Y, 6, seed=1, columns=["age", "income", "height"])
    named = ew.Problem(shards, ew.Squared(ridge=0.05))
    short("column 'income' is", named, "pd", rounds=400)


def test_long_rows_are_told_and_auto_goes_by_none():
    long = X.copy()
    long[7] *= 60
    words = r"row 7 of the data set .node \d, its row \d. .*as the usual row.*take method=\"auto\""
    short(words, squares(long), rounds=400)
    arrives(squares(long), "auto")


@pytest.mark.parametrize("method", ["auto", "saga-pd", "pd"])
def test_one_row_in_another_unit_is_not_taken_for_a_wide_column(method):
    wrong = X.copy()
    wrong[7] *= 1e4
    words = "row 7 of the data set .* times as long as the usual row: is it right. Leave it out"
    short(words, squares(wrong), method, rounds=400)
    shards = ew.split(np.delete(X, 7, 0), np.delete(Y, 7), 6, seed=1)
    arrives(ew.Problem(shards, ew.Squared(ridge=0.05)), method, rounds=2000)


@pytest.mark.filterwarnings("ignore::edgewise.errors.DivergenceWarning")
def test_columns_that_are_too_uneven_for_any_method():
    def problem(rows):
        return ew.Problem(ew.split(rows, Y, 6, seed=1), ew.Squared())

    units = X * [1e-6, 1, 1e6]
    words = r"column 2 is .*e\+1[12] times as wide as column 0: standardise the columns .*\)$"
    short(words, problem(units), "auto")
    short(words, problem(units), "pd", rounds=400)
    arrives(problem(units / units.std(0)), "auto")


def test_columns_far_from_zero():
    far = X + np.array([0, 500, 0])
    words = r"column 1 lies [456]\S*e\+02 times its spread away from zero: standardise"
    short(words, squares(far), "pd", rounds=400)
    arrives(squares(far - far.mean(0)), "pd", rounds=2000)
    arrives(squares(far), "auto")


def test_columns_that_say_almost_the_same():
    twice = np.c_[X, X + 1e-6 * np.random.default_rng(4).normal(size=X.shape)]

    def problem(rows, **loss):
        return ew.Problem(ew.split(rows, Y, 6, seed=1), ew.Squared(**loss))

    words, goal = r"column \d and column \d say almost the same .condition number", {"tol": 1e-9}
    found = short(words, problem(twice), "pdmm", rounds=600, **goal)
    i, j = map(int, re.findall(r"column (\d)", found.explanation))
    assert j == i + 3
    arrives(problem(X), "pdmm", rounds=600, **goal)
    arrives(problem(twice, ridge=1e-2), "pdmm", rounds=600, **goal)


def test_a_hinge_with_a_narrow_corner():
    def problem(width):
        return ew.Problem(ew.split(X, NOISY, 6), ew.SmoothedHinge(width, ridge=0.01))

    words = 'the loss turns within a width of 1e-08.*take method="auto" and a width of 1e-03'
    short(words, problem(1e-8), "pd")
    arrives(problem(1e-3), "auto", rounds=1000)
    arrives(problem(0.1), "pd", rounds=4000)


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
    seven = {"graph": ew.Graph.ring(7), "rounds": 800}  # of six the residual comes to be zero
    found = short("than float64 comes", squares(nodes=7), "pdmm", tol=1e-25, **seven)
    goal = float(re.search(r"tol of (\S+)", found.explanation)[1])
    arrives(squares(nodes=7), "pdmm", tol=goal, **seven)


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


RARE = (np.arange(60) < 2) * 1.0  # a level, or a missing cell's column, of two rows


@pytest.mark.parametrize("centred", [False, True])
def test_a_column_that_one_class_never_has_is_named(centred):
    """The others say nothing without a mistake, yet there is no optimum: runs said 'about 590 more
    rounds would do', and had gone up by then."""
    y = np.where(RARE == 1, 1, NOISY)
    rows = np.c_[X, RARE] - centred * np.r_[X.mean(0), RARE.mean()]
    shards = ew.split(rows, y, 6, seed=1, columns=["a", "b", "c", "ward=9"])
    words = "column 'ward=9' tells the class of some samples without a mistake.*leave it out, or"
    short(words, ew.Problem(shards, "logistic", intercept=centred), "pd", rounds=100)
    ridge = ew.Logistic(ridge=1e-3)
    arrives(ew.Problem(shards, ridge, intercept=centred), "auto", rounds=1000)
    without = ew.split(X, y, 6, seed=1)
    arrives(ew.Problem(without, "logistic", intercept=centred), "auto", rounds=1000)
    y = np.where(np.arange(60) == 0, -y, y)  # of both classes: it tells nothing
    mixed = ew.Problem(ew.split(rows, y, 6), "logistic", intercept=centred)
    assert "mistake" not in solve(mixed, "pd", rounds=100).explanation


def test_samples_that_several_columns_tell_apart():
    """Two levels whose difference only says it."""
    y = np.where(RARE == 1, 1, NOISY)
    both = (np.arange(60) % 2).astype(float)
    shards = ew.split(np.c_[X, both, both + RARE], y, 6, seed=1)
    words = "some samples can be told apart without a mistake.*give a ridge"
    short(words, ew.Problem(shards, "logistic"), "pd", rounds=100)
    arrives(ew.Problem(shards, ew.Logistic(ridge=1e-3)), "auto", rounds=1000)


def test_a_word_that_one_class_of_three_never_has():
    y = np.digitize(X @ [1.0, -1.0, 0.0] + rng.normal(size=60), [-0.5, 0.5])
    y[:2] = [0, 2]
    words = ew.split(sp.csr_array(np.c_[X, RARE]), y, 6, seed=1)
    found = "column 3 tells the class of some samples"
    short(found, ew.Problem(words, "multinomial"), "pd", rounds=50)


def test_a_node_of_one_class_is_named():
    nearly = np.where(X @ [1, 0.2, 0] > 0, 1, -1)
    nearly[[5, 40]] *= -1
    cuts = np.array_split(np.argsort(nearly, kind="stable"), 6)
    shards = [(X[at], nearly[at]) for at in cuts]
    words = (
        r"node 0 and \d more have samples of one class only.*take method=\"auto\", or give a ridge"
    )
    short(words, ew.Problem(shards, "logistic"), "pd", rounds=100)
    arrives(ew.Problem(shards, "logistic"), "auto", rounds=300)
    arrives(ew.Problem(shards, ew.Logistic(ridge=1e-2)), "pd", rounds=300)


def test_noise_that_stays():
    words = "sampled and stay noisy.*use saga-pd"
    short(words, squares(), "spd", rounds=500)
    arrives(squares(), "saga-pd", rounds=4000)
    short("ends near the optimum alone, however long", squares(), "dgd-full", rounds=300)


LOGISTIC = ew.Problem(ew.split(X, NOISY, 6), ew.Logistic(ridge=0.01))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"eta": 60.0}, r"the step is too long, eta=60 was given, where the rule takes 1\.9"),
        ({"eta": 1e-6}, r"eta=1e-06 is short, the rule takes 1\.9"),
        ({"rho": 1e4}, r"rho is \de\+0\d times what the rule takes.* too much"),
        ({"rho": 1e-5}, r"rho is \d.* times what the rule takes.* too little"),
    ],
)
def test_a_step_that_was_given(given, words):
    found = short(words, LOGISTIC, "pd", rounds=400, **given)
    assert f'leave it out ({next(iter(given))}="auto")' in found.explanation
    arrives(LOGISTIC, "pd", rounds=4000)


@pytest.mark.filterwarnings("ignore::edgewise.errors.DivergenceWarning")
def test_a_step_that_diverges():
    short("the step is too long, eta=60 was given", LOGISTIC, "pd", rounds=60, eta=60.0)
    found = short("the step is too long, eta=20 was given", squares(), "pd", eta=20.0)
    assert found.message.startswith("diverged by round")


def test_few_rounds_are_no_course():
    short(r"too few rounds to tell its course: try rounds=5000", LOGISTIC, "auto", rounds=10)
    arrives(LOGISTIC, "auto", rounds=5000)


def test_a_budget_is_told_in_calls():
    given = {"rounds": 10_000, "oracle_budget": 300.0}
    found = short("tenfold in .* oracle_budget=", LOGISTIC, "pd", **given)
    given["oracle_budget"] = float(re.search(r"oracle_budget=(\d+)", found.explanation)[1])
    arrives(LOGISTIC, "pd", **given)


@pytest.mark.filterwarnings("ignore::edgewise.errors.FaultWarning")
def test_faults_that_a_method_does_not_heal_from():
    words = "does not recover from what the faults took away: use pdmm"
    lost, wiped = ew.Faults(drop=0.2), ew.Faults(wipe=[(2, 100)])
    short(words, LOGISTIC, "gt-saga", rounds=1000, faults=lost)  # no less than at the start
    short(words, LOGISTIC, "extra", rounds=400, faults=lost)
    short(words, LOGISTIC, "gt-saga", rounds=2000, faults=wiped)
    arrives(LOGISTIC, "pdmm", faults=lost)
    rounded_off = ew.Faults(bits=6, feedback=False)
    short("messages of 6 bits.* set feedback=True", LOGISTIC, "pd", faults=rounded_off)
    arrives(LOGISTIC, "pd", rounds=2000, faults=ew.Faults(bits=6))


def test_a_goal_beyond_the_digits_is_told_before_they_are_reached():
    words = 'nearer than float32 comes.*take dtype="float64"'
    short(words, LOGISTIC, "pd", rounds=100, tol=1e-10, dtype="float32")


def test_a_goal_that_asks_for_nothing():
    tiny = ew.Problem(ew.split(X, Y, 6), ew.Huber(1e-8))
    result = solve(tiny, "auto")
    assert "hardly less than at the start: ask for a smaller tol, as" in result.message
    goal = float(re.search(r"as (\S+)$", result.message)[1])
    assert "hardly" not in solve(tiny, "auto", tol=goal, rounds=400).message
    done = solve(LOGISTIC, "auto")
    again = solve(LOGISTIC, "auto", X0=done.X)  # from where it ended
    assert "hardly" not in done.message + again.message


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


def test_edges_that_may_not_pull_harder():
    tight, wide = (ew.PrimalDual(ew.SAGA(), local="auto", radius=r) for r in (0.01, 10.0))
    short("edges pull with all that their radius allows", squares(), tight, rounds=600)
    assert solve(squares(), wide, rounds=600).converged


def test_liars():
    faults = ew.Faults(liars=ew.Liars(nodes=[2]))
    short("with liars no method .* lt-saga-pd with a radius", squares(), faults=faults)
    robust = ew.PrimalDual(ew.SAGA(), local="auto", radius=0.1)
    short("look at the honest nodes$", squares(), robust, faults=faults)
