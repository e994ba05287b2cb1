"""The proximal method of multipliers, its steps by semismooth Newton: for f(x) + h(x) + phi(Mx - c)
where f may be flat, rows may repeat each other, and multipliers may be many."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.linalg import splu

from edgewise.centralised.edge_terms import EdgeTerms
from edgewise.centralised.node_terms import NodeTerms

FASTER = 5.0  # by which a weight grows where its residual falls less than by
FALLS = 0.2
STEPS = 60  # of Newton's for one step of the method
TRIALS = 20  # of lengths of a step
PATIENCE = 30  # steps of the method without progress, after which there is none to come
SPARE = 30  # steps near the end are cheap: this much below tol, if they go on falling
DENSE = 400  # unknowns up to which, or share of a matrix from which, it is factored as a dense one
DENSE_SHARE = 0.05
SHOWS = 0.01  # share of a residual that rounding may have
EPS = float(np.finfo(float).eps)


class Point(NamedTuple):
    """What is known at an x, given the duals before."""

    x: np.ndarray
    slope: np.ndarray  # of what is minimised
    inner: np.ndarray  # prox of h, which x tends to
    y: np.ndarray  # what it was taken of
    own: np.ndarray  # the dual of h
    m: np.ndarray  # what the duals of edges were the prox of
    duals: np.ndarray


class Answer(NamedTuple):
    x: np.ndarray
    duals: np.ndarray
    residual: float
    iterations: int  # linear systems solved


class Multipliers:
    """With K = (I, M) and g = (h, phi(. - c)), and their duals w = (u, l), a step is

        x <- argmin f(x) + omega/2 |x - x_k|^2 + (the Moreau envelope of g, of weight sigma)
        w <- prox_{sigma g*}(w + sigma K x)

    Rockafellar (1976). What is minimised is strongly convex and its gradient piecewise smooth, so
    that Newton's method with a line search always gets there. omega falls and sigma grows where
    residuals fall too slowly: the larger they are, the fewer steps, until rounding shows.
    """

    def __init__(self, nodes: NodeTerms, edges: EdgeTerms) -> None:
        self.nodes, self.edges = nodes, edges
        self.start = np.zeros(nodes.size)
        self.flat = float(np.linalg.norm(nodes.gradient(self.start)))
        bends = nodes.hessian(self.start).diagonal()
        curved = bends[bends > 1e-9 * bends.max(initial=0)]
        self.unit = float(np.median(curved)) if len(curved) else 1.0
        self.rows = edges.weights()
        # what residuals are held against is one, or less where the problem's own numbers are
        natural = np.linalg.norm(edges.c) + self.flat / self.unit
        self.least = at_most_one(self.flat), at_most_one(float(natural))
        self.spent = 0

    def gradients(self, duals: np.ndarray) -> float:
        """The size of what adds up to zero at the optimum."""
        return self.least[0] + self.flat + float(np.linalg.norm(self.edges.M.T @ duals))

    def lengths(self, x: np.ndarray) -> float:
        """The size of what rows are made of."""
        parts = abs(self.edges.M) @ np.abs(x)
        return self.least[1] + float(np.linalg.norm(parts) + np.linalg.norm(self.edges.c))

    def residual(self, x: np.ndarray, duals: np.ndarray) -> float:
        """How far x is from prox_h(x - grad f - M'l), beside gradients; and l from the prox of phi*
        at l + Mx - c, beside what rows come to. With steps of one: no weight of ours is in it."""
        edges = self.edges
        wanted = x - self.nodes.gradient(x) - edges.M.T @ duals
        own = np.linalg.norm(x - self.nodes.prox(wanted, 1.0))
        apart = np.linalg.norm(edges.apart(duals, edges.differences(x)))
        return float(np.hypot(own / self.gradients(duals), apart / self.lengths(x)))

    def solve(self, tol: float, iterations: int) -> Answer:
        edges = self.edges
        x = self.nodes.prox(self.start, 1 / self.unit)
        own, duals = np.zeros(len(x)), np.zeros(len(edges.c))
        omega, sigma = 0.1 * self.unit, 10 * self.unit
        best = Answer(x, duals, self.residual(x, duals), 0)
        before = np.array([np.inf, np.inf])
        stuck, mark = 0, best.residual
        while best.residual > tol / SPARE and self.spent < iterations:
            if stuck >= (PATIENCE if best.residual > tol else 1):
                break
            pull, size = self.gradients(duals), self.least[1] + float(np.linalg.norm(x))
            goal = max(0.1 * tol / SPARE, 0.03 * min(best.residual, 1)) * pull
            at, there = self.step(x, own, duals, omega, sigma, goal, iterations)
            stuck += 1
            if not there:  # duals of another point would be none: easier, from where it got to
                x, sigma, omega = at.x, sigma / FASTER, omega * FASTER
                continue
            moved = (
                np.linalg.norm(at.own - own),
                np.linalg.norm((at.duals - duals) / np.sqrt(self.rows)),
            )
            now = np.array(
                [omega * np.linalg.norm(at.x - x) / pull, np.hypot(*moved) / (sigma * size)]
            )
            x, own, duals = at.x, at.own, at.duals
            found = self.residual(at.inner, duals)
            if found < 0.9 * mark:  # many small steps are progress too
                stuck, mark = 0, found
            if found < best.residual:
                best = Answer(at.inner, duals, found, self.spent)
            # rounding of K x times sigma must not show in gradients, beside what is wrong there now
            seen = max(tol, SHOWS * best.residual)
            most = max(0.01 * seen / EPS * pull / size, 10 * self.unit)
            if np.linalg.norm(at.slope) > max(goal, 0.1 * tol * pull):  # it did
                sigma = min(sigma, max(sigma / FASTER, most))
            slow = now > FALLS * before
            if slow[1]:
                sigma = min(FASTER * sigma, max(most, sigma))
            if slow[0]:
                omega = max(omega / FASTER, 1e-11 * sigma)
            before = now
        return best._replace(iterations=self.spent)

    def step(
        self,
        x: np.ndarray,
        own: np.ndarray,
        duals: np.ndarray,
        omega: float,
        sigma: float,
        goal: float,
        iterations: int,
    ) -> tuple[Point, bool]:
        """The minimum over x, to a slope of `goal`, or as near as rounding lets it; and whether it
        got there."""
        edges, nodes, s = self.edges, self.nodes, sigma * self.rows

        def look(z: np.ndarray) -> Point:
            y = z + own / sigma
            inner = nodes.prox(y, 1 / sigma)
            pressed = sigma * (y - inner)
            m = duals + s * edges.differences(z)
            pushed = edges.nearest(m, s)
            slope = nodes.gradient(z) + omega * (z - x) + pressed + edges.M.T @ pushed
            return Point(z, slope, inner, y, pressed, m, pushed)

        at = best = look(x)
        stuck = 0
        rounding = 1e3 * EPS * (sigma * (1 + np.linalg.norm(x)) + np.linalg.norm(at.own))
        for _ in range(STEPS):
            least = np.linalg.norm(best.slope)
            if least <= goal or (stuck > 5 and least < rounding):
                return best, True
            if self.spent >= iterations:
                break
            self.spent += 1
            eye = sp.eye_array(len(x))
            H = nodes.hessian(at.x) + edges.bend(at.m, s)
            H = H + sigma * (eye - nodes.prox_slopes(at.y, 1 / sigma)) + omega * eye
            way = solved(H, -at.slope)
            if way is None:
                break
            at = along(look, at, way)
            stuck = 0 if np.linalg.norm(at.slope) < 0.9 * least else stuck + 1
            best = at if np.linalg.norm(at.slope) < least else best
        return at, bool(np.linalg.norm(at.slope) <= goal)


def at_most_one(number: float) -> float:
    return min(number, 1.0) if number > 1e-12 else 1.0


def along(look: Callable[[np.ndarray], Point], at: Point, way: np.ndarray) -> Point:
    """A point on the way from here, up to its end, where the slope along it is at most half of what
    goes down here. By slopes alone: values have too few digits near the end, and where the slope is
    below zero a convex function has fallen."""
    steep = float(at.slope @ way)
    low, high = (0.0, steep), (1.0, np.nan)  # where it goes down, and where it goes up
    share, down = 1.0, at
    for _ in range(TRIALS):
        new = look(at.x + share * way)
        now = float(new.slope @ way)
        if abs(now) <= 0.3 * abs(steep) or (share == 1 and now <= 0):
            return new
        if now < 0:
            low, down = (share, now), new
        else:
            high = (share, now)
        secant = low[1] / (low[1] - high[1]) if np.isfinite(high[1]) else 0.0
        share = low[0] + min(max(secant, 0.1), 0.9) * (high[0] - low[0])
    return down


def solved(H: Any, b: np.ndarray) -> np.ndarray | None:
    """H^-1 b of a positive definite sparse H, with a step of refinement; None where it fails."""
    n = len(b)
    inverse: Callable[[np.ndarray], Any]
    try:
        if n <= DENSE or H.nnz > DENSE_SHARE * n * n:
            factors = cho_factor(H.toarray(), lower=True, check_finite=False)
            inverse = partial(cho_solve, factors, check_finite=False)
        else:
            inverse = splu(
                sp.csc_array(H),
                permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True},
            ).solve
        x = inverse(b)
        x = x + inverse(b - H @ x)
    except (LinAlgError, RuntimeError):
        return None
    return np.asarray(x) if np.isfinite(x).all() else None
