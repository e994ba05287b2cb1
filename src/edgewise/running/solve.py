"""The one call: a problem, a graph, a method, and how it went."""

import logging
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import jax
import numpy as np

from edgewise.centralised.coupled_reference import CoupledReference
from edgewise.centralised.reference import Reference, reference
from edgewise.differential_privacy.budget import DP
from edgewise.differential_privacy.private_method import CHOSEN
from edgewise.engines.choose import make_engine
from edgewise.engines.faults import Faults, links_in_time, under_faults
from edgewise.engines.mpi import MPI
from edgewise.errors import MethodError
from edgewise.graph.graph import Graph
from edgewise.graph.varying import TimeVarying
from edgewise.methods.auto import choose, require_bounded_curvature
from edgewise.methods.catalogue import AUTO
from edgewise.methods.contract import Method
from edgewise.problem.coupled import couple
from edgewise.problem.problem import Problem
from edgewise.running import checkpoint as saved
from edgewise.running.checks import (
    check,
    check_coupled_reference,
    check_run,
    graph_for,
    precision,
)
from edgewise.running.coupled_method import choose_coupled, is_coupled
from edgewise.running.coupled_run import CoupledRun
from edgewise.running.interrupt import deferred_interrupt
from edgewise.running.private_run import private_run, require_private, with_privacy
from edgewise.running.progress import Progress, Wanted
from edgewise.running.result import Result
from edgewise.running.run import Run

log = logging.getLogger("edgewise")

FEW = 10  # samples a round that are no work to speak of


def solve(
    problem: Problem,
    graph: Graph | TimeVarying | str,
    method: Method | str = "auto",
    rounds: int = 5000,
    seed: int = 0,
    eta: Any = None,
    rho: Any = None,
    record_every: int | None = None,
    tol: float | None = None,
    checkpoint: str | Path | None = None,
    *,
    oracle_budget: float | None = None,
    X0: Any = None,
    duals: "Result | np.ndarray | None" = None,
    reference: "Reference | CoupledReference | bool | None" = None,
    faults: Faults | None = None,
    devices: Any = None,
    engine: MPI | None = None,
    dtype: Any = None,
    progress: Wanted = None,
    callback: Callable[[Mapping[str, float]], Any] | None = None,
    between: Any = None,
    privacy: DP | None = None,
) -> Any:
    """Fit the problem over the graph and say how it went.

    graph          a `Graph`, a `TimeVarying` whose links come and go, a `DirectedGraph`, or a text
                   as the command line takes it: "ring", "grid", "random"
    method         "auto": what fits the problem, which `result.method_note` names with the
                   reason; a name from `edgewise.list_methods()`; or an object such as
                   `PrimalDual(SAGA(batch=4), form="edge")`
    rounds         communication rounds, at most
    seed           the same seed gives the same run, on every engine
    eta, rho       "auto" (the default), "theory", one number, or one per node (eta), edge (rho)
    record_every   rounds between two rows of the trace; default 5 where a round takes Hessians,
                   10 where it takes whole gradients, 50 where it takes those of a few samples
    tol            stop when the trace's `residual` falls to it
    oracle_budget  stop when the mean number of oracle calls per node reaches it
    checkpoint     a file to write the run's state to, and to go on from if it is there
    X0             (V, n) or (n,) starting models; default: the prox of zero, which is feasible
    duals          a former result (or its `.duals`) to start the duals from; default zero
    reference      measure against the centralised optimum, which costs a centralised solve; False
                   leaves the columns objective_gap and bregman empty. Default: True, but not over
                   MPI, where no rank has all data, nor with couplings, whose solve takes longer
    faults         `edgewise.Faults(...)`: what goes wrong in the network; primal-dual methods then
                   run in edge form, which heals
    devices        how many devices, or which (`jax.devices()`), to spread the nodes over; default
                   one that holds them all: see docs/devices.md
    engine         `edgewise.MPI()`: the nodes are spread over the ranks of an MPI job, all of which
                   make this call; default: this process has them all. See docs/cluster.md
    dtype          "float64" (default on a CPU) or "float32" (default elsewhere)
    progress       show a progress bar, with the residual and the time left at its rate; default:
                   where the output is a terminal or a notebook. "plot": in a notebook the curve
                   of the residual as it grows
    callback       called with every new row of the trace, a mapping; the run ends if it says True
    between        what holds between neighbours, where their models need not be equal:
                   `edgewise.Coupling(A, B, c)`, `Shared(...)`, `NetworkLasso(w)`, for all edges or
                   in a dictionary by edge. Gives a `CoupledResult`
    privacy        `edgewise.DP(epsilon=, delta=, clip=)`: clipped gradients with noise, that tell
                   little of any one sample; `result.privacy` says how little, and to whom. The
                   noise comes from the operating system, not from `seed`. See docs/privacy.md

    >>> X, y = edgewise.data.dataset("wine")
    >>> shards = edgewise.split((X - X.mean(0)) / X.std(0), y == 1, nodes=6)
    >>> problem = edgewise.Problem(shards, edgewise.Logistic(ridge=0.1))
    >>> result = solve(problem, edgewise.Graph.ring(6), tol=1e-6)
    >>> result.converged, result.X.shape
    (True, (6, 13))
    >>> result.method_note
    'auto: newton-pd, because 13 unknowns fit a 13 x 13 matrix per node'
    """
    if engine is not None and not isinstance(engine, MPI):
        raise MethodError(f"engine={engine!r}: give edgewise.MPI(), or None")
    coupled = is_coupled(problem, between)
    if privacy is not None:
        given: dict[str, Any] = {"tol": tol, "oracle_budget": oracle_budget, "callback": callback}
        given |= {"duals": duals, "checkpoint": checkpoint, "engine": engine, "between": between}
        require_private(privacy, problem, **given)
    graph, faults = links_in_time(graph_for(problem, graph), faults)
    with nullcontext() if engine is None else engine.together():
        check_run(rounds, record_every, seed, tol, oracle_budget)
        if coupled:
            whole, problem = problem, couple(problem, graph, between)
            check_coupled_reference(problem, reference)
            chosen, name, note = choose_coupled(problem, method, eta, rho, faults)
        elif privacy is not None:
            check(problem, graph, CHOSEN if method == AUTO else method, reference)
            known = problem, graph, method, rounds, eta, rho, faults is None
            private = private_run(privacy, *known)
            problem, rounds, seed = private.problem, private.rounds, private.seed
            chosen, name, note = private.method, private.name, private.note
        else:
            check(problem, graph, method, reference)
            chosen, name, note = choose(method, problem, graph, eta, rho)
            require_bounded_curvature(chosen, problem)
        if faults is not None:
            chosen = under_faults(chosen, faults, problem, graph)
        if reference is None:
            reference = engine is None and not coupled and problem.convex
        kind, is_root = precision(dtype), engine is None or engine.rank == 0
        if note and is_root:
            log.info(note)
        if checkpoint is not None and is_root:
            saved.require_writable(checkpoint)
        with (
            jax.enable_x64(True),
            Progress(rounds, name, progress if is_root else False, tol=tol) as bar,
            deferred_interrupt() as stop,
            make_engine(problem, graph, chosen, int(seed), kind, faults, devices, engine) as made,
        ):
            kept = X0, duals, faults, note, chosen
            run = (CoupledRun if coupled else Run)(problem, graph, made, *kept)
            if reference is True and coupled:
                reference = solve_reference(whole, graph=graph, between=between)
            elif reference is True:
                reference = solve_reference(problem)
            run.set_target(reference or None)
            every = rows_apart(run.method) if record_every is None else record_every
            run.private = privacy is not None
            result = run.to_end(rounds, every, tol, oracle_budget, checkpoint, bar, stop, callback)
            return result if privacy is None else with_privacy(result, private.spent)


def rows_apart(method: Method) -> int:
    """A look costs a pass over the data: the more a round does, the fewer there are, and the less
    a look counts. Of a method that is prepared, which knows its steps a round."""
    if method.second_order:
        return 5
    return 50 if method.samples is not None and method.samples < FEW else 10


solve_reference = reference
