"""Compiled rounds of many nodes against the plain ones, which are the reference."""

import numpy as np
import pytest
from uneven import problem_of as uneven_problem

import edgewise as ew
from edgewise.engines import native, simulator

pytest.importorskip("numba", reason="compiled rounds need Numba: pip install 'edgewise[fast]'")

NODES = 50  # four pieces, which threads share
GRAPH = ew.Graph.random(NODES, 90, seed=1)
OPTIONS = {"rounds": 46, "record_every": 23, "reference": False}


@pytest.fixture(autouse=True)
def however_few(monkeypatch):
    monkeypatch.setattr(native, "MANY_NUMBERS", 0)
    monkeypatch.setenv("EDGEWISE_NATIVE", "1")


def problem_of(n=21, **options):
    return uneven_problem(n, nodes=NODES, **options)


def assert_alike(monkeypatch, problem, method, tolerance=1e-12, **options):
    found = []
    for switch in ("1", "0"):
        monkeypatch.setenv("EDGEWISE_NATIVE", switch)
        assert native.fits_many_nodes(problem, method) == (switch == "1")
        found.append(ew.solve(problem, GRAPH, method, **OPTIONS, **options))
    compiled, plain = found
    np.testing.assert_allclose(compiled.X, plain.X, rtol=0, atol=tolerance)
    np.testing.assert_allclose(compiled.duals, plain.duals, rtol=0, atol=tolerance)
    for trace in ("oracle_calls", "residual"):
        np.testing.assert_allclose(compiled.trace[trace], plain.trace[trace], atol=tolerance)
    assert np.abs(plain.X).max() > 1e-3  # it moved
    return found


GRADIENTS = {
    "saga of more than some have": ew.SAGA(batch=5),
    "svrg": ew.SVRG(),
    "svrg of 2, may stop": ew.SVRG(batch=2, stop=0.3),
    "plain svrg": ew.gradients.PlainSVRG(),
    "loopless": ew.LSVRG(batch=2),
    "accelerated, less and less": ew.ASVRG(floor=0.1, length=2.5, batch=2),
}


@pytest.mark.parametrize("gradient", GRADIENTS)
def test_every_estimator(monkeypatch, caplog, gradient):
    assert_alike(monkeypatch, problem_of(), ew.PrimalDual(GRADIENTS[gradient]))
    assert "no compiled rounds" not in caplog.text


PROBLEMS = {
    "l1, less than a vector": {"n": 3, "penalty": ew.L1(0.01)},
    "elastic net, a whole vector": {
        "n": 16,
        "penalty": ew.ElasticNet(0.01, 0.2),
        "loss": ew.Squared(ridge=0.1),
        "weights": "sample",
    },
    "one penalty each": {
        "penalty": [ew.L1(0.0005 * i) for i in range(NODES)],
        "loss": ew.SmoothedHinge(ridge=0.01),
    },
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_penalties_losses_and_columns(monkeypatch, name):
    found = assert_alike(monkeypatch, problem_of(**PROBLEMS[name]), ew.PrimalDual(ew.SAGA()))
    compiled, plain = (result.X == 0 for result in found)
    assert (compiled == plain).all()
    assert plain.any()


def test_float32(monkeypatch):
    problem = problem_of(dtype=np.dtype(np.float32))
    assert_alike(monkeypatch, problem, ew.PrimalDual(ew.SAGA()), 1e-5, dtype="float32")


def test_threads_and_stretches_change_nothing(monkeypatch):
    """Not even a bit: with helpers and without, and with random bits of few rounds at a time."""
    from edgewise.engines.native import rounds

    problem, method, found = problem_of(), ew.PrimalDual(ew.SVRG(first=3)), []
    for spare, numbers in ((0, 1 << 22), (1, 1 << 22), (5, 1 << 22), (1, 5 * NODES)):
        monkeypatch.setattr(rounds, "SPARE_CORES", rounds.Cores(spare))
        monkeypatch.setattr(simulator, "MOST_RANDOM_NUMBERS", numbers)
        found.append(ew.solve(problem, GRAPH, method, **OPTIONS).X)
        assert rounds.SPARE_CORES.free == spare  # all given back
    assert all(np.array_equal(found[0], X) for X in found[1:])


def test_models_that_were_seen_stay_as_they_were():
    """Later rounds change the state in place, but nothing that anybody was given."""
    import jax

    with jax.enable_x64(True):
        engine = native.simulator(
            problem_of(), GRAPH, ew.PrimalDual(ew.SVRG()), 0, np.dtype(np.float64)
        )
        carry, seen = engine.start(engine.origin(), None), []
        for first in (0, 3, 7):  # to an odd round, and on by an even number
            carry, _ = engine.advance(carry, first, 4 if first else 3)
            X, duals = map(np.asarray, engine.view(carry))
            seen.append((X, duals, X.copy(), duals.copy()))
    assert engine.works
    for X, duals, X_then, duals_then in seen:
        assert np.array_equal(X, X_then)
        assert np.array_equal(duals, duals_then)
    assert not np.array_equal(seen[0][0], seen[1][0])


def test_compiled_once_whatever_the_estimator_or_weights(monkeypatch):
    """And for the trial before the run: what compiles later would count as rounds' seconds."""
    import numba

    from edgewise.engines.native import node_program

    work, seen = node_program.work, set()

    def note(*args):
        seen.add(tuple(str(numba.typeof(a)) for a in args))
        work(*args)

    monkeypatch.setattr(node_program, "work", note)
    weights = ("node", "sample")
    for k, gradient in enumerate(GRADIENTS.values()):
        problem = problem_of(weights=weights[k % 2])
        ew.solve(problem, GRAPH, ew.PrimalDual(gradient), rounds=2, reference=False)
    assert len(seen) == 1


def test_which_sizes_they_are_for(monkeypatch):
    monkeypatch.undo()  # of `however_few`
    saga, edge = ew.PrimalDual(ew.SAGA()), ew.PrimalDual(ew.SAGA(), form="edge")
    few = problem_of()
    assert not native.fits_many_nodes(few, saga)
    nodes = -(-native.MANY_NUMBERS // 21)
    shards = ew.Shards(np.ones((nodes, 21)), np.ones(nodes), np.ones(nodes, int))
    many = ew.Problem(shards, ew.Squared())
    assert native.fits_many_nodes(many, saga)
    assert not native.fits_many_nodes(many, edge)
    assert not native.fits_many_nodes(many, ew.PrimalDual(ew.Full()))
