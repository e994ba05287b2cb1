"""What runs a method's rounds: this process, several devices, or the ranks of an MPI job."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from edgewise.engines.base import Engine, OneProcess
from edgewise.engines.devices import SeveralDevices, choose_devices
from edgewise.engines.faults import Faults
from edgewise.engines.faulty_executor import FaultyExecutor
from edgewise.engines.mpi import MPI
from edgewise.engines.native import simulator
from edgewise.engines.rank_communicator import RankCommunicator
from edgewise.engines.rank_executor import RankExecutor
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
    faults: Faults | None = None,
    devices: Any = None,
    engine: MPI | None = None,
) -> Iterator[Engine]:
    given = problem, graph, method, seed, dtype
    if graph.one_way and (engine is not None or devices is not None):
        raise MethodError("a directed graph runs in one process, on one device: leave engine out")
    if engine is not None:
        if faults is not None or devices is not None:
            varying = faults is not None and faults.links is not None
            what = "a time-varying graph" if varying else "devices" if faults is None else "faults"
            raise MethodError(f"an MPI engine with {what}: leave one of them out")
        communicator = RankCommunicator(engine, problem, graph)
        rank = RankExecutor(*given, communicator)
        yield Engine(rank, communicator)
        rank.close()
        communicator.close()
    elif devices is not None:
        several = choose_devices(devices, problem, faults)
        layout = SeveralDevices(problem, graph, dtype, several)
        yield Engine(Simulator(*given, layout), OneProcess())
    elif faults is not None:
        yield Engine(FaultyExecutor(*given, faults), OneProcess())
    else:
        yield Engine(simulator(*given), OneProcess())
