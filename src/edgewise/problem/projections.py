"""Proxes and projections by a root on a line, piece by piece: right to the last digits, and with a
derivative."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

HALVINGS = 60  # of a stretch from 0 to 1: to rounding, in float64 too


def soften(x: Array, threshold: Any) -> Array:
    """The prox of threshold |x|₁."""
    return x - jnp.clip(x, -threshold, threshold)


def onto_simplex(x: Array, radius: Any) -> Array:
    """Not by optax: in 0.2.8 its projection_simplex fails in float32 under x64, and its sum is off
    by as many roundings as there are coordinates."""
    x = x - jax.lax.stop_gradient(x.max())
    partial_sums = jnp.cumsum(jax.lax.stop_gradient(jnp.sort(x)[::-1]))
    x = x - ((partial_sums - radius) / jnp.arange(1, x.size + 1, dtype=x.dtype)).max()
    support = x > 0
    # This makes the sum right to the last digits, and carries the derivative.
    surplus = jnp.where(support, x, 0).sum() - radius
    return jnp.maximum(x - surplus / support.sum().astype(x.dtype), 0)


def onto_l1_ball(x: Array, radius: Any) -> Array:
    outside = jnp.abs(x).sum() > radius
    return jnp.where(outside, jnp.sign(x) * onto_simplex(jnp.abs(x), radius), x)


def onto_plane(
    x: Array,
    t: Array,
    a: Array,
    b: Array,
    equal: bool,
    lower: Array,
    upper: Array,
    threshold: Array | None = None,
) -> Array:
    """argmin_u |u - x|² / 2t + threshold/t |u|₁ where lower <= u <= upper and a·u = b, or <= b.

    It is clip(soft(x - nu t a), lower, upper) with the nu that a·u = b wants: a·u falls in nu piece
    by piece, so that nu is bracketed by two of its corners, and then read off a line. t: a number,
    or one per coordinate; threshold: of the same shape.
    """
    way = a if jnp.ndim(t) == 0 else t * a
    low, high = jnp.broadcast_to(lower, x.shape), jnp.broadcast_to(upper, x.shape)
    moves = way != 0

    def soft(y: Array) -> Array:
        return y if threshold is None else soften(y, threshold)

    def at(nu: Array) -> Array:
        return jnp.clip(soft(x - nu * way), low, high)

    # where each coordinate meets its bounds or zero: between two such corners a·u is a line in nu
    meets = [low, high]
    if threshold is not None:
        meets = [c + threshold * jnp.sign(c) for c in meets]
        meets += [jnp.broadcast_to(threshold, x.shape), jnp.broadcast_to(-threshold, x.shape)]
    corners = jnp.concatenate([(x - c) / jnp.where(moves, way, 1) for c in meets])
    real = jnp.isfinite(corners) & jnp.tile(moves, len(meets))
    corners = jnp.sort(jnp.where(real, jax.lax.stop_gradient(corners), jnp.inf))
    count = real.sum()

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        """Corners before `first` are too short; from `last` on too far."""
        first, last = ends
        middle = (first + last) // 2
        short = (a * at(corners[jnp.minimum(middle, corners.size - 1)])).sum() >= b
        open_ = first < last
        first = jnp.where(open_ & short, middle + 1, first)
        return first, jnp.where(open_ & ~short, middle, last)

    steps = int(corners.size).bit_length()
    found, _ = jax.lax.fori_loop(0, steps, halve, (jnp.zeros_like(count), count))
    before = jnp.where(found > 0, corners[jnp.maximum(found - 1, 0)], -jnp.inf)
    after = jnp.where(found < count, corners[jnp.minimum(found, corners.size - 1)], jnp.inf)
    # a point within the piece tells who moves there; beyond the last corner any will do
    inner = jnp.where(jnp.isfinite(before), before, jnp.where(jnp.isfinite(after), after, 0) - 1)
    outer = jnp.where(jnp.isfinite(after), after, inner + 2)
    middle = 0.5 * (inner + outer)
    y = x - middle * way
    there = at(middle)
    free = moves & (soft(y) > low) & (soft(y) < high)
    pulled = x
    if threshold is not None:
        free &= jnp.abs(y) > threshold
        pulled = x - threshold * jnp.sign(y)
    slope = jnp.where(free, a * way, 0).sum()
    gap = jnp.where(free, a * pulled, a * there).sum() - b
    nu = gap / jnp.where(slope > 0, slope, 1)
    # no one moves: a corner is it, where a·u = b by itself
    held = at(jnp.where(jnp.isfinite(before), before, inner))
    made = jnp.where(slope > 0, jnp.where(free, pulled - nu * way, there), held)
    if equal:
        return made
    plain = at(jnp.zeros((), x.dtype))
    return jnp.where((a * plain).sum() <= b, plain, made)


def onto_ball(x: Array, radius: Array, lower: Array, upper: Array) -> Array:
    """Onto |u| <= radius and lower <= u <= upper: clip(s x, lower, upper), whose norm grows in s
    from 0 to 1."""
    low, high = jnp.broadcast_to(lower, x.shape), jnp.broadcast_to(upper, x.shape)
    still = jax.lax.stop_gradient(x)

    def at(s: Array) -> Array:
        return jnp.clip(s * still, low, high)

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        first, last = ends
        middle = 0.5 * (first + last)
        inside = (at(middle) ** 2).sum() <= radius**2
        return jnp.where(inside, middle, first), jnp.where(inside, last, middle)

    ends = jnp.zeros((), x.dtype), jnp.ones((), x.dtype)
    s = 0.5 * sum(jax.lax.fori_loop(0, HALVINGS, halve, ends))
    there = at(s)
    free = (s * still > low) & (s * still < high)
    square = jnp.where(free, x * x, 0).sum()
    left = jnp.maximum(radius**2 - jnp.where(free, 0, there**2).sum(), 0)
    some = (square > 0) & (left > 0)
    exact = jnp.sqrt(jnp.where(some, left, 1) / jnp.where(some, square, 1))
    made = jnp.where(free, jnp.where(some, exact, s) * x, there)
    plain = jnp.clip(x, low, high)
    return jnp.where((plain**2).sum() <= radius**2, plain, made)


MEMORY = 8  # steps that Anderson's acceleration looks back on
MOST_STEPS = 3000
LONGEST, FALL = 30.0, 0.95  # an accelerated step beside a plain one; what it must leave at most
CLOSE = 1e-12  # of the way, where steps end; some roundings in float32


def fixed_point(T: Callable[[Array], Array], start: Array) -> Array:
    """s = T(s), T averaged: plain steps, with Anderson's acceleration where the displacement falls
    by it."""
    accuracy = max(CLOSE, 8 * float(jnp.finfo(start.dtype).eps))
    relative = 1e-10 if start.dtype == jnp.float64 else 1e-5  # what rounding leaves of steps

    def size(a: Array) -> Array:
        return jnp.sqrt((a * a).sum())

    def ahead(s: Array, r: Array, moves: Array, changes: Array) -> Array:
        unit = jnp.maximum(jnp.sqrt((changes**2).sum(1)), jnp.finfo(s.dtype).tiny)
        A = changes / unit[:, None]
        G = A @ A.T + relative * jnp.eye(MEMORY, dtype=s.dtype)
        further = -(jnp.linalg.solve(G, A @ r) / unit) @ (moves + changes)
        # far out a displacement may be small, and everything flat
        far = size(further) / (LONGEST * jnp.maximum(size(r), jnp.finfo(s.dtype).tiny))
        return s + r + further / jnp.maximum(far, 1)

    def busy(carry: Any) -> Array:
        taken, s, r, *_ = carry
        return (taken < MOST_STEPS) & (size(r) > accuracy * (size(s) + least))

    def step(carry: Any) -> Any:
        taken, s, r, moves, changes, point, accelerated = carry
        new = T(point) - point
        good = ~accelerated | (size(new) < FALL * size(r))
        one = jnp.stack([point - s, new - r])
        moves, changes = (
            jnp.where(good, jnp.roll(old, 1, 0).at[0].set(row), 0)
            for old, row in zip((moves, changes), one, strict=True)
        )
        s, r = jnp.where(good, point, s), jnp.where(good, new, r)
        point = jnp.where(good, ahead(s, r, moves, changes), s + r)
        return taken + 1, s, r, moves, changes, point, good

    none = jnp.zeros((MEMORY, *start.shape), start.dtype)
    first = T(start) - start
    least = size(start) + size(first)
    zero, false = jnp.zeros((), jnp.int32), jnp.zeros((), bool)
    begun = zero, start, first, none, none, start + first, false
    _, s, r, *_ = jax.lax.while_loop(busy, step, begun)
    return s + r


def splitting(
    first: Callable[[Array, Array], Array],
    others: list[Callable[[Array, Array], Array]],
    x: Array,
    t: Array,
) -> Array:
    """prox of a sum of functions with proxes of their own: Douglas and Rachford's method, the
    square with `first`, one copy of x for each of the others. Its derivative is that of the fixed
    point."""
    many = len(others)

    def both(s: Array) -> tuple[Array, Array]:
        z = jnp.stack([prox(row, t) for prox, row in zip(others, s, strict=True)])
        u = first((x + (2 * z - s).sum(0)) / (1 + many), t / (1 + many))
        return u, z

    def T(flat: Array) -> Array:
        s = flat.reshape(many, -1)
        u, z = both(s)
        return (s + u - z).ravel()

    def solve(_: Any, start: Array) -> Array:
        return fixed_point(T, start)

    def tangent(g: Callable[[Array], Array], y: Array) -> Array:
        return fixed_point(lambda d: d + g(d) - y, jnp.zeros_like(y))

    start = jnp.tile(x, many)
    s = jax.lax.custom_root(lambda s: T(s) - s, jax.lax.stop_gradient(start), solve, tangent)
    u, z = both(s.reshape(many, -1))
    # the copies agree, so what one of them holds at zero is zero
    return jnp.where((z == 0).any(0), 0, u)
