"""The tables of docs/performance.md, and that of liars, are what the kept numbers make of them; and
the race that they are from is fair: its goal, its gradients, its search for steps."""

import json
import sys

import numpy as np
import pytest
from paths import ROOT

PAGE = {"libraries": "performance.md", "wire": "performance.md", "liars": "privacy.md"}
MADE = {"libraries": "tables", "wire": "table", "liars": "table"}


@pytest.fixture(scope="module")
def benchmarks():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import liars_page
        import libraries_page
        import libraries_race
        import wire_page

        pages = {"libraries": libraries_page, "wire": wire_page, "liars": liars_page}
        yield {**pages, "race": libraries_race}
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


@pytest.mark.parametrize("name", MADE)
def test_tables_are_of_the_kept_numbers(benchmarks, name):
    kept = json.loads((ROOT / "docs" / "data" / f"{name}.json").read_text())
    made = getattr(benchmarks[name], MADE[name])(kept)
    assert made in (ROOT / "docs" / PAGE[name]).read_text(), f"python benchmarks/{name}.py --page"


def shared(race, loss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3, 5, 4))
    y = np.sign(X[..., 0]) if loss == "logistic" else X[..., 0] + 1
    edges = np.array([[0, 1], [1, 2]])
    return race.Shared("some", loss, X, y, edges, 0.1, 0.0, np.zeros(4))


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_gradients_are_of_the_objective(benchmarks, loss):
    problem = shared(benchmarks["race"], loss)
    x, step = np.linspace(-1, 1, 4), 1e-6
    slope = problem.gradient(np.tile(x, (3, 1))).mean(0)
    ahead, behind = (problem.objective(x + s * step * np.eye(4)) for s in (1, -1))
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * step), rtol=1e-6)


def test_a_race_ends_at_the_worst_node(benchmarks):
    race = benchmarks["race"]
    problem = shared(race, "squared")
    rows, y = problem.X.reshape(-1, 4), problem.y.reshape(-1)
    best = np.linalg.solve(rows.T @ rows / 15 + 0.1 * np.eye(4), rows.T @ y / 15)
    problem = problem._replace(optimum=best)
    run = race.Race(problem, 10.0)
    run.begin()
    models = np.tile(best, (3, 1))
    models[2] += 0.1
    assert not run.iteration(lambda: models)
    assert run.gap == pytest.approx(run.worst(models[2:]))
    assert run.iteration(lambda: np.tile(best, (3, 1)), 7)
    assert run.ended == "reached"
    assert run.rounds == {"1e-03": 7, "1e-06": 7}


def test_the_search_finds_the_best_step_and_leaves_a_range_that_diverges(benchmarks):
    race = benchmarks["race"]

    def run(steps, limit):
        if steps["eta"] > 0.5:
            return {"ended": "diverged", "iterations": 1 / steps["eta"]}
        seconds = abs(np.log2(steps["eta"] / 0.25)) + 0.01
        return {"ended": "reached", "seconds": {"1e-06": seconds}}

    found, _, runs = race.search(run, {"eta": 8.0}, 1.0)
    assert found == {"eta": 0.25}
    assert runs <= race.MOST_RUNS
