"""`solve(privacy=...)`: what it runs, what it keeps to itself, and what it refuses."""

import json
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

pytest.importorskip("dp_accounting", reason="pip install 'edgewise[privacy]'")

import edgewise as ew
from edgewise.differential_privacy.bounded_problem import bounded
from edgewise.errors import MethodError, ProblemError

BUDGET = ew.DP(2.0, 1e-5, clip=1.0, rounds=20, noise_seed=1)
RING = ew.Graph.ring(4)
SIZES = (30, 20, 25, 25)


def shards(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(sum(SIZES), 3)) * 10.0**seed
    y = np.where(np.arange(len(X)) % 2, 1.0, -1.0)
    at = np.cumsum(SIZES)[:-1]
    return list(zip(np.split(X, at), np.split(y, at), strict=True))


def solved(problem, method="auto", privacy=BUDGET, **options):
    return ew.solve(problem, RING, method, privacy=privacy, **{"reference": False} | options)


@pytest.mark.parametrize("method", ["auto", "dgd-full"])
@pytest.mark.parametrize("weights", ["node", "sample"])
def test_steps_are_the_same_whatever_the_data(method, weights):
    steps = []
    for seed in (0, 2):
        problem = ew.Problem(shards(seed), ew.Logistic(ridge=0.1), weights=weights)
        run = solved(problem, method)
        steps.append(run.method.eta)
        assert run.trace["rounds"][-1] == run.privacy.rounds == 20
        assert run.trace["oracle_calls"][-1] == 20 * np.mean(SIZES)
        assert run.privacy.epsilon == pytest.approx(2)
        assert run.privacy.epsilon_replace > 2
        assert run.privacy.row_norm == 1
    np.testing.assert_array_equal(*steps)


def test_noise_differs_unless_a_seed_is_given_for_it():
    problem = ew.Problem(shards(), ew.Logistic(ridge=0.1))
    system = ew.DP(2.0, 1e-5, clip=1.0, rounds=20)
    first, second = (solved(problem, privacy=system, seed=0) for _ in range(2))
    assert np.abs(first.X - second.X).min() > 0
    np.testing.assert_array_equal(*(solved(problem, seed=s).X for s in (0, 1)))


def test_little_noise_ends_near_the_optimum_of_bounded_rows():
    """With rounds enough and an epsilon that hides nothing; nodes' data differ as they may."""
    X, y = (
        np.concatenate([X for X, _ in shards()] * 20),
        np.concatenate([y for _, y in shards()] * 20),
    )
    y = np.sign(X @ [1.0, 2.0, -1.0])
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1)
    problem = ew.Problem(
        ew.split(X, y, 4, how="label", alpha=0.1, seed=0), ew.Logistic(ridge=0.05), weights="sample"
    )
    star = ew.reference(problem).x
    run = solved(problem, privacy=ew.DP(50.0, 1e-5, clip=1.0, rounds=400, noise_seed=0))
    assert np.linalg.norm(run.x - star) < 0.03 * np.linalg.norm(star)


def test_rounds_by_numpy_are_those_that_are_compiled(monkeypatch):
    problem = ew.Problem(shards(), ew.Huber(1.0), intercept=True)
    compiled = solved(problem).X
    monkeypatch.setenv("EDGEWISE_NUMPY", "1")
    np.testing.assert_allclose(solved(problem).X, compiled, rtol=1e-9, atol=1e-12)


def test_what_is_published_is_made_of_messages_alone(tmp_path):
    """A penalised mean is not settled by a step over the data, and no file has a residual."""
    problem = ew.Problem(shards(), ew.Logistic(ridge=0.1), ew.L1(0.01))
    run = solved(problem)
    np.testing.assert_array_equal(run.x, run.X.mean(0))
    kept = json.loads(run.save(tmp_path).read_text())
    assert kept["provenance"]["residual"] is None
    assert not run.converged
    assert "epsilon 2 at delta 1e-05" in kept["provenance"]["message"]
    assert f"{run.trace['residual'][-1]:.2e}" not in kept["provenance"]["message"]
    for more in (run.summary, run.bootstrap):
        with pytest.raises(ProblemError, match="not covered by what it spent"):
            more()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tol": 1e-3}, "tol does not go with differential privacy: when a residual is small"),
        ({"oracle_budget": 10}, "oracle_budget does not go with"),
        ({"callback": print}, "callback does not go with"),
        ({"checkpoint": "run.bin"}, "checkpoint does not go with .* with other noise"),
        ({"between": ew.NetworkLasso(1.0)}, "between does not go with"),
        ({"duals": np.zeros((4, 3))}, "duals does not go with .* in the first messages"),
        ({"privacy": 1.0}, r"give edgewise.DP\("),
        ({"method": "saga-pd"}, "saga-pd cannot run .* draw samples, or keep what they have seen"),
        ({"method": "spd"}, "spd cannot run"),
        ({"method": "newton-pd"}, "newton-pd .* hold more of the data than one gradient a round"),
        ({"method": "lt-pd"}, "lt-pd cannot run"),
        ({"method": "extra"}, "extra cannot run"),
        ({"eta": "theory"}, "give a number, or leave it out"),
    ],
)
def test_runs_that_cannot_be_accounted_for(options, message):
    with pytest.raises(MethodError, match=message):
        solved(ew.Problem(shards(), ew.Logistic(ridge=0.1)), **options)


def scaled():
    X, y = (np.concatenate(a) for a in zip(*shards(), strict=True))
    return ew.Problem(ew.standardize(ew.split(X, y, 4), RING)[0], ew.Logistic())


def filled():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=40), "y": np.arange(40) % 2})
    table.loc[3, "a"] = np.nan
    made = ew.data.prepare(table, label="y", missing="mean")
    shards = replace(ew.split(made.X, made.y, nodes=4), preparation=made.preparation)
    return ew.Problem(shards, ew.Logistic())


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: ew.Problem(shards(), ew.Squared()), r"slopes of Squared have no bound.*row_norm="),
        (
            lambda: ew.Problem([(X, np.abs(y)) for X, y in shards()], ew.Poisson()),
            "the curvature of Poisson has no bound that is public",
        ),
        (
            lambda: ew.Problem(shards(), ew.Logistic(), sample_weight=np.ones(100)),
            "sample_weight, and trials, let one sample count more",
        ),
        (
            lambda: ew.Problem(shards(), ew.CustomLoss(lambda x, d, y: (x @ d - y) ** 2)),
            "would be looked up in the data: give it smoothness=",
        ),
        (
            lambda: ew.Problem(shards(), ew.Logistic(), cost=ew.Linear(np.ones(3))),
            "costs and couplings",
        ),
        (
            lambda: ew.Problem(
                [(X, ew.survival_labels(np.arange(1, len(X) + 1), y > 0)) for X, y in shards()],
                ew.CoxPH(),
            ),
            "CoxPH is of all of a node's samples together",
        ),
        (scaled, "the columns were scaled by means and spreads of these very data"),
        (filled, "missing cells were filled with means, medians or levels of these very data"),
    ],
)
def test_problems_that_cannot_be_accounted_for(made, message):
    with pytest.raises(ProblemError, match=message):
        solved(made())


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0},
        {"epsilon": 51},
        {"delta": 0.5},
        {"clip": -1},
        {"clip": "median"},
        {"row_norm": 0},
        {"rounds": 0},
        {"noise_seed": -1},
    ],
)
def test_budgets_that_are_none(wrong):
    with pytest.raises(MethodError, match=r"give|whole"):
        ew.DP(**{"epsilon": 1.0, "delta": 1e-5, "clip": 1.0} | wrong)


def test_without_the_library_it_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(MethodError, match=r"pip install 'edgewise\[privacy\]'"):
        solved(ew.Problem(shards(), ew.Logistic()))


def test_it_ends_by_no_residual():
    """Which the loss's zero at the start would make it do, and one label keep it from."""
    rng = np.random.default_rng(0)
    nothing = [(rng.normal(size=(size, 3)), np.zeros(size)) for size in SIZES]
    run = solved(
        ew.Problem(nothing, ew.Huber(1.0)), privacy=ew.DP(2.0, 1e-5, 1.0, rounds=20), rounds=20,
        record_every=1,
    )  # fmt: skip
    assert run.trace["residual"][0] == 0
    assert run.trace["rounds"][-1] == 20


def test_repeated_entries_of_a_row_count_as_their_sum():
    rows = sp.csr_array(([0.25, 0.25, 0.25, 0.25], [0, 0, 0, 0], [0, 4]), shape=(1, 3))
    assert rows.nnz == 4
    seen = bounded(ew.Problem([(rows, np.ones(1))], ew.Squared()), 0.5)
    assert seen.shards.X.nnz == 1
    np.testing.assert_array_equal(seen.shards.X.toarray(), [[0.5, 0, 0]])
    assert rows.nnz == 4


def test_a_custom_loss_is_clipped_as_a_whole():
    loss = ew.CustomLoss(lambda x, d, y: jnp.sqrt(1 + (x @ d - y) ** 2), smoothness=1.0)
    run = solved(ew.Problem(shards(), loss), privacy=ew.DP(2.0, 1e-5, 1.0, row_norm=1.0, rounds=20))
    assert np.isfinite(run.X).all()
