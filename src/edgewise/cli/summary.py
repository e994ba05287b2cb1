"""What a solve came to, in numbers and as a table."""

import re
from typing import Any

import numpy as np
from rich.table import Table

import edgewise as ew
from edgewise import __version__
from edgewise.cli.inputs import Inputs
from edgewise.cli.launch import Ranks
from edgewise.cli.options import SolveOptions
from edgewise.running.goodness import explained, here, score_kind
from edgewise.running.run_folders import weights_of
from edgewise.running.trace import COLUMNS

SPELLED = (
    (r"\bLogistic\(ridge=(\S+)\)", r"--ridge \1"),
    (r"\bGraph\.random\((\d+), (\d+)\) has", r"--graph random --edges \2"),
    (r'\b(method|dtype|eta|rho)="?([\w.+-]+)"?', r"--\1 \2"),
    (r"\b(rounds|ridge)=(\S+\b)", r"--\1 \2"),
    (r"\boracle_budget=(\d+)", r"--oracle-budget \1"),
    (r"\bfeedback=True", "--feedback"),
    (r"\ba tol of (\S+)", r"--tol \1"),
    (r"\b(with|smaller) tol\b", r"\1 --tol"),
    (r"\(ew\.standardize\)", "(--standardize)"),
    (r"\bdebias=True", "--debias"),
    (r"\(least_count\)", "(--least-count)"),
    (r'\b(weights|covariance)="(\w+)"', r"--\1 \2"),
    (r"\brows one length", "rows one length (--normalize)"),
)
MOST_SCORED = 10**10  # multiplications spent on the score of every peer


def summarise(
    o: SolveOptions, inputs: Inputs, result: ew.Result, faults: ew.Faults | None, ranks: Ranks
) -> dict[str, Any]:
    """What the run came to, for tables and scripts."""
    problem, x = inputs.problem, result.x
    held = ranks.held(problem, inputs.graph)
    weights = x[: x.size - problem.free]
    summary: dict[str, Any] = {
        "command": "solve",
        "version": __version__,
        "method": o.method,
        "method_note": result.method_note,
        "converged": result.converged,
        "message": as_options(result.message),
        "nodes": problem.nodes,
        "edges": inputs.graph.edge_count,
        "data": inputs.done,
        "samples": problem.shards.samples,
        "unknowns": problem.size,
        **{name: float(result.trace[name][-1]) for name in COLUMNS},
        "weights": weights.size,
        "weights_used": int(np.count_nonzero(weights)),
        "score_kind": score_kind(problem.loss, problem.classes),
        "score": score(held, x, ranks),
    }
    if result.privacy is not None:
        spent = result.privacy
        summary["privacy"] = {
            "epsilon": spent.epsilon,
            "epsilon_replace": spent.epsilon_replace,
            "delta": spent.delta,
            "by_distance": {str(d): known for d, known in spent.by_distance().items()},
        }
    if inputs.sums is not None:
        sums = inputs.sums
        summary["standardize"] = {
            "rounds": sums.rounds,
            "bytes_sent": sums.bytes_sent,
            "reached": sums.reached,
        }
    cost = problem.shards.samples * problem.size * problem.nodes
    if ranks.engine is None and cost < MOST_SCORED:  # else a rank would need others' models
        summary["score_worst_peer"] = min(score(held, own, ranks) for own in result.X)
    whole = faults is None or len(faults.changes) == 1  # all are there all the time
    wanted = ranks.engine is None and problem.convex if o.reference is None else o.reference
    if whole and wanted:
        star = ew.reference(problem)
        summary["score_reference"] = score(held, star.x, ranks)
        summary["distance"] = float(np.linalg.norm(x - star.x))
    return summary


def score(held: ew.Problem, x: np.ndarray, ranks: Ranks) -> float:
    """On the training data: the part of labels that are right, or R² where they are numbers, or
    D²."""
    W, b = weights_of(held, x)
    with np.errstate(over="ignore", invalid="ignore"):
        z, y = np.asarray(held.shards.X @ W.T) + b, held.labels
        z = z if held.offset is None else z + held.offset[:, None]
        if held.classes is None:
            total = here if ranks.engine is None else ranks.total
            return explained(held.loss, z[:, 0], y, held.offset, total)
        predicted = z.argmax(1) if len(W) > 1 else np.where(z[:, 0] > 0, 1, -1)
    sums = ranks.total({"right": (predicted == y).sum(), "count": len(y)})
    return float(sums["right"] / sums["count"]) if np.isfinite(x).all() else float("nan")


def as_options(message: str) -> str:
    """What a run says of itself, in the words of the command line."""
    for python, option in SPELLED:
        message = re.sub(python, option, message)
    return message


def table(s: dict[str, Any]) -> Table:
    shown, kind = Table(show_header=False), f"training {s['score_kind']}"
    rows = [
        ("converged", "yes" if s["converged"] else "no"),
        ("objective gap to the centralised answer", small(s["objective_gap"])),
        ("distance from the centralised model", small(s.get("distance"))),
        ("optimality residual", small(s["residual"])),
        ("disagreement between peers", small(s["consensus"])),
        ("communication rounds", f"{s['rounds']:,.0f}"),
        ("oracle calls per peer", f"{s['oracle_calls']:,.0f}"),
        ("bytes sent, all edges", f"{s['bytes_sent']:,.0f}"),
        ("seconds of compute, in all", f"{s['seconds']:.2f}, {s['wall_seconds']:.2f}"),
        ("weights used", f"{s['weights_used']} of {s['weights']}"),
        (f"{kind}, centralised", share(s.get("score_reference"))),
        (kind, share(s["score"])),
        (f"{kind}, worst of the peers", share(s.get("score_worst_peer"))),
    ]
    for name, text in rows:
        if text:
            shown.add_row(name, text)
    return shown


def small(number: float | None) -> str:
    return "" if number is None or not np.isfinite(number) else f"{number:.2e}"


def share(number: float | None) -> str:
    return "" if number is None or not np.isfinite(number) else f"{number:.4g}"
