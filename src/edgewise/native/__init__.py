"""Compiled rounds for a CPU: the primal-dual methods at half the time, where Numba is installed.

XLA makes many passes over the state in a round, each from the cache to the core and back. These
rounds make one. They are an optional copy of what `methods.primal_dual` says, for the commonest
problems, held to it by the tests; everything else, and every machine without Numba, runs that. Set
EDGEWISE_NATIVE=0 to have it so.
"""

import os
from importlib.util import find_spec
from typing import Any

import jax
import numpy as np

from edgewise.gradients.memory import Sampled
from edgewise.graph import Graph
from edgewise.methods.primal_dual import PrimalDual
from edgewise.network.simulated import Simulator
from edgewise.penalties import L1, ElasticNet, NoPenalty, SquaredL2

LEAST_COLUMNS = 256  # a call costs a few microseconds: below this XLA's own program is as fast
MOST_NODES = 1024  # a stretch of columns of all nodes has to stay in the cache


def simulator(problem: Any, graph: Graph, method: Any, seed: int, dtype: Any) -> Simulator:
    """The fastest there is for this problem and method, here."""
    if not fits(problem, method):
        return Simulator(problem, graph, method, seed, dtype)
    from edgewise.native.rounds import NativeSimulator

    return NativeSimulator(problem, graph, method, seed, dtype)


def fits(problem: Any, method: Any) -> bool:
    """Whether compiled rounds can run this, here."""
    penalties = problem.penalty if isinstance(problem.penalty, list | tuple) else [problem.penalty]
    kinds = {type(h) for h in penalties}
    rows = getattr(problem.shards, "X", None)
    return bool(
        problem.size >= LEAST_COLUMNS
        and problem.nodes <= MOST_NODES
        and type(method) is PrimalDual
        and isinstance(method.gradient, Sampled)
        and problem.loss.linear
        and problem.loss.outputs == 1
        and not problem.intercept
        and len(kinds) == 1
        and kinds <= {NoPenalty, L1, SquaredL2, ElasticNet}
        and isinstance(rows, np.ndarray)
        and rows.dtype in (np.float32, np.float64)
        and problem.stream is None
        and jax.default_backend() == "cpu"
        and os.environ.get("EDGEWISE_NATIVE", "1") != "0"
        and find_spec("numba") is not None
    )
