"""Twenty hospitals on a bad network.

scikit-learn's breast-cancer data are dealt out to 20 peers, as in demo.py. A fifth of all messages
gets lost and every peer sleeps half of the time. One peer's disk is wiped, one goes away, one comes
late. SAGA-PD still ends at the optimum of those present; gradient tracking (GT-SAGA) does not.

    python examples/lossy_network.py --plot docs/images/faults.png
"""

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.preprocessing import normalize, scale

import edgewise as ew
from edgewise.errors import DivergenceWarning, FaultWarning

NODES, EDGES = 20, 50


def cases(rounds: int) -> dict[str, dict[str, Any]]:
    weather: dict[str, Any] = {"drop": 0.2, "awake": 0.5}
    events = {"wipe": (2, rounds // 4), "leave": (7, rounds // 2), "join": (11, 3 * rounds // 4)}
    return {
        "none": {},
        "20 % of messages lost": {"drop": 0.2},
        "half asleep": {"awake": 0.5},
        "one wiped": {"wipe": events["wipe"]},
        "one leaves": {"leave": events["leave"]},
        "one joins": {"join": events["join"]},
        "all of these": {**weather, **events},
    }


def hospitals() -> tuple[ew.Problem, ew.Graph]:
    """Without a penalty, so that gradient tracking can take part."""
    X, y = ew.data.dataset("breast_cancer")
    shards = ew.split(normalize(scale(X)), y, nodes=NODES, how="label", seed=0)
    problem = ew.Problem(shards, loss=ew.Logistic(ridge=0.03))
    return problem, ew.Graph.random(nodes=NODES, edges=EDGES, seed=0)


def fit(
    problem: ew.Problem, graph: ew.Graph, method: str, rounds: int, faults: dict[str, Any]
) -> ew.Trace:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FaultWarning)  # that gt-saga does not heal is the point
        warnings.simplefilter("ignore", DivergenceWarning)
        result = ew.solve(
            problem,
            graph,
            method,
            rounds=rounds,
            record_every=100,
            faults=ew.Faults(**faults),
            progress=False,
        )
    return result.trace


def final(trace: ew.Trace, rounds: int) -> str:
    last = trace["bregman"][-1]
    early = trace["rounds"][-1] < rounds
    return "diverges" if early or not np.isfinite(last) else f"{last:.0e}"


def main(arguments: Sequence[str] | None = None) -> dict[str, list[ew.Trace]]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write a picture")
    parser.add_argument("--rounds", type=int, default=16_000, help="events come at each quarter")
    options = parser.parse_args(arguments)
    console = Console()
    problem, graph = hospitals()
    title = f"divergence from the optimum after {options.rounds} rounds"
    table = Table("fault", "SAGA-PD", "GT-SAGA", title=title)
    traces = {}
    for name, faults in cases(options.rounds).items():
        pair = [fit(problem, graph, m, options.rounds, faults) for m in ("saga-pd", "gt-saga")]
        table.add_row(name, *(final(trace, options.rounds) for trace in pair))
        traces[name] = pair
    console.print(table)
    if options.plot is not None:
        plot(traces["none"], traces["all of these"], options.rounds, options.plot)
        console.print(f"plot: {options.plot}")
    return traces


def plot(calm: list[ew.Trace], rough: list[ew.Trace], rounds: int, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    lines = [
        ("SAGA-PD, all faults", rough[0], "#1f77b4", "-"),
        ("GT-SAGA, all faults", rough[1], "#d62728", "-"),
        ("SAGA-PD, no faults", calm[0], "#1f77b4", ":"),
        ("GT-SAGA, no faults", calm[1], "#d62728", ":"),
    ]
    for label, trace, colour, style in lines:
        divergence = np.maximum(trace["bregman"], 1e-18)
        axes.semilogy(trace["rounds"], divergence, style, color=colour, label=label)
    axes.set(xlabel="rounds", ylabel="Bregman divergence", ylim=(1e-18, 1e6), xlim=(0, rounds))
    for quarter, what in enumerate(("one wiped", "one leaves", "one joins"), 1):
        at = quarter * rounds // 4
        axes.axvline(at, color="0.6", linewidth=0.8)
        axes.annotate(what, (at, 4e-18), xytext=(4, 0), textcoords="offset points", color="0.3")
    axes.set_title("20 % of messages lost, every peer asleep half of the time")
    axes.legend(loc="upper right", fontsize="small", ncols=2)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
