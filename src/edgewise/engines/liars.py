"""Nodes that say other numbers than they have: what a robust method is tried against."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.errors import GraphError, MethodError, UnknownName, whole_number

# what each attack's strength is where none is given
ATTACKS = {"flip": 1.0, "large": 1e3, "drift": 0.1, "model": 10.0}


@dataclass(frozen=True, eq=False)
class Liars:
    """Nodes that follow the method, but lie in all that they send: `Faults(liars=Liars(0.1))`.

    share     part of the nodes, rounded, that lie: drawn from `seed`
    attack    "flip": minus strength times the message; "large": strength times it; "drift": as if
              its model were off by a vector of length strength; "model": as if its model were one
              of length strength, whatever it hears. These two are of directions drawn for each liar
    strength  default: 1, 1000, 0.1 and 10
    nodes     who lies, instead of share
    since     the first round in which they do
    seed      of who lies, and of directions

    A liar whose data are invented, and which is honest otherwise, needs no fault: give it such
    data.

    >>> Liars(0.2, "model").who(10)
    array([4, 6])
    """

    share: float = 0.1
    attack: str = "flip"
    strength: float | None = None
    nodes: Any = None
    since: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.attack not in ATTACKS:
            raise UnknownName("attack", self.attack, list(ATTACKS))
        if self.nodes is None and not (
            isinstance(self.share, int | float | np.number) and 0 <= self.share < 1
        ):
            raise MethodError(f"share={self.share!r}: give the part of the nodes that lie")
        strength = ATTACKS[self.attack] if self.strength is None else self.strength
        if not (isinstance(strength, int | float | np.number) and 0 < strength < np.inf):
            raise MethodError(f"strength={self.strength!r}: give a positive number")
        object.__setattr__(self, "strength", float(strength))
        if self.nodes is not None:
            given = [whole_number("nodes", node, 0, MethodError) for node in np.ravel(self.nodes)]
            object.__setattr__(self, "nodes", tuple(sorted(set(given))))
        whole_number("since", self.since, 0, MethodError)
        whole_number("the liars' seed", self.seed, 0, MethodError)

    def who(self, nodes: int) -> np.ndarray:
        """The liars' numbers, sorted, in a network of so many nodes."""
        if self.nodes is not None:
            return np.array(self.nodes, np.int64)
        many = round(self.share * nodes)
        return np.sort(np.random.default_rng(self.seed).permutation(nodes)[:many])

    def fit(self, nodes: int) -> None:
        """Refuse who is not there."""
        wrong = [node for node in self.who(nodes) if node >= nodes]
        if wrong:
            raise GraphError(f"liars: there is no node {wrong[0]}, nodes are 0 to {nodes - 1}")

    def lies(self, nodes: int, size: int, rho: Any, owner: np.ndarray, dtype: Any) -> "Lies":
        """For the engine; rho: (e,) weights of the edges, None where there are none."""
        if rho is None and self.attack in ("drift", "model"):
            raise MethodError(
                f"attack {self.attack!r} is made of an edge's weight, which this method has not: "
                'use "flip" or "large", or a method such as saga-pd or lt-saga-pd'
            )
        lying = np.zeros(nodes, bool)
        lying[self.who(nodes)] = True
        way = np.random.default_rng([self.seed, 1]).normal(size=(nodes, size))
        way *= self.strength / np.linalg.norm(way, axis=1, keepdims=True)
        scale = np.ones(len(owner)) if rho is None else np.asarray(rho)
        arrays = (jnp.asarray(way, dtype), jnp.asarray(scale, dtype))
        own = jnp.asarray(lying), jnp.asarray(owner)
        return Lies(*own, *arrays, jnp.asarray(self.strength, dtype), self.since, self.attack)


@pytree("since", "attack")
class Lies:
    """What liars make of an outbox."""

    lying: Any  # (v,)
    owner: Any  # (e,)
    way: Any  # (v, n) what a model is moved by, or moved to
    rho: Any  # (e,)
    strength: Any  # ()
    since: int
    attack: str

    def told(
        self, hears: tuple[str, ...], outbox: tuple[Array, ...], heard: tuple[Array, ...], t: Array
    ) -> tuple[Array, ...]:
        """The outbox as it goes out in round t; heard: what came last along each edge."""

        def lie(kind: str, out: Array, last: Array) -> Array:
            if kind == "news":
                return out  # heads and bodies that go by rules of their own
            each = kind == "each"
            who = self.lying[self.owner] if each else self.lying
            way = 2 * self.rho[:, None] * self.way[self.owner] if each else self.way
            said = {
                "flip": lambda: -self.strength * out,
                "large": lambda: self.strength * out,
                "drift": lambda: out + way,
                "model": lambda: way - last if each else way + 0 * out,
            }[self.attack]()
            return jnp.where(who[:, None] & (t >= self.since), said, out)

        return tuple(map(lie, hears, outbox, heard))
