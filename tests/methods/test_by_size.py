"""Nodes of like sizes that run together: the iterates of all in one block, at less cost."""

import numpy as np
import pytest

import edgewise as ew
from edgewise.methods import by_size

SIZES = [1, 9, 2, 40, 1, 8, 2]
RING = ew.Graph.ring(7)
STORM = ew.Faults(drop=0.2, awake=0.7, delay=1, wipe=(3, 9), leave=(1, 15), join=(5, 6))


def setting(loss):
    """Edges of one to five rows, of "=" and "<="; a price; data, costs or both; sets and kinks."""
    rng = np.random.default_rng(0)
    known = [np.full(n, 1 / n) for n in SIZES]
    between = {}
    for i, j in RING.edges.tolist():
        m = 5 if 3 in (i, j) else 1 + (i == 1)
        A, B = rng.normal(size=(m, SIZES[i])), rng.normal(size=(m, SIZES[j]))
        sense = ["=", "<="][j % 2]
        between[i, j] = [
            ew.Coupling(A, B, A @ known[i] + B @ known[j], sense),
            ew.NetworkLasso(0.1, on=[0]),
        ]
    costs = [ew.Quadratic(rng.uniform(0.5, 2, n), rng.normal(size=n)) for n in SIZES]
    shards = [None] * 7
    for i in (0, 2, 3, 5):  # some in every group
        X = rng.normal(size=(50, SIZES[i]))
        shards[i] = X, np.sign(X[:, 0] + rng.normal(size=50))
    penalty = [ew.L1(0.1), None, ew.Box(-1, 2), ew.L1(0.05), None, ew.NonNegative(), None]
    if loss is None:
        return ew.Problem(cost=costs, penalty=penalty), between
    return ew.Problem(shards, loss, cost=costs, penalty=penalty), between


@pytest.fixture
def both(monkeypatch):
    """A run in groups, and the same run as one block."""

    def run(loss, method, **options):
        problem, between = setting(loss)
        options = {"rounds": 30, "record_every": 10} | options
        found = []
        for saved in (0, np.inf):
            monkeypatch.setattr(by_size, "SAVED", saved)
            groups = by_size.groups_of(problem.sizes)
            assert len(groups) == (1 if saved else 3)
            found.append(ew.solve(problem, RING, method, between=between, **options))
        return found

    return run


@pytest.mark.parametrize(
    ("method", "loss", "faults"),
    [
        ("saga-pd", ew.Logistic(ridge=0.1), STORM),
        ("pdmm", ew.Squared(), None),
        pytest.param("pdmm", None, STORM, marks=pytest.mark.exhaustive),
        pytest.param("lsvr-pd", ew.Logistic(ridge=0.1), STORM, marks=pytest.mark.exhaustive),
    ],
)
def test_groups_change_nothing(both, method, loss, faults):
    ours, whole = both(loss, method, faults=faults)
    assert [x.shape for x in ours.X] == [(n,) for n in SIZES]
    assert max(np.abs(x).max() for x in ours.X) > 0.1
    for x, y in zip(ours.X, whole.X, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-7)
    for edge, multiplier in whole.multipliers.items():
        np.testing.assert_allclose(ours.multipliers[edge], multiplier, atol=1e-6)
    for column in ("oracle_calls", "bytes_sent", "vectors_sent"):
        np.testing.assert_allclose(ours.trace[column], whole.trace[column], rtol=1e-12)
    for column in ("residual", "violation", "objective"):
        np.testing.assert_allclose(ours.trace[column], whole.trace[column], rtol=1e-4, atol=1e-7)


def test_a_run_goes_on_from_a_checkpoint_and_from_a_result(monkeypatch, tmp_path):
    monkeypatch.setattr(by_size, "SAVED", 0)
    problem, between = setting(None)

    def run(rounds, **more):
        options = {"between": between, "rounds": rounds, "record_every": 10, **more}
        return ew.solve(problem, RING, "sk-pd-fd", **options)

    straight = run(20)
    run(10, checkpoint=tmp_path / "run")
    resumed = run(20, checkpoint=tmp_path / "run")
    assert all(map(np.array_equal, resumed.X, straight.X))
    values = straight.trace["function_values"]
    assert np.array_equal(resumed.trace["function_values"], values)
    assert (np.diff(values) > 0).all()
    again = run(10, X0=straight.X, duals=straight)
    ended = straight.trace["residual"][-1]
    assert again.trace["residual"][0] == pytest.approx(ended, rel=1e-9)


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ([2] * 50 + [6] * 10, 1),  # alike
        ([2] * 3 + [90], 1),  # few: not worth two programs
        ([2] * 50 + [90], 2),
        ([60] * 50 + [101], 2),  # beyond 100 minima are found in another way
        ([1] * 50 + [5] * 50 + [30, 150], 4),
    ],
)
def test_who_runs_with_whom(sizes, groups):
    sizes = np.random.default_rng(0).permutation(sizes)
    made = by_size.groups_of(sizes)
    assert len(made) == groups
    assert np.array_equal(np.sort(np.concatenate(made)), np.arange(len(sizes)))
    for group in made:
        assert len(made) == 1 or sizes[group].max() <= by_size.ALIKE * sizes[group].min()
