"""[between]: what a peer's edges carry, as its own end of each says it.

all = "lasso:0.1"                                  for every neighbour that has no entry of its own
2 = { A = [[1.0, 0.0]], c = 2.0, sense = "<=" }    on the edge to peer 2, A of this peer alone
3 = ["shared:0,2", { A = "line3.npz", c = 1.0 }]   several things on one edge
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgewise import spec
from edgewise.errors import InputError, UnknownName
from edgewise.peers.config.arrays import array_in
from edgewise.peers.config.tables import ALL
from edgewise.problem.couplings import Coupling, Term, matrix
from edgewise.problem.prices import NetworkHuber, NetworkLasso, Price

HASH = "sha256:"
ROWS = ("A", "other", "c", "sense")
PRICED = ("price", "on", "norm")


class OwnTerm(NamedTuple):
    """One of the things that an edge carries, as this peer knows it."""

    term: Term
    stated: bool  # A is this end's own; else the rows are of the difference, lower number first
    other: Any = None  # the neighbour's matrix, or its hash as text, where this end knows it


def terms_towards(between: Mapping[str, Any], id: int, folder: Path, at: str) -> list[OwnTerm]:
    """What the edge to this neighbour carries; files are relative to the folder."""
    key = str(id) if str(id) in between else ALL
    given, name = between[key], f"{at}: between.{key}"
    parts = list(given) if isinstance(given, list | tuple) else [given]
    if not parts:
        raise InputError(f"{name} is an empty list: say what the edge carries, or leave it out")
    return [term_of(part, folder, name) for part in parts]


def term_of(given: Any, folder: Path, name: str) -> OwnTerm:
    if isinstance(given, str):
        return OwnTerm(spec.between(given), stated=False)
    if not isinstance(given, Mapping):
        raise InputError(
            f"{name} is {given!r}: give a text as lasso:0.1, a table with A, or a list"
        )
    known = PRICED if "price" in given else ROWS
    for key in given:
        if key not in known:
            raise UnknownName("key in", f"{name}.{key}", [f"{name}.{k}" for k in known])
    return priced(given, name) if "price" in given else coupled(given, folder, name)


def coupled(given: Mapping[str, Any], folder: Path, name: str) -> OwnTerm:
    A = array_in(given.get("A"), folder, "A", f"{name}.A")
    other = given.get("other")
    if not (isinstance(other, str) and other.startswith(HASH)):
        other = matrix("other", array_in(other, folder, "A", f"{name}.other"))
    c = array_in(given.get("c", 0.0), folder, "c", f"{name}.c")
    return OwnTerm(Coupling(A, c=c, sense=given.get("sense", "=")), A is not None, other)


def priced(given: Mapping[str, Any], name: str) -> OwnTerm:
    """A price of some coordinates, or by another norm."""
    plain = spec.between(given["price"]) if isinstance(given["price"], str) else None
    if not isinstance(plain, Price):
        raise InputError(
            f"{name}.price is {given['price']!r}: give lasso:W, ridge:W or huber:W,DELTA"
        )
    on = None if "on" not in given else np.asarray(given["on"])
    made: Price
    if isinstance(plain, NetworkLasso):
        made = NetworkLasso(plain.weight, on, given.get("norm", 2 if plain.grouped else 1))
    elif "norm" in given:
        raise InputError(f"{name}.norm goes with lasso alone: leave it out")
    elif isinstance(plain, NetworkHuber):
        made = NetworkHuber(plain.weight, plain.delta, on)
    else:
        made = type(plain)(plain.weight, on)
    return OwnTerm(made, stated=False)
