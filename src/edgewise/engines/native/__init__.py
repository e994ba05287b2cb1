"""Rounds of our own making: on a CPU compiled by Numba, where it is installed, on a GPU by Triton,
or by CUDA's own compiler.

XLA makes many passes over the state in a round, each from the cache to the core and back, or each a
kernel to be launched. These rounds make one. They are an optional copy of what
`methods.primal_dual` says, for the commonest problems, held to it by the tests; everything else,
and every machine without Numba or such a GPU, runs that. Set EDGEWISE_NATIVE=0 to have it so, and
EDGEWISE_NATIVE=cuda to have CUDA's kernels where Triton's would run.
"""

import os
import re
from importlib.util import find_spec
from typing import Any

import jax
import numpy as np
import scipy.sparse as sp

from edgewise.backend.declared import declared
from edgewise.engines.native.fallback import plain_rounds_run
from edgewise.engines.native.formulas import (
    ESTIMATORS,
    IN_CUDA,
    LOCAL_ESTIMATORS,
    LOSSES,
    ORACLES,
)
from edgewise.engines.native.soft_threshold import alike, separable, thresholds_softly
from edgewise.engines.simulator import Simulator
from edgewise.graph.graph import Graph

LEAST_COLUMNS = 256  # a call costs a few microseconds: below this XLA's own program is as fast
LEAST_SKETCHED = 1 << 13  # numbers of the data, all of which a round of sketches looks at
MANY_NUMBERS = 1 << 19  # of all nodes' models: fewer stay in the caches, where XLA is about as fast
MOST_NUMBERS = 1 << 31  # of the data: a kernel's offsets have 32 bits
MOST_BATCH = 64  # of samples that CUDA's kernels take
MOST_NODES = 1024  # a stretch of columns of all nodes has to stay in the cache


def simulator(problem: Any, graph: Graph, method: Any, seed: int, dtype: Any) -> Simulator:
    """The fastest there is for this problem and method, here."""
    if fits_cuda(problem, method):
        from edgewise.engines.native.cuda import CudaSimulator

        return CudaSimulator(problem, graph, method, seed, dtype)
    if fits_gpu(problem):
        from edgewise.engines.native.gpu import GpuSimulator

        return GpuSimulator(problem, graph, method, seed, dtype)
    kind: type[Simulator] = Simulator
    try:
        if fits(problem, method):
            from edgewise.engines.native.rounds import NativeSimulator as kind
        elif fits_many_nodes(problem, method):
            from edgewise.engines.native.node_rounds import ManyNodesSimulator as kind
        elif fits_local(problem, method):
            from edgewise.engines.native.local_rounds import LocalSimulator as kind
    except Exception as error:
        plain_rounds_run(error)
    return kind(problem, graph, method, seed, dtype)


def fits_gpu(problem: Any) -> bool:
    """Whether there are kernels for this problem's passes, and a GPU that can run them."""
    return bool(plain_data(problem) and gpu_runs() and pallas_has_triton())


def fits_cuda(problem: Any, method: Any) -> bool:
    """Whether CUDA's kernels can run this, here, and are wanted: those of Triton have been measured
    on a GPU and these have not, so as long as jax has both those are taken."""
    kind, gradient = declared(method), method.gradient
    single = kind == "primal-dual" and declared(gradient) in IN_CUDA
    local = kind == "local-training" and method.local != 1
    return bool(
        (single or (local and declared(gradient) in LOCAL_ESTIMATORS))
        and gradient.batch <= (MOST_BATCH if single else 1)
        and alike(problem)
        and plain_data(problem)
        and gpu_runs()
        and (os.environ.get("EDGEWISE_NATIVE", "1") == "cuda" or not pallas_has_triton())
        and find_spec("cupy") is not None
    )


def plain_data(problem: Any) -> bool:
    """Whether samples are what a GPU's kernels take."""
    rows = getattr(problem.shards, "X", None)
    return bool(
        declared(problem.loss) in LOSSES
        and not problem.intercept
        and problem.offset is None
        and not problem.couples
        and isinstance(rows, np.ndarray)
        and rows.dtype in (np.float32, np.float64)
        and rows.size < MOST_NUMBERS
        and problem.stream is None
    )


def gpu_runs() -> bool:
    return bool(
        jax.default_backend() == "gpu"
        and has_triton(jax.devices()[0])
        and os.environ.get("EDGEWISE_NATIVE", "1") != "0"
    )


def pallas_has_triton() -> bool:
    """It is deprecated since jax 0.11."""
    return find_spec("jax.experimental.pallas.triton") is not None


def has_triton(device: Any) -> bool:
    """Whether Triton, which compiles the kernels, knows the device: NVIDIA's since 2020."""
    number = re.fullmatch(r"(\d+)\.\d+", str(getattr(device, "compute_capability", "")))
    return number is not None and int(number[1]) >= 8


def fits(problem: Any, method: Any) -> bool:
    """Whether compiled rounds of long vectors can run this, here."""
    sketched = declared(method.gradient) == "sega"
    return (
        problem.nodes <= MOST_NODES
        and (problem.size >= LEAST_COLUMNS or sketched)
        and (not sketched or fits_sketched(problem, method.gradient))
        and fits_primal_dual(problem, method)
    )


def fits_many_nodes(problem: Any, method: Any) -> bool:
    """Whether those of many nodes can."""
    return (
        problem.nodes * problem.size >= MANY_NUMBERS
        and fits_primal_dual(problem, method)
        and method.form == "node"
        and declared(method.gradient) != "sega"
    )


def fits_primal_dual(problem: Any, method: Any) -> bool:
    rows = getattr(problem.shards, "X", None)
    return bool(
        declared(method) == "primal-dual"
        and declared(method.gradient) in ESTIMATORS
        and not problem.intercept
        and thresholds_softly(problem)
        and isinstance(rows, np.ndarray)
        and rows.dtype in (np.float32, np.float64)
        and numba_runs(problem)
    )


def fits_sketched(problem: Any, gradient: Any) -> bool:
    """Whether compiled passes can show coordinates, and are long enough."""
    return bool(
        declared(gradient.oracle) in ORACLES
        and gradient.batch <= problem.size
        and getattr(getattr(problem.shards, "X", None), "size", 0) >= LEAST_SKETCHED
    )


def fits_local(problem: Any, method: Any) -> bool:
    """Whether compiled local training can run this, here: one sample a step, and of sparse rows
    only what lets other coordinates than the sample's catch up later."""
    rows: Any = getattr(problem.shards, "X", None)
    return bool(
        problem.size >= LEAST_COLUMNS
        and declared(method) == "local-training"
        and method.local != 1
        and declared(method.gradient) in LOCAL_ESTIMATORS
        and method.gradient.batch == 1
        and (
            (isinstance(rows, np.ndarray) and not problem.intercept and alike(problem))
            or (sp.issparse(rows) and catches_up(problem, method))
        )
        and getattr(rows, "dtype", None) in (np.float32, np.float64)
        and numba_runs(problem)
    )


def catches_up(problem: Any, method: Any) -> bool:
    """Whether what many steps do to a coordinate that no sample touches is known in closed form:
    not where steps of 1 / ridge and more, given by hand, have it swing about."""
    by_rule = isinstance(method.eta, str)
    return bool(
        declared(method.gradient) == "saga"
        and separable(problem)
        and (by_rule or np.all(np.asarray(method.eta) * problem.loss.ridge < 1))
    )


def numba_runs(problem: Any) -> bool:
    return bool(
        declared(problem.loss) in LOSSES
        and problem.stream is None
        and problem.offset is None
        and jax.default_backend() == "cpu"
        and os.environ.get("EDGEWISE_NATIVE", "1") != "0"
        and find_spec("numba") is not None
    )
