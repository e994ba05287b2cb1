"""Losses, penalties, couplings, graphs, methods, steps and faults from text: `l1:0.1`, `ring`."""

import json
import re
from dataclasses import fields, replace
from typing import Any

import numpy as np

from edgewise.engines.faults import Faults
from edgewise.engines.liars import Liars
from edgewise.errors import MethodError, ProblemError
from edgewise.graph.from_text import GRAPHS as GRAPHS
from edgewise.graph.from_text import GraphSize as GraphSize
from edgewise.graph.from_text import graph as graph
from edgewise.methods.catalogue import AUTO, make
from edgewise.problem.couplings import Coupling, Shared, Term
from edgewise.problem.from_text import ANY_NUMBER, Syntax, parse
from edgewise.problem.from_text import LOSSES as LOSSES
from edgewise.problem.from_text import PENALTIES as PENALTIES
from edgewise.problem.from_text import loss as loss
from edgewise.problem.from_text import numbers_in as numbers_in
from edgewise.problem.from_text import penalty as penalty
from edgewise.problem.prices import NetworkHuber, NetworkLasso, NetworkRidge

BETWEEN = {
    "equal": Syntax("equal", Coupling),
    "shared": Syntax("shared:I,J,...", lambda *at: Shared(whole("shared", at)), 1, ANY_NUMBER),
    "lasso": Syntax("lasso:WEIGHT", NetworkLasso, 1, 1),
    "lasso-l1": Syntax("lasso-l1:WEIGHT", lambda weight: NetworkLasso(weight, norm=1), 1, 1),
    "ridge": Syntax("ridge:WEIGHT", NetworkRidge, 1, 1),
    "huber": Syntax("huber:WEIGHT,DELTA", NetworkHuber, 2, 2),
}
EVENTS = {
    "down": "I:J:FIRST:LAST",
    "wipe": "NODE:ROUND",
    "leave": "NODE:ROUND",
    "join": "NODE:ROUND",
}


# --- couplings ------------------------------------------------------------------------------------


def between(text: str) -> Term:
    """What holds between neighbours."""
    made: Term = parse("coupling", text, BETWEEN)
    return made


def whole(name: str, numbers: Any) -> list[int]:
    if any(number != int(number) for number in numbers):
        raise ProblemError(f"{name}:{','.join(map(str, numbers))}: give whole numbers, from 0 up")
    return [int(number) for number in numbers]


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


# --- faults ---------------------------------------------------------------------------------------


def faults(settings: dict[str, Any], feedback: bool = True, seed: int = 0) -> Faults | None:
    """From what `Faults` takes: numbers as they are, `awake`, `liars` and events as texts. None
    where all are None."""
    given = {name: value for name, value in settings.items() if value not in (None, [])}
    if "awake" in given:
        given["awake"] = steps(given["awake"])
    if "liars" in given:
        given["liars"] = liars(given["liars"], seed)
    for name in EVENTS.keys() & given.keys():
        given[name] = [event(name, text) for text in given[name]]
    return Faults(**given, feedback=feedback, seed=seed) if given else None


def liars(text: str, seed: int = 0) -> Liars:
    said = text.split(":")
    try:
        share, strength = float(said[0]), float(said[2]) if len(said) > 2 else None
    except ValueError:
        said = []
    if not 2 <= len(said) <= 3:
        raise MethodError(
            f"liars {text!r} cannot be read: give SHARE:ATTACK, as 0.1:flip, or "
            "SHARE:ATTACK:STRENGTH"
        )
    return Liars(share, said[1], strength, seed=seed)


def event(name: str, text: str) -> tuple[int, ...]:
    usage = EVENTS[name]
    if not re.fullmatch(r"\d+" + r":\d+" * usage.count(":"), text):
        raise MethodError(f"--{name} {text!r} cannot be read: give {usage}")
    return tuple(map(int, text.split(":")))
