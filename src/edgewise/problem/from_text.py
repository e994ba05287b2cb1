"""Losses and penalties from text: `logistic`, `l1:0.1`, `l1:0.1 + box:-1,1`."""

import re
from collections.abc import Callable
from dataclasses import replace
from operator import add, and_
from typing import Any, NamedTuple

import numpy as np

from edgewise.errors import ProblemError, UnknownName
from edgewise.problem.cox import CoxPH
from edgewise.problem.families import (
    Binomial,
    Gamma,
    NegativeBinomial,
    Poisson,
    Quantile,
    Tweedie,
)
from edgewise.problem.losses import (
    Huber,
    Logistic,
    Multinomial,
    Sigmoid,
    SmoothedHinge,
    Squared,
)
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
    "sigmoid": Syntax("sigmoid", Sigmoid),
    "multinomial": Syntax("multinomial", Multinomial),
    "poisson": Syntax("poisson", Poisson),
    "gamma": Syntax("gamma", Gamma),
    "tweedie": Syntax("tweedie:POWER", Tweedie, 0, 1),
    "negative-binomial": Syntax("negative-binomial:DISPERSION", NegativeBinomial, 0, 1),
    "binomial": Syntax("binomial", Binomial),
    "quantile": Syntax("quantile:LEVEL,WIDTH", Quantile, 0, 2),
    "cox": Syntax("cox", CoxPH),
    "cox-breslow": Syntax("cox-breslow", lambda: CoxPH("breslow")),
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
PLUS = r"[+&](?=\s*(?!inf|nan)[a-z])"  # between two penalties, and not of a number such as 1e+3


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


def loss_of(given: Any) -> Any:
    """A loss as it is, or from its text."""
    return parse("loss", given, LOSSES) if isinstance(given, str) else given


def penalty_of(text: str) -> Any:
    """`l1:0.1`, or several that add up, or sets that intersect: `l1:0.1 + box:-1,1`."""
    first, *others = re.split(f"({PLUS})", text)
    made = parse("penalty", first, PENALTIES)
    for sign, part in zip(others[::2], others[1::2], strict=True):
        made = (add if sign == "+" else and_)(made, parse("penalty", part, PENALTIES))
    return made


def penalties_of(given: Any, nodes: int) -> Any:
    """Penalties as they are, or from texts: one for all, some with the nodes that they are for, or
    a list with one per node."""
    if isinstance(given, str):
        return penalty([given], nodes)
    if not isinstance(given, list | tuple) or not any(isinstance(h, str) for h in given):
        return given
    if all(isinstance(h, str) for h in given) and any("=" in h for h in given):
        return penalty(list(given), nodes)
    return [penalty_of(h) if isinstance(h, str) else h for h in given]


def penalty(texts: list[str] | None, nodes: int) -> Any:
    """One for all, or one per node where some are for some nodes only."""
    for_all: Any = None
    some: dict[int, Any] = {}
    for text in texts or []:
        who, equals, what = text.rpartition("=")
        if not equals:
            if for_all is not None:
                raise ProblemError(f"penalty {text!r} is the second for all nodes: give one")
            for_all = penalty_of(what)
            continue
        span = re.fullmatch(r"(\d+)(?:-(\d+))?", who)
        first, last = (int(span[1]), int(span[2] or span[1])) if span else (0, -1)
        if not 0 <= first <= last < nodes:
            raise ProblemError(
                f"penalty {text!r}: {who!r} are no nodes: give a number or two from 0 to "
                f"{nodes - 1}, as 3=l1:0.1 or 0-4=l1:0.1"
            )
        one = penalty_of(what)
        some |= dict.fromkeys(range(first, last + 1), one)
    return [some.get(i, for_all) for i in range(nodes)] if some else for_all


def numbers_in(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]
