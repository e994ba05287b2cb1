"""What faults do to every method, and what they cost.

    python benchmarks/faults.py                 the tables of docs/faults.md: half an hour of a core
    python benchmarks/faults.py --jobs 16       by so many processes
    python benchmarks/faults.py --only link     the rows that have this in their name
    python benchmarks/faults.py --method auto   one column; may be given again
    python benchmarks/faults.py --speed         time per iteration at the paper's size

The first table has the Bregman divergence from the optimum of the nodes present after --rounds
rounds, on 20 nodes and 50 edges with bundled data split by label; with an l1 penalty for methods
that heal, without for the others, some of which take none. "-" has diverged. Steps are the
automatic ones. The second has how many rounds after the last event the divergences of some that
heal are below 1e-9 for good, looked at every 20 rounds.
"""

import argparse
import warnings
from functools import cache
from typing import Any

import numpy as np
from side_by_side import processes
from sklearn.preprocessing import normalize, scale

import edgewise as ew
from edgewise.data.synthetic import fill_epsilon_like
from edgewise.errors import DivergenceWarning, FaultWarning

NODES, EDGES = 20, 50
GRAPH = ew.Graph.random(nodes=NODES, edges=EDGES, seed=0)
LINK = GRAPH.edges[0].tolist()
HEALING = ("auto", "lt-saga-pd", "saga-pd", "svr-pd", "lsvr-pd", "pdmm")
OTHERS = ("gt-saga", "extra", "nids", "d-admm")
TIMED = ("auto", "lt-saga-pd", "saga-pd", "pdmm")
EVENTS = {"wipe", "leave", "join", "down"}
ROUNDING, NEAR = 1e-15, 1e-9
EVERY = 20  # rounds between two looks


def cases(rounds: int) -> dict[str, dict[str, Any]]:
    at = last_event(rounds)
    events = {"wipe": (2, at), "leave": (7, at), "join": (11, at), "down": (*LINK, 0, at)}
    thirds = [ew.Graph.from_edges(GRAPH.edges[k::3], NODES) for k in range(3)]
    short, long = (ew.TimeVarying(thirds, every=k) for k in (5, 10))
    rough = {"drop": 0.2, "burst": 10, "delay": 5, "awake": 0.5, "nap": 3}
    return {
        "none": {},
        "5 % of messages lost": {"drop": 0.05},
        "50 % lost": {"drop": 0.5},
        "20 % lost, bursts of 10 rounds": {"drop": 0.2, "burst": 10},
        "delays of 0 to 5 rounds": {"delay": 5},
        "nodes awake half of the rounds": {"awake": 0.5},
        "half asleep, naps of 10 rounds": {"awake": 0.5, "nap": 10},
        "nodes 10 times slower than others": {"awake": np.linspace(0.1, 1, NODES)},
        "a link down for a while": {"down": events["down"]},
        "links by turns: one neighbour a round": {"links": ew.TimeVarying.matchings(GRAPH)},
        "links by turns: three graphs, 5 rounds each": {"links": short},
        "links by turns: three graphs, 10 rounds each": {"links": long},
        "links at random: a fifth of them a round": {"links": ew.TimeVarying.random(GRAPH, 0.2)},
        "one node wiped": {"wipe": events["wipe"]},
        "one node leaves": {"leave": events["leave"]},
        "one node joins": {"join": events["join"]},
        "all of these at once": {**rough, **events},
        "8 bits a number": {"bits": 8},
        "a tenth of the numbers": {"keep": 0.1},
        "8 bits, no feedback": {"bits": 8, "feedback": False},
        "a tenth, no feedback": {"keep": 0.1, "feedback": False},
    }


def last_event(rounds: int) -> int:
    return rounds // 400 * 100  # a round of the trace


@cache
def hospitals(sparse: bool) -> ew.Problem:
    X, y = ew.data.dataset("breast_cancer")
    shards = ew.split(normalize(scale(X)), y, nodes=NODES, how="label", seed=0)
    penalty = ew.L1(0.002) if sparse else None
    return ew.Problem(shards, loss=ew.Logistic(ridge=0.03), penalty=penalty)


def outcome(name: str, method: str, rounds: int) -> tuple[str, str]:
    """The last divergence, and when it had come near for good, after the last event."""
    faults = cases(rounds)[name]
    trace = ew.solve(
        hospitals(method not in OTHERS),
        GRAPH,
        method,
        rounds=rounds,
        record_every=EVERY,
        faults=ew.Faults(**faults),
        progress=False,
    ).trace
    value, last = trace["bregman"], trace["bregman"][-1]
    if trace["rounds"][-1] < rounds or not np.isfinite(last):
        return "-", "-"
    text = f"{last:.0e}" if last > ROUNDING else f"<{ROUNDING:.0e}"
    if last > NEAR:
        return text, "-"
    since = last_event(rounds) if EVENTS & faults.keys() else 0
    far = trace["rounds"][~(value <= NEAR)].max(initial=since)
    return text, f"{max(far, since) + EVERY - since:,.0f}"


def table(options: argparse.Namespace) -> None:
    methods = options.method or [*HEALING, *OTHERS]
    names = [n for n in cases(options.rounds) if options.only in n]
    late = []
    with processes(options.jobs) as pool:
        todo = {(n, m): pool.submit(outcome, n, m, options.rounds) for n in names for m in methods}
        print("\n".join(head(methods)))
        for n in names:
            found = {m: todo[n, m].result() for m in methods}
            print(f"| {n} | " + " | ".join(text for text, _ in found.values()) + " |", flush=True)
            late.append([n, *(when for m, (_, when) in found.items() if m in TIMED)])
    print("\n" + "\n".join(head([m for m in methods if m in TIMED])))
    for line in late:
        print("| " + " | ".join(line) + " |")


def head(methods: list[str]) -> list[str]:
    return ["| fault | " + " | ".join(methods) + " |", "|---" + "|---" * len(methods) + "|"]


def speed(rounds: int) -> None:
    V, E, K, n = 50, 250, 2000, 2000
    shards = ew.Shards.build(
        np.full(V, K), n, lambda i, X, y: fill_epsilon_like(X, y, start=i * K, seed=0)
    )
    problem = ew.Problem(shards, loss=ew.Logistic(ridge=1.4e-3))
    graph = ew.Graph.random(V, E, seed=0)
    settings = {
        "node form, no faults": None,
        "Faults()": {},
        "drop=0.2": {"drop": 0.2},
        "awake=0.5": {"awake": 0.5},
        "drop=0.2, awake=0.5": {"drop": 0.2, "awake": 0.5},
        "delay=5": {"delay": 5},
        "bits=8": {"bits": 8},
        "keep=0.1": {"keep": 0.1},
    }
    base = 0.0
    print("\n| saga-pd | us per iteration | times the node form |\n|---|---|---|")
    for name, given in settings.items():
        faults = None if given is None else ew.Faults(**given)
        options = {"rounds": 4 * rounds, "record_every": rounds, "reference": False}
        trace = ew.solve(problem, graph, "saga-pd", faults=faults, **options).trace
        each = np.diff(trace["seconds"]).min() / rounds
        base = base or each
        print(f"| {name} | {1e6 * each:.0f} | {each / base:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=8000)
    parser.add_argument("--only", default="", metavar="PART", help="some of the rows")
    parser.add_argument("--method", action="append", choices=[*HEALING, *OTHERS], help="a column")
    parser.add_argument("--jobs", type=int, default=1, help="processes, one core each")
    parser.add_argument("--speed", action="store_true", help="time per iteration instead")
    options = parser.parse_args()
    warnings.simplefilter("ignore", FaultWarning)
    warnings.simplefilter("ignore", DivergenceWarning)
    if options.speed:
        speed(100)
        return
    table(options)


if __name__ == "__main__":
    main()
