"""What second-order messages, and exact local minima, tell besides."""

import jax.numpy as jnp
import numpy as np

from edgewise.attacks.recording import Recording
from edgewise.methods.class_blocks import block_shape
from edgewise.methods.curvature import HEAD, unpack
from edgewise.problem.block import Block


def tells_hessians(recording: Recording) -> bool:
    return "news" in recording.method.hears and recording.problem.loss.outputs == 1


def hessians(recording: Recording) -> np.ndarray:
    """(V, f, f) the first matrix that each node tells of itself alone, up to a factor."""
    problem = recording.problem
    news = recording.sent[recording.method.hears.index("news")]
    shape = block_shape(problem.size, problem.loss.outputs)
    made = unpack(jnp.asarray(news[0, :, HEAD - 1 :]), shape, jnp.dtype(np.float64))
    return np.array(made)[:, 0]


def told_moments(recording: Recording, told: np.ndarray, attacker: np.ndarray) -> np.ndarray:
    """(V, f, f) without the ridge that is in it: of the factor that each one's attacker had."""
    factor = true_factor(recording, told)[attacker]
    own = ridge_matrix(recording)
    return told / factor[:, None, None] - own


def ridge_matrix(recording: Recording) -> np.ndarray:
    p = recording.executor.block
    return np.diag(np.array(p.ridge(jnp.ones((recording.graph.nodes, recording.problem.size))))[0])


def directions(H: np.ndarray) -> np.ndarray:
    """(f, f) eigenvectors of a Hessian: of a single sample's the row itself."""
    return np.asarray(np.linalg.eigh(H)[1].T)


def first_step_gradients(recording: Recording) -> np.ndarray:
    """(V, n) of newton-pd: all wait where they began until edges have matrices, so that the first
    move of a node is -(H + D)^-1 times its gradient there. H is the one told, whose factor the
    attacker takes to be what its own was; D the sum over edges, as its neighbours know them."""
    from edgewise.methods.newton_pd import LEVELS

    problem, graph, X = recording.problem, recording.graph, recording.models
    news = recording.sent[recording.method.hears.index("news")]
    shape = block_shape(problem.size, problem.loss.outputs)
    told, made = hessians(recording), np.full((graph.nodes, problem.size), np.nan)
    d, rho = graph.directed, np.asarray(recording.executor.block.links.rho)
    own = true_factor(recording, told)
    moved = np.abs(X - X[0]).max(2) > 0
    for i in range(graph.nodes):
        if not moved[:, i].any():
            continue
        t = int(np.argmax(moved[:, i]))
        body = jnp.asarray(news[t - 1])
        level = np.asarray(body[:, 2])
        shared = np.array(unpack(body, shape, jnp.dtype(np.float64)))[:, 0]
        shared = np.where((level >= LEVELS)[:, None, None], shared, told)
        edges = np.flatnonzero(d.owner == i)
        D = sum(0.5 * rho[e] * (shared[i] + shared[d.other[e]]) for e in edges)
        H = told[i] / own[d.other[edges[0]]]  # with the ridge
        made[i] = -(H + D) @ (X[t, i] - X[0, i])
    return made


def true_factor(recording: Recording, told: np.ndarray) -> np.ndarray:
    """(V,) what each node's own matrix was multiplied by, which it knows itself."""
    H = true_moments(recording) + ridge_matrix(recording)
    return np.trace(told, axis1=1, axis2=2) / np.maximum(np.trace(H, axis1=1, axis2=2), 1e-300)


def true_moments(recording: Recording) -> np.ndarray:
    """(V, f, f) each node's own Hessian where the run began."""
    from edgewise.methods.newton_pd import SECANTS

    p: Block = recording.executor.block
    V, n = recording.graph.nodes, recording.problem.size
    X, zeros = jnp.asarray(recording.origin), jnp.zeros((V, 1, n, n))
    return np.array(p.hessians(zeros, X, jnp.ones(V, bool), SECANTS))[:, 0]


def minimum_gradients(recording: Recording, heard: np.ndarray) -> np.ndarray:
    """(rounds, V, n) of methods that minimise locally: where a node comes to rest its gradient is
    what its edges pull with, sum_j m_ji - D_i x_i. At the models of the round's end."""
    p = recording.executor.block
    V = recording.graph.nodes
    pull = np.stack([np.array(p.links.gather(jnp.asarray(h), V)) for h in heard])
    D = np.asarray(p.links.total)
    return pull[:-1] - D * recording.models[1:]
