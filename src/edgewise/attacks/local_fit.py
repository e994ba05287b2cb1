"""Rows fitted through the steps of local training, by who knows which samples were drawn.

Between two messages a node takes many steps, each with the gradient of a few samples, and tells
where they led. The steps are public, the inbox is known, and so are the draws where a seed is: so
the attacker runs them with rows that it makes up, and moves the rows until they lead where the
node's did. The more steps there are in a round, the slower that gets anywhere.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from scipy.optimize import minimize

from edgewise.attacks.batch_fit import slopes_need_no_labels
from edgewise.attacks.recording import Recording
from edgewise.backend.random_bits import draw_by_numpy
from edgewise.gradients import SAGA
from edgewise.methods.local_training import LOOKS, settled
from edgewise.problem.block import choose

MOST_STEPS = 1500  # of all rounds together
MOST_UNKNOWNS = 6000  # numbers of a node's rows
STEPS = 1500


class Known(NamedTuple):
    """Of one node, what its neighbours know."""

    loss: Any
    ridge: Array  # (n,)
    X: Array  # (T, n) where each round began
    targets: Array  # (T, n) where it led
    U: Array  # (T, n) what came in
    drawn: Array  # (T, tau, b)
    share: Array  # (b,)
    eta: Array
    total: Array  # (1,) or (n,) weights of the edges
    steps: Array  # tau_i
    enough: Array
    weight: Array  # (T,)
    held: Array  # samples


def can_fit(r: Recording, drawn_known: bool) -> bool:
    local = getattr(r.method, "times", 1) > 1 and isinstance(r.method.gradient, SAGA)
    return local and drawn_known and slopes_need_no_labels(r.problem.loss)


def local_rows(r: Recording, heard: np.ndarray, node: int) -> np.ndarray | None:
    """(K, n) rows of a node, up to their signs; None where there is too much to solve for."""
    problem, count = r.problem, int(r.problem.counts[node])
    unknown = problem.size - problem.intercept
    if count * unknown > MOST_UNKNOWNS:
        return None
    known = known_of(r, heard, node)
    rng = np.random.default_rng(r.seed)
    start = np.append(rng.normal(size=count * unknown) / np.sqrt(unknown), np.zeros(problem.size))

    def misfit(flat: Any) -> Any:
        value, slope = value_and_slope(
            jnp.asarray(flat), known, count=count, intercept=problem.intercept
        )
        return float(value), np.asarray(slope)

    options: Any = {"maxiter": STEPS, "maxfun": 2 * STEPS, "maxcor": 30, "ftol": 0, "gtol": 0}
    found = minimize(misfit, start, (), jac=True, method="L-BFGS-B", options=options)
    rows = found.x[: count * unknown].reshape(count, unknown)
    return np.c_[rows, np.ones(count)] if problem.intercept else rows


def known_of(r: Recording, heard: np.ndarray, node: int) -> Known:
    p, method = r.executor.block, r.executor.own_method
    V, times, batch = r.graph.nodes, method.times, method.gradient.batch
    rounds = min(r.rounds, max(2, MOST_STEPS // times))
    bits = draw_by_numpy(r.executor.seed, np.arange(V), np.arange(rounds), method.random_draws)
    own = jnp.asarray(bits[:, node].reshape(-1, batch))
    counts = jnp.full(len(own), int(r.problem.counts[node]))
    drawn = jax.jit(choose)(own, counts)[0].reshape(rounds, times, batch)
    size = min(batch, int(r.problem.counts[node]))
    U = np.stack([np.array(p.links.gather(jnp.asarray(h), V))[node] for h in heard[:rounds]])
    X, targets = r.models[:rounds, node], r.models[1 : rounds + 1, node]
    moved = np.maximum(np.linalg.norm(targets - X, axis=1), 1e-12)
    given: Any = {
        "loss": r.problem.loss,
        "ridge": np.array(p.ridge(jnp.ones((V, r.problem.size))))[node],
        "X": X,
        "targets": targets,
        "U": U,
        "drawn": drawn,
        "share": np.where(np.arange(batch) < size, 1 / size, 0.0),
        "eta": np.asarray(method.eta)[node],
        "total": np.asarray(p.edge_totals())[node],
        "steps": np.asarray(method.steps)[node],
        "enough": np.asarray(method.enough)[node],
        "weight": 1 / moved,
        "held": np.asarray(float(r.problem.counts[node])),
    }
    return Known(**jax.tree.map(jnp.asarray, given))


def ends(D: Array, mean: Array, k: Known) -> Array:
    """(T, n) where each round's steps lead from where the node began it."""
    one = jnp.ones(k.share.shape)
    gamma = 1 / (1 / k.eta + k.total)
    stretch = jnp.ceil(k.steps / LOOKS)

    def round(carry: Any, now: Any) -> tuple[Any, Array]:
        start, u, drawn = now

        def step(carry: Any, now: Any) -> tuple[Any, None]:
            x, table, mean, active = carry
            t, draw = now
            rows = D[draw]
            slopes = k.loss.slope(rows @ x, one)
            change = k.share * (slopes - table[draw])
            added = change @ rows
            g = added + mean + k.ridge * x
            new = jnp.where(active, gamma * (x / k.eta - g + u), x)
            table = jnp.where(active, table.at[draw].set(slopes), table)
            part = jnp.minimum(len(k.share), k.held) / k.held
            mean = jnp.where(active, mean + part * added, mean)
            pull = jnp.max(gamma * k.total)[None]
            still = settled((new - x)[None], (new - start)[None], pull, k.enough)[0]
            active &= (t + 1 < k.steps) & ~(still & ((t + 1) % stretch == 0))
            return (new, table, mean, active), None

        carry = (start, *carry, k.steps > 0)
        carry = lax.scan(step, carry, (jnp.arange(len(drawn)), drawn))[0]
        return carry[1:3], carry[0]

    first = k.loss.slope(D @ k.X[0], jnp.ones(len(D)))
    return lax.scan(round, (first, mean), (k.X, k.U, k.drawn))[1]


@partial(jax.jit, static_argnames=("count", "intercept"))
def value_and_slope(flat: Array, known: Known, count: int, intercept: bool) -> Any:
    def misfit(flat: Array) -> Array:
        n = known.X.shape[1]
        rows = flat[:-n].reshape(count, n - intercept)
        if intercept:
            rows = jnp.concatenate([rows, jnp.ones((count, 1))], 1)
        off = (ends(rows, flat[-n:], known) - known.targets) * known.weight[:, None]
        return (off**2).sum()

    return jax.value_and_grad(misfit)(flat)
