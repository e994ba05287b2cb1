"""The GPU's kernels against the plain rounds, which are the reference; interpreted on a CPU, and
compiled where there is a GPU."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from uneven import problem_of as uneven_problem

import edgewise as ew
from edgewise.engines import native
from edgewise.engines.native import gpu, gpu_kernels
from edgewise.engines.simulator import Simulator
from edgewise.errors import DataError
from edgewise.problem import passes
from edgewise.problem.problem import require_room


def problem_of(n=20, nodes=5, **options):
    return uneven_problem(n, nodes, **options)


QUICK_TO_COMPILE = {"xla_backend_optimization_level": 0}


def alike(problem, graph, method, rounds=25, dtype="float64", tolerance=1e-12):
    """The same state after the same rounds; says by which program."""
    with jax.enable_x64(True):
        ends = []
        for kind in (Simulator, gpu.GpuSimulator):
            run = kind(problem, graph, method, 0, np.dtype(dtype))
            run.unroll, run.options = 1, QUICK_TO_COMPILE
            begin = jax.tree.map(jnp.copy, run.start(run.origin(), None))
            ends.append(run.advance(begin, 0, rounds)[0])
        plain, ours = (jax.tree.map(np.asarray, end) for end in ends)
    assert np.abs(plain[0].X).max() > 1e-3  # it moved
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=tolerance), plain, ours)
    return run.program


SAMPLED = {
    "saga": ew.PrimalDual(ew.SAGA()),
    "saga of 3, edge": ew.PrimalDual(ew.SAGA(batch=3), form="edge"),
    "svrg of 2, may stop": ew.PrimalDual(ew.SVRG(batch=2, stop=0.3)),
}


@pytest.mark.quick_if(lambda method: method != "saga")
@pytest.mark.parametrize("method", SAMPLED)
def test_sampled_estimators_run_in_whole_rounds(method):
    program = alike(problem_of(), ew.Graph.random(5, 7, seed=1), SAMPLED[method])
    assert program is gpu.run_whole_rounds


@pytest.mark.parametrize("gradient", [ew.LSVRG(), ew.Full()])
def test_other_estimators_have_their_passes_replaced(gradient):
    program = alike(problem_of(), ew.Graph.ring(5), ew.PrimalDual(gradient))
    assert program is gpu.run_rounds


@pytest.mark.parametrize("form", ["node", "edge"])
def test_more_columns_and_samples_than_a_program_takes(monkeypatch, form):
    """Every loop over pieces goes round, with a last piece that is not full."""
    for name, value in {
        "DOT_COLUMNS": 8,
        "ROUND_COLUMNS": 8,
        "SLOPE_ROWS": 2,
        "SLOPE_COLUMNS": 4,
        "SLOPE_PROGRAMS": 10,
        "MEAN_ROWS": 4,
        "MEAN_COLUMNS": 8,
    }.items():
        monkeypatch.setattr(gpu_kernels, name, value)
    method = ew.PrimalDual(ew.SVRG(first=3), form=form)
    alike(problem_of(37), ew.Graph.star(5), method)


@pytest.mark.parametrize(
    ("penalty", "form"),
    [(ew.ElasticNet(0.01, 0.2), "node"), ([ew.L1(0.01 * i) for i in range(5)], "edge")],
)
def test_penalties(penalty, form):
    method = ew.PrimalDual(ew.SAGA(), form=form)
    program = alike(problem_of(penalty=penalty), ew.Graph.ring(5), method)
    assert program is gpu.run_whole_rounds


def test_a_penalty_that_mixes_columns_is_left_to_the_plain_rounds():
    problem = problem_of(penalty=ew.L2Ball(0.1))
    assert alike(problem, ew.Graph.ring(5), ew.PrimalDual(ew.SAGA())) is gpu.run_rounds


def test_a_loss_with_a_number_of_its_own_and_weights_of_samples():
    problem = problem_of(loss=ew.Huber(0.5, ridge=0.1), weights="sample")
    alike(problem, ew.Graph.ring(5), ew.PrimalDual(ew.SVRG(first=3)))


@pytest.mark.quick_if(lambda run, **_: run == "float32")
@pytest.mark.parametrize(("run", "tolerance"), [("float64", 1e-12), ("float32", 1e-5)])
def test_data_in_float32(run, tolerance):
    problem, method = problem_of(dtype=np.float32), ew.PrimalDual(ew.SVRG(first=3))
    alike(problem, ew.Graph.ring(5), method, dtype=run, tolerance=tolerance)


def test_function_values_of_many_nodes(monkeypatch):
    monkeypatch.setattr(passes, "MANY_NODES", 2)
    problem = problem_of()
    with jax.enable_x64(True):
        block = problem.block(None, np.float64)
        X = jnp.asarray(np.random.default_rng(0).standard_normal((5, problem.size)))
        np.testing.assert_allclose(gpu.on_gpu(block).values(X), block.values(X), atol=1e-14)


def test_the_product_that_a_gpu_is_given(monkeypatch):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((3, 7)), rng.standard_normal((3, 7, 5))
    with jax.enable_x64(True):
        monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
        made = passes.product("ct,ctp->cp", jnp.asarray(a), jnp.asarray(b))
    np.testing.assert_allclose(made, np.einsum("ct,ctp->cp", a, b), atol=1e-14)


# --- compiled, on a real GPU: pytest tests/engines/test_gpu_rounds.py -k on_a_gpu -----------------

on_a_gpu = pytest.mark.skipif(
    jax.default_backend() != "gpu" or not native.has_triton(jax.devices()[0]),
    reason="needs an NVIDIA GPU since Ampere and a jax that knows it; elsewhere interpreted, above",
)
COMPILED = {
    **SAMPLED,
    "plain svrg, edge": ew.PrimalDual(ew.gradients.PlainSVRG(), form="edge"),
    "lsvrg": ew.PrimalDual(ew.LSVRG()),
    "full": ew.PrimalDual(ew.Full()),
    "gt-saga": ew.GradientTracking(ew.SAGA()),
}


@on_a_gpu
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-10), ("float32", 1e-4)])
@pytest.mark.parametrize("method", COMPILED)
def test_compiled_kernels_on_a_gpu(monkeypatch, method, dtype, tolerance):
    """Columns and samples that fill no program, and more of both than one takes."""
    problem, graph = problem_of(700, nodes=9, penalty=ew.L1(1e-3)), ew.Graph.random(9, 14, seed=1)
    ends = []
    with jax.enable_x64(True):
        for switch, kind in (("1", gpu.GpuSimulator), ("0", Simulator)):
            monkeypatch.setenv("EDGEWISE_NATIVE", switch)
            run = native.simulator(problem, graph, COMPILED[method], 0, np.dtype(dtype))
            assert type(run) is kind
            ends.append(run.advance(run.start(run.origin(), None), 0, 60)[0])
        ours, plain = (jax.tree.map(np.asarray, end) for end in ends)
    assert np.abs(plain[0].X).max() > 1e-3  # it moved
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=tolerance), plain, ours)


class Device:
    def __init__(self, capability=None, limit=None, used=0):
        if capability is not None:
            self.compute_capability = capability
        self.memory = None if limit is None else {"bytes_limit": limit, "bytes_in_use": used}

    def memory_stats(self):
        return self.memory

    def __str__(self):
        return "cuda:0"


@pytest.mark.parametrize(
    ("capability", "known"), [("9.0", True), ("12.0", True), ("7.5", False), ("gfx942", False)]
)
def test_which_devices_the_kernels_are_for(capability, known):
    assert native.has_triton(Device(capability)) == known
    assert not native.has_triton(Device())


def test_which_problems_the_kernels_are_for(monkeypatch):
    assert not native.fits_gpu(problem_of()) or jax.default_backend() == "gpu"
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(native, "has_triton", lambda device: True)
    assert native.fits_gpu(problem_of())
    assert not native.fits_gpu(problem_of(intercept=True))
    custom = ew.CustomLoss(lambda x, d, y: 0.5 * (d @ x - y) ** 2)
    assert not native.fits_gpu(problem_of(loss=custom))
    monkeypatch.setattr(native, "MOST_NUMBERS", 100)
    assert not native.fits_gpu(problem_of())


def test_data_larger_than_the_memory_are_refused_before_they_are_copied():
    X = np.zeros((1000, 1000))
    require_room(X, np.float64, Device())  # it does not say what it has
    require_room(X, np.float64, Device(limit=8_000_000))
    require_room(X, np.float32, Device(limit=5_000_000))
    with pytest.raises(DataError, match=r"take 0\.008 GB.*0\.009 GB.*cuda:0 0\.007 GB.*float32"):
        require_room(X, np.float64, Device(limit=9_000_000, used=2_000_000))
    with pytest.raises(DataError, match="JAX_PLATFORMS=cpu") as refused:
        require_room(X, np.float32, Device(limit=3_000_000))
    assert "float32" not in str(refused.value)


def test_a_problem_asks_for_room(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "edgewise.problem.problem.require_room", lambda *of: asked.append(of[0].shape)
    )
    problem = problem_of()
    with jax.enable_x64(True):
        block = problem.block(None, np.float64)
        problem.block(None, np.float64, block.rows)
    assert asked == [problem.shards.X.shape]
