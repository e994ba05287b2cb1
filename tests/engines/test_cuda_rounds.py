"""CUDA kernels against the plain rounds, which are the reference: compiled for this CPU."""

import logging
import shutil
import subprocess

import emulated_gpu
import jax
import numpy as np
import pytest
from cuda_cases import GRAPH, METHODS, alike, problem_of, rounds_of
from emulated_gpu import EmulatedDevice

import edgewise as ew
from edgewise.engines import choose, native
from edgewise.engines.native import cuda, cuda_device, cuda_state
from edgewise.engines.simulator import Simulator


def emulated(test):
    without = pytest.mark.skipif(
        emulated_gpu.COMPILER is None, reason="needs g++, which compiles the kernels for this CPU"
    )
    return without(pytest.mark.usefixtures("small_blocks")(test))


@pytest.fixture
def small_blocks(monkeypatch):
    """Several blocks of a node, and several columns of a thread, at these sizes."""
    monkeypatch.setattr(cuda_device, "LEAST_COLUMNS", 64)
    monkeypatch.setattr(cuda_device, "MOST_THREADS", 64)


def ends(problem, graph, method, rounds, dtype="float64", device=None, stretches=1, works=True):
    """The plain simulator's state after the same rounds, and ours; whether ours really ran."""
    made = []
    with jax.enable_x64(True):
        for kind in (Simulator, cuda.CudaSimulator):
            run = kind(problem, graph, method, 0, np.dtype(dtype))
            if kind is cuda.CudaSimulator and device is not None:
                run.device = lambda: device
            X = np.random.default_rng(0).normal(size=(problem.nodes, problem.size)) / 10
            carry, each = run.start(X, None), rounds // stretches
            for k in range(stretches):
                carry, _ = run.advance(carry, k * each, each)
            made.append(jax.tree.map(np.asarray, carry))
    assert run.works is works
    return made


PASSES_ALONE = "svrg of 2, may stop", "loopless"  # at times of a node's own: more blocks for it


@emulated
@pytest.mark.parametrize("name", METHODS)
def test_every_method(name):
    """In two stretches, so that the state goes out and in again."""
    method, device = METHODS[name], EmulatedDevice()
    alike(*ends(problem_of(), GRAPH, method, rounds_of(method), device=device, stretches=2))
    blocks = 1 if method.local is not None else 3 if name in PASSES_ALONE else 2
    assert device.launches == [(5 * blocks, 64)] * 2


PROBLEMS = {
    "squared": {"loss": ew.Squared(ridge=1e-2), "penalty": ew.ElasticNet(0.01, 0.2)},
    "huber, weighted": {"loss": ew.Huber(0.5, ridge=0.1), "weights": "sample"},
    "hinge, unlike penalties": {
        "loss": ew.SmoothedHinge(ridge=1e-2),
        "penalty": [ew.SquaredL2(0.01 * i) for i in range(5)],
    },
    "within bounds": {"penalty": ew.Box(0.01, 0.03)},
    "none": {"penalty": ew.NoPenalty()},
}


@emulated
@pytest.mark.parametrize("local", [None, "auto"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_losses_and_penalties(name, local):
    method = ew.PrimalDual(ew.SAGA(), local=local)
    alike(*ends(problem_of(**PROBLEMS[name]), GRAPH, method, 8, device=EmulatedDevice()))


@emulated
@pytest.mark.parametrize(("run", "tolerance"), [("float64", 1e-12), ("float32", 1e-5)])
def test_data_in_float32(run, tolerance):
    problem, method = problem_of(dtype=np.float32), ew.PrimalDual(ew.SVRG(first=3))
    alike(*ends(problem, GRAPH, method, 24, run, EmulatedDevice()), tolerance)


@emulated
@pytest.mark.parametrize("n", [1, 63, 65, 256])
def test_columns_that_fill_no_warp_or_all(n):
    alike(*ends(problem_of(n), ew.Graph.star(5), METHODS["saga"], 6, device=EmulatedDevice()))


@emulated
@pytest.mark.parametrize(("name", "blocks"), [("svrg of 2, may stop", 8), ("local saga", 4)])
def test_more_nodes_than_blocks(name, blocks):
    """A block has several nodes then, some one more than others."""
    problem, graph, device = problem_of(40, 9), ew.Graph.random(9, 14, seed=1), EmulatedDevice(2, 2)
    alike(*ends(problem, graph, METHODS[name], rounds_of(METHODS[name]), device=device))
    assert device.launches == [(blocks, 64)]


@emulated
@pytest.mark.parametrize("name", ["svrg, edge", "local saga"])
def test_solve_measures_what_they_come_to(monkeypatch, name):
    """Models, duals, calls and bytes."""

    def simulator(*given):
        run = cuda.CudaSimulator(*given)
        run.device = EmulatedDevice
        return run

    found = []
    for kind in (Simulator, simulator):
        monkeypatch.setattr(choose, "simulator", kind)
        made = ew.solve(
            problem_of(), GRAPH, METHODS[name], rounds=12, record_every=4, reference=False
        )
        found.append(made)
    plain, ours = found
    np.testing.assert_allclose(ours.X, plain.X, rtol=0, atol=1e-12)
    np.testing.assert_allclose(ours.duals, plain.duals, rtol=0, atol=1e-12)
    for column in ("oracle_calls", "bytes_sent"):
        assert ours.trace[column].tolist() == plain.trace[column].tolist()


class Deaf(EmulatedDevice):
    """Its kernels do not know of the last node."""

    def launch(self, program, grid, threads, words):
        flat = words.view(np.int64)
        flat[cuda_state.Run._fields.index("nodes")] -= 1
        super().launch(program, grid, threads, words)


@emulated
@pytest.mark.parametrize("name", ["saga", "local saga"])
def test_plain_rounds_run_where_a_word_does_not_come(monkeypatch, caplog, name):
    monkeypatch.setattr(cuda_state, "PATIENCE", 1500)
    with caplog.at_level(logging.WARNING):
        alike(*ends(problem_of(), GRAPH, METHODS[name], 4, device=Deaf(), works=False))
    assert "waited in vain" in caplog.text


def test_plain_rounds_run_where_there_is_no_cupy(caplog):
    def nothing():
        raise ImportError("no module named cupy")

    with jax.enable_x64(True):
        run = cuda.CudaSimulator(problem_of(), GRAPH, METHODS["saga"], 0, np.dtype("float64"))
        run.device = nothing
        with caplog.at_level(logging.WARNING):
            carry, _ = run.advance(run.start(run.origin(), None), 0, 3)
            run.advance(carry, 3, 2)
    assert caplog.text.count("no module named cupy") == 1  # it says so once


def test_a_node_that_has_no_room_is_refused():
    with jax.enable_x64(True):
        run = cuda.CudaSimulator(problem_of(), GRAPH, METHODS["saga"], 0, np.dtype("float64"))
        crowded = EmulatedDevice(room=0)
        crowded.compiled = lambda kernel, **constants: (None, 0)
        with pytest.raises(RuntimeError, match="this GPU has room for 0 at once"):
            cuda.CudaRounds(crowded, run)


def test_which_problems_the_kernels_are_for(monkeypatch):
    method = METHODS["saga"]
    assert not native.fits_cuda(problem_of(), method) or jax.default_backend() == "gpu"
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(native, "has_triton", lambda device: True)
    found = {"cupy", "jax.experimental.pallas.triton"}
    monkeypatch.setattr(native, "find_spec", lambda name: name in found or None)
    assert not native.fits_cuda(problem_of(), method)  # Triton's kernels have been measured
    monkeypatch.setenv("EDGEWISE_NATIVE", "cuda")
    assert all(native.fits_cuda(problem_of(), method) for method in METHODS.values())
    assert not native.fits_cuda(problem_of(), ew.PrimalDual(ew.SAGA(batch=65)))
    assert not native.fits_cuda(problem_of(), ew.PrimalDual(ew.ASVRG()))
    assert not native.fits_cuda(problem_of(), ew.PrimalDual(ew.SAGA(batch=2), local=4))
    assert not native.fits_cuda(problem_of(), ew.GradientTracking(ew.SAGA()))
    for other in (ew.PrimalDual(ew.Full()), ew.PrimalDual(ew.Full(), local=4)):
        assert not native.fits_cuda(problem_of(), other)
    assert not native.fits_cuda(problem_of(penalty=ew.L2Ball(0.1)), method)
    assert not native.fits_cuda(problem_of(intercept=True), method)
    monkeypatch.delenv("EDGEWISE_NATIVE")
    found.remove("jax.experimental.pallas.triton")  # as a later jax
    assert native.fits_cuda(problem_of(), method)
    assert not native.fits_gpu(problem_of())
    monkeypatch.setenv("EDGEWISE_NATIVE", "0")
    assert not native.fits_cuda(problem_of(), method)


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ((50, 2000, 132, False), (1, 2, 1024, 256, 4)),
        ((50, 2000, 132, False, 2), (2, 5, 416, 256, 2)),
        ((50, 2000, 132, True), (1, 1, 2000, 256, 8)),
        ((1000, 50, 132, False), (1, 1, 50, 64, 1)),
        ((20, 20_000, 132, False), (1, 6, 3360, 512, 7)),
        ((2, 300, 132, False), (1, 2, 160, 160, 1)),
        ((1, 257, 132, False), (1, 2, 160, 160, 1)),
    ],
)
def test_how_columns_are_dealt_out(given, made):
    shape = cuda_device.shape_of(*given)
    assert shape == made
    assert (shape.blocks - 1) * shape.width < given[1] <= shape.blocks * shape.width
    assert shape.width <= shape.threads * shape.each


def test_room_for_edges():
    assert [cuda_device.room_for(k) for k in (0, 1, 16, 17, 1024)] == [16, 16, 16, 32, 1024]
    with pytest.raises(RuntimeError, match="1025 neighbours"):
        cuda_device.room_for(1025)


@emulated
def test_edges_of_more_than_one_load():
    """More neighbours than are asked for together, of some nodes."""
    method = ew.PrimalDual(ew.SAGA(), form="edge")
    problem, graph = problem_of(40, 12), ew.Graph.star(12)
    for which in (METHODS["saga"], method):
        alike(*ends(problem, graph, which, 6, device=EmulatedDevice(12)))


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc, CUDA's compiler")
def test_the_source_is_cuda(tmp_path):
    """With what `emulated_gpu` has in its place, too."""
    (tmp_path / "kernels.cu").write_text(
        cuda_device.source("words", "device", *cuda_device.KERNELS), "utf-8"
    )
    constants = [
        "-DREAL=float",
        "-DROW=double",
        "-DEACH=1",
        "-DTHREADS=64",
        "-DDEGREE=16",
        "-DCROWD=1",
    ]
    command = ["nvcc", "-std=c++17", "-arch=sm_80", "-ptx", *constants, "-o", "kernels.ptx"]
    made = subprocess.run([*command, "kernels.cu"], cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    assert "warning" not in made.stderr
