"""The tables of a peer's own problem, [between], [cost] and [penalty], as far as can be checked
before anything is made of them: reading a configuration takes no time, and no JAX."""

from collections.abc import Mapping
from typing import Any

from edgewise.errors import InputError, UnknownName
from edgewise.peers.config.rules import is_number

ALL = "all"
COST = ("Q", "q", "smoothness")


def require_between(between: Any, neighbours: list[int], at: str) -> dict[str, Any]:
    """The table, if it says something of every neighbour and of nobody else."""
    if not isinstance(between, Mapping):
        raise InputError(f"{at}: between is no table: write [between]")
    known = {ALL, *map(str, neighbours)}
    for key in between:
        if key not in known:
            raise UnknownName(f"key in {at}:", f"between.{key}", [f"between.{k}" for k in known])
    for id in neighbours:
        if between and not {ALL, str(id)} & set(between):
            raise InputError(
                f"{at}: between says nothing of neighbour {id}: give between.{id}, or between.all "
                "for every neighbour that has none"
            )
    return dict(between)


def require_cost(cost: Any, coupled: bool, at: str) -> dict[str, Any]:
    """What `Quadratic` takes, or `Linear`; and what first steps go by where it has no curvature."""
    checked = table("cost", cost, at)
    for key in checked:
        if key not in COST:
            raise UnknownName(f"key in {at}:", f"cost.{key}", [f"cost.{k}" for k in COST])
    flat = checked.get("smoothness", 1.0)
    if not is_number(flat) or flat <= 0:
        raise InputError(f"{at}: cost.smoothness is {flat!r}: give a positive number")
    if checked and not coupled:
        raise InputError(
            f'{at}: [cost] goes with [between]: give that too, all = "equal" where models are'
        )
    return checked


def require_penalty(penalty: Any, texts: Any, at: str) -> dict[str, Any]:
    """A penalty with vectors: its kind, and what it takes."""
    checked = table("penalty", penalty, at)
    if checked and texts:
        raise InputError(f"{at}: both peer.penalty and [penalty] are there: leave one out")
    if checked and not isinstance(checked.get("kind"), str):
        raise InputError(f"{at}: penalty.kind is missing: give box, budget, l1 or another penalty")
    return checked


def table(name: str, given: Any, at: str) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise InputError(f"{at}: {name} is no table: write [{name}]")
    return dict(given)
