"""Runs that must not depend on how many ranks there are, or whether there are any.

As a script: those of one job that are named, and what came of them in a file that test_mpi.py
reads.
"""

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from coupled_grid import coupled_grid, padded
from literal import make_case
from news_method import Bulletin
from sharded_cases import MIXED, STAR, build, saga

import edgewise as ew
from edgewise.engines.rank_communicator import SMALL
from edgewise.methods.catalogue import make
from edgewise.running.trace import COLUMNS

GRAPHS = {
    "ring": ew.Graph.ring(12),
    "random": ew.Graph.random(12, 20, seed=1),
    "grid": ew.Graph.grid(3, 4),
}
RANKS = (1, 2, 4, 8)
METHODS = {name: make(name) for name in ew.list_methods()} | {
    "saga-pd, edge form": saga("edge"),
    "svr-pd-es, edge form": ew.PrimalDual(ew.SVRG(stop=0.05), form="edge"),
}
PENALTIES = {"l1": ew.L1(0.02), "per node": MIXED, "none": None}
PARTITIONS = ("metis", "contiguous", "uneven")


@dataclass
class Case:
    problem: Any
    graph: Any
    method: Any
    options: dict = field(default_factory=dict)
    partition: Any = "metis"

    def solve(self, engine):
        settings = {"rounds": 12, "record_every": 4, "seed": 3, "reference": False}
        return ew.solve(
            self.problem, self.graph, self.method, engine=engine, **settings | self.options
        )


def partition_of(how, ranks, nodes=12):
    """Uneven: the last rank has all nodes but one for each of the others, from all over."""
    if how != "uneven":
        return how
    home = np.full(nodes, ranks - 1)
    for rank in range(ranks - 1):
        home[5 * rank % nodes] = rank
    return home


def plan():
    """{(method, ranks): (graph, penalty, partition)}: every method at every number of ranks; over
    the methods, all graphs and partitions at each number. Each method has two graphs, as each
    costs a run of the simulator to compare with."""
    planned = {}
    for k, (name, method) in enumerate(METHODS.items()):
        penalty = list(PENALTIES)[k // 3 % 3] if method.takes_penalty else "none"
        if isinstance(method, ew.PMGT) and penalty == "per node":
            penalty = "l1"  # it needs the same at every node
        for a, ranks in enumerate(RANKS):
            graph = list(GRAPHS)[(k + a % 2) % 3]
            planned[name, ranks] = (graph, penalty, PARTITIONS[(k + k // 3 + a) % 3])
    return planned


PLAN = plan()


def kinds(method):
    """What an engine can tell of a method: what it hears and when, and what its gradients keep."""
    gradient = getattr(method, "gradient", None)
    return {(*method.hears, *method.phases), type(gradient), type(getattr(gradient, "oracle", 0))}


def one_of_each_kind():
    """Methods, as they come, that show something that those before do not."""
    chosen, met = [], set()
    for name, method in METHODS.items():
        if kinds(method) - met:
            chosen.append(name)
            met |= kinds(method)
    return chosen


REPRESENTATIVES = one_of_each_kind()


def key(name, graph, penalty):
    return f"{name} {graph} {penalty}"


def planned(name, ranks):
    graph, penalty, how = PLAN[name, ranks]
    problem = build(GRAPHS[graph], penalty=PENALTIES[penalty])
    return Case(problem, GRAPHS[graph], METHODS[name], {}, partition_of(how, ranks))


def literal(method, graph=None, **kind):
    """One of the problems that the literal transcriptions are run on, with steps of its own."""
    case = make_case(graph=graph, **kind)
    steps = {"eta": case.eta, "rho": case.rho}
    return Case(case.problem, case.graph, method, steps | {"X0": case.X0})


def warm(form):
    graph = GRAPHS["grid"]
    X0, duals = np.random.default_rng(1).standard_normal((2, 12, 5))
    options = {"X0": X0, "duals": duals - duals.mean(0)}
    return Case(build(graph, penalty=MIXED), graph, saga(form), options)


def coupled(method="pdmm", **options):
    problem, given = coupled_grid()
    return Case(problem, GRAPHS["grid"], method, given | options)


def on(graph, method, options=None, partition="metis", **special):
    return Case(build(graph, **special), graph, method, options or {}, partition)


RANDOM, GRID, PATH = GRAPHS["random"], GRAPHS["grid"], ew.Graph.from_edges([(0, 1), (1, 2)])
LARGE = SMALL // 4  # numbers of news: their bodies are sent in rounds in which they change alone
# What is special about a problem, a network or a run, at three ranks.
SPECIAL = {
    "multinomial": lambda: literal("saga-pd", loss="multinomial", intercept=True, weighted=True),
    "constraints": lambda: literal("svr-pd", penalty="constraints"),
    "custom loss": lambda: literal("saga-pd", loss="bilinear", penalty="none"),
    "custom loss, svrg": lambda: literal("lsvr-pd", loss="bilinear", penalty="l1"),
    "squared, sparse": lambda: literal("svr-pd-es", loss="squared", sparse=True),
    "sparse": lambda: on(RANDOM, saga("edge"), sparse=True, penalty=MIXED),
    "sample weights": lambda: on(GRID, make("asvr-pd"), weights="sample", intercept=True),
    "float32": lambda: on(RANDOM, saga(), {"dtype": "float32"}, penalty=ew.L1(0.02)),
    "star": lambda: on(STAR, saga(), partition="contiguous"),
    "star, edge form": lambda: on(STAR, saga("edge"), equal=True),
    "star, two vectors": lambda: on(STAR, make("gt-saga")),
    "warm": lambda: warm("node"),
    "warm, edge form": lambda: warm("edge"),
    "one node each": lambda: on(PATH, saga(), penalty=ew.L1(0.02)),
    "an optimum": lambda: on(GRID, saga(), {"reference": True}, penalty=MIXED),
    "large news": lambda: on(RANDOM, Bulletin(padding=LARGE)),
    "couplings": lambda: coupled(),
    "couplings, sampled": lambda: coupled("saga-pd", rho=0.5),
    "a short end": lambda: on(RANDOM, saga(), {"rounds": 10}),
}


def cases(ranks):
    """{key: case} of the job with so many ranks; 0: of the simulator, which needs every key."""
    if ranks == 3:
        return SPECIAL
    made = {
        key(name, *PLAN[name, r][:2]): lambda name=name, r=r: planned(name, r)
        for name, r in PLAN
        if ranks in (0, r)
    }
    return made | SPECIAL if ranks == 0 else made


def seen(result):
    rows = np.array([result.trace[c] for c in COLUMNS if c != "seconds"])
    eta = np.asarray(result.method.eta)
    if isinstance(result, ew.CoupledResult):
        x = np.concatenate([result.multipliers[edge] for edge in sorted(result.multipliers)])
        return {"x": x, "rows": rows, "apart": result.apart, "eta": eta}
    return {"x": result.x, "rows": rows, "apart": result.apart, "eta": eta}


def models(result):
    """(v, n) of the models, and the duals, that a rank has."""
    if isinstance(result, ew.CoupledResult):
        X = padded(result.X)
        return X, np.zeros_like(X)
    return result.X, result.duals


def alike(engine, case, result):
    """Whether ranks came to the same, and those after the first have their own rows of X."""
    placement, _ = engine.place(case.problem, case.graph)
    every = engine.comm.gather((seen(result), result.message, *models(result)))
    if engine.rank:
        return True
    ours = every[0]
    shared = all(
        ours[1] == other[1] and np.array_equal(other[0][k], ours[0][k], equal_nan=True)
        for other in every
        for k in ours[0]
    )
    return shared and all(
        np.array_equal(every[r][k], ours[k][placement.nodes[r]])
        for r in range(1, engine.ranks)
        for k in (2, 3)
    )


def main(ranks, path, names):
    found, wrong, engine = {}, [], None
    for name in names:
        case = cases(ranks)[name]()
        engine = ew.MPI(partition=case.partition) if ranks else None
        result = case.solve(engine)
        if engine is not None and not alike(engine, case, result):
            wrong.append(name)
        X, duals = models(result)
        arrays = seen(result) | {"X": X, "duals": duals}
        found |= {f"{name}|{k}": a for k, a in arrays.items()}
    if engine is None or engine.rank == 0:
        np.savez(path, wrong=np.array(wrong, str), **found)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
