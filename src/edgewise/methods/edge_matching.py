"""Edge weights that fit the two ends, found on the way.

An edge is to a node what a load is to a source: the more of the difference, the larger the dual.
How stiff an end is, k = |change of lambda| / |change of A x|, each end sees in its own numbers,
row by row, and tells. The weight of a row is sqrt(k_i k_j), so that neither end dominates: as for
lines and loads, what is sent is then taken in at once and not thrown back. The constants were
chosen by trying some hundred settings of a NumPy prototype on power flow, transport, quadratic and
consensus problems; `benchmarks/couplings.py` measures them on others.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

FIRST, GROWTH, LAST = 10, 1.3, 2000  # rounds in which ends look; then weights stay
MOST = 10.0  # times that a weight changes at once
OF_EDGE, OF_NODE = 0.1, 0.01  # how much a row goes by the others of its edge, and of its node
DIGITS = 1 / 3  # of a number's: that many at most a weight takes from a dual, by rounding of A x
NOTHING = 1e-28  # squared, beside what there is: no change to learn from


def look_rounds() -> np.ndarray:
    rounds, at = [], float(FIRST)
    while at <= LAST:
        rounds.append(round(at))
        at *= GROWTH
    return np.array(rounds)


LOOKS = look_rounds()


class Window(NamedTuple):
    """What has happened since an end last looked."""

    lam: Array  # (e, m) the dual then
    a: Array  # (e, m) A x - c/2 then
    lam_way: Array  # (e, m) squared changes of the dual, added up
    a_way: Array  # (e, m)


def open_window(lam: Array, a: Array) -> Window:
    return Window(lam, a, jnp.zeros_like(a), jnp.zeros_like(a))


def watched(w: Window, lam: Array, a: Array) -> Window:
    """After changes (e, m) of a round."""
    return w._replace(lam_way=w.lam_way + lam**2, a_way=w.a_way + a**2)


def matched(
    w: Window,
    lam: Array,
    a: Array,
    rho: Array,
    k: Array,
    taken: Array,
    links: Any,
    grouped: Array,
    real: Array,
    alive: Array,
) -> tuple[Array, Window]:
    """How stiff each end is, and the window, anew at nodes that look after so many steps (v, 1).
    Rows that are not real count nowhere: how many there are depends on who else is in the block."""
    looks = jnp.isin(taken[:, 0].astype(jnp.int32), LOOKS)[links.owner][:, None]
    v, safe = len(taken), jnp.where(rho > 0, rho, 1)
    rows = jnp.maximum(real.sum(1, keepdims=True), 1)
    # the geometric mean of where a window led and of all the ways in it, in units of both alike
    rise = jnp.where(alive, jnp.sqrt(w.lam_way) * jnp.abs(lam - w.lam) / safe, 0)
    run = jnp.where(alive, jnp.sqrt(w.a_way) * jnp.abs(a - w.a) * safe, 0)

    def pooled(each: Array) -> Array:
        many = jnp.maximum(grouped.sum(1, keepdims=True), 1)
        mean = jnp.where(grouped, each, 0).sum(1, keepdims=True) / many
        each = jnp.where(grouped, mean, each)  # one weight for rows whose length counts
        edge = jnp.where(real, each, 0).sum(1, keepdims=True) / rows
        count = jnp.maximum(links.gather(alive.astype(each.dtype), v), 1)
        node = (links.gather(edge, v) / count)[links.owner]
        return each + OF_EDGE * edge + OF_NODE * node

    rise, run = pooled(rise), pooled(run)
    still = rise + run <= NOTHING * (1 + lam**2 / safe + safe * a**2)
    # rows whose length counts are still together or not at all: with weights of their own they
    # would settle where the dual does not point along the difference
    still = jnp.where(grouped, (still | ~grouped).all(1, keepdims=True), still)
    ratio = jnp.sqrt(rise / jnp.where(run > 0, run, 1))
    factor = jnp.clip(jnp.where(run > 0, ratio, MOST), 1 / MOST, MOST)
    found = jnp.where(still | (rho <= 0), k, rho * factor)
    found = jnp.where(still & (rho > 0), rho, found)

    def length(each: Array) -> Array:
        together = jnp.sqrt(jnp.where(grouped, each**2, 0).sum(1, keepdims=True))
        return jnp.where(grouped, together, jnp.abs(each))

    # who is held at a bound does not move, however duals change, and would seem ever stiffer
    digits = jnp.finfo(lam.dtype).eps ** DIGITS
    found = jnp.minimum(found, (1 + length(lam)) / (1 + length(a)) / digits)
    fresh = open_window(lam, a)
    chosen = Window(*(jnp.where(looks, new, old) for new, old in zip(fresh, w, strict=True)))
    return jnp.where(looks, found, k), chosen
