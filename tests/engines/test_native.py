"""Compiled rounds against the plain ones, which are the reference."""

import shutil
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from uneven import problem_of as uneven_problem

import edgewise as ew
from edgewise.engines import native

pytest.importorskip("numba", reason="compiled rounds need Numba: pip install 'edgewise[fast]'")


def problem_of(n=300, **options):
    return uneven_problem(n, nodes=7, **options)


def both(monkeypatch, problem, graph, method, rounds=46, record_every=23, **options):
    """The two results; the compiled one really is."""
    assert native.fits(problem, method)
    found = []
    for switch in ("1", "0"):
        monkeypatch.setenv("EDGEWISE_NATIVE", switch)
        assert native.fits(problem, method) == (switch == "1")
        found.append(
            ew.solve(
                problem,
                graph,
                method,
                rounds=rounds,
                record_every=record_every,
                reference=False,
                **options,
            )
        )
    return found


def alike(a, b, tolerance=1e-12):
    np.testing.assert_allclose(a.X, b.X, rtol=0, atol=tolerance)
    np.testing.assert_allclose(a.duals, b.duals, rtol=0, atol=tolerance)
    assert a.trace["oracle_calls"].tolist() == b.trace["oracle_calls"].tolist()
    assert np.abs(b.X).max() > 1e-3  # it moved


GRADIENTS = {
    "saga": ew.SAGA(),
    "saga of more than some have": ew.SAGA(batch=5),
    "svrg": ew.SVRG(),
    "svrg of 2, may stop": ew.SVRG(batch=2, stop=0.3),
    "plain svrg": ew.gradients.PlainSVRG(),
    "loopless": ew.LSVRG(batch=2),
    "accelerated": ew.ASVRG(),
    "accelerated, less and less": ew.ASVRG(floor=0.1, length=2.5, batch=2),
}


@pytest.mark.parametrize("form", ["node", "edge"])
@pytest.mark.parametrize("gradient", GRADIENTS)
def test_every_estimator_in_both_forms(monkeypatch, gradient, form):
    method = ew.PrimalDual(GRADIENTS[gradient], form=form)
    alike(*both(monkeypatch, problem_of(), ew.Graph.random(7, 11, seed=1), method))


@pytest.mark.parametrize("n", [256, 257, 383, 640])
@pytest.mark.parametrize("form", ["node", "edge"])
def test_columns_that_fill_no_vector_or_piece(monkeypatch, n, form):
    method = ew.PrimalDual(ew.SAGA(), form=form)
    alike(*both(monkeypatch, problem_of(n), ew.Graph.star(7), method))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_messages_that_sums_stand_for(monkeypatch, dtype):
    """Through more rounds than sums are kept for, to an odd one and an even one."""
    from edgewise.engines.native.edge_kernels import WINDOW

    stretch = 2 * WINDOW + 5
    problem, method = problem_of(penalty=ew.L1(0.002)), ew.PrimalDual(ew.SAGA(), form="edge")
    graph, options = ew.Graph.random(7, 11, seed=1), {"dtype": dtype, "record_every": stretch}
    found = both(monkeypatch, problem, graph, method, rounds=3 * stretch + 1, **options)
    alike(*found, tolerance=1e-12 if dtype == "float64" else 1e-5)


def test_a_sum_of_iterates_that_fills_no_vector(monkeypatch):
    method = ew.PrimalDual(ew.SVRG(first=3, longest=5))
    alike(*both(monkeypatch, problem_of(257), ew.Graph.ring(7), method))


PENALTIES = {
    "l1": ew.L1(0.01),
    "squared": ew.SquaredL2(0.3),
    "elastic": ew.ElasticNet(0.01, 0.2),
    "of each": [ew.L1(0.002 * i) for i in range(7)],
}


@pytest.mark.parametrize("form", ["node", "edge"])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_penalties(monkeypatch, penalty, form):
    problem = problem_of(penalty=PENALTIES[penalty])
    method = ew.PrimalDual(ew.SAGA(), form=form)
    a, b = both(monkeypatch, problem, ew.Graph.ring(7), method, rounds=200)
    alike(a, b)
    if penalty == "l1":
        assert (a.X == 0).any()
        assert ((a.X == 0) == (b.X == 0)).all()


@pytest.mark.parametrize("loss", [ew.Squared(ridge=0.1), ew.Huber(), ew.SmoothedHinge(ridge=0.01)])
def test_losses_and_weights(monkeypatch, loss):
    problem = problem_of(loss=loss, weights="sample")
    alike(*both(monkeypatch, problem, ew.Graph.ring(7), ew.PrimalDual(ew.SVRG())))


@pytest.mark.parametrize(("data", "run"), [("float32", "float64"), ("float32", "float32")])
@pytest.mark.parametrize("form", ["node", "edge"])
def test_precisions(monkeypatch, data, run, form):
    problem = problem_of(dtype=np.dtype(data))
    method = ew.PrimalDual(ew.SAGA(batch=2), form=form)
    found = both(monkeypatch, problem, ew.Graph.ring(7), method, dtype=run)
    alike(*found, tolerance=1e-12 if run == "float64" else 1e-5)


def test_many_at_once(monkeypatch):
    """Helpers that come late, or to a run that is over, do no harm."""
    monkeypatch.setenv("EDGEWISE_NATIVE", "1")
    problem, graph = problem_of(900), ew.Graph.ring(7)
    found = [None] * 6

    def run(k):
        found[k] = ew.solve(problem, graph, "saga-pd", rounds=3000, reference=False).X

    threads = [threading.Thread(target=run, args=(k,)) for k in range(len(found))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(np.array_equal(found[0], X) for X in found)


def test_goes_on_from_a_checkpoint_of_the_plain_rounds(monkeypatch, tmp_path):
    problem, graph = problem_of(), ew.Graph.ring(7)
    whole = ew.solve(problem, graph, "svr-pd", rounds=80, record_every=40, reference=False)
    monkeypatch.setenv("EDGEWISE_NATIVE", "0")
    options = {"record_every": 40, "reference": False, "checkpoint": tmp_path / "run"}
    ew.solve(problem, graph, "svr-pd", rounds=40, **options)
    monkeypatch.setenv("EDGEWISE_NATIVE", "1")
    on = ew.solve(problem, graph, "svr-pd", rounds=80, **options)
    np.testing.assert_allclose(on.X, whole.X, rtol=0, atol=1e-12)


def test_the_plain_rounds_run_where_numba_fails(monkeypatch, caplog):
    from edgewise.engines.native import program

    def fail(*args):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(program, "work", fail)
    options = {"rounds": 46, "record_every": 23, "reference": False}
    found = ew.solve(problem_of(), ew.Graph.ring(7), "saga-pd", **options)
    assert caplog.text.count("no locator available") == 1
    monkeypatch.setenv("EDGEWISE_NATIVE", "0")
    plain = ew.solve(problem_of(), ew.Graph.ring(7), "saga-pd", **options)
    assert np.array_equal(found.X, plain.X)


def test_the_plain_rounds_run_where_numba_has_no_folder_to_keep_its_work_in(monkeypatch, caplog):
    """As in a container whose files are read-only: the import of the rounds fails."""
    from numba.core.caching import CacheImpl

    from edgewise.engines.native import rounds

    for locator in CacheImpl._locator_classes:
        monkeypatch.setattr(locator, "from_function", lambda *args: None)
    for name in ("rounds", "program"):
        monkeypatch.delitem(sys.modules, f"edgewise.engines.native.{name}")
        monkeypatch.delattr(native, name)
    ew.solve(problem_of(), ew.Graph.ring(7), "saga-pd", rounds=2, reference=False)
    assert "the plain ones run" in caplog.text
    assert "no locator available" in caplog.text
    assert rounds.__name__ not in sys.modules


def test_without_a_helper_the_leader_does_it_all(monkeypatch):
    from edgewise.engines.native import rounds

    problem, graph, options = problem_of(900), ew.Graph.ring(7), {"rounds": 60, "reference": False}
    found = []
    for spare in (0, 1, 5):  # more threads than cores, too
        monkeypatch.setattr(rounds, "SPARE_CORES", rounds.Cores(spare))
        found.append(ew.solve(problem, graph, ew.PrimalDual(ew.SVRG(first=3)), **options).X)
        assert rounds.SPARE_CORES.free == spare  # all given back
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_helpers_that_die_or_cannot_start_change_nothing(monkeypatch):
    from edgewise.engines.native import program, rounds

    problem, graph, options = problem_of(900), ew.Graph.ring(7), {"rounds": 60, "reference": False}
    expected = ew.solve(problem, graph, "saga-pd", **options).X
    monkeypatch.setattr(rounds, "SPARE_CORES", rounds.Cores(3))
    work, begin, asked = program.work, threading.Thread.start, []

    def fail(thread, *args):
        if thread == failing:
            asked.append(thread)
            raise MemoryError(f"thread {thread}")
        work(thread, *args)

    failing = 1
    monkeypatch.setattr(program, "work", fail)
    assert np.array_equal(ew.solve(problem, graph, "saga-pd", **options).X, expected)
    assert set(asked) == {1}

    def start(thread):
        if thread._target is fail:
            asked.append("start")
            raise RuntimeError("can't start new thread")
        begin(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        assert np.array_equal(ew.solve(problem, graph, "saga-pd", **options).X, expected)
    assert "start" in asked
    # a leader that fails ends its helpers
    monkeypatch.setattr(rounds.NativeSimulator, "works", True)
    failing = 0
    with pytest.raises(MemoryError, match="thread 0"):
        ew.solve(problem, graph, "saga-pd", **options)
    assert not [t for t in threading.enumerate() if getattr(t, "_target", None) is fail]
    assert rounds.SPARE_CORES.free == 3


@pytest.mark.parametrize("form", ["node", "edge"])
def test_one_node_without_edges(monkeypatch, caplog, form):
    problem, alone = uneven_problem(300, nodes=1, loss=ew.Huber()), ew.Graph.from_edges([], 1)
    alike(*both(monkeypatch, problem, alone, ew.PrimalDual(ew.SAGA(), form=form)))
    assert "no compiled rounds" not in caplog.text


def test_compiled_once_whatever_the_estimator_form_or_weights(monkeypatch):
    """And for the trial before the run: what compiles later would count as rounds' seconds."""
    import numba

    from edgewise.engines.native import program

    work, seen = program.work, set()

    def note(*args):
        seen.add(tuple(str(numba.typeof(a)) for a in args))
        work(*args)

    monkeypatch.setattr(program, "work", note)
    for gradient in GRADIENTS.values():
        for form, weights in (("node", "node"), ("edge", "sample")):
            method, problem = ew.PrimalDual(gradient, form=form), problem_of(weights=weights)
            ew.solve(problem, ew.Graph.ring(7), method, rounds=2, reference=False)
    assert len(seen) == 1


def test_compiled_anew_where_any_of_its_files_changes(tmp_path):
    from edgewise.engines.native import program

    folder = Path(program.__file__).parent
    for file in folder.glob("*.py"):
        shutil.copy(file, tmp_path)
    now = program.sources(folder, program.COMPILED)
    assert program.sources(tmp_path, program.COMPILED) == now
    with (tmp_path / "vectors.py").open("a") as file:
        file.write("# more\n")
    assert program.sources(tmp_path, program.COMPILED) != now
    # Numba tells functions of one file apart by what encloses them
    assert [cell.cell_contents for cell in program.work.py_func.__closure__] == [now]


def test_full_passes_of_more_pieces_than_a_job_takes(monkeypatch):
    """Nodes of many pieces, in several jobs."""
    rng = np.random.default_rng(0)
    X, counts = rng.standard_normal((1500, 260)) / 16, [600, 33, 500, 1, 300, 65, 1]
    shards = list(
        zip(
            np.split(X, np.cumsum(counts)[:-1]),
            np.split(np.sign(X[:, 0]), np.cumsum(counts)[:-1]),
            strict=True,
        )
    )
    method = ew.PrimalDual(ew.SVRG(first=4, longest=9))
    alike(*both(monkeypatch, ew.Problem(shards, ew.Logistic()), ew.Graph.ring(7), method))


def test_what_it_leaves_to_the_plain_rounds():
    saga = ew.PrimalDual(ew.SAGA())
    assert native.fits(problem_of(), saga)
    assert not native.fits(problem_of(100), saga)
    assert not native.fits(problem_of(), ew.PrimalDual(ew.Full()))
    assert not native.fits(problem_of(intercept=True), saga)
    assert not native.fits(problem_of(penalty=ew.NonNegative()), saga)
    assert not native.fits(problem_of(penalty=[ew.L1(0.1)] * 6 + [ew.SquaredL2(0.1)]), saga)
