"""Nodes of like sizes run together, where some have many more unknowns than others."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.methods.contract import EdgeReport, Messages, MethodDefaults
from edgewise.methods.coupled import CoupledPrimalDual
from edgewise.methods.quadratic_prox import MOST_UNKNOWNS
from edgewise.methods.short_nodes import shortened
from edgewise.problem.block import Block, Links
from edgewise.problem.coupled import CoupledProblem

ALIKE = 4  # times as many unknowns as the least of a group has
SAVED = 100_000  # numbers of the nodes' matrices that filling would add, for it to be worth while


class Counted(NamedTuple):
    """The oracle's, of all nodes."""

    calls: Array  # (v,)
    evaluations: Array  # (v,)


class State(NamedTuple):
    X: Array  # (v, n)
    memory: Counted
    parts: tuple[Any, ...]  # the method's own state, of each group


@pytree("size", "rows", "whole_rows")
class Part:
    """Nodes of like sizes, and the edges that leave them."""

    method: CoupledPrimalDual
    block: Block  # of these nodes alone, with models as long as the longest of them
    nodes: Array  # (k,)
    edges: Array  # (l,)
    owners: Array  # (samples,) of these nodes, by their place here
    size: int
    rows: int  # of the edge here that has most
    whole_rows: int  # and of all edges

    def at(self, links: Links) -> Block:
        """With weights as they are now: zero where a neighbour is not there."""
        own = self.block.links._replace(rho=links.rho[self.edges])
        return self.block._replace(links=own)

    def heard(self, messages: Array) -> Array:
        """Without rows that no edge here has."""
        return resized(messages[self.edges], self.whole_rows, self.rows)

    def told(self, messages: Array) -> Array:
        return resized(messages, self.rows, self.whole_rows)

    def longer(self, X: Array, size: int) -> Array:
        return jnp.pad(X, ((0, 0), (0, size - self.size)))


@pytree("size", "rows")
class BySize(MethodDefaults):
    """A coupled method, prepared, on a block that is cut into groups of nodes: each runs as if it
    were all there is, as messages are all that nodes have of each other.

    Not where a carry is spread over ranks or devices: its arrays lead with a group's nodes.
    """

    parts: tuple[Part, ...]
    gradient: Any
    eta: Any  # (v, 1)
    size: int  # of the longest model
    rows: int

    hears = ("each",)
    heals = True
    takes_penalty = True

    def message_sizes(self, size: int, outputs: int) -> tuple[int, ...]:
        return (int(self.parts[0].method.edge_numbers(self.rows)),)

    def init(self, p: Block, X: Array, duals: Array | None) -> tuple[State, Messages]:
        states, sent = [], []
        for part in self.parts:
            own = None if duals is None else duals[part.edges, : part.rows]
            state, outbox = part.method.init(part.at(p.links), X[part.nodes, : part.size], own)
            states.append(state)
            sent.append(outbox[0])
        zero = jnp.zeros(len(X), states[0].memory.calls.dtype)
        none = State(X, Counted(zero, zero), tuple(before_any(s) for s in states))
        return self.joined(p, none, states, sent)

    def step(
        self, p: Block, s: State, inbox: Messages, random_bits: Array
    ) -> tuple[State, Messages]:
        states, sent = [], []
        for part, mine in zip(self.parts, s.parts, strict=True):
            heard = (part.heard(inbox[0]),)
            bits = random_bits[part.nodes]
            state, outbox = part.method.step(part.at(p.links), mine, heard, bits)
            states.append(state)
            sent.append(outbox[0])
        return self.joined(p, s, states, sent)

    def joined(
        self, p: Block, before: State, states: list[Any], sent: list[Array]
    ) -> tuple[State, Messages]:
        X, (calls, values) = before.X, before.memory
        out = jnp.zeros((len(p.links.owner), self.message_sizes(0, 1)[0]), X.dtype)
        groups = zip(self.parts, states, before.parts, sent, strict=True)
        for part, new, old, messages in groups:
            X = X.at[part.nodes].set(part.longer(new.X, self.size))
            calls = calls.at[part.nodes].add(new.memory.calls - old.memory.calls)
            values = values.at[part.nodes].add(evaluations(new) - evaluations(old))
            out = out.at[part.edges].set(part.told(messages))
        return State(X, Counted(calls, values), tuple(states)), (out,)

    def edge_report(self, p: Block, s: State, inbox: Messages) -> EdgeReport:
        v, e = len(s.X), len(p.links.owner)
        nodes: dict[str, Array] = {}
        duals, missed = jnp.zeros((e, self.rows), s.X.dtype), jnp.zeros(e, s.X.dtype)
        for part, mine in zip(self.parts, s.parts, strict=True):
            heard = (part.heard(inbox[0]),)
            seen = part.method.edge_report(part.at(p.links), mine, heard)
            for name, each in seen.nodes.items():
                full = part.longer(each, self.size) if each.ndim == 2 else each
                blank = jnp.zeros((v, *full.shape[1:]), full.dtype)
                nodes[name] = nodes.get(name, blank).at[part.nodes].set(full)
            duals = duals.at[part.edges, : part.rows].set(seen.duals)
            missed = missed.at[part.edges].set(seen.missed)
        return EdgeReport(nodes, duals, missed)


def evaluations(state: Any) -> Array:
    memory = state.memory
    made: Array = getattr(memory, "evaluations", jnp.zeros_like(memory.calls))
    return made


def before_any(state: Any) -> Any:
    """That nothing has been asked yet."""
    memory = state.memory
    spent = {k: 0 * getattr(memory, k) for k in ("calls", "evaluations") if hasattr(memory, k)}
    return state._replace(memory=memory._replace(**spent))


def resized(messages: Array, rows: int, wanted: int) -> Array:
    """(l, k rows + 1) -> (l, k wanted + 1)"""
    if rows == wanted:
        return messages
    count = len(messages)
    parts = messages[:, :-1].reshape(count, -1, rows)[:, :, :wanted]
    parts = jnp.pad(parts, ((0, 0), (0, 0), (0, max(wanted - rows, 0))))
    return jnp.concatenate([parts.reshape(count, -1), messages[:, -1:]], 1)


# --- which nodes run together ---------------------------------------------------------------------


def groups_of(sizes: np.ndarray) -> list[np.ndarray]:
    """Nodes by size; one group where filling the short models costs little."""
    groups, left = [], np.argsort(sizes, kind="stable")
    while len(left):
        least = int(sizes[left[0]])
        most = MOST_UNKNOWNS if least <= MOST_UNKNOWNS < ALIKE * least else ALIKE * least
        here = sizes[left] <= most
        groups.append(np.sort(left[here]))
        left = left[~here]
    filled = len(sizes) * int(sizes.max()) ** 2
    kept = sum(len(group) * int(sizes[group].max()) ** 2 for group in groups)
    return groups if filled - kept > SAVED else [np.arange(len(sizes))]


def by_size(
    method: Any, problem: CoupledProblem, links_of: Any, dtype: Any, groups: list[np.ndarray]
) -> BySize:
    """`method`: prepared. `links_of(owner, edge, nodes)` gives the links of directed edges."""
    d, parts = problem.graph.directed, []
    for nodes in groups:
        edges = np.flatnonzero(np.isin(d.owner, nodes))
        links = links_of(np.searchsorted(nodes, d.owner[edges]), d.edge[edges], len(nodes))
        block, size = problem.group(nodes, edges, links, dtype)
        if size < problem.size:
            block, _ = shortened(block, size)
        own = jax.tree.map(lambda a, nodes=nodes: a[nodes] if jnp.ndim(a) else a, method)
        rows = block.couplings.width
        lossy = problem.cost is None or bool(problem.cost.lossy[nodes].any())
        own = replace(own, rows=rows, has_data=lossy, short=0)
        owners = np.repeat(np.arange(len(nodes)), problem.counts[nodes])
        here, leaving, of = (jnp.asarray(a, jnp.int32) for a in (nodes, edges, owners))
        parts.append(Part(own, block, here, leaving, of, size, rows, method.rows))
    return BySize(tuple(parts), method.gradient, method.eta, problem.size, method.rows)
