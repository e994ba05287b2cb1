"""Time to a relative gap of 1e-6 on a9a, over a network and on one machine.

    python benchmarks/centralised.py --data FOLDER    a folder with a9a (LIBSVM text, maybe packed)
    python benchmarks/centralised.py                  looks in ../shared/data, then on LIBSVM's site

The l2 logistic problem of scikit-learn's default C = 1, without an intercept. Seconds are of the
work alone: compiling and setting up have a column of their own, and looking is not timed. Over ten
nodes the objective is that of the mean model. Where one machine can hold all data, don't
decentralise: this says what it costs.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

import jax
import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import edgewise as ew
from edgewise.engines.simulator import Simulator
from edgewise.methods.catalogue import make

GOAL = 1e-6
NODES, EDGES = 10, 20
LOOKS = 2  # at the objective, per pass over the data
BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def load(folder: Path) -> tuple[sp.csr_array, np.ndarray]:
    found = sorted(p for p in folder.glob("a9a.*") if ".t." not in p.name)
    try:
        X, y = ew.data.read_libsvm(found[0]) if found else ew.data.dataset("a9a")
    except ew.errors.EdgewiseError as error:
        sys.exit(f"no a9a in {folder}, and it could not be fetched ({error}): give --data FOLDER")
    return sp.csr_array(X), np.where(y > 0, 1.0, -1.0)


class Objective:
    """Mean logistic loss plus ridge/2 |w|^2, and its least value."""

    def __init__(self, X: sp.csr_array, y: np.ndarray) -> None:
        self.X, self.y, self.ridge = X, y, 1 / len(y)
        problem = ew.Problem([(X, y)], ew.Logistic(ridge=self.ridge))
        self.least = self(ew.reference(problem).x)

    def __call__(self, w: np.ndarray) -> float:
        loss = np.logaddexp(0, -self.y * (self.X @ w)).mean()
        return float(loss + 0.5 * self.ridge * w @ w)

    def gap(self, w: np.ndarray) -> float:
        return self(w) / self.least - 1


def sklearn_run(f: Objective, solver: str, longest: int = 512) -> tuple[float, float, float]:
    """Seconds to the goal, iterations and the gap there: the shortest fit that gets there, found by
    doubling and halving, each begun anew; of three of its fits the fastest."""

    def fit(iterations: int) -> tuple[float, float]:
        model = LogisticRegression(
            C=1.0, fit_intercept=False, solver=solver, tol=1e-14, max_iter=iterations
        )
        model.set_params(random_state=0)
        start = time.perf_counter()
        model.fit(f.X, f.y)
        return time.perf_counter() - start, f.gap(model.coef_[0])

    enough = 1
    while enough < longest and fit(enough)[1] > GOAL:
        enough *= 2
    few = enough // 2
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if fit(middle)[1] <= GOAL else (middle, enough)
    tries = [fit(enough) for _ in range(3)]
    seconds, gap = min(tries)
    return seconds, enough, gap


def our_run(
    f: Objective, nodes: int, method: object, budget: float
) -> tuple[float, float, float, float]:
    """Seconds to the goal, passes over the data, the gap there, and seconds to compile."""
    shards = ew.split(f.X.toarray(), f.y, nodes=nodes, seed=0)
    problem = ew.Problem(shards, ew.Logistic(ridge=f.ridge), weights="sample")
    graph = ew.Graph.random(nodes, EDGES, seed=0) if nodes > 1 else ew.Graph(1, [])
    with jax.enable_x64(True):
        start = time.perf_counter()
        simulator = Simulator(problem, graph, make(method, None, None), 0, np.dtype("float64"))
        carry = simulator.start(simulator.origin(), None)
        batch = getattr(simulator.method.gradient, "batch", 1)
        stretch = max(1, int(problem.counts.mean()) // batch // LOOKS)
        done, spent, gap, setting_up = 0, simulator.starting_seconds, np.inf, 0.0
        while gap > GOAL and spent < budget:
            carry, seconds = simulator.advance(carry, done, stretch)
            done, spent = done + stretch, spent + seconds
            setting_up = setting_up or time.perf_counter() - start - spent
            gap = f.gap(np.asarray(simulator.view(carry)[0]).mean(0))
        passes = float(np.mean(carry[0].memory.calls) / problem.counts.mean())
    return spent, passes, gap, setting_up


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=BESIDE, help="folder with a9a")
    parser.add_argument("--budget", type=float, default=15, help="seconds a method may take")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    f = Objective(*load(options.data))
    table = Table(
        title=f"a9a, {f.X.shape[0]:,} rows, {f.X.shape[1]} unknowns: to (F - F*) / F* = {GOAL:.0e}",
        title_justify="left",
    )
    for heading in ("", "seconds", "x lbfgs", "passes", "gap", "compiling"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    base = 0.0
    for solver in ("lbfgs", "saga"):
        seconds, iterations, gap = sklearn_run(f, solver)
        base = base or seconds
        table.add_row(*cells(f"sklearn {solver}", seconds, base, iterations, gap))
    batched = ew.PrimalDual(ew.SAGA(batch=20))
    for nodes in (1, NODES):
        for name, method in (
            *((m, m) for m in ("saga-pd", "svr-pd-es")),
            ("saga-pd, batch 20", batched),
        ):
            seconds, passes, gap, compiling = our_run(f, nodes, method, options.budget)
            row = cells(f"{name}, {nodes} node{'s' * (nodes > 1)}", seconds, base, passes, gap)
            table.add_row(*row, f"{compiling:.1f}")
    Console(width=120).print(table)


def cells(name: str, seconds: float, base: float, passes: float, gap: float) -> list[str]:
    told = f"{seconds:.2f}" if gap <= GOAL else f"not in {seconds:.0f}"
    times = f"{seconds / base:.1f}" if gap <= GOAL else "-"
    return [name, told, times, f"{passes:.0f}", f"{gap:.0e}"]


if __name__ == "__main__":
    main()
