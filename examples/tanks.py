"""Tanks in a row that plan their pumps ahead together.

Tank i loses a share of its water to tank i + 1 in every step, and has a pump of its own. It plans
its levels h(1), ..., h(T) and its pump u(0), ..., u(T - 1): be near the wanted level, pump little,
never overflow. That is its own cost and its own box. How levels follow from pumps and from the tank
before is written on the line between the two: a row of a coupling for each step.

    python examples/tanks.py --plot tanks.png
"""

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import edgewise as ew

TANKS, STEPS = 6, 20
FLOW, PUMP = 0.15, 0.2  # share that flows on in a step; level that a full pump adds
START = np.array([0.2, 1.1, 0.4, 0.9, 0.1, 0.6])
WANTED = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
TOP = 1.2
PRICE = 0.05  # of pumping


def build() -> tuple[ew.Problem, ew.Graph, dict[tuple[int, int], ew.Coupling]]:
    """x_i = (h(1), ..., h(T), u(0), ..., u(T - 1)) of tank i.

    Cost (h - wanted)²/2 + price u²/2 at each step; 0 <= h <= top and 0 <= u <= 1.
    """
    weights = np.repeat([1.0, PRICE], STEPS)
    costs = [ew.Quadratic(weights, np.repeat([-level, 0], STEPS)) for level in WANTED]
    rule = ew.Box(np.zeros(2 * STEPS), np.repeat([TOP, 1.0], STEPS))

    # h(t + 1) - (1 - flow) h(t) - pump u(t) - flow h_before(t) = 0; what is known is on the right.
    later = np.eye(STEPS, k=-1)
    own = np.hstack([np.eye(STEPS) - (1 - FLOW) * later, -PUMP * np.eye(STEPS)])
    before = np.hstack([-FLOW * later, np.zeros((STEPS, STEPS))])
    first = np.eye(STEPS)[0]
    between = {}
    for i in range(1, TANKS):
        A, B = before, own
        c = ((1 - FLOW) * START[i] + FLOW * START[i - 1]) * first
        if i == 1:  # the first tank has nobody before it: its rows come along here
            A, B = np.vstack([own, A]), np.vstack([np.zeros_like(own), B])
            c = np.concatenate([(1 - FLOW) * START[0] * first, c])
        between[i - 1, i] = ew.Coupling(A, B, c)
    problem = ew.Problem(cost=costs, penalty=[rule] * TANKS)
    return problem, ew.Graph.path(TANKS), between


def centralised() -> tuple[float, np.ndarray, np.ndarray]:
    """All tanks in one place, by CVXPY: cost, levels and pumps."""
    try:
        import cvxpy as cp
    except ImportError:
        raise SystemExit("this example compares with CVXPY: pip install cvxpy") from None
    h, u = cp.Variable((STEPS + 1, TANKS)), cp.Variable((STEPS, TANKS))
    moves = (1 - FLOW) * np.eye(TANKS) + FLOW * np.eye(TANKS, k=-1)
    rules = [h[0] == START, h[1:] >= 0, h[1:] <= TOP, u >= 0, u <= 1]
    rules += [h[t + 1] == moves @ h[t] + PUMP * u[t] for t in range(STEPS)]
    cost = cp.sum_squares(h[1:] - np.tile(WANTED, (STEPS, 1))) / 2 + PRICE / 2 * cp.sum_squares(u)
    precise = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
    problem = cp.Problem(cp.Minimize(cost), rules)
    problem.solve(solver=cp.CLARABEL, **precise)
    return float(problem.value), h.value[1:], u.value


def played(u: np.ndarray) -> np.ndarray:
    """The levels that these pumps really lead to."""
    levels, h = [], START
    for pump in u:
        h = (1 - FLOW) * h + FLOW * np.append(0, h[:-1]) + PUMP * pump
        levels.append(h)
    return np.array(levels)


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description="Tanks in a row plan their pumps.")
    parser.add_argument("--plot", metavar="FILE", help="write a picture")
    plot = parser.parse_args(arguments).plot

    problem, graph, between = build()
    result = ew.solve(problem, graph, between=between, tol=1e-8, rounds=50_000)
    assert result.converged, result.message
    h, u = np.split(np.array(result.X).T, 2)
    cost = ((h - WANTED) ** 2).sum() / 2 + PRICE / 2 * (u**2).sum()
    exact, exact_h, exact_u = centralised()
    off = {
        "levels": float(abs(h - exact_h).max()),
        "pumps": float(abs(u - exact_u).max()),
        "played": float(abs(played(u) - h).max()),
    }
    table = Table("planned by", "rounds", "cost", "pumps at 0", "pumps at 1")
    rounds = result.trace["rounds"][-1]
    for name, took, value, pumps in (
        ("the tanks", f"{rounds:.0f}", cost, u),
        ("CVXPY", "", exact, exact_u),
    ):
        counts = [f"{(abs(pumps - bound) < 1e-5).sum()}" for bound in (0, 1)]
        table.add_row(name, took, f"{value:.8f}", *counts)
    Console().print(table)
    print(f"off by {off['levels']:.0e} in levels, {off['pumps']:.0e} in pumps")
    print(f"played out, the pumps lead to the planned levels to {off['played']:.0e}")
    if plot:
        draw(h, u, plot)
        print(f"plot: {plot}")
    return {"cost": cost, "exact": exact, "rounds": rounds, "h": h, "u": u, **off}


def draw(h: np.ndarray, u: np.ndarray, path: str) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(9, 4.6), sharex=True, sharey=True)
    for i, ax in enumerate(axes.flat):
        ax.step(range(STEPS), u[:, i], where="post", color="C1", label="pump")
        ax.plot(range(STEPS + 1), [START[i], *h[:, i]], color="C0", label="level")
        ax.axhline(WANTED[i], color="black", linestyle=":", label="level wanted")
        ax.set_title(f"tank {i + 1}", fontsize="medium")
        ax.set_ylim(-0.05, TOP + 0.05)
    for ax in axes[-1]:
        ax.set_xlabel("step")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="lower center", ncols=3)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    main()
