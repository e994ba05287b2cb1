"""Compiled local training against the plain rounds, which are the reference."""

import numpy as np
import pytest
import scipy.sparse as sp
from uneven import problem_of

import edgewise as ew
from edgewise.engines import native
from edgewise.methods.knowledge import whole_network
from edgewise.sklearn.solver_problem import ScaledElasticNet, ScaledRidge

pytest.importorskip("numba", reason="compiled rounds need Numba: pip install 'edgewise[fast]'")
from edgewise.engines.native.lazy_coordinates import Kind, softly

GRAPH = ew.Graph.random(7, 12, seed=1)
SPREAD = np.geomspace(0.05, 5, 260)  # weights of columns, or bounds


def dense_of(**options):
    return problem_of(260, nodes=7, **options)


def in_halves(X):
    twice = np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr
    return sp.csr_array(twice, X.shape)


def sparse_of(length=1.0, halves=False, **options):
    """Of columns that few samples have, one that none has, and a row of zeros; by halves every
    entry is given twice."""
    rng, whole = np.random.default_rng(0), dense_of()
    X = np.where(rng.random(whole.shards.X.shape) < 0.1, length * whole.shards.X, 0)
    X[:, 3], X[5] = 0, 0
    at = [whole.own(i) for i in range(whole.nodes)]
    shards = [(sp.csr_array(X[own]), whole.labels[own]) for own in at]
    if halves:
        shards = [(in_halves(rows), y) for rows, y in shards]
    return ew.Problem(shards, **{"loss": ew.Logistic(ridge=1e-2), **options})


CASES = {
    "saga": (lambda: dense_of(penalty=ew.L1(1e-2)), ew.SAGA(), "auto"),
    "svrg": (lambda: dense_of(weights="sample"), ew.SVRG(first=3, longest=9), 7),
    "svrg-stop": (lambda: dense_of(loss=ew.Huber(0.5)), ew.SVRG(stop=0.6), "auto"),
    "sparse": (lambda: sparse_of(halves=True, penalty=ew.SquaredL2(0.1)), ew.SAGA(), "auto"),
    "sparse-intercept": (lambda: sparse_of(weights="sample", intercept=True), ew.SAGA(), "auto"),
    "sparse-l1": (
        lambda: sparse_of(penalty=ew.ElasticNet(0.02, 0.1), intercept=True),
        ew.SAGA(),
        "auto",
    ),
    "sparse-box": (
        lambda: sparse_of(penalty=ew.Box(-0.05, 0.03), intercept=True),
        ew.SAGA(),
        "auto",
    ),
    "box": (
        lambda: dense_of(penalty=[ew.Box(-0.01 * i - 0.03, 0.02) for i in range(7)]),
        ew.SAGA(),
        9,
    ),
    "sparse-positive": (lambda: sparse_of(penalty=ew.NonNegative()), ew.SAGA(), "auto"),
    "sparse-scaled": (
        lambda: sparse_of(penalty=ScaledRidge(SPREAD), weights="sample", intercept=True),
        ew.SAGA(),
        "auto",
    ),
    "sparse-scaled-l1": (
        lambda: sparse_of(penalty=ScaledElasticNet(0.02 * SPREAD, SPREAD), intercept=True),
        ew.SAGA(),
        "auto",
    ),
    "sparse-bounds": (lambda: sparse_of(penalty=ew.Box(-0.02 * SPREAD, 0.05)), ew.SAGA(), "auto"),
    "sparse-kinds": (
        lambda: sparse_of(penalty=3 * [ew.L1(1e-3)] + 3 * [ew.NonNegative()] + [ew.SquaredL2(0.1)]),
        ew.SAGA(),
        40,
    ),
    "sparse-short": (
        lambda: sparse_of(0.1, penalty=ew.SquaredL2(1e-3), weights="sample", intercept=True),
        ew.SAGA(),
        "auto",
    ),
}


def test_a_coordinate_catches_up_as_if_it_had_made_every_step():
    """Through zero, to zero and away from it."""
    rng, a, most, crossed, rests = np.random.default_rng(0), 0.9, 30, 0, 0
    power = a ** np.arange(most + 1)
    powers = np.stack([power, np.append(0, np.cumsum(power[:-1]))], 1)
    kind = Kind(powers, 1.0, 0.1, -np.inf, np.inf)
    for _ in range(300):
        x, force, m = rng.normal(), 0.15 * rng.normal(), int(rng.integers(most + 1))
        step = x
        for _ in range(m):
            y = a * step + force
            step = y - np.clip(y, -0.1, 0.1)
        found = softly(kind, 0, x, force, 0.1, m)
        assert abs(found - step) < 1e-12
        crossed, rests = crossed + (step * x < 0), rests + (step == 0)
    assert crossed > 20
    assert rests > 20


def test_short_rows_have_a_stiffer_intercept():
    """So that one of the cases below tries that."""
    make, gradient, local = CASES["sparse-short"]
    problem, method = make(), ew.PrimalDual(gradient, local=local)
    _, weights = method.prepare(whole_network(problem, GRAPH))
    assert weights["intercept"].min() > 2


@pytest.mark.parametrize("name", CASES)
def test_as_the_plain_rounds(monkeypatch, caplog, name):
    make, gradient, local = CASES[name]
    problem, method = make(), ew.PrimalDual(gradient, local=local)
    found = []
    for switch in ("1", "0"):
        monkeypatch.setenv("EDGEWISE_NATIVE", switch)
        assert native.fits_local(problem, method) == (switch == "1")
        options = {"rounds": 30, "record_every": 7, "reference": False}
        found.append(ew.solve(problem, GRAPH, method, **options))
    assert "no compiled rounds" not in caplog.text
    ours, plain = found
    assert np.abs(plain.X).max() > 0.02
    if "box" in name:
        assert (plain.X[:, :260] == plain.X[:, :260].max()).sum() > 30  # at a bound
    assert np.abs(ours.X - plain.X).max() < 1e-12
    assert np.abs(ours.duals - plain.duals).max() < 1e-12
    assert (ours.trace["oracle_calls"] == plain.trace["oracle_calls"]).all()


def test_the_plain_rounds_run_where_numba_fails(monkeypatch, caplog):
    from edgewise.engines.native import local_kernels

    def broken(*args):
        raise TypeError("no Numba today")

    monkeypatch.setattr(local_kernels, "dense", broken)
    result = ew.solve(dense_of(), GRAPH, "lt-saga-pd", rounds=3, reference=False)
    assert "no compiled rounds, the plain ones run: TypeError" in caplog.text
    assert result.trace["rounds"][-1] == 3


def test_what_it_leaves_to_the_plain_rounds():
    method = ew.PrimalDual(ew.SAGA(), local=5)
    assert native.fits_local(dense_of(), method)
    assert native.fits_local(sparse_of(), ew.PrimalDual(ew.SAGA(), local=5, eta=99.0))
    for problem, other in (
        (problem_of(40, nodes=7), method),
        (dense_of(), ew.PrimalDual(ew.SAGA())),
        (dense_of(), ew.PrimalDual(ew.SAGA(), local=1)),
        (dense_of(), ew.PrimalDual(ew.SAGA(batch=2), local=5)),
        (dense_of(), ew.PrimalDual(ew.Full(), local=5)),
        (dense_of(penalty=ew.L2Ball(1.0)), method),
        (dense_of(intercept=True), method),
        (sparse_of(), ew.PrimalDual(ew.SVRG(), local=5)),
        (dense_of(penalty=ew.Box(np.full(260, -1.0), 1.0)), method),
        (sparse_of(), ew.PrimalDual(ew.SAGA(), local=5, eta=100.0)),  # 1 / ridge
        (sparse_of(penalty=ew.L2Ball(1.0)), method),
    ):
        assert not native.fits_local(problem, other)
