"""Losses, penalties, graphs, methods, steps and faults from text: `l1:0.1`, `ring`, `batch=4`."""

import json
import re
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgewise.engines.faults import Faults
from edgewise.errors import GraphError, MethodError, ProblemError, UnknownName
from edgewise.graph.graph import Graph
from edgewise.methods.catalogue import AUTO, make
from edgewise.problem.losses import Huber, Logistic, Multinomial, SmoothedHinge, Squared
from edgewise.problem.penalties import (
    L1,
    Box,
    ElasticNet,
    GroupL2,
    HalfSpace,
    L1Ball,
    L2Ball,
    NonNegative,
    NoPenalty,
    Simplex,
    SquaredL2,
)


class Syntax(NamedTuple):
    usage: str
    make: Callable[..., Any]
    least: int = 0  # numbers that it takes
    most: int = 0


ANY_NUMBER = 1 << 30
LOSSES = {
    "logistic": Syntax("logistic", Logistic),
    "squared": Syntax("squared", Squared),
    "huber": Syntax("huber:DELTA", Huber, 0, 1),
    "smoothed-hinge": Syntax("smoothed-hinge:WIDTH", SmoothedHinge, 0, 1),
    "multinomial": Syntax("multinomial", Multinomial),
}
PENALTIES = {
    "none": Syntax("none", NoPenalty),
    "l1": Syntax("l1:LAM", L1, 1, 1),
    "squared-l2": Syntax("squared-l2:LAM", SquaredL2, 1, 1),
    "elastic-net": Syntax("elastic-net:L1,L2", ElasticNet, 2, 2),
    "group-l2": Syntax(
        "group-l2:LAM,G1,G2,...", lambda lam, *g: GroupL2(lam, list(g)), 2, ANY_NUMBER
    ),
    "box": Syntax("box:LOWER,UPPER", Box, 2, 2),
    "non-negative": Syntax("non-negative", NonNegative),
    "simplex": Syntax("simplex:RADIUS", Simplex, 0, 1),
    "l1-ball": Syntax("l1-ball:RADIUS", L1Ball, 1, 1),
    "l2-ball": Syntax("l2-ball:RADIUS", L2Ball, 1, 1),
    "half-space": Syntax(
        "half-space:A1,A2,...,B", lambda *a: HalfSpace(list(a[:-1]), a[-1]), 2, ANY_NUMBER
    ),
}


class GraphSize(NamedTuple):
    """What some kinds of graph take besides the number of nodes."""

    edges: int | None = None  # of random; 2.5 a node
    rows: int | None = None  # of grid and torus; as square as can be
    cols: int | None = None
    neighbours: int = 4  # of small-world, before rewiring
    rewire: float = 0.1


GRAPHS: dict[str, Callable[[int, GraphSize, int], Graph]] = {
    "ring": lambda nodes, size, seed: Graph.ring(nodes),
    "path": lambda nodes, size, seed: Graph.path(nodes),
    "star": lambda nodes, size, seed: Graph.star(nodes),
    "complete": lambda nodes, size, seed: Graph.complete(nodes),
    "grid": lambda nodes, size, seed: Graph.grid(*sides(nodes, size)),
    "torus": lambda nodes, size, seed: Graph.torus(*sides(nodes, size)),
    "random": lambda nodes, size, seed: Graph.random(nodes, edge_count(nodes, size), seed),
    "small-world": lambda nodes, size, seed: Graph.small_world(
        nodes, size.neighbours, size.rewire, seed
    ),
}
EVENTS = {
    "down": "I:J:FIRST:LAST",
    "wipe": "NODE:ROUND",
    "leave": "NODE:ROUND",
    "join": "NODE:ROUND",
}


def parse(kind: str, text: str, known: dict[str, Syntax]) -> Any:
    """`name` or `name:number,number` as one of the known things."""
    name, _, numbers = text.strip().partition(":")
    if name not in known:
        raise UnknownName(kind, name, known)
    syntax = known[name]
    try:
        given = numbers_in(numbers) if numbers else []
    except ValueError:
        given = [np.nan] * (syntax.most + 1)
    if not syntax.least <= len(given) <= syntax.most:
        raise ProblemError(f"{kind} {text!r} cannot be read: give {syntax.usage}")
    return syntax.make(*given)


def loss(text: str, ridge: float) -> Any:
    return replace(parse("loss", text, LOSSES), ridge=ridge)


def penalty(texts: list[str] | None, nodes: int) -> Any:
    """One for all, or one per node where some are for some nodes only."""
    for_all: Any = None
    some: dict[int, Any] = {}
    for text in texts or []:
        who, equals, what = text.rpartition("=")
        if not equals:
            if for_all is not None:
                raise ProblemError(f"penalty {text!r} is the second for all nodes: give one")
            for_all = parse("penalty", what, PENALTIES)
            continue
        span = re.fullmatch(r"(\d+)(?:-(\d+))?", who)
        first, last = (int(span[1]), int(span[2] or span[1])) if span else (0, -1)
        if not 0 <= first <= last < nodes:
            raise ProblemError(
                f"penalty {text!r}: {who!r} are no nodes: give a number or two from 0 to "
                f"{nodes - 1}, as 3=l1:0.1 or 0-4=l1:0.1"
            )
        one = parse("penalty", what, PENALTIES)
        some |= dict.fromkeys(range(first, last + 1), one)
    return [some.get(i, for_all) for i in range(nodes)] if some else for_all


# --- graphs ---------------------------------------------------------------------------------------


def graph(text: str, nodes: int, seed: int, size: GraphSize = GraphSize()) -> Graph:  # noqa: B008
    """Of a kind, or of a text file with two node numbers a line."""
    if text in GRAPHS:
        return GRAPHS[text](nodes, size, seed)
    if not Path(text).is_file():
        raise UnknownName("graph", text, [*GRAPHS, "a file of edges"])
    try:
        pairs = np.loadtxt(text, dtype=np.int64, ndmin=2, delimiter=None)
    except ValueError as problem:
        raise GraphError(f"{text}: {problem}; give two node numbers a line") from None
    read = Graph.from_edges(pairs)
    if read.nodes != nodes:
        raise GraphError(
            f"{text} has {read.nodes} nodes and the data are split over {nodes}: "
            f"give --nodes {read.nodes}, or other edges"
        )
    return read


def edge_count(nodes: int, size: GraphSize) -> int:
    most = nodes * (nodes - 1) // 2
    return min(5 * nodes // 2, most) if size.edges is None else size.edges


def sides(nodes: int, size: GraphSize) -> tuple[int, int]:
    if size.rows is None and size.cols is None:
        rows = max(r for r in range(1, int(nodes**0.5) + 1) if nodes % r == 0)
        return rows, nodes // rows
    rows = nodes // max(size.cols or 1, 1) if size.rows is None else size.rows
    return rows, nodes // max(rows, 1) if size.cols is None else size.cols


# --- methods --------------------------------------------------------------------------------------


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
    if name == AUTO:
        raise MethodError(
            f"{settings[0]!r} sets a parameter of a method that {AUTO} is yet to choose: name one, "
            "as saga-pd"
        )
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
    """Of which the method finds no other by itself."""
    if part is None:
        return set()
    return {f.name for f in fields(part)} - {"gradient", "steps", "enough"}


def literal(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return np.array(numbers_in(text))
    except ValueError:
        return text


def numbers_in(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


# --- faults ---------------------------------------------------------------------------------------


def faults(settings: dict[str, Any], feedback: bool = True, seed: int = 0) -> Faults | None:
    """From what `Faults` takes: numbers as they are, `awake` and events as texts. None where all
    are None."""
    given = {name: value for name, value in settings.items() if value not in (None, [])}
    if "awake" in given:
        given["awake"] = steps(given["awake"])
    for name in EVENTS.keys() & given.keys():
        given[name] = [event(name, text) for text in given[name]]
    return Faults(**given, feedback=feedback, seed=seed) if given else None


def event(name: str, text: str) -> tuple[int, ...]:
    usage = EVENTS[name]
    if not re.fullmatch(r"\d+" + r":\d+" * usage.count(":"), text):
        raise MethodError(f"--{name} {text!r} cannot be read: give {usage}")
    return tuple(map(int, text.split(":")))
