"""Runs whose counts Table 2 is about.

Least squares in which 1/eps, K, L and E can each be changed alone. All nodes have the same Hessian,
its eigenvalues halve, and no run is long enough to see the least of them: so it is as good as not
strongly convex. One feature more, on which the models are right from the start, raises L and
nothing else. More samples are copies of the first sixteen, of which no method knows. The optimum is
at a distance of 1 from the start, which makes W_1 = 1.

Measured is what the bounds are on: the mean divergence of the run so far for SAGA and LSVR, that of
the snapshots for SVR and ASVR. Steps are the lemmas', with rho = 1. For SAGA and LSVR that is the
step that weighs K against L: with "theory", the largest one, the bound would be linear in K.
"""

import threading
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.linalg import hadamard

from edgewise.centralised.reference import reference
from edgewise.engines.simulator import Simulator
from edgewise.gradients import ASVRG, LSVRG, SAGA, SVRG, Estimator
from edgewise.graph.graph import Graph
from edgewise.methods.primal_dual import PrimalDual
from edgewise.problem.losses import Squared
from edgewise.problem.problem import Problem
from edgewise.running.measures import bregman, target_of
from edgewise.running.trace import COLUMNS, Trace
from edgewise.running.trajectory import Trajectory
from edgewise.study import theory

FEATURES, ROWS = 14, 16  # ROWS: different samples of a node, and SVR-PD's first epoch
MOST = 2_000_000  # rounds
SHORT = "ASVR-PD, m = 16"  # not in the table, which has m = K


class Case(NamedTuple):
    method: str
    K: int
    L: float
    E: int


def problem_of(V: int, K: int, L: float) -> Problem:
    """Columns of a Hadamard matrix: orthogonal, and all rows of length sqrt(L). What the features
    do not explain is in its other columns; nodes' optima differ, and their mean is the optimum."""
    rng = np.random.default_rng(0)
    eigenvalues = np.append(L - 1, 0.5 ** np.arange(1, FEATURES))
    eigenvalues[-1] *= 2  # they sum to L
    x = np.append(0, 0.7 ** (np.arange(1, FEATURES) / 2))
    x /= np.linalg.norm(x)
    apart = 0.3 * x * rng.standard_normal((V, FEATURES))
    parts = []
    for shift in apart - apart.mean(0):
        H = hadamard(ROWS)[:, rng.permutation(ROWS)]
        D, rest = H[:, :FEATURES] * np.sqrt(eigenvalues), H[:, FEATURES:]
        y = D @ (x + shift) + rest @ (0.1 * rng.standard_normal(rest.shape[1]))
        parts.append((np.tile(D, (K // ROWS, 1)), np.tile(y, K // ROWS)))
    return Problem(parts, Squared())


def method_of(case: Case) -> PrimalDual:
    best = 0.5 / np.sqrt(case.L * max(case.K, 16 * case.L))
    known: dict[str, tuple[Estimator, Any]] = {
        "SAGA-PD": (SAGA(), best),
        "LSVR-PD": (LSVRG(), best),
        "SVR-PD": (SVRG(first=ROWS, longest=10**9), "theory"),
        "ASVR-PD": (ASVRG(floor=0.0), "theory"),
        SHORT: (ASVRG(floor=0.0, length=16), "theory"),
    }
    estimator, eta = known[case.method]
    return PrimalDual(estimator, eta, 1.0)


def graph_of(V: int, E: int) -> Graph:
    return Graph.ring(V) if E == V else Graph.random(V, E, seed=0)


# --- a run ----------------------------------------------------------------------------------------

divergence = jax.jit(bregman)


def measured(V: int, case: Case, goal: float, seed: int, stop: threading.Event) -> Trace:
    """Until the goal. The trace's `bregman` is what the bound is on."""
    problem, graph, method = problem_of(V, case.K, case.L), graph_of(V, case.E), method_of(case)
    star = reference(problem)
    start = theory.Start(problem, graph, method, reference=star)
    rows: list[tuple[float, ...]] = []
    with jax.enable_x64(True):
        executor = Simulator(problem, graph, method, seed, np.dtype("float64"))
        iterates, target = Trajectory(executor), target_of(star)
        iterates.start(executor.origin())
        p, gradient = executor.block, executor.method.gradient
        epochs = isinstance(gradient, SVRG | ASVRG)
        stride = ROWS if epochs else ROWS * max(1, int(case.L) // 2)
        total, last = 0.0, float(divergence(p, iterates.view()[0], target))
        rows.append((0, case.K, last, iterates.seconds))
        while rows[-1][2] > goal and iterates.round < MOST and not stop.is_set():
            iterates.advance(stride)
            done, seconds = iterates.round, iterates.seconds
            calls = float(np.mean(iterates.counts().oracle_calls))
            if not epochs:
                now = float(divergence(p, iterates.view()[0], target))
                total, last = total + stride * (last + now) / 2, now
                rows.append((done, calls, total / done, seconds))
            elif (X := snapshot(gradient, iterates.carry[0])) is not None:
                now = float(divergence(p, X, target))
                if now != rows[-1][2]:  # a new one; ASVR's was followed by a pass for the next
                    calls -= case.K * isinstance(gradient, ASVRG)
                    rows.append((done, calls, now, seconds))
    if stop.is_set():
        raise KeyboardInterrupt
    rounds, spent_calls, values, clock = np.array(rows).T
    known = {"rounds": rounds, "oracle_calls": spent_calls, "bregman": values, "seconds": clock}
    known |= {"vectors_sent": 2 * case.E * rounds, "function_values": 0 * rounds}
    known |= {"bytes_sent": known["vectors_sent"] * problem.size * 8}
    distances, first, _ = start.terms(tight=True)
    proof = [distances, first] if epochs else theory.bound(start, 1)
    return Trace({c: known.get(c, np.nan * rounds) for c in COLUMNS}, {"proof": proof})


def snapshot(gradient: Any, state: Any) -> Any:
    """(V, n) the last; SVR-PD keeps none of its own, so only where an epoch has just ended."""
    epoch = state.memory.extra
    if isinstance(gradient, ASVRG):
        return epoch.center
    if not bool((epoch.done + 1 == epoch.length).all()):
        return None
    return (epoch.total + state.X) / epoch.length[:, None]
