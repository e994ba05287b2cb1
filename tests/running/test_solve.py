"""The loop: stopping, recording, resuming, interrupting, and refusing what cannot work."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import jax
import numpy as np
import pytest
from end_with_parent import ending_with_us

import edgewise as ew
from edgewise import errors
from edgewise.methods.catalogue import make
from edgewise.methods.knowledge import whole_network
from edgewise.running import checkpoint, checkpoint_file

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 4))
y = np.where(X @ [1.0, -1.0, 0.5, 0.0] + rng.standard_normal(60) > 0, 1, -1)
GRAPH = ew.Graph.random(6, 9, seed=1)


def problem(**options):
    given = {"loss": ew.Logistic(ridge=0.1), "penalty": ew.L1(0.01), **options}
    return ew.Problem(ew.split(X, y, nodes=6, how="size", seed=3), **given)


def truth(node, size, generator):
    rows = generator.standard_normal((size, 4))
    return rows, rows @ [1.0, -2.0, 0.0, 3.0] + 0.1 * generator.standard_normal(size)


PROBLEM, SMOOTH = problem(), problem(penalty=None)
ETA = 0.3
PATIENCE = 400  # seconds that anything may take: the machine may be busy with other things


def test_the_same_seed_gives_the_same_run_and_another_does_not():
    one, two = (ew.solve(PROBLEM, GRAPH, "saga-pd", rounds=100, seed=5) for _ in range(2))
    other = ew.solve(PROBLEM, GRAPH, "saga-pd", rounds=100, seed=6)
    assert np.array_equal(one.X, two.X)
    assert not np.array_equal(one.X, other.X)


def test_recording_more_often_changes_nothing():
    often = ew.solve(PROBLEM, GRAPH, "saga-pd", rounds=120, record_every=7)
    seldom = ew.solve(PROBLEM, GRAPH, "saga-pd", rounds=120, record_every=120)
    assert np.array_equal(often.X, seldom.X)
    assert list(often.trace["rounds"]) == [*range(0, 120, 7), 120]
    assert list(seldom.trace["rounds"]) == [0, 120]


def test_x_is_the_mean_of_the_rows_of_X():
    result = ew.solve(PROBLEM, GRAPH, "saga-pd", rounds=30)
    assert result.X.shape == (6, 4)
    np.testing.assert_allclose(result.x, result.X.mean(0), rtol=1e-14)


def test_stops_at_tol():
    result = ew.solve(PROBLEM, GRAPH, "saga-pd", rounds=20_000, tol=1e-6, record_every=100)
    residual = result.trace["residual"]
    assert result.converged
    assert "tol" in result.message
    assert residual[-1] <= 1e-6 < residual[-2]


def test_stops_at_an_oracle_budget():
    result = ew.solve(PROBLEM, GRAPH, "saga-pd", rounds=20_000, oracle_budget=200, record_every=25)
    calls = result.trace["oracle_calls"]
    assert calls[-1] >= 200 > calls[-2]
    assert "budget" in result.message


def test_an_unfinished_run_says_so():
    result = ew.solve(PROBLEM, GRAPH, "saga-pd", rounds=10, tol=1e-9)
    assert not result.converged
    assert "10 rounds" in result.message


def test_divergence_is_said_with_a_step_that_works():
    problem = ew.Problem(ew.split(X, X @ np.ones(4), nodes=6), loss=ew.Squared())
    with pytest.warns(errors.DivergenceWarning, match="eta=30 was given, where the ") as caught:
        result = ew.solve(problem, GRAPH, "pd", rounds=5000, eta=30.0, rho=0.01)
    assert not result.converged
    assert "diverged" in result.message
    assert caught[0].filename == __file__
    rule = float(re.search(r"the rule takes (\S+):", result.message)[1])
    assert ew.solve(problem, GRAPH, "pd", rounds=5000, eta=rule, tol=1e-9).converged


@pytest.mark.quick_if(
    lambda name, form: form == ("edge" if name in ("svr-pd-es", "sk-pd", "spd") else "node")
)
@pytest.mark.parametrize("name", ["saga-pd", "svr-pd-es", "lsvr-pd", "asvr-pd", "sk-pd", "spd"])
@pytest.mark.parametrize("form", ["node", "edge"])
def test_a_resumed_run_is_identical(tmp_path, name, form):
    method = ew.PrimalDual(make(name).gradient, form=form)
    whole = ew.solve(PROBLEM, GRAPH, method, rounds=200, record_every=40)
    path = tmp_path / "deep" / "run.npz"
    ew.solve(PROBLEM, GRAPH, method, rounds=120, record_every=40, checkpoint=path)
    resumed = ew.solve(PROBLEM, GRAPH, method, rounds=200, record_every=40, checkpoint=path)
    assert np.array_equal(whole.X, resumed.X)
    for column in set(whole.trace.columns) - {"seconds"}:
        assert np.array_equal(whole.trace[column], resumed.trace[column]), column
    assert not list(path.parent.glob("*.part"))


def test_a_run_killed_midway_resumes_to_the_identical_result(tmp_path):
    script = tmp_path / "run.py"
    script.write_text(
        "import sys, numpy as np, edgewise as ew\n"
        "from edgewise.running import checkpoint\n"
        "checkpoint.INTERVAL = 0.0\n"
        "r = np.random.default_rng(0); X = r.standard_normal((60, 4)); y = np.sign(X[:, 0])\n"
        "p = ew.Problem(ew.split(X, y, nodes=6), loss=ew.Logistic(ridge=0.1))\n"
        "out = ew.solve(p, ew.Graph.ring(6), 'saga-pd', int(sys.argv[2]), record_every=10,\n"
        "               checkpoint=sys.argv[1] or None)\n"
        "np.save(sys.argv[3], out.X)\n"
    )

    def run(*args, **options):
        return subprocess.Popen(ending_with_us(sys.executable, script, *args), **options)

    path = tmp_path / "state.npz"
    victim = run(path, 10**7, tmp_path / "never.npy")
    deadline = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < deadline
        assert victim.poll() is None
        time.sleep(0.05)
    first = path.stat().st_mtime_ns
    while path.stat().st_mtime_ns == first:  # rounds beyond the first that were saved
        assert time.monotonic() < deadline
        time.sleep(0.05)
    victim.kill()
    victim.wait()
    goal = checkpoint_file.read(path)[0]["round"] + 50
    assert run(path, goal, tmp_path / "resumed.npy").wait() == 0
    assert run("", goal, tmp_path / "whole.npy").wait() == 0
    assert np.array_equal(np.load(tmp_path / "resumed.npy"), np.load(tmp_path / "whole.npy"))


def test_a_foreign_or_damaged_checkpoint_is_refused(tmp_path):
    path = tmp_path / "run.npz"
    same = {"method": "saga-pd", "eta": ETA, "rho": 0.1, "checkpoint": path}
    ew.solve(PROBLEM, GRAPH, rounds=50, **same)

    def refused(differs, problem=PROBLEM, **change):
        message = f"another run, which had other {differs}: give the same"
        with pytest.raises(errors.CheckpointError, match=message):
            ew.solve(problem, GRAPH, rounds=100, **{**same, **change})

    refused("seed", seed=1)
    refused("steps", eta=0.01)
    refused("method", method="lsvr-pd")
    refused("method, seed", method="lsvr-pd", seed=1)
    refused("first models", X0=np.ones(4))
    for differs, other in (
        ("penalty", {"penalty": ew.L1(0.02)}),
        ("penalty", {"penalty": ew.L2Ball(0.01)}),
        ("loss", {"loss": ew.Logistic(ridge=0.2)}),
        ("loss", {"loss": ew.CustomLoss(lambda x, d, y: jax.nn.softplus(-2 * y * (d @ x)), 1.0)}),
        ("data or split", {"sample_weight": np.linspace(1, 2, 60)}),
    ):
        refused(differs, problem(**other))
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(errors.CheckpointError, match="delete it"):
        ew.solve(PROBLEM, GRAPH, "saga-pd", rounds=100, checkpoint=path)


def test_ctrl_c_returns_what_there_is_and_saves_it(tmp_path):
    path = tmp_path / "run.npz"

    def under_way(row):
        if row["rounds"] == 200:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    result = ew.solve(
        PROBLEM, GRAPH, "saga-pd", 10**6, record_every=100, checkpoint=path, callback=under_way
    )
    assert "interrupted" in result.message
    assert 200 <= result.trace["rounds"][-1] < 10**6
    assert np.isfinite(result.X).all()
    assert signal.getsignal(signal.SIGINT) is before
    again = ew.solve(
        PROBLEM,
        GRAPH,
        "saga-pd",
        int(result.trace["rounds"][-1]),
        0,
        record_every=100,
        checkpoint=path,
    )
    assert np.array_equal(again.X, result.X)


def test_solving_in_another_thread_works():
    out = []
    run = partial(ew.solve, PROBLEM, GRAPH, "saga-pd", rounds=50)
    worker = threading.Thread(target=lambda: out.append(run()))
    worker.start()
    worker.join()
    assert np.array_equal(out[0].X, run().X)


def test_the_users_precision_is_left_alone():
    before = jax.config.jax_enable_x64
    ew.solve(PROBLEM, GRAPH, "saga-pd", rounds=10)
    assert jax.config.jax_enable_x64 == before
    assert jax.numpy.ones(2).dtype == ("float64" if before else "float32")


def test_float32_state_and_float64_measurements():
    result = ew.solve(PROBLEM, GRAPH, "saga-pd", rounds=4000, dtype="float32", record_every=500)
    exact = ew.reference(PROBLEM)
    assert 1e-10 < np.linalg.norm(result.x - exact.x) < 1e-5
    assert result.trace["bytes_sent"][-1] == 4000 * 2 * 9 * 4 * 4
    assert np.array_equal(result.X, result.X.astype(np.float32))


def test_float32_programs_hold_no_float64_models():
    """A leak would be slow on a GPU. Counters, coins and picks are scalars per node: left out."""
    from edgewise.engines.simulator import Simulator, run_rounds

    with jax.enable_x64(True):
        for name in ("saga-pd", "svr-pd-es", "lsvr-pd", "asvr-pd", "sk-pd"):
            run = Simulator(PROBLEM, GRAPH, make(name), 0, np.float32)
            carry = run.start(np.zeros((6, 4)), None)
            noise = jax.numpy.zeros((2, 1, 6, run.method.random_draws), jax.numpy.uint32)
            program = jax.make_jaxpr(run_rounds, static_argnums=6)(
                run.method, run.network, run.block, carry, noise, None, 1
            )
            assert "f64[6,4]" not in str(program), name
            assert all(np.size(c) < 100 for c in program.consts)


def test_data_narrower_than_the_run_are_not_copied_wide():
    narrow = ew.Problem(
        ew.split(X.astype(np.float32), y, nodes=6, how="size", seed=3), loss=ew.Logistic(ridge=0.1)
    )
    wide = ew.Problem(
        ew.split(X.astype(np.float32).astype(float), y, nodes=6, how="size", seed=3),
        loss=ew.Logistic(ridge=0.1),
    )
    with jax.enable_x64(True):
        assert narrow.block(None, np.float64).rows.values.dtype == np.float32
    one, two = (ew.solve(p, GRAPH, "saga-pd", rounds=200) for p in (narrow, wide))
    np.testing.assert_allclose(one.X, two.X, rtol=1e-10, atol=1e-12)


def test_aligned_data_are_used_in_place():
    with jax.enable_x64(True):
        values = PROBLEM.block(None, np.float64).rows.values
    assert values.unsafe_buffer_pointer() == PROBLEM.shards.X.ctypes.data


def test_starting_models():
    anywhere = rng.standard_normal((6, 4))
    for start in (anywhere, anywhere[0]):
        result = ew.solve(PROBLEM, GRAPH, "saga-pd", rounds=1, X0=start)
        moved = np.abs(result.X - start).max()
        assert 0 < moved < 10
    boxed = problem(penalty=ew.Box(1.0, 2.0))
    first = ew.solve(boxed, GRAPH, "pd", rounds=1, record_every=1).trace
    assert np.isfinite(first["objective_gap"][0])  # the default start is feasible
    assert first["consensus"][0] == 0


def test_without_a_reference_only_its_columns_are_empty():
    trace = ew.solve(PROBLEM, GRAPH, "saga-pd", rounds=50, reference=False).trace
    assert np.isnan(trace["bregman"]).all()
    assert np.isnan(trace["objective_gap"]).all()
    assert np.isfinite(trace["residual"]).all()


def test_steps_by_rule_number_and_array():
    auto = ew.solve(PROBLEM, GRAPH, "saga-pd", rounds=5)
    named = ew.solve(PROBLEM, GRAPH, "saga-pd", rounds=5, eta="auto", rho="auto")
    assert np.array_equal(auto.X, named.X)
    number = ew.solve(PROBLEM, GRAPH, "saga-pd", rounds=5, eta=0.1, rho=0.5)
    each = {"eta": np.full(6, 0.1), "rho": np.full(9, 0.5)}
    spelled = ew.solve(PROBLEM, GRAPH, "saga-pd", rounds=5, **each)
    assert np.array_equal(number.X, spelled.X)
    theory = ew.solve(PROBLEM, GRAPH, "saga-pd", rounds=5, eta="theory", rho="theory")
    np.testing.assert_allclose(
        np.ravel(theory.method.eta), 1 / (8 * PROBLEM.smoothness.sample), rtol=1e-12
    )
    own = ew.solve(PROBLEM, GRAPH, ew.PrimalDual(ew.SAGA(), eta=0.1, rho=0.5), rounds=5)
    assert np.array_equal(own.X, number.X)


def test_auto_weights_follow_the_rule_and_the_graphs_own_weights():
    weights = np.linspace(1, 2, 9)
    heavy = ew.Graph.from_edges(GRAPH.edges, weights=weights)
    eta = np.linspace(0.1, 0.6, 6)
    _, links = ew.PrimalDual(ew.SAGA(), eta=eta).prepare(whole_network(PROBLEM, heavy))
    i, j = GRAPH.edges.T
    d = GRAPH.degrees
    np.testing.assert_allclose(
        links["rho"], weights * 0.2 / np.sqrt(eta[i] * eta[j] * d[i] * d[j]), rtol=1e-12
    )


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"method": "saga"}, errors.UnknownName, "did you mean 'saga-pd'"),
        ({"method": 3}, errors.MethodError, "edgewise.list_methods"),
        ({"method": "SAGA-PD"}, errors.UnknownName, "did you mean 'saga-pd'"),
        ({"method": ew.SAGA(), "eta": 0.1}, errors.MethodError, r"use PrimalDual\(SAGA"),
        ({"method": ew.PrimalDual}, errors.MethodError, "is a class"),
        ({"problem": GRAPH, "graph": PROBLEM}, errors.ProblemError, "in this order"),
        ({"graph": GRAPH.to_networkx()}, errors.GraphError, "from_networkx"),
        ({"seed": None}, errors.MethodError, "seed is None"),
        ({"seed": -1}, errors.MethodError, "from 0 up"),
        ({"seed": 2**70}, errors.MethodError, "seed"),
        ({"tol": "a"}, errors.MethodError, "tol='a'"),
        ({"tol": -1.0}, errors.MethodError, "positive"),
        ({"oracle_budget": np.nan}, errors.MethodError, "oracle_budget"),
        ({"eta": {}}, errors.MethodError, "one per node"),
        ({"dtype": "float31"}, errors.ProblemError, "float32"),
        ({"X0": "a"}, errors.ProblemError, "array of numbers"),
        ({"duals": np.full((6, 4), np.nan)}, errors.ProblemError, "former result"),
        ({"reference": "yes"}, errors.ProblemError, "True, False"),
        ({"checkpoint": 5}, errors.CheckpointError, "another path"),
        ({"checkpoint": "/"}, errors.CheckpointError, "is a folder"),
        ({"checkpoint": __file__ + "/run.npz"}, errors.CheckpointError, "cannot be written"),
        ({"eta": -1.0}, errors.MethodError, "eta must be positive"),
        ({"eta": [0.1, 0.1]}, errors.MethodError, "one per node"),
        ({"eta": "atuo"}, errors.UnknownName, "did you mean 'auto'"),
        ({"rho": 0.0}, errors.MethodError, "rho must be positive"),
        ({"rho": np.ones(3)}, errors.MethodError, "one per edge"),
        ({"rho": np.nan}, errors.MethodError, "finite"),
        ({"rounds": 0}, errors.MethodError, "rounds is 0"),
        ({"rounds": 2.5}, errors.MethodError, "whole number"),
        ({"record_every": -5}, errors.MethodError, "record_every"),
        ({"graph": ew.Graph.ring(5)}, errors.ProblemError, "5 nodes.*6 shards"),
        (
            {"graph": ew.Graph.from_edges([(0, 1), (2, 3), (4, 5)])},
            errors.GraphError,
            "add an edge",
        ),
        ({"X0": np.zeros((2, 2))}, errors.ProblemError, r"\(6, 4\)"),
        ({"X0": np.full(4, np.inf)}, errors.ProblemError, "finite"),
        ({"duals": np.zeros(3)}, errors.ProblemError, "former result"),
        ({"dtype": "float16"}, errors.ProblemError, "float32"),
    ],
)
def test_bad_input_is_named_before_any_compute(change, error, message, monkeypatch):
    def never(problem):
        raise AssertionError("solved before looking")

    monkeypatch.setattr("edgewise.running.solve.solve_reference", never)
    given = {"problem": PROBLEM, "graph": GRAPH, "rounds": 10, **change}
    with pytest.raises(error, match=message):
        ew.solve(**given)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ew.SAGA(batch=0), "SAGA's batch is 0"),
        (lambda: ew.SGD(batch=1.5), "whole number"),
        (lambda: ew.LSVRG(batch=True), "whole number"),
        (lambda: ew.SVRG(stop=1.5), "below 1"),
        (lambda: ew.SVRG(first=0), "first is 0"),
        (lambda: ew.SVRG(longest="a"), "longest is 'a'"),
        (lambda: ew.ASVRG(batch=0), "batch is 0"),
        (lambda: ew.ASVRG(momentum=0.0), "momentum=0.0"),
        (lambda: ew.ASVRG(ask=2.0), "ask=2.0"),
        (lambda: ew.ASVRG(floor=-1.0), "floor=-1.0"),
        (lambda: ew.FiniteDifference(0.0), "positive"),
        (lambda: ew.PrimalDual(ew.SAGA), "estimator"),
        (lambda: ew.Logistic(ridge=np.float32(-1)), "zero or more"),
        (lambda: ew.Logistic(ridge="a"), "ridge='a'"),
        (lambda: ew.CustomLoss(5), "give a function"),
        (lambda: ew.Stream(truth, []), "Shards to hold out"),
        (lambda: ew.PrimalDual("saga"), "estimator"),
        (lambda: ew.PrimalDual(ew.SAGA(), form="egde"), "did you mean 'edge'"),
    ],
)
def test_bad_parts_are_named(build, message):
    with pytest.raises(errors.InputError, match=message):
        build()


def test_a_penalty_a_method_cannot_take_is_named_before_it_starts():
    smooth_only = ew.PrimalDual(ew.SAGA())
    object.__setattr__(smooth_only, "takes_penalty", False)
    for method in (smooth_only, "gt-saga", "extra", "dgd"):
        with pytest.raises(errors.MethodError, match="cannot handle a penalty: use saga-pd or"):
            ew.solve(PROBLEM, GRAPH, method, rounds=1)
    ew.solve(problem(penalty=None), GRAPH, smooth_only, rounds=1)


def test_more_coordinates_than_there_are():
    with pytest.raises(errors.MethodError, match="only 4 coordinates"):
        ew.solve(PROBLEM, GRAPH, ew.PrimalDual(ew.SEGA(batch=5)), rounds=1)


class Own:
    """A user's penalty, right or wrong."""

    def __init__(self, prox, value=lambda x: jax.numpy.abs(x).sum()):
        self.prox, self.value = prox, value


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"penalty": Own(lambda x, t: x[:2])}, "it must give"),
        ({"penalty": Own(lambda x: x)}, "cannot be traced"),
        ({"penalty": Own(lambda x, t: np.maximum(np.asarray(x), 0))}, "write it with jax.numpy"),
        ({"penalty": Own(lambda x, t: x.astype("float32"))}, "x's own dtype"),
        ({"penalty": Own(lambda x, t: x, value=lambda x: x)}, "value"),
        ({"loss": ew.CustomLoss(lambda x, d: x.sum())}, "cannot be traced"),
        ({"loss": ew.CustomLoss(lambda x, d, y: d * x)}, "one number"),
        ({"loss": ew.Logistic}, "not a loss"),
        ({"weights": None}, "unknown weights"),
        ({"weights": np.ones(60)}, "unknown weights"),
        ({"sample_weight": "a"}, "numbers, one per sample"),
    ],
)
def test_parts_are_tried_when_the_problem_is_made(options, message):
    with pytest.raises(errors.InputError, match=message):
        problem(**options)


def test_what_is_no_list_of_shards_is_named():
    for wrong in ((X, y), X, None, 5):
        with pytest.raises(errors.DataError, match=r"edgewise.split\(X, y"):
            ew.Problem(wrong, loss=ew.Logistic())


def test_any_iterable_of_penalties_is_one_per_node():
    rules = [ew.L1(0.01), None, ew.Box(-1.0, 1.0), ew.L1(0.5), None, ew.NonNegative()]
    listed = ew.solve(problem(penalty=rules), GRAPH, "saga-pd", rounds=50)
    for same in (tuple(rules), np.array(rules, object), iter(rules)):
        other = ew.solve(problem(penalty=same), GRAPH, "saga-pd", rounds=50)
        assert np.array_equal(listed.trace["residual"], other.trace["residual"])


def test_every_method_has_a_line_and_runs():
    for name, line in ew.list_methods().items():
        assert len(line) > 10
        takes = make(name).takes_penalty
        # in the first three rounds newton-pd has no matrices yet
        result = ew.solve(PROBLEM if takes else SMOOTH, GRAPH, name, rounds=4)
        assert np.isfinite(result.x).all()
        assert not np.array_equal(result.X, np.zeros((6, 4)))


def test_progress_is_quiet_unless_watched(capfd, monkeypatch):
    from edgewise.running import progress

    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    ew.solve(PROBLEM, GRAPH, "saga-pd", rounds=100)
    assert capfd.readouterr() == ("", "")
    ew.solve(PROBLEM, GRAPH, "saga-pd", rounds=100, progress=True)
    assert "saga-pd" in capfd.readouterr().err


def test_a_stream_has_no_k_and_reaches_its_floor():
    holdout = ew.Shards.from_parts(truth(i, 400, np.random.default_rng(i)) for i in range(6))
    online = ew.Problem(ew.Stream(truth, holdout), loss=ew.Squared())
    method = ew.PrimalDual(ew.SGD(batch=8), eta=0.05)
    result = ew.solve(online, GRAPH, method, rounds=3000, record_every=300)
    np.testing.assert_allclose(result.x, [1, -2, 0, 3], atol=0.05)
    assert result.trace["oracle_calls"][-1] == 8 * 3000
    again = ew.solve(online, GRAPH, method, rounds=3000, record_every=700)
    assert np.array_equal(result.X, again.X)
    shorter = ew.solve(online, GRAPH, method, rounds=3000, record_every=300, eta=0.005)
    assert shorter.trace["bregman"][-3:].mean() < result.trace["bregman"][-3:].mean()


def test_a_stream_gives_every_step_new_samples():
    seen = []

    def draw(node, size, generator):
        seen.append((node, size))
        return truth(node, size, generator)

    holdout = ew.Shards.from_parts(truth(i, 20, np.random.default_rng(i)) for i in range(6))
    online = ew.Problem(ew.Stream(draw, holdout), loss=ew.Squared())
    ew.solve(online, GRAPH, ew.PrimalDual(ew.SGD(batch=3)), rounds=100, record_every=25)
    for node in range(6):
        assert sum(size for i, size in seen if i == node) == 3 * 128  # by 64 rounds


def test_a_stream_is_checked():
    holdout = ew.Shards.from_parts(truth(i, 20, np.random.default_rng(i)) for i in range(6))
    online = ew.Problem(ew.Stream(truth, holdout), loss=ew.Squared())
    with pytest.raises(errors.MethodError, match="use spd"):
        ew.solve(online, GRAPH, "saga-pd", rounds=5)
    narrow = ew.Stream(lambda i, size, g: (np.zeros((size, 3)), np.zeros(size)), holdout)
    with pytest.raises(errors.DataError, match="it must give"):
        ew.solve(ew.Problem(narrow, loss=ew.Squared()), GRAPH, "spd", rounds=5)
    with pytest.raises(errors.ProblemError, match="no weights"):
        ew.Problem(ew.Stream(truth, holdout), loss=ew.Squared(), weights="sample")


def test_trace_saves_loads_and_plots(tmp_path, drawn):
    trace = ew.solve(PROBLEM, GRAPH, "saga-pd", rounds=100).trace
    for name in ("run.npz", "run.csv", "bare"):
        loaded = ew.Trace.load(trace.save(tmp_path / name))
        for column in trace.columns:
            assert np.array_equal(loaded[column], trace[column], equal_nan=True)
    frame = trace.to_pandas()
    assert list(frame.columns) == list(trace.columns)
    assert (frame["rounds"] == trace["rounds"]).all()
    axes = trace.plot("residual", x="oracle_calls", path=tmp_path / "run.png")
    assert np.array_equal(axes.lines[0].get_xdata(), trace["oracle_calls"])
    assert np.array_equal(axes.lines[0].get_ydata(), trace["residual"])
    assert axes.figure is drawn["run.png"]
    with pytest.raises(errors.UnknownName, match="did you mean 'bregman'"):
        trace["bergman"]


def test_checkpoints_are_not_written_at_every_recording(tmp_path, monkeypatch):
    saves = []
    monkeypatch.setattr(checkpoint.Checkpointer, "save", lambda self, run: saves.append(run.round))
    path = tmp_path / "run.npz"
    ew.solve(PROBLEM, GRAPH, "saga-pd", rounds=100, record_every=10, checkpoint=path)
    assert saves == [100]
