"""What runs a method's rounds: this process, several devices, or the ranks of an MPI job."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from edgewise.engines.faults import Faults
from edgewise.engines.faulty_simulator import FaultySimulator
from edgewise.engines.mpi import MPI
from edgewise.engines.native import simulator
from edgewise.engines.rank_simulator import RankSimulator
from edgewise.engines.sharded import ShardedSimulator, choose_devices
from edgewise.engines.simulator import Simulator
from edgewise.errors import MethodError
from edgewise.graph.graph import Graph
from edgewise.methods.contract import Method
from edgewise.problem.problem import Problem


@contextmanager
def make_engine(
    problem: Problem,
    graph: Graph,
    method: Method,
    seed: int,
    dtype: Any,
    faults: Faults | None,
    devices: Any,
    engine: MPI | None,
) -> Iterator[Simulator]:
    if engine is not None:
        if faults is not None or devices is not None:
            what = "faults" if faults is not None else "devices"
            raise MethodError(f"an MPI engine with {what}: leave one of them out")
        rank = RankSimulator(problem, graph, method, seed, dtype, engine)
        yield rank
        rank.close()
    elif devices is not None:
        several = choose_devices(devices, problem, faults)
        yield ShardedSimulator(problem, graph, method, seed, dtype, several)
    elif faults is not None:
        yield FaultySimulator(problem, graph, method, seed, dtype, faults)
    else:
        yield simulator(problem, graph, method, seed, dtype)
