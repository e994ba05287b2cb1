"""The centralised answer, to high accuracy: all data in one place, no network."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, overload

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.programs import light
from edgewise.backend.threads import on_host
from edgewise.centralised.coordinates import ScaledSmooth
from edgewise.centralised.coupled_reference import CoupledReference, is_coupled, kept_reference
from edgewise.centralised.fixed_point import Anderson, NesterovMomentum, fixed_point
from edgewise.centralised.newton_start import newton_start
from edgewise.centralised.smooth_part import MOST_UNKNOWNS, Smooth
from edgewise.errors import ProblemError, ReferenceWarning
from edgewise.graph.graph import Graph
from edgewise.problem.common_points import conflict
from edgewise.problem.penalty_sum import takes_steps
from edgewise.problem.problem import Problem
from edgewise.problem.stacked_penalties import same, stack

REMEMBERED = 4
TOL, ITERATIONS = 1e-12, 20_000
T = TypeVar("T")


@dataclass(frozen=True)
class Reference:
    """The optimum of a problem."""

    x: np.ndarray  # (n,)
    objective: float  # sum_i f_i(x) + h_i(x)
    residual: float  # norm of the prox-gradient residual of the whole problem
    gradients: np.ndarray  # (V, n) grad f_i(x)
    subgradients: np.ndarray  # (V, n) v_i in the subdifferential of h_i at x
    iterations: int
    optimality: float = 0.0  # the residual with columns of like scale, beside the gradient at zero
    reached: bool = True  # whether that is tol or less, or as little as rounding leaves


@overload
def reference(
    problem: Problem, tol: float | None = None, iterations: int | None = None
) -> Reference: ...


@overload
def reference(
    problem: Problem,
    tol: float | None = None,
    iterations: int | None = None,
    *,
    graph: Graph,
    between: Any = None,
) -> CoupledReference: ...


def reference(
    problem: Problem,
    tol: float | None = None,
    iterations: int | None = None,
    graph: Graph | None = None,
    between: Any = None,
) -> Reference | CoupledReference:
    """The optimum of the whole problem, all data in one place.

    tol         1e-12 by default; 1e-10 with couplings, of the optimality conditions
    iterations  20,000 at most by default; 2,000 linear systems with couplings
    graph       where edges carry couplings: the answer is a `CoupledReference`, a model per node
    between     what they carry, as in `solve`; left out, neighbours' models are equal

    A loss that is not convex is refused: there is no saying which of its stationary points is best.

    The answer is kept with the problem, of couplings the last one, by the objects that were given.

    Without couplings it is found by accelerated generalised forward-backward splitting: one copy
    z_g of the model per distinct penalty h_g, with the share w_g of the nodes that have
    it: x = sum_g w_g z_g, z_g <- z_g + prox_{t h_g}(2x - z_g - t grad F(x)) - x, where F is the
    mean of the f_i (Raguet, Fadili, Peyre 2013). With one penalty this is the proximal gradient
    method, and takes momentum; with several, Anderson's acceleration. Where the Hessian is
    affordable, semismooth Newton steps on the fixed point finish the work. All in coordinates of
    its own (`ScaledSmooth`): columns are centred where there is an intercept, and of like curvature
    where all penalties let it (`separable`). Stops at `tol` relative to the gradient at the start,
    in these coordinates, or when rounding lets it fall no further; a ReferenceWarning says where
    it did not get there.

    >>> shards = [(np.eye(2), [1, 0]), (np.eye(2), [3, 0])]
    >>> reference(edgewise.Problem(shards, edgewise.Squared(), edgewise.L1(0.25))).x.round(9)
    array([1.5, 0. ])
    """
    if not isinstance(problem, Problem):
        raise ProblemError(
            f"{problem!r} is no Problem: make one with edgewise.Problem(shards, loss)"
        )
    require_convex(problem)
    if is_coupled(problem, graph, between):
        return kept_reference(problem, graph, between, tol, iterations)
    tol, iterations = TOL if tol is None else tol, ITERATIONS if iterations is None else iterations
    asked, spent, kept = problem.__dict__.get("_reference", (None, None, None))
    if kept is not None and asked <= tol and (kept.reached or iterations <= spent):
        return kept
    with on_host():
        answer = _solve(problem, tol, iterations)
    problem.__dict__["_reference"] = (tol, iterations, answer)
    return answer


def require_convex(problem: Problem) -> None:
    """Raises ProblemError where what would be found is a stationary point, and not the optimum."""
    if not problem.convex:
        raise ProblemError(
            f"{type(problem.loss).__name__} is not convex, so that there is no optimum to measure "
            "against, for tune and compare neither: give solve reference=False, or leave it out, "
            "and go by the trace's residual and consensus, which are zero at a stationary point"
        )


def _solve(problem: Problem, tol: float, iterations: int) -> Reference:
    plain = Smooth(problem)
    members, group_of = groups(problem)
    share = np.bincount(group_of, minlength=len(members)) / problem.nodes
    block = stack(members, len(members), problem.size, free=problem.free)
    separable = all(getattr(h, "separable", False) for h in block.members)
    diagonal = all(takes_steps(h) for h in block.members)
    unbounded = not problem.smooth and not problem.penalised
    near = newton_start(plain) if unbounded else None
    smooth = ScaledSmooth(plain, each=diagonal, near=near)
    step, scale = 1 / smooth.steepest, smooth.scale
    own_steps = step / scale[: smooth.weights] ** 2
    steps = np.tile(own_steps if diagonal else own_steps[:1], (len(members), 1))

    @remembering
    def forward(z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """x, what goes into each prox, and what comes out; `z` and all of these in u's units."""
        x = share @ z
        y = 2 * x - z - step * smooth.gradient(x)
        return x, y, np.asarray(prox_of(block, y / scale, steps)) * scale

    def displacement(flat: np.ndarray) -> np.ndarray:
        x, _, inner = forward(flat.reshape(len(members), -1))
        return (inner - x).ravel()

    def jacobian(flat: np.ndarray) -> np.ndarray | None:
        """Of the displacement, an element of the generalised one where a prox has kinks."""
        if flat.size > MOST_UNKNOWNS:
            return None
        z = flat.reshape(len(members), -1)
        x, y, _ = forward(z)
        H = smooth.hessian(x)
        if H is None:
            return None
        shared = -step * H
        shared[np.diag_indices_from(H)] += 2
        slopes = prox_slopes_of_each if separable else prox_slopes
        rows = []
        for g, P in enumerate(np.asarray(slopes(block, y / scale, steps))):
            bent = P[:, None] * shared if separable else P @ shared
            bent[np.diag_indices_from(H)] -= 1
            blocks = [w * bent for w in share]
            blocks[g] -= np.diag(P) if separable else P
            rows.append(np.concatenate(blocks, 1))
        return np.concatenate(rows, 0)

    @remembering
    def merit(flat: np.ndarray) -> float:
        """The objective, with the copies' disagreement at a price above that of their duals."""
        _, y, inner = forward(flat.reshape(len(members), -1))
        middle = share @ inner
        h = share @ np.asarray(value_of(block, inner / scale))
        price = 2 * np.linalg.norm((y - inner) / step, axis=1).max()
        apart = np.sqrt(share @ ((inner - middle) ** 2).sum(1))
        return float(smooth.value(middle) + h + price * apart)

    zero = np.zeros((len(members), problem.size))
    start = np.asarray(prox_of(block, zero, steps)) * scale
    start = start if near is None else smooth.units_of(near)
    units = np.tile(smooth.units, len(members))

    def size(move: np.ndarray) -> float:
        return float(np.linalg.norm(move * units))

    least = float(step * np.linalg.norm(smooth.gradient(zero[0]) * smooth.units)) + 1e-300
    goal = max(tol * least, step * smooth.rounding)
    z, spent = fixed_point(
        displacement,
        jacobian,
        merit,
        size,
        NesterovMomentum() if len(members) == 1 else Anderson(),
        start.ravel(),
        goal,
        iterations,
    )
    z = z.reshape(zero.shape)
    _, y, inner = forward(z)
    gap = np.sqrt(share @ (((inner - share @ z) * smooth.units) ** 2).sum(1))
    if not diagonal:  # a step as short as the steepest column wants may be lost in rounding
        gap = np.hypot(gap, np.finfo(float).eps * size(z.ravel()))
    # not inner / scale, which may be a rounding error off a constraint or a zero
    ends = smooth.uncentred(np.array(prox_of(block, y / scale, steps)))
    x = share @ ends
    if gap <= goal:  # copies agree, so what holds one of them at zero holds x there
        x[: smooth.weights][(ends[:, : smooth.weights] == 0).any(0)] = 0
    gradients = plain.node_gradients(x)
    subgradients = (y - inner) / step * scale
    subgradients[:, smooth.weights :] = 0
    slack = share @ subgradients + gradients.mean(0)
    apart = smooth.lipschitz_of_plain * np.sqrt(share @ ((ends - x) ** 2).sum(1))
    # what rounding leaves of the sum is shared out
    subgradients = subgradients[group_of] - slack
    own = stack(problem.penalty, problem.nodes, problem.size, free=problem.free)
    h = np.asarray(value_of(own, np.broadcast_to(x, (problem.nodes, problem.size)))).sum()
    star = Reference(
        x,
        float(problem.nodes * plain.value(x) + h),
        float(problem.nodes * np.hypot(np.linalg.norm(slack), apart)),
        gradients,
        subgradients,
        spent,
        float(gap / least),
        bool(gap <= max(goal, tol * least)),
    )
    if not star.reached:
        why = shortfall(problem, star, tol, iterations, diagonal)
        warnings.warn(why, ReferenceWarning, stacklevel=3)
    return star


def shortfall(
    problem: Problem, star: Reference, tol: float, iterations: int, diagonal: bool
) -> str:
    """One line: what was reached, and what to do."""
    against = conflict(problem.penalty, problem.size - problem.free)
    if against is not None:
        return f"there is no centralised answer: {against}: loosen one of them"
    if star.iterations >= iterations:
        advice = f"give edgewise.reference(problem, iterations=) more than {iterations}"
    elif diagonal:
        advice = "columns that all but repeat each other leave no more digits: add ridge"
    else:
        advice = "bring the features to a like scale, which this penalty does not let it do inside"
    return (
        f"the centralised answer has an optimality of {star.optimality:.1e}, {tol:.0e} wanted "
        f"(residual {star.residual:.1e}): {advice}"
    )


def remembering(f: Callable[[np.ndarray], T]) -> Callable[[np.ndarray], T]:
    """The last few answers kept: a Newton step looks at the same points from several sides."""
    kept: dict[bytes, T] = {}

    def call(z: np.ndarray) -> T:
        key = z.tobytes()
        if key not in kept:
            kept[key] = f(z)
            if len(kept) > REMEMBERED:
                del kept[next(iter(kept))]
        return kept[key]

    return call


@light
def prox_of(block: Any, Y: Array, t: Array) -> Array:
    return block.prox(Y, t)


@light
def value_of(block: Any, Y: Array) -> Array:
    return block.value(Y)


@light
def prox_slopes(block: Any, Y: Array, t: Array) -> Array:
    """(m, n, n) the Jacobian of each row's prox."""

    def along(e: Array) -> Array:
        return jax.jvp(lambda y: block.prox(y, t), (Y,), (jnp.broadcast_to(e, Y.shape),))[1]

    return jax.vmap(along)(jnp.eye(Y.shape[1])).transpose(1, 2, 0)


@light
def prox_slopes_of_each(block: Any, Y: Array, t: Array) -> Array:
    """(m, n) the same, its diagonal, where there is nothing else."""
    return jax.jvp(lambda y: block.prox(y, t), (Y,), (jnp.ones_like(Y),))[1]


def groups(problem: Problem) -> tuple[list[Any], np.ndarray]:
    """The distinct penalties, and which of them each node has."""
    if problem.same_penalty:
        one = problem.penalty[0] if isinstance(problem.penalty, list | tuple) else problem.penalty
        return [one], np.zeros(problem.nodes, int)
    members: list[Any] = []
    group_of = np.empty(problem.nodes, int)
    for i, h in enumerate(problem.penalty):
        known = (g for g, other in enumerate(members) if same([h, other]))
        group_of[i] = next(known, len(members))
        if group_of[i] == len(members):
            members.append(h)
    return members, group_of
