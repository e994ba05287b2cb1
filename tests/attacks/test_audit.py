"""Attacks get what they must, and nothing where there is nothing to get."""

import jax
import numpy as np
import pytest

import edgewise as ew
from edgewise.attacks import local_fit
from edgewise.attacks.inversion import node_gradients
from edgewise.attacks.local_fit import ends, known_of, local_rows
from edgewise.attacks.recording import Recording
from edgewise.attacks.scores import auc, best_correlations, shuffled
from edgewise.attacks.views import all_neighbours, one_neighbour

NODES, EACH, COLUMNS = 5, 8, 6
BATCHES = ew.PrimalDual(ew.SAGA(batch=3))


@pytest.fixture(scope="module")
def shards():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=COLUMNS)
    parts = []
    for share in np.linspace(0.1, 0.9, NODES):
        X = rng.normal(size=(EACH, COLUMNS))
        y = np.where(X @ truth > np.quantile(X @ truth, 1 - share), 1, -1)
        parts.append((X, y))
    return ew.data.Shards.from_parts(parts)


def problem_of(shards, **more):
    return ew.Problem(shards, ew.Logistic(ridge=0.1), **more)


def rows(found, who):
    return found[who, "rows", "recovered"]


def test_single_samples_are_their_rows_to_all_neighbours(shards):
    found = ew.audit(problem_of(shards), "ring", "saga-pd", 80, members=False)
    assert rows(found, "all neighbours").got > 0.95
    assert rows(found, "all neighbours").chance < 0.05
    assert rows(found, "all neighbours").of == NODES * EACH
    assert rows(found, "one neighbour").got < 0.3  # one of two does not see what the other sends
    assert found["all neighbours", "first gradient"].got > 1 - 1e-9


def test_where_all_see_each_other_one_neighbour_is_enough(shards):
    graph = ew.Graph.complete(NODES)
    found = ew.audit(problem_of(shards), graph, "saga-pd", 80, members=False)
    assert rows(found, "one neighbour").got > 0.95
    noisy = ew.audit(problem_of(shards), graph, "saga-pd", 80, members=False, dual_noise=1.0)
    assert rows(noisy, "all neighbours").got > 0.95
    assert noisy["all neighbours", "first gradient"].got > 1 - 1e-9
    assert abs(noisy["one neighbour", "first gradient"].got) < 0.9


def test_batches_come_apart_where_draws_are_known(shards):
    found = ew.audit(problem_of(shards), "ring", BATCHES, 80, members=False)
    assert rows(found, "all neighbours").got > 0.9
    secret = ew.audit(problem_of(shards), "ring", BATCHES, 80, members=False, secret_draws=True)
    # of 8 samples two of three have often been drawn just before, and add nothing: one row is left
    assert rows(secret, "all neighbours").got < 0.8
    assert not any("all know which samples" in what for what in secret.assumed)


def test_the_steps_of_local_training_are_run_as_the_node_runs_them(shards):
    """With the node's own rows they lead where it went, also where it stops early."""
    problem, local = problem_of(shards), ew.PrimalDual(ew.SAGA(batch=2), local="auto")
    with jax.enable_x64(True):
        r = Recording(problem, ew.Graph.ring(NODES), local, 12)
        known = known_of(r, all_neighbours(r).heard[0], 2)
        D, y = problem.shards.X[problem.own(2)], problem.labels[problem.own(2)]
        mean = (-0.5 * y[:, None] * D).mean(0)
        led = ends(jax.numpy.asarray(D), jax.numpy.asarray(mean), known)
    np.testing.assert_allclose(led, known.targets, atol=1e-12)


def test_few_local_steps_are_fitted_through_where_draws_are_known(shards, monkeypatch):
    monkeypatch.setattr(local_fit, "STEPS", 400)
    problem, local = problem_of(shards), ew.PrimalDual(ew.SAGA(), local=2)
    with jax.enable_x64(True):
        r = Recording(problem, ew.Graph.ring(NODES), local, 50)
        found = local_rows(r, all_neighbours(r).heard[0], 0)
    X = problem.shards.X
    like = best_correlations(found, X[problem.own(0)], X.mean(0), X.std(0))
    other = best_correlations(found, X[problem.own(1)], X.mean(0), X.std(0))
    # how near it comes in 400 steps is a matter of rounding
    assert (like > 0.95).mean() > 0.8
    assert (other > 0.95).mean() < 0.3


def test_whole_gradients_hide_rows_and_tell_the_share_of_a_label(shards):
    found = ew.audit(problem_of(shards, intercept=True), "ring", "pd", 60, members=False)
    assert rows(found, "all neighbours").got == 0
    assert found["all neighbours", "rows", "part in the span"].got > 0.999  # 8 rows of 6 columns
    for who in ("one neighbour", "all neighbours"):  # the first round has no other unknown
        assert found[who, "label share", "error"].got < 1e-9
        assert found[who, "label share", "correlation"].chance < 0.8


def test_rows_show_in_the_gradients_of_every_class():
    rng = np.random.default_rng(3)
    parts = [(rng.normal(size=(8, 6)), np.arange(8) % 3) for _ in range(3)] + [
        (rng.normal(size=(1, 6)), [2])  # no halves: membership is not asked of it
    ]
    problem = ew.Problem(parts, ew.Multinomial(ridge=0.1), intercept=True)
    found = ew.audit(problem, "ring", "saga-pd", 60)
    assert rows(found, "all neighbours").got > 0.9
    assert rows(found, "all neighbours").chance < 0.05
    assert any("membership" in what for what in found.not_tried)


def test_without_an_intercept_columns_that_are_not_centred_tell_the_share(shards):
    away = [(X + 4.0, y) for X, y in shards]
    found = ew.audit(problem_of(away), ew.Graph.complete(NODES), "pd", 2, members=False)
    assert found["all neighbours", "label share", "correlation"].got > 0.95


def test_noise_of_differential_privacy_leaves_gradients_untold(shards):
    pytest.importorskip("dp_accounting", reason="pip install 'edgewise[privacy]'")
    budget = ew.DP(epsilon=1.0, delta=1e-3, clip=1.0, rounds=40, noise_seed=0)
    found = ew.audit(problem_of(shards), "ring", "pd", 40, privacy=budget)
    assert abs(found["all neighbours", "first gradient"].got) < 0.9
    assert rows(found, "all neighbours").got < 0.1
    members = found["all neighbours", "membership by messages"]
    assert abs(members.got - 0.5) < 4 * members.error


def test_newton_tells_second_moments_and_the_row_of_a_single_sample(shards):
    few = [shards[i] for i in range(NODES - 1)] + [(shards[NODES - 1][0][:1], [1])]
    found = ew.audit(problem_of(few), "ring", "newton-pd", 20, members=False)
    assert found["one neighbour", "second moments"].got > 0.999
    by_node = found.by_node["one neighbour", "rows"]
    assert by_node[-1] == 1
    assert by_node[:-1].max() == 0


def test_pdmm_comes_to_rest_where_its_gradient_shows(shards):
    exact = ew.PDMM(tol=1e-6)
    found = ew.audit(problem_of(shards, intercept=True), "ring", exact, 20, members=False)
    assert found["all neighbours", "first gradient"].got > 0.999
    assert found["all neighbours", "label share", "correlation"].got > 0.99


def test_gradients_come_through_to_who_is_further_away(shards):
    """Slow steps: gradients stay what they were while they travel."""
    method = ew.DGD(ew.Full(), eta=1e-3)
    found = ew.audit(problem_of(shards), "path", method, 8, members=False, coalition=[0])
    far = found["coalition", "first gradient further away"]
    assert far.of == NODES - 2
    assert far.got > 0.99
    assert far.chance < 0.8


def test_rounded_messages_tell_rounded_gradients(shards):
    problem, saga = problem_of(shards), ew.PrimalDual(ew.SAGA())
    found = ew.audit(problem, "path", saga, 40, members=False, bits=8, coalition=[0])
    first = found["all neighbours", "first gradient"]
    assert 0.99 < first.got < 1 - 1e-9
    assert 0.9 < found["all neighbours", "rows", "median correlation"].got < 1 - 1e-6
    assert found["coalition", "first gradient further away"].of == NODES - 2


def test_members_show_in_messages_more_than_in_the_model(shards):
    found = ew.audit(problem_of(shards), "ring", "saga-pd", 60)
    seen = found["all neighbours", "membership by messages"]
    model = found["who has the model", "membership by loss of the model"]
    assert seen.got > 0.99
    assert model.got < seen.got
    assert model.of == NODES * EACH


def test_who_is_no_member_cannot_be_told():
    """The control: both halves are of the same kind, and neither was in anything."""
    rng = np.random.default_rng(1)
    got, error = auc(rng.normal(size=400), rng.normal(size=400))
    assert 0.01 < error < 0.03
    assert abs(got - 0.5) < 3 * error
    assert auc(np.arange(5.0), np.arange(5.0) - 10)[0] == 1
    assert auc(np.ones(4), np.ones(4))[0] == 0.5


def test_guesses_are_scored_up_to_a_factor_and_not_beyond():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 20)) * 10.0 ** np.linspace(-3, 3, 20) + 3.0
    centre, scale = X.mean(0), X.std(0)
    np.testing.assert_allclose(best_correlations(-7 * X, X, centre, scale), 1, atol=1e-9)
    assert (best_correlations(X, shuffled(X, rng), centre, scale) < 0.99).all()
    assert (best_correlations(centre[None], X, centre, scale) < 0.99).all()


def test_a_prox_hides_coordinates_and_no_others(shards):
    problem = problem_of(shards, penalty="l1:0.05")
    with jax.enable_x64(True):
        r = Recording(problem, ew.Graph.ring(NODES), ew.PrimalDual(ew.Full()), 30)
        G = node_gradients(r, all_neighbours(r).heard)
        true = np.stack(
            [np.array(r.executor.block.full(jax.numpy.asarray(x))) for x in r.models[:-1]]
        )
        true += 0.1 * r.models[:-1]
    hidden = r.models[1:] == 0
    assert hidden.any()
    assert not hidden.all()
    np.testing.assert_array_equal(np.isnan(G), hidden)
    np.testing.assert_allclose(G[~hidden], true[~hidden], atol=1e-8)


def test_attackers_work_without_samples(shards):
    """What is worked out of messages stays the same where the recording has lost all data."""
    with jax.enable_x64(True):
        r = Recording(problem_of(shards), ew.Graph.ring(NODES), ew.GradientTracking(ew.SAGA()), 20)
        before = node_gradients(r, one_neighbour(r).heard)
        r.executor.block = r.executor.block._replace(rows=None, labels=None)
        r.executor.problem = None
        np.testing.assert_array_equal(before, node_gradients(r, one_neighbour(r).heard))


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"coalition": [9]}, "nodes are 0 to 4"),
        ({"method": "newton-pd", "bits": 8, "dual_noise": 1.0}, "not with bits"),
        ({"rounds": 1}, "rounds"),
        ({"method": "asvr-pd", "rounds": 5}, "not what the attacks here can read"),
        ({"method": ew.PrimalDual(ew.Full(), local=3, radius=0.01), "rounds": 5}, "can read"),
    ],
)
def test_what_cannot_be_is_said(shards, more, told):
    with pytest.raises(ew.errors.EdgewiseError, match=told):
        ew.audit(problem_of(shards), "ring", **more)
