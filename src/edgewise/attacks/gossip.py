"""What gets through: gradients of nodes that are no neighbours, from how models of those that are
move.

Steps and weights are public, and as long as gradients stay what they are, models are linear in
them. The attackers simulate how each node's gradient would come through to the models that they
see, and solve for the gradients. (Mrini, Cyffers, Bellet 2024 do this to averaging and
gradient descent.)
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
from jax import Array, lax

from edgewise.attacks.inversion import Told, can_invert
from edgewise.attacks.recording import Recording
from edgewise.problem.block import Block

TRIVIAL = 1e-3  # part of the largest singular value: below it gradients that change are all


def hops(recording: Recording, members: np.ndarray) -> np.ndarray:
    """(V,) from the nearest member."""
    graph = recording.graph.to_networkx()
    far = nx.multi_source_dijkstra_path_length(graph, set(np.flatnonzero(members).tolist()))
    return np.array([far[i] for i in range(recording.graph.nodes)])


def can_reconstruct(recording: Recording) -> bool:
    return can_invert(recording) and not recording.problem.penalised


def reconstructed(recording: Recording, members: np.ndarray, own: np.ndarray) -> np.ndarray:
    """(V, n) first gradients of the nodes; NaN where nothing comes through. own (rounds, V, n) are
    the gradients of the members, who know them; other rows are not read. Of an intercept whose
    edges have weights of their own there is nothing."""
    made: Any = recording.executor
    V = recording.graph.nodes
    wires = made.wires if recording.rounded else made.network
    rounds = min(int(hops(recording, members).max()) + 1, recording.rounds)
    adjacent = nx.to_numpy_array(recording.graph.to_networkx()) > 0
    seen = members | (adjacent[members].any(0))
    others = np.flatnonzero(~members)
    p = made.block._replace(rows=None, labels=None, scale=None, offset=None)
    method = replace(made.own_method, gradient=Told())
    theirs = np.where(members[:, None], own[:rounds], 0)
    known = np.array(simulated(method, wires, p, jnp.asarray(theirs), recording.origin))
    alike = p._replace(mask=None, links=p.links._replace(intercept=None))
    unit = jnp.asarray(np.broadcast_to(np.eye(V), (rounds, V, V)))
    through = np.array(simulated(method, wires, alike, unit, np.zeros((V, V))))
    # (rounds * seen, others) how much of a gradient gets where
    A = through[:, seen][:, :, others].reshape(-1, len(others))
    b = (recording.models[1 : rounds + 1] - known)[:, seen].reshape(len(A), -1)
    u, s, vt = np.linalg.svd(A, full_matrices=False)
    keep = s > TRIVIAL * s.max(initial=0)
    u, s, vt = u[:, keep], s[keep], vt[keep]
    found = vt.T @ ((u.T @ b) / s[:, None])
    share = (vt**2).sum(0)  # 1 where a node's own gradient is told, less where a mixture is
    out = np.full((V, recording.problem.size), np.nan)
    out[others] = np.where(share[:, None] > 1e-6, found, np.nan)
    if p.mask is not None and made.block.links.intercept is not None:
        out[:, np.asarray(p.mask) == 0] = np.nan
    return out


@jax.jit
def simulated(method: Any, network: Any, p: Block, G: Array, X: Any) -> Array:
    """(rounds, V, n) models, where nodes' gradients are G (rounds, V, n)."""
    state, outbox = method.init(p, jnp.asarray(X, G.dtype), None)
    bits = jnp.zeros((len(X), 0), jnp.uint32)

    def round(carry: Any, now: Array) -> tuple[Any, Array]:
        state, outbox = carry
        state = state._replace(memory=state.memory._replace(G=now))
        inbox = network.deliver(method.hears, p.links, outbox)
        state, outbox = method.step(p, state, inbox, bits)
        return (state, outbox), method.answer(state)

    return lax.scan(round, (state, outbox), G)[1]
