"""The penalties of all nodes of a block as one: stacked where they are alike."""

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.placed import placed
from edgewise.backend.pytree import pytree
from edgewise.errors import ProblemError
from edgewise.problem.contract import Penalty
from edgewise.problem.penalties import Checked
from edgewise.problem.penalty_sum import PenaltySum, as_pytree, takes_steps


@pytree("free")
class StackedPenalties:
    """All nodes' penalties: the leaves of each member, one per kind of penalty, lead with the
    node axis, and its mask says whose rows it decides."""

    members: tuple[Penalty, ...]  # vmapped
    masks: tuple[Array, ...]
    free: int

    @property
    def smooth(self) -> bool:
        """Whether all are absent or quadratic: a step in the metric of a matrix needs no prox."""
        return all(
            getattr(member, "absent", False) or getattr(member, "quadratic", False)
            for member in self.members
        )

    def at_nodes(self, declared: str) -> Array:
        """(v,) whose penalty declares it: "absent"; "quadratic", its `ridge` and nothing else; or
        "separable", a sum over coordinates, so that `prox` takes a step for each of them."""
        said = [getattr(member, declared, False) for member in self.members]
        return jnp.stack([mask & flag for mask, flag in zip(self.masks, said, strict=True)]).any(0)

    def ridge(self, X: Array) -> Array:
        """(v, n) r, with h_i(x) - sum_k r_k x_k^2 / 2 still convex: what penalties declare."""
        x = X[:, : X.shape[1] - self.free]

        def declared(member: Any, row: Array) -> Array:
            return jnp.broadcast_to(jnp.asarray(getattr(member, "ridge", 0), x.dtype), row.shape)

        every = [jax.vmap(declared)(member, x) for member in self.members]
        masks = [mask[:, None] for mask in self.masks]
        chosen = jnp.select(masks, every) if len(every) > 1 else every[0]
        return jnp.pad(chosen, ((0, 0), (0, self.free)))

    def value(self, X: Array) -> Array:
        X = X[:, : X.shape[1] - self.free]
        values = [jax.vmap(lambda p, x: p.value(x))(m, X) for m in self.members]
        return jnp.select(self.masks, values) if len(values) > 1 else values[0]

    def prox(self, X: Array, t: Array) -> Array:
        """t: (v, 1), or (v, n), of which penalties that take one step for all take the first."""
        X, untouched = jnp.split(X, [X.shape[1] - self.free], axis=1)

        def points(member: Penalty) -> Array:
            each = t.shape[1] > 1 and takes_steps(member)
            steps = t[:, : X.shape[1]] if each else t[:, 0]
            made: Array = jax.vmap(lambda p, x, s: p.prox(x, s))(member, X, steps)
            return made

        masks = [mask[:, None] for mask in self.masks]
        every = [points(member) for member in self.members]
        chosen = jnp.select(masks, every) if len(every) > 1 else every[0]
        return jnp.concatenate([chosen, untouched], axis=1) if self.free else chosen


def stack(penalties: Any, nodes: int, size: int, free: int = 0) -> StackedPenalties:
    """One block with value(X) -> (v,) and prox(X, t) -> (v, n), for X (v, n) and t (v, 1).

    `penalties` is one, or one per node: any objects with value(x) and prox(x, t), compiled in if
    they are no pytrees. The last `free` of the `size` coordinates are outside the penalty.
    """
    each = _listed(penalties)
    if each and each[0] is penalties:
        each = each * nodes
    if len(each) != nodes:
        raise ProblemError(f"{len(each)} penalties for {nodes} nodes: give one, or one per node")
    first_at: dict[int, int] = {}
    source = np.array([first_at.setdefault(id(p), at) for at, p in enumerate(each)])
    kinds: dict[Any, dict[int, list[Any]]] = {}
    for at in first_at.values():
        leaves, structure = jax.tree.flatten(as_pytree(each[at]))
        shapes = [np.shape(leaf) for leaf in leaves]
        require_fit(each[at], size - free)
        kinds.setdefault((structure, *shapes), {})[at] = leaves
    members, masks = [], []
    for (structure, *_), leaves_at in kinds.items():
        mask = np.isin(source, list(leaves_at))
        # Nodes of another kind get some parameters of this one; their result is not selected.
        row = np.where(mask, np.searchsorted(list(leaves_at), source), 0)
        stacked = [rows_of(leaf, row) for leaf in zip(*leaves_at.values(), strict=True)]
        members.append(jax.tree.unflatten(structure, stacked))
        masks.append(placed(mask))
    return StackedPenalties(tuple(members), tuple(masks), free)


def rows_of(leaves: tuple[Any, ...], row: np.ndarray) -> Any:
    """One parameter of all nodes. Users may differentiate by it: it is traced then."""
    if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        return jnp.array(leaves)[row]
    return placed(np.array(leaves)[row])


def require_fit(penalty: Any, size: int) -> None:
    """That vectors among the parameters of the library's penalties have so many entries."""
    for part in penalty.parts if isinstance(penalty, PenaltySum) else (penalty,):
        shapes = {np.shape(leaf) for leaf in jax.tree.leaves(part)}
        if isinstance(part, Checked) and not shapes <= {(), (size,)}:
            raise ProblemError(f"{part} does not fit: give vectors of {size} entries")


def same(penalties: Any) -> bool:
    """Whether all nodes have equal penalties: one object, or one class with equal parameters."""
    each: list[Any] = [jax.tree.flatten(as_pytree(p)) for p in _listed(penalties)]
    return all(k == each[0][1] and all(map(np.array_equal, v, each[0][0])) for v, k in each)


def _listed(penalties: Any) -> list[Any]:
    several = isinstance(penalties, Iterable) and not hasattr(penalties, "prox")
    listed = list(penalties) if several else [penalties]
    for p in listed:
        if isinstance(p, type) or not (hasattr(p, "value") and hasattr(p, "prox")):
            raise ProblemError(f"{p!r} is no penalty: give an object with value(x), prox(x, t)")
    return listed
