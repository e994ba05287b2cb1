"""Every method, its steps found by one rule, on six problems and two graphs.

    python benchmarks/fair.py                      all twelve settings, then docs/comparison.md
    python benchmarks/fair.py --only a9a-l1:ring   one setting
    python benchmarks/fair.py --write              the page again, from what is there
    python benchmarks/fair.py --quick              a tenth of the budgets, to see it work

Each setting is compared twice: under a budget of oracle calls, which the table of calls is from,
and under one of bytes, which those of rounds and bytes are from. Results are kept under --out, one
file a setting, so that a run that was stopped goes on where it was. Data come from --data (LIBSVM
text, plain or compressed), else from LIBSVM's site; cadata has a synthetic stand-in.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize, scale

import edgewise as ew

NODES, EDGES, ROWS, FEATURES = 20, 50, 2000, 200
PASSES = 100  # budget of oracle calls, in passes over a node's data
ROUNDS = 3000  # budget of bytes, in rounds of one vector an edge
SEEDS = 3
OURS = ("pd", "spd", "saga-pd", "svr-pd", "svr-pd-es", "lsvr-pd", "asvr-pd")
# Under other names: s-diging is gt-saga. In other units: sk-pd, sk-pd-fd. By its own steps:
# asvr-pd-paper.
LEFT_OUT = ("s-diging", "sk-pd", "sk-pd-fd", "asvr-pd-paper")
UNITS = {"oracle_calls": "calls", "rounds": "bytes", "bytes_sent": "bytes"}  # from which run
ROOT = Path(__file__).parents[1]


def logistic(X, y, **options):
    shards = ew.split(normalize(X), y, nodes=NODES, how="label", alpha=1.0, seed=0)
    ridge = options.pop("ridge", 0.0)
    return ew.Problem(shards, loss=ew.Logistic(ridge=ridge), **options)


def load(name: str, folder: Path | None):
    if folder is not None:
        for path in sorted(folder.glob(f"{name}.*")):
            if ".t." not in path.name:
                return first_rows(*ew.data.read_libsvm(path))
    return first_rows(*ew.data.dataset(name))


def first_rows(X, y):
    X = X[:ROWS]
    return X.toarray() if sp.issparse(X) else X, y[:ROWS]


def a9a(folder, **options):
    X, y = load("a9a", folder)
    return logistic(X, y, **options), "a9a, first 2,000 rows, 123 features"


def epsilon(folder, **options):
    X, y = ew.data.epsilon_like(rows=ROWS, features=FEATURES, seed=0)
    return logistic(X, y, **options), "epsilon-like, 2,000 rows, 200 features"


def lasso(folder, **options):
    try:
        X, y = load("cadata", folder)
        told = "cadata, first 2,000 rows, 8 features"
    except ew.errors.EdgewiseError:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((ROWS, 8)) @ rng.standard_normal((8, 8))
        y = X @ rng.standard_normal(8) + rng.standard_normal(ROWS)
        told = "a synthetic stand-in for cadata (2,000 rows, 8 features)"
    shards = ew.split(scale(X), scale(y), nodes=NODES, seed=0)
    return ew.Problem(shards, loss=ew.Squared(), **options), told


def boxes() -> list:
    """Another box at every node: each coordinate is bounded most narrowly by another one."""
    rng = np.random.default_rng(1)
    return [ew.Box(-w, w) for w in rng.uniform(0.3, 3.0, (NODES, FEATURES))]


PROBLEMS = {
    "a9a-l2": ("l2 logistic: ridge 1e-3", lambda d: a9a(d, ridge=1e-3)),
    "a9a-l1": ("l1 logistic: l1 2e-3", lambda d: a9a(d, penalty=ew.L1(2e-3))),
    "epsilon-l2": ("l2 logistic: ridge 1e-3", lambda d: epsilon(d, ridge=1e-3)),
    "epsilon-l1": ("l1 logistic: l1 1e-3", lambda d: epsilon(d, penalty=ew.L1(1e-3))),
    "lasso": ("lasso: l1 0.02", lambda d: lasso(d, penalty=ew.L1(0.02))),
    "box": (
        "logistic, ridge 1e-3, a box of its own at every node",
        lambda d: epsilon(d, ridge=1e-3, penalty=boxes()),
    ),
}
GRAPHS = {
    "ring": lambda: ew.Graph.ring(NODES),
    "random": lambda: ew.Graph.random(NODES, EDGES, seed=0),
}


def run(problem_name: str, graph_name: str, options: argparse.Namespace) -> None:
    """One setting, both budgets, into a file."""
    began = time.monotonic()
    problem, data = PROBLEMS[problem_name][1](options.data)
    graph = GRAPHS[graph_name]()
    star = ew.reference(problem)
    short = 10 if options.quick else 1
    names = [m for m in ew.list_methods() if m not in LEFT_OUT]
    a_round = 2 * graph.edge_count * problem.size * 8
    budgets = {
        "calls": (PASSES * problem.counts.mean() / short, "oracle_calls"),
        "bytes": (ROUNDS * a_round / short, "bytes_sent"),
    }
    out = {"data": data, "costs": {}, "steps": {}}
    for kind, (budget, per) in budgets.items():
        found = ew.compare(
            problem, graph, names, budget, per, seeds=SEEDS, reference=star, show=False
        )
        out["refused"] = found.refused
        out["steps"][kind] = {m: t.factors for m, t in found.tunings.items()}
        for unit in (u for u, k in UNITS.items() if k == kind):
            out["costs"][unit] = {
                m: [found.cost(m, a, unit).tolist() for a in found.accuracies] for m in found.runs
            }
        plot = options.out / f"{problem_name}-{graph_name}-{kind}.png"
        found.plot(["oracle_calls" if kind == "calls" else "bytes_sent"], path=plot)
    out["minutes"] = (time.monotonic() - began) / 60
    path = options.out / f"{problem_name}-{graph_name}.json"
    path.write_text(json.dumps(out, indent=1))
    print(f"{problem_name}:{graph_name} took {out['minutes']:.1f} minutes", flush=True)


def run_all(settings: list[tuple[str, str]], options: argparse.Namespace) -> None:
    """Each setting in a process of its own: XLA keeps what it compiled."""
    waiting = [s for s in settings if not (options.out / f"{s[0]}-{s[1]}.json").exists()]
    running: list[subprocess.Popen] = []
    while waiting or running:
        for done in [p for p in running if p.poll() is not None]:
            running.remove(done)
            if done.returncode:
                sys.exit(f"{' '.join(map(str, done.args))} failed")
        if waiting and len(running) < options.jobs:
            setting = ":".join(waiting.pop(0))
            again = [sys.executable, __file__, "--only", setting, "--out", str(options.out)]
            again += ["--data", str(options.data)] if options.data else []
            again += ["--quick"] if options.quick else []
            print(f"{setting} ({len(waiting)} more to come)", flush=True)
            running.append(subprocess.Popen(again))
        time.sleep(1)


def main() -> object:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="PROBLEM:GRAPH, as a9a-l1:ring")
    parser.add_argument("--write", action="store_true", help="only write the page")
    parser.add_argument("--quick", action="store_true", help="a tenth of the budgets")
    parser.add_argument("--data", type=Path, help="folder with a9a and cadata")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "fair", help="results")
    parser.add_argument("--jobs", type=int, default=2, help="settings at a time")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.only:
        problem, _, graph = options.only.partition(":")
        if problem not in PROBLEMS or graph not in GRAPHS:
            known = ", ".join(f"{p}:{g}" for p in PROBLEMS for g in GRAPHS)
            parser.error(f"--only {options.only}: known are {known}")
        return run(problem, graph, options)
    settings = [(p, g) for p in PROBLEMS for g in GRAPHS]
    if not options.write:
        run_all(settings, options)
    from fair_page import write_page

    facts = {"nodes": NODES, "edges": EDGES, "passes": PASSES, "rounds": ROUNDS, "seeds": SEEDS}
    told = {name: what for name, (what, _) in PROBLEMS.items()}
    return write_page(options.out, settings, told, OURS, facts)


if __name__ == "__main__":
    main()
