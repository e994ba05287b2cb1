"""Economic dispatch, and what limits on lines do to it: which power station makes how much.

Every bus of the IEEE 14- or 30-bus network is a node. It knows its own generators, its own load,
its voltage angle and the flows on its own lines. What comes in must go out: that is its own
constraint. Two rows couple the ends of a line: its flow follows from the two angles (the DC model),
and what leaves one end arrives at the other. Nobody sees the whole network, yet the buses find the
cheapest outputs, and the multipliers of the lines tell each bus its price of power.

Where lines carry any flow, this is economic dispatch, with one price for all. Where lines have
limits it is DC optimal power flow, and prices differ from bus to bus.

    python examples/power_flow.py --buses 30 --drop 0.2 --plot power_flow.png
"""

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
from power_cases import BASE, CASE14, CASE30, PowerCase
from rich.console import Console
from rich.table import Table

import edgewise as ew

ANGLE = 0.1  # rad: the unit of angles, so that all unknowns are of order one
# Case 14 has no limits, and those of case 30 do not bind in the DC model: these, in MW, are ours.
OURS14 = {(1, 2): 120.0, (1, 5): 65.0, (2, 3): 60.0, (5, 6): 35.0}  # others: 50
OURS30 = {(15, 23): 8.0, (21, 22): 18.0, (25, 27): 10.0}  # others: as in the data
DISPATCH, LIMITED = "economic dispatch", "with limits on lines"


def limited(case: PowerCase) -> PowerCase:
    """The case with limits that bind."""
    lines = []
    for i, j, reactance, ratio, most in case.lines:
        ours = OURS14.get((i, j), 50.0) if case is CASE14 else OURS30.get((i, j), most)
        lines.append((i, j, reactance, ratio, ours))
    return case._replace(lines=lines)


def unlimited(case: PowerCase) -> PowerCase:
    return case._replace(lines=[(*line[:4], np.inf) for line in case.lines])


class Network:
    """The case as nodes, their costs and constraints, and couplings. Bus 1 is node 0."""

    def __init__(self, case: PowerCase) -> None:
        self.case = case
        self.price = 100 * np.mean([b for *_, b in case.generators])  # $/h: the unit of costs
        self.lines = [(i - 1, j - 1) for i, j, *_ in case.lines]
        pairs = {frozenset(line) for line in self.lines}
        assert len(pairs) == len(self.lines), "parallel lines: merge them first"
        self.graph = ew.Graph.from_edges(self.lines, case.buses)
        self.most = np.array([line[-1] for line in case.lines]) / BASE
        self.made = [[] for _ in range(case.buses)]  # numbers of the generators at each bus
        for number, (bus, *_) in enumerate(case.generators):
            self.made[bus - 1].append(number)
        # The unknowns of bus i: its generators, its angle, the flow into each of its lines.
        self.at = [
            {j: len(self.made[i]) + 1 + k for k, j in enumerate(self.graph.neighbours(i).tolist())}
            for i in range(case.buses)
        ]
        self.sizes = [len(g) + 1 + len(a) for g, a in zip(self.made, self.at, strict=True)]

    def problem(self) -> ew.Problem:
        costs, rules = [], []
        limit = {frozenset(line): most for line, most in zip(self.lines, self.most, strict=True)}
        for i in range(self.case.buses):
            n, g = self.sizes[i], len(self.made[i])
            Q, q, a = np.zeros(n), np.zeros(n), np.zeros(n)
            lower, upper = np.full(n, -np.inf), np.full(n, np.inf)
            for k, number in enumerate(self.made[i]):
                _, most, curve, slope = self.case.generators[number]
                Q[k], q[k] = 2 * curve * BASE**2 / self.price, slope * BASE / self.price
                lower[k], upper[k], a[k] = 0, most / BASE, 1
            if i == 0:
                lower[g] = upper[g] = 0  # angles count from bus 1's
            for j, k in self.at[i].items():
                a[k] = -1
                lower[k], upper[k] = -limit[frozenset((i, j))], limit[frozenset((i, j))]
            costs.append(ew.Quadratic(Q, q))
            rules.append(ew.Budget(a, self.case.load.get(i + 1, 0) / BASE, lower, upper))
        return ew.Problem(cost=costs, penalty=rules)

    def between(self) -> dict[tuple[int, int], ew.Coupling]:
        couplings = {}
        for (i, j), (_, _, reactance, ratio, _) in zip(self.lines, self.case.lines, strict=True):
            A, B = np.zeros((2, self.sizes[i])), np.zeros((2, self.sizes[j]))
            ohm = reactance * ratio / ANGLE
            A[0, len(self.made[i])], B[0, len(self.made[j])] = 1, -1
            # angle - the other angle = ohm * flow, of which either end has its own: the mean
            A[0, self.at[i][j]], B[0, self.at[j][i]] = -ohm / 2, ohm / 2
            A[1, self.at[i][j]] = B[1, self.at[j][i]] = 1  # flow + the other end's flow = 0
            couplings[i, j] = ew.Coupling(A, B)
        return couplings

    def read(self, result: Any, between: dict[tuple[int, int], ew.Coupling]) -> dict[str, Any]:
        """Output and flows in MW, prices in $/MWh."""
        X = result.X
        output = np.zeros(len(self.case.generators))
        for i, numbers in enumerate(self.made):
            output[numbers] = X[i][: len(numbers)]
        flow = np.array([X[i][self.at[i][j]] for i, j in self.lines])
        prices = np.zeros(self.case.buses)
        spare = np.full(self.case.buses, -1.0)
        for (i, j), f, most in zip(self.lines, flow, self.most, strict=True):
            dual = result.multipliers[min(i, j), max(i, j)]
            for here, there, matrix in ((i, j, between[i, j].A), (j, i, between[i, j].B)):
                if most - abs(f) > spare[here]:  # a line that is not full tells the price
                    spare[here] = most - abs(f)
                    prices[here] = -matrix[:, self.at[here][there]] @ dual
        cost = sum(
            a * p**2 + b * p
            for p, (*_, a, b) in zip(BASE * output, self.case.generators, strict=True)
        )
        return {
            "cost": cost,
            "output": BASE * output,
            "flow": BASE * flow,
            "prices": prices * self.price / BASE,
        }


def centralised(case: PowerCase) -> dict[str, Any]:
    """The whole network in one place, written in another way, by CVXPY."""
    try:
        import cvxpy as cp
    except ImportError:
        raise SystemExit("this example compares with CVXPY: pip install cvxpy") from None
    lines = len(case.lines)
    incidence = np.zeros((lines, case.buses))
    for k, (i, j, *_) in enumerate(case.lines):
        incidence[k, i - 1], incidence[k, j - 1] = 1, -1
    susceptance = np.array([1 / (x * ratio) for _, _, x, ratio, _ in case.lines])
    most = np.array([line[-1] for line in case.lines]) / BASE
    at = np.zeros((case.buses, len(case.generators)))
    at[[bus - 1 for bus, *_ in case.generators], range(len(case.generators))] = 1
    top, curve, slope = np.array([g[1:] for g in case.generators]).T
    load = np.array([case.load.get(i + 1, 0) for i in range(case.buses)]) / BASE

    made, angle = cp.Variable(len(case.generators)), cp.Variable(case.buses)
    flow = cp.multiply(susceptance, incidence @ angle)
    balance = incidence.T @ flow == at @ made - load
    rules = [balance, angle[0] == 0, made >= 0, made <= top / BASE]
    bound = np.isfinite(most)
    if bound.any():
        rules.append(cp.abs(flow[bound]) <= most[bound])
    unit = 100 * slope.mean()
    cost = (curve * BASE**2 / unit) @ made**2 + (slope * BASE / unit) @ made
    precise = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
    problem = cp.Problem(cp.Minimize(cost), rules)
    problem.solve(solver=cp.CLARABEL, **precise)
    return {
        "cost": unit * problem.value,
        "output": BASE * made.value,
        "flow": BASE * flow.value,
        "prices": balance.dual_value * unit / BASE,
    }


def one_price(case: PowerCase) -> tuple[float, np.ndarray]:
    """Economic dispatch as in textbooks: the price at which all that is made is all that is used,
    by bisection, and each output. No network is in it."""
    most, curve, slope = np.array([g[1:] for g in case.generators]).T
    low, high = slope.min(), (slope + 2 * curve * most).max()
    for _ in range(100):
        price = (low + high) / 2
        output = np.clip((price - slope) / (2 * curve), 0, most)
        low, high = (price, high) if output.sum() < sum(case.load.values()) else (low, price)
    return price, output


def main(arguments: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
    parser = argparse.ArgumentParser(description="DC optimal power flow, bus by bus.")
    parser.add_argument("--buses", type=int, choices=(14, 30), default=14)
    parser.add_argument("--drop", type=float, default=0.0, help="share of messages that get lost")
    parser.add_argument("--plot", metavar="FILE", help="write a picture")
    options = parser.parse_args(arguments)
    case = CASE14 if options.buses == 14 else CASE30

    table = Table("", "rounds", "MB sent", "$/h", "CVXPY's", "output off by", "flows", "prices")
    found = {}
    for name, kind in {DISPATCH: unlimited(case), LIMITED: limited(case)}.items():
        network = Network(kind)
        between = network.between()
        faults = {"faults": ew.Faults(drop=options.drop)} if options.drop else {}
        result = ew.solve(
            network.problem(), network.graph, between=between, tol=1e-8, rounds=50_000, **faults
        )
        assert result.converged, result.message
        got, exact = network.read(result, between), centralised(kind)
        off = {k: float(abs(got[k] - exact[k]).max()) for k in ("output", "flow", "prices")}
        table.add_row(
            name,
            f"{result.trace['rounds'][-1]:.0f}",
            f"{result.trace['bytes_sent'][-1] / 1e6:.1f}",
            f"{got['cost']:.4f}",
            f"{exact['cost']:.4f}",
            *(f"{value:.0e}" for value in off.values()),
        )
        found[name] = {**got, "exact": exact, "off": off, "rounds": result.trace["rounds"][-1]}
        found[name]["full"] = BASE * network.most - abs(got["flow"]) < 1e-3
        found[name]["network"] = network
    Console(width=110).print(table)
    price, output = one_price(case)
    first, last = found[DISPATCH], found[LIMITED]
    first["textbook"] = float(abs(first["output"] - output).max())
    print(
        f"economic dispatch: {price:.2f} $/MWh at every bus; outputs are off by "
        f"{first['textbook']:.0e} MW from the price found by bisection"
    )
    full = [f"{i}-{j}" for (i, j, *_), f in zip(case.lines, last["full"], strict=True) if f]
    low, high = last["prices"].min(), last["prices"].max()
    print(f"with limits: {', '.join(full)} are full; {low:.2f} to {high:.2f} $/MWh")
    for (bus, *_), before, after in zip(
        case.generators, first["output"], last["output"], strict=True
    ):
        print(f"  bus {bus:2d} makes {before:6.1f} MW, with limits {after:6.1f} MW")
    if options.plot:
        draw(first, last, options.plot)
        print(f"plot: {options.plot}")
    return found


def draw(first: dict[str, Any], found: dict[str, Any], path: str) -> None:
    import matplotlib.pyplot as plt
    import networkx as nx

    network = found["network"]
    case = network.case
    graph = network.graph.to_networkx()
    place = nx.kamada_kawai_layout(graph, weight=None)
    figure, (ax, outputs) = plt.subplots(
        1, 2, figsize=(10.5, 4.8), width_ratios=(3, 1), layout="constrained"
    )
    flow = abs(found["flow"])
    for full, colour, label in ((False, "0.6", "line"), (True, "C3", "line that is full")):
        chosen = [e for e, f in zip(network.lines, found["full"], strict=True) if f == full]
        widths = 0.7 + 5 * flow[found["full"] == full] / flow.max()
        nx.draw_networkx_edges(graph, place, chosen, width=widths, edge_color=colour, ax=ax)
        ax.plot([], [], color=colour, linewidth=3, label=label)
    made = {i for i, numbers in enumerate(network.made) if numbers}
    for shape, label in (("s", "bus with a generator"), ("o", "bus")):
        some = [i for i in graph if (i in made) == (shape == "s")]
        shown = ax.scatter(
            *np.array([place[i] for i in some]).T,
            c=found["prices"][some],
            s=300,
            marker=shape,
            cmap="viridis",
            vmin=found["prices"].min(),
            vmax=found["prices"].max(),
            edgecolors="black",
            linewidths=0.8,
            zorder=3,
            label=label,
        )
    middle = (found["prices"].min() + found["prices"].max()) / 2
    for i in graph:
        colour = "white" if found["prices"][i] < middle else "black"
        ax.annotate(f"{i + 1}", place[i], ha="center", va="center", color=colour, zorder=4, size=9)
    figure.colorbar(shown, ax=ax, label="price at the bus, $/MWh")
    ax.set_axis_off()
    ax.set_title(f"with limits on lines: {found['cost']:.2f} $/h (width: flow)", fontsize="medium")
    rows = np.arange(len(case.generators))
    for shift, one, colour, name in ((-0.2, first, "C0", DISPATCH), (0.2, found, "C1", LIMITED)):
        outputs.barh(rows + shift, one["output"], 0.4, color=colour, label=name)
    outputs.set_yticks(rows, [f"bus {bus}" for bus, *_ in case.generators])
    outputs.invert_yaxis()
    outputs.set_xlabel("output, MW")
    outputs.set_title(f"economic dispatch: {first['cost']:.2f} $/h", fontsize="medium")
    figure.legend(loc="outside lower center", ncols=6, fontsize="small", markerscale=0.5)
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    main()
