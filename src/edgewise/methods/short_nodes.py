"""Nodes of few unknowns in a block with some of many: all models are as long as the longest there,
but whether a node takes Newton's steps is its own affair, and that of no other. So a peer, who sees
no other, takes the steps that the simulator takes for it."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.methods.quadratic_prox import MOST_UNKNOWNS
from edgewise.problem.block import Block
from edgewise.problem.costs import Costs, Sized
from edgewise.problem.rows import Dense
from edgewise.problem.stacked_penalties import StackedPenalties


def longest_short(sizes: np.ndarray) -> int:
    """Unknowns of the largest node that has few, where others have many; else 0."""
    few = sizes[sizes <= MOST_UNKNOWNS]
    return int(few.max()) if len(few) < len(sizes) and len(few) else 0


def has_short(p: Block, size: int) -> bool:
    """Whether any of the block's nodes has no more unknowns."""
    return any(isinstance(m, Sized) and m.size <= size for m in p.penalty.members)


def shortened(p: Block, size: int) -> tuple[Block, Array]:
    """The block with models of this size, right for nodes that have no more, and (v,) which these
    are: their penalties say so, as those of all nodes shorter than others do."""
    kept = [
        (member, mask)
        for member, mask in zip(p.penalty.members, p.penalty.masks, strict=True)
        if isinstance(member, Sized) and member.size <= size
    ]
    members, masks = (tuple(part) for part in zip(*kept, strict=True))
    if isinstance(p.rows, Dense):
        rows: Any = replace(p.rows, values=p.rows.values[:, :size])
    else:  # what others have beyond is not looked at
        rows = replace(p.rows, columns=jnp.minimum(p.rows.columns, size - 1), features=size)
    cost = p.cost
    if cost is not None:
        cost = Costs(cost.Q[:, :size, :size], cost.q[:, :size], cost.lossy)
    short = p._replace(rows=rows, penalty=StackedPenalties(members, masks, 0), cost=cost)
    return short, jnp.stack(masks).any(0)


def shortened_matrix(bend: Array, size: int) -> Array:
    """(v, size, size) of a matrix, or of a diagonal."""
    if bend.ndim == 2:
        return jax.vmap(jnp.diag)(bend[:, :size])
    return bend[:, :size, :size]


def chosen(short: Array, few: Array, many: Array) -> Array:
    """(v, n) what was found for the short nodes, and for the others."""
    long = jnp.pad(few, ((0, 0), (0, many.shape[1] - few.shape[1])))
    return jnp.where(short[:, None], long, many)
