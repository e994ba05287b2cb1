"""CUDA kernels, compiled for the GPU that is here, against the plain rounds."""

import jax
import numpy as np
import pytest
from cuda_cases import METHODS, alike, problem_of

import edgewise as ew
from edgewise.engines import native
from edgewise.engines.native import cuda

pytestmark = pytest.mark.skipif(
    jax.default_backend() != "gpu"
    or not native.has_triton(jax.devices()[0])
    or native.find_spec("cupy") is None,
    reason="needs an NVIDIA GPU since Ampere, a jax that knows it, and CuPy; elsewhere emulated",
)


def chosen(monkeypatch, problem, graph, method, dtype, rounds, tolerance):
    """As `alike`, by the simulator that is chosen; twice ours, which come to the same bits."""
    made = []
    with jax.enable_x64(True):
        for switch in ("cuda", "cuda", "0"):
            monkeypatch.setenv("EDGEWISE_NATIVE", switch)
            run = native.simulator(problem, graph, method, 0, np.dtype(dtype))
            assert (type(run) is cuda.CudaSimulator) == (switch == "cuda")
            carry, half = run.start(run.origin(), None), rounds // 2
            for first in (0, half):
                carry, _ = run.advance(carry, first, half)
            assert getattr(run, "works", True)
            made.append(jax.tree.map(np.asarray, carry))
    ours, again, plain = made
    jax.tree.map(np.testing.assert_array_equal, ours, again)
    alike(plain, ours, tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-10), ("float32", 1e-4)])
@pytest.mark.parametrize("name", METHODS)
def test_every_method_on_a_gpu(monkeypatch, name, dtype, tolerance):
    problem, graph = problem_of(700, 9), ew.Graph.random(9, 14, seed=1)
    rounds = 60 if METHODS[name].local is None else 10
    chosen(monkeypatch, problem, graph, METHODS[name], dtype, rounds, tolerance)


@pytest.mark.parametrize("name", ["saga", "svrg, edge", "local saga"])
@pytest.mark.parametrize(
    ("nodes", "edges", "n"), [(50, 250, 2000), (3000, 9000, 40), (3, 3, 20_001)]
)
def test_sizes_on_a_gpu(monkeypatch, name, nodes, edges, n):
    """The paper's; more nodes than there are blocks; more columns than a thread's registers."""
    graph, method = ew.Graph.random(nodes, edges, seed=1), METHODS[name]
    rounds = 200 if method.local is None else 10
    chosen(monkeypatch, problem_of(n, nodes), graph, method, "float64", rounds, 1e-9)
