"""Every method, its steps found by one rule, on six problems and two graphs.

    python benchmarks/fair.py --jobs 16            all twelve settings, then docs/comparison.md
    python benchmarks/fair.py --only a9a-l1:ring   one setting
    python benchmarks/fair.py --method newton-pd   one method; both may be given again
    python benchmarks/fair.py --write              the page again, from what is there
    python benchmarks/fair.py --quick              a tenth of the budgets, to see it work

A method in a setting is tuned and run three times: under a budget of oracle calls, which the table
of calls is from, under one of rounds, and under one of bytes. Some run untuned beside that. Results
are kept under --out, one file a method and setting, so that a run that was stopped goes on where it
was, and a method that has changed is run anew by deleting its files. --jobs processes share the
work, each with a core of its own. Data come from --data (LIBSVM text, plain or compressed), else
from LIBSVM's site; cadata has a synthetic stand-in.
"""

import argparse
import json
import time
from concurrent.futures import as_completed
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from side_by_side import forget_programs, processes
from sklearn.preprocessing import normalize, scale

import edgewise as ew
from edgewise.methods.auto import choose
from edgewise.methods.catalogue import AUTO

NODES, EDGES, ROWS, FEATURES = 20, 50, 2000, 200
PASSES = 100  # budget of oracle calls, in passes over a node's data
ROUNDS = 3000  # budget of rounds; and of bytes, in rounds of one vector an edge
SEEDS = 3
UNTUNED = ", untuned"
SLOW = (
    "lt-pd",
    "lt-svr-pd-es",
    "lt-saga-pd",
    "pdmm",
    "d-admm",
    "network-dane",
    "network-svrg",
)
# Under other names: s-diging is gt-saga. In other units: sk-pd, sk-pd-fd. By its own steps:
# asvr-pd-paper. Without a step: newton-pd, which auto takes and which runs as it is.
LEFT_OUT = ("s-diging", "sk-pd", "sk-pd-fd", "asvr-pd-paper", "newton-pd")
LEFT_OUT += ("push-saga", "push-diging")  # for links that go one way
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


@cache
def setting_of(name: str, folder: Path | None):
    """A problem, what its data are, a graph and the optimum."""
    problem_name, _, graph_name = name.partition(":")
    problem, data = PROBLEMS[problem_name][1](folder)
    return problem, data, GRAPHS[graph_name](), ew.reference(problem)


def work(name: str, label: str, options: argparse.Namespace) -> str:
    """One method in one setting, under each budget, into a file."""
    began = time.process_time()
    problem, data, graph, star = setting_of(name, options.data)
    tune = not label.endswith(UNTUNED)
    method = label.removesuffix(UNTUNED)
    vector = 2 * graph.edge_count * problem.size * 8
    short = 10 if options.quick else 1
    budgets = {
        "oracle_calls": PASSES * problem.counts.mean() / short,
        "bytes_sent": ROUNDS * vector / short,
        "rounds": ROUNDS / short,
    }
    out: dict = {"data": data, "costs": {}, "factors": {}, "refused": "", "chosen": ""}
    for unit, budget in budgets.items():
        if unit != "rounds" or not one_vector(method, problem, graph):  # else by the runs before
            found = ew.compare(
                *(problem, graph, {label: method}, budget, unit),
                tune=tune,
                seeds=SEEDS,
                reference=star,
                show=False,
                progress=False,
            )
        if found.refused:
            out["refused"] = found.refused[label]
            break
        out["factors"][unit] = found.tunings[label].factors if tune else {}
        out["costs"][unit] = [found.cost(label, a, unit).tolist() for a in found.accuracies]
    if method == AUTO:
        out["chosen"] = choose(AUTO, problem, graph).name
    out["seconds"] = time.process_time() - began
    path = part(options.out, name, label)
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = path.with_suffix(".part")
    whole.write_text(json.dumps(out, indent=1))
    whole.rename(path)
    forget_programs()
    told = out["refused"] or ", ".join(f"{u} {c[1][1]:,.0f}" for u, c in out["costs"].items())
    return f"{name}, {label}: {told} ({out['seconds']:.0f} s)"


def one_vector(method: str, problem: ew.Problem, graph: ew.Graph) -> bool:
    """Whether it sends one vector along each edge and round: rounds are bytes then."""
    chosen = choose(method, problem, graph).method
    return chosen.message_sizes(problem.size, problem.loss.outputs) == (problem.size,)


def part(folder: Path, name: str, label: str) -> Path:
    return folder / name.replace(":", "-") / f"{label.replace(', ', '-')}.json"


def run_all(names: list[str], labels: list[str], options: argparse.Namespace) -> None:
    """The slowest methods first, so that none is left over at the end."""
    order = [m for m in SLOW if m in labels] + [m for m in labels if m not in SLOW]
    tasks = [(n, m) for m in order for n in names if not part(options.out, n, m).exists()]
    print(f"{len(tasks)} of {len(names) * len(labels)} to do", flush=True)
    with processes(options.jobs) as pool:
        todo = [pool.submit(work, *task, options) for task in tasks]
        for done, future in enumerate(as_completed(todo), 1):
            print(f"{done}/{len(todo)} {future.result()}", flush=True)


def main() -> object:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--only", action="append", help="PROBLEM:GRAPH, as a9a-l1:ring")
    add("--method", action="append", help=f"a method, or one with {UNTUNED!r} behind it")
    add("--write", action="store_true", help="only write the page")
    add("--quick", action="store_true", help="a tenth of the budgets")
    add("--data", type=Path, help="folder with a9a and cadata")
    add("--out", type=Path, default=ROOT / "out" / "fair", help="results")
    add("--jobs", type=int, default=1, help="processes, one core each")
    options = parser.parse_args()
    names = [f"{p}:{g}" for p in PROBLEMS for g in GRAPHS]
    labels = [m for m in ew.list_methods() if m not in LEFT_OUT]
    labels += [m + UNTUNED for m in (AUTO, "pdmm", "saga-pd")]
    for given, known in ((options.only, names), (options.method, labels)):
        if wrong := set(given or []) - set(known):
            parser.error(f"{', '.join(wrong)}: known are {', '.join(known)}")
    if not options.write:
        run_all(options.only or names, options.method or labels, options)
        if options.only or options.method:
            return None
    from fair_page import write_page

    facts = {"nodes": NODES, "edges": EDGES, "passes": PASSES, "rounds": ROUNDS, "seeds": SEEDS}
    told = {name: what for name, (what, _) in PROBLEMS.items()}
    return write_page(options.out, names, labels, told, facts)


if __name__ == "__main__":
    main()
