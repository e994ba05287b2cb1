"""Other libraries' methods on one shared problem, as benchmarks/libraries.py asks for them.

    python benchmarks/libraries_theirs.py PROBLEM.npz NAME --seconds 20 [--nda FOLDER]

Prints one line of JSON: the run with the steps that their documentation has, and the best by the
search of libraries_race.py. Each is run as its own documentation runs it. Run with their Python,
which need not have edgewise.

What is needed to run nda as of commit 7f661e9, done here and not in its files: its problems make
their graph and scale their data themselves (rows that are views are divided by their norm thrice),
so `generate_graph` and `_init` are given; its loops evaluate the whole objective after every
iteration, so `update` is called and not `optimize`; `D2.update` reads `t`, which `optimize` sets.
"""

import argparse
import json
import os
import random
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before NumPy

import numpy as np
from libraries_race import Enough, Race, Shared, again, load, measured, one_core

Steps = dict[str, float]


class Method(NamedTuple):
    """What a library calls it, its documented steps, where the search begins, and how it runs."""

    library: str
    name: str
    documented: Steps  # over what the search starts from
    start: Callable[[Shared], Steps]
    run: Callable[[Shared, Race, Steps, Any], None]
    variants: tuple[Any, ...] = (None,)  # the first is the documented one
    penalties: bool = False


def neighbours(problem: Shared) -> Any:
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(len(problem.X)))
    graph.add_edges_from(problem.edges.tolist())
    return graph


# --- decent-bench --------------------------------------------------------------------------------


def decent_network(problem: Shared, race: Race, batch: Any) -> Any:
    from decent_array import interoperability as iop
    from decent_bench.agents import Agent
    from decent_bench.costs import L2RegularizerCost, LinearRegressionCost, LogisticRegressionCost
    from decent_bench.networks import P2PNetwork

    kind = LogisticRegressionCost if problem.loss == "logistic" else LinearRegressionCost
    agents = []
    for X, y in zip(problem.X, problem.y, strict=True):
        y = (y + 1) / 2 if problem.loss == "logistic" else y
        rows = [(iop.from_numpy(x), iop.from_numpy(t[None])) for x, t in zip(X, y, strict=True)]
        cost = kind(rows, batch_size=batch or "all")
        cost = cost + problem.ridge * L2RegularizerCost(shape=cost.shape)
        agents.append(Agent(cost, state_snapshot_period=10**9))

    class Counted(P2PNetwork):
        """One round: what an agent sends its neighbours before it waits for theirs."""

        rounds, last = 0, None

        def send(self, sender: Any, *args: Any, **more: Any) -> None:
            this = race.iterations, more.get("channel")
            if sender.index == 0 and this != self.last:
                self.rounds, self.last = self.rounds + 1, this
            super().send(sender, *args, **more)

    return Counted(graph=neighbours(problem), agents=agents)


def decent(name: str, documented: Steps, variants: tuple[Any, ...] = (None,), **start: Any) -> Any:
    def run(problem: Shared, race: Race, steps: Steps, batch: Any) -> None:
        from decent_array import interoperability as iop
        from decent_bench.algorithms import p2p

        iop.set_backend("numpy")
        iop.set_seed(0)
        random.seed(0)
        network = decent_network(problem, race, batch)
        algorithm = getattr(p2p, name)(**steps)

        def models() -> np.ndarray:
            return np.stack([iop.to_numpy(agent.x) for agent in network.agents()])

        def after(_: int) -> None:
            if race.iteration(models, network.rounds):
                raise Enough

        race.begin()
        algorithm.run(network, 10**9, progress_callback=after)

    def begin(problem: Shared) -> Steps:
        return documented | start | {"step_size": 1 / problem.smoothness()}  # the search's

    return Method("decent-bench", name, documented, begin, run, variants)


# --- nda -----------------------------------------------------------------------------------------


def nda_problem(problem: Shared) -> Any:
    from nda.problems import LinearRegression, LogisticRegression

    V, K, n = problem.X.shape
    logistic = problem.loss == "logistic"

    class Given(LogisticRegression if logistic else LinearRegression):
        def generate_data(self) -> None:
            self.X_train = problem.X.reshape(V * K, n).copy()
            y = problem.y.reshape(-1)
            self.Y_train = (y + 1) / 2 if logistic else y
            self.X_test, self.Y_test = self.X_train[:1], self.Y_train[:1]

        def generate_graph(self, **_: Any) -> None:
            self.G, self.n_edges = neighbours(problem), len(problem.edges)

        def _init(self, result_queue: Any = None) -> Any:
            return (1.0, None, None) if logistic else (None, None)

    if logistic:
        return Given(n_agent=V, m=K, dim=n, LAMBDA=problem.ridge)
    return Given(n_agent=V, m=K, dim=n, regularization="l2", r=problem.ridge / 2)


def nda(name: str, start: Callable[[Shared], Steps], documented: Steps, **fixed: Any) -> Any:
    def run(problem: Shared, race: Race, steps: Steps, _: Any) -> None:
        from nda import optimizers
        from nda.optimizers.utils import generate_mixing_matrix

        np.random.seed(0)  # noqa: NPY002 - which is what nda draws from
        p = nda_problem(problem)
        W, _ = generate_mixing_matrix(p)
        kind = getattr(optimizers, name)
        method = kind(p, x_0=np.zeros((p.dim, p.n_agent)), W=W, **fixed, **steps)
        race.begin()
        method.init()
        while not race.iteration(lambda: method.x.T, method.comm_rounds):
            method.t += 1
            method.update()

    return Method("nda", name, documented, start, run)


def smooth_step(problem: Shared) -> float:
    """2 / (L + mu) of the whole, as their examples have it."""
    rows = problem.X.reshape(-1, problem.X.shape[2])
    curvature = 0.25 if problem.loss == "logistic" else 1.0
    values = curvature * np.linalg.eigvalsh(rows.T @ rows / len(rows))
    return float(2 / (values[-1] + 2 * problem.ridge))


# --- tvopt ---------------------------------------------------------------------------------------


def pg_extra(problem: Shared, race: Race, steps: Steps, _: Any) -> None:
    from tvopt import costs, distributed_solvers, networks, sets

    V, K, n = problem.X.shape

    class Mean(costs.Cost):
        """A node's; tvopt's own logistic cost is a loop over samples, and has an intercept."""

        def __init__(self, i: int) -> None:
            super().__init__(sets.R(n, 1))
            self.X, self.y, self.smooth = problem.X[i], problem.y[i][:, None], 2

        def gradient(self, x: np.ndarray) -> np.ndarray:
            scores = self.X @ x
            if problem.loss == "logistic":
                slopes = -self.y / (1 + np.exp(self.y * scores))
            else:
                slopes = scores - self.y
            return self.X.T @ slopes / K + problem.ridge * x

    class Watched(networks.Network):
        def consensus(self, x: np.ndarray, weights: Any = None) -> np.ndarray:
            if self.asked and race.iteration(lambda: x[:, 0].T):
                raise Enough
            self.asked = True
            return super().consensus(x, weights)

    adjacency = np.zeros((V, V))
    for i, j in problem.edges:
        adjacency[i, j] = adjacency[j, i] = 1
    network = Watched(adjacency)
    network.asked = False
    setting = {"f": costs.SeparableCost([Mean(i) for i in range(V)]), "network": network}
    if problem.l1:
        setting["g"] = costs.SeparableCost([costs.Norm_1(n, weight=problem.l1)] * V)
    race.begin()
    distributed_solvers.pg_extra(setting, steps["step"], num_iter=10**9)


# --- all of them ---------------------------------------------------------------------------------

METHODS = {
    "decent-bench GT-SAGA": decent("GT_SAGA", {"step_size": 0.01}, (None, 10)),
    "decent-bench LT-ADMM-VR": decent(
        "LT_ADMM_VR", {"step_size": 0.01, "aux_step_size": 0.01}, (None, 10)
    ),
    "decent-bench ProxSkip": decent(
        "ProxSkip", {"step_size": 0.01, "aux_step_size": 0.01}, aux_step_size=0.5
    ),
    "decent-bench ED": decent("ED", {"step_size": 0.001}),
    "nda D2": nda("D2", lambda _: {"eta": 0.1}, {}),
    "nda NetworkSVRG": nda(
        "NetworkSVRG",
        lambda p: {"eta": smooth_step(p) / 20, "mu": p.smoothness() / 10},
        {"mu": 5e-8},
        batch_size=10,
    ),
    "tvopt PG-EXTRA": Method(
        "tvopt",
        "PG-EXTRA",
        {"step": 0.2},
        lambda p: {"step": 1 / p.smoothness()},
        pg_extra,
        penalties=True,
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("problem", type=Path)
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--again", type=json.loads, help="rows whose steps to take, as JSON")
    parser.add_argument("--nda", type=Path, help="a clone of Network-Distributed-Algorithm")
    o = parser.parse_args()
    one_core()
    if o.nda is not None:
        sys.path.insert(0, str(o.nda))
    problem, method = load(o.problem), METHODS[o.method]
    if problem.l1 and not method.penalties:
        print(json.dumps({"reason": "takes no penalty"}))
        return
    of = "0.2" if method.library == "nda" else version(method.library)
    if o.again:
        rows = again(problem, method, o.seconds, o.again)
    else:
        rows = measured(problem, method, o.seconds)
    print(json.dumps({"version": of, "rows": rows}))


if __name__ == "__main__":
    main()
