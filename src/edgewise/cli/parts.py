"""Penalties, losses, graphs, steps and faults from what is typed."""

import json
import re
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

import edgewise as ew
from edgewise.cli.groups import Run, Task, Weather
from edgewise.cli.shell import launched
from edgewise.errors import GraphError, InputError, MethodError, ProblemError, UnknownName
from edgewise.methods.catalogue import make

Numbers = list[float]

LOSSES: dict[str, tuple[str, Callable[..., Any], int, int]] = {  # how, made by, numbers it takes
    "logistic": ("logistic", ew.Logistic, 0, 0),
    "squared": ("squared", ew.Squared, 0, 0),
    "huber": ("huber:DELTA", ew.Huber, 0, 1),
    "smoothed-hinge": ("smoothed-hinge:WIDTH", ew.SmoothedHinge, 0, 1),
    "multinomial": ("multinomial", ew.Multinomial, 0, 0),
}
MANY = 1 << 30
PENALTIES: dict[str, tuple[str, Callable[..., Any], int, int]] = {
    "none": ("none", ew.NoPenalty, 0, 0),
    "l1": ("l1:LAM", ew.L1, 1, 1),
    "squared-l2": ("squared-l2:LAM", ew.SquaredL2, 1, 1),
    "elastic-net": ("elastic-net:L1,L2", ew.ElasticNet, 2, 2),
    "group-l2": ("group-l2:LAM,G1,G2,...", lambda lam, *g: ew.GroupL2(lam, list(g)), 2, MANY),
    "box": ("box:LOWER,UPPER", ew.Box, 2, 2),
    "non-negative": ("non-negative", ew.NonNegative, 0, 0),
    "simplex": ("simplex:RADIUS", ew.Simplex, 0, 1),
    "l1-ball": ("l1-ball:RADIUS", ew.L1Ball, 1, 1),
    "l2-ball": ("l2-ball:RADIUS", ew.L2Ball, 1, 1),
    "half-space": ("half-space:A1,A2,...,B", lambda *a: ew.HalfSpace(list(a[:-1]), a[-1]), 2, MANY),
}
GRAPHS: dict[str, Callable[[int, Task, int], ew.Graph]] = {
    "ring": lambda nodes, o, seed: ew.Graph.ring(nodes),
    "path": lambda nodes, o, seed: ew.Graph.path(nodes),
    "star": lambda nodes, o, seed: ew.Graph.star(nodes),
    "complete": lambda nodes, o, seed: ew.Graph.complete(nodes),
    "grid": lambda nodes, o, seed: ew.Graph.grid(*sides(nodes, o)),
    "torus": lambda nodes, o, seed: ew.Graph.torus(*sides(nodes, o)),
    "random": lambda nodes, o, seed: ew.Graph.random(nodes, edge_count(nodes, o), seed),
    "small-world": lambda nodes, o, seed: ew.Graph.small_world(nodes, o.neighbours, o.rewire, seed),
}
EVENTS = {"down": "I:J:FIRST:LAST", "wipe": "NODE:ROUND"}


def made(kind: str, text: str, known: dict[str, tuple[str, Callable[..., Any], int, int]]) -> Any:
    """`name` or `name:number,number` as one of the known things."""
    name, _, numbers = text.strip().partition(":")
    if name not in known:
        raise UnknownName(kind, name, known)
    usage, make_it, least, most = known[name]
    try:
        given = numbers_in(numbers) if numbers else []
    except ValueError:
        given = [np.nan] * (most + 1)
    if not least <= len(given) <= most:
        raise ProblemError(f"{kind} {text!r} cannot be read: give {usage}")
    return make_it(*given)


def loss(text: str, ridge: float) -> Any:
    return replace(made("loss", text, LOSSES), ridge=ridge)


def penalty(texts: list[str] | None, nodes: int) -> Any:
    """One for all, or one per node where some are for some nodes only."""
    for_all: Any = None
    some: dict[int, Any] = {}
    for text in texts or []:
        who, equals, what = text.rpartition("=")
        if not equals:
            if for_all is not None:
                raise ProblemError(f"penalty {text!r} is the second for all nodes: give one")
            for_all = made("penalty", what, PENALTIES)
            continue
        span = re.fullmatch(r"(\d+)(?:-(\d+))?", who)
        first, last = (int(span[1]), int(span[2] or span[1])) if span else (0, -1)
        if not 0 <= first <= last < nodes:
            raise ProblemError(
                f"penalty {text!r}: {who!r} are no nodes: give a number or two from 0 to "
                f"{nodes - 1}, as 3=l1:0.1 or 0-4=l1:0.1"
            )
        one = made("penalty", what, PENALTIES)
        some |= dict.fromkeys(range(first, last + 1), one)
    return [some.get(i, for_all) for i in range(nodes)] if some else for_all


def graph(o: Task, nodes: int, seed: int) -> ew.Graph:
    if o.graph in GRAPHS:
        return GRAPHS[o.graph](nodes, o, seed if o.graph_seed is None else o.graph_seed)
    if not Path(o.graph).is_file():
        raise UnknownName("graph", o.graph, [*GRAPHS, "a file of edges"])
    try:
        pairs = np.loadtxt(o.graph, dtype=np.int64, ndmin=2, delimiter=None)
    except ValueError as problem:
        raise GraphError(f"{o.graph}: {problem}; give two node numbers a line") from None
    made = ew.Graph.from_edges(pairs)
    if made.nodes != nodes:
        raise GraphError(
            f"{o.graph} has {made.nodes} nodes and the data are split over {nodes}: "
            f"give --nodes {made.nodes}, or other edges"
        )
    return made


def edge_count(nodes: int, o: Task) -> int:
    most = nodes * (nodes - 1) // 2
    return min(5 * nodes // 2, most) if o.edges is None else o.edges


def sides(nodes: int, o: Task) -> tuple[int, int]:
    if o.rows is None and o.cols is None:
        rows = max(r for r in range(1, int(nodes**0.5) + 1) if nodes % r == 0)
        return rows, nodes // rows
    rows = nodes // max(o.cols or 1, 1) if o.rows is None else o.rows
    return rows, nodes // max(rows, 1) if o.cols is None else o.cols


def steps(text: str | None) -> Any:
    """A rule's name, a number, or an array."""
    if text is None or text in ("auto", "theory"):
        return text
    try:
        numbers = numbers_in(text)
    except ValueError:
        raise MethodError(
            f"step {text!r} cannot be read: give auto, theory, a number, or several: 0.1,0.2"
        ) from None
    return numbers[0] if len(numbers) == 1 else np.array(numbers)


def method(name: str, settings: list[str] | None) -> Any:
    """The name, or an object where parameters of it, or of its gradient, are set."""
    if not settings:
        return name
    chosen = make(name)
    for setting in settings:
        key, equals, text = setting.partition("=")
        gradient: Any = chosen.gradient
        of_method, of_gradient = parameters(chosen), parameters(gradient)
        if not equals or key not in of_method | of_gradient:
            known = ", ".join(sorted(of_method | of_gradient))
            raise MethodError(
                f"{setting!r} sets nothing that {name} has: give NAME=VALUE of {known}"
            )
        if key in of_method:
            chosen = replace(chosen, **{key: literal(text)})
        else:
            chosen = replace(chosen, gradient=replace(gradient, **{key: literal(text)}))
    return chosen


def parameters(part: Any) -> set[str]:
    return {f.name for f in fields(part)} - {"gradient"} if part is not None else set()


def literal(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return np.array(numbers_in(text))
    except ValueError:
        return text


def engine(o: Run) -> ew.MPI | None:
    if o.engine == "mpi":
        return ew.MPI(partition=o.partition)
    if o.engine != "simulator":
        raise UnknownName("engine", o.engine, ["simulator", "mpi"])
    if launched().ranks > 1:
        raise InputError(
            f"{launched().ranks} processes were started to do the same each: give --engine mpi for "
            "them to share the nodes, or start one"
        )
    return None


def faults(o: Weather) -> ew.Faults | None:
    given: dict[str, Any] = {k: getattr(o, k) for k in ("drop", "burst", "delay", "nap")}
    given |= {k: getattr(o, k) for k in ("bits", "keep")}
    given["awake"] = None if o.awake is None else steps(o.awake)
    for name in ("down", "wipe", "leave", "join"):
        texts = getattr(o, name)
        given[name] = [event(name, text) for text in texts] if texts else None
    given = {k: v for k, v in given.items() if v is not None}
    return ew.Faults(**given, feedback=o.feedback, seed=o.fault_seed) if given else None


def event(name: str, text: str) -> tuple[int, ...]:
    usage = EVENTS.get(name, EVENTS["wipe"])
    if not re.fullmatch(r"\d+" + r":\d+" * usage.count(":"), text):
        raise MethodError(f"--{name} {text!r} cannot be read: give {usage}")
    return tuple(map(int, text.split(":")))


def numbers_in(text: str) -> Numbers:
    return [float(part) for part in text.split(",")]


def listed(name: str, text: str) -> Numbers:
    try:
        return numbers_in(text)
    except ValueError:
        raise InputError(
            f"--{name} {text!r} cannot be read: give numbers with commas between"
        ) from None
