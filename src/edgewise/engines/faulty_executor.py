"""The simulator with faults: the same steps, through a network that loses, delays and changes."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from edgewise.backend.placed import placed
from edgewise.backend.programs import compiled
from edgewise.backend.quantiser import UNIT_BYTES, hold, packed_bytes
from edgewise.backend.random_bits import draw_bits
from edgewise.engines.faults import Faults
from edgewise.engines.faulty_wires import (
    Chances,
    FaultyWires,
    Mail,
    Waiting,
    numbers_kept,
    two_state_chain,
)
from edgewise.engines.simulator import Simulator, view_edges
from edgewise.engines.wires import DirectWires, traffic
from edgewise.graph.graph import Graph
from edgewise.methods.contract import EdgeReport, Method
from edgewise.problem.block import Block


def run_faulty_rounds(
    method: Method,
    network: FaultyWires,
    p: Block,
    carry: Any,
    random_bits: Array,
    fault_bits: tuple[Array, Array],
    unroll: int,
) -> Any:
    """As `run_rounds`; fault_bits: of edges (steps, phases, e, 2), of nodes (steps, phases, v)."""

    parts = getattr(method, "parts", ())

    def body(carry: Any, now: Any) -> tuple[Any, None]:
        random_bits, (edge_bits, node_bits) = now
        state, outbox, mail = carry
        for k, phase in enumerate(method.phases):
            sent, mail = network.transmit(method.hears, outbox, mail, edge_bits[k])
            inbox = network.received(mail.heard).deliver(method.hears, p.links, sent)
            new_state, new_outbox = getattr(method, phase)(p, state, inbox, random_bits[k])
            if network.sleeps:
                awake, mail = network.awake(mail, node_bits[k])
                new_state = network.select_nodes(awake, new_state, state, parts)
                new_outbox = network.select_senders(method.hears, awake, new_outbox, outbox)
            state, outbox = new_state, new_outbox
            mail = mail._replace(round=mail.round + 1)
        return (state, outbox, mail), None

    return lax.scan(body, carry, (random_bits, fault_bits), unroll=unroll)[0]


class FaultyExecutor(Simulator):
    """Events are between two programs, chances within them."""

    program = staticmethod(run_faulty_rounds)

    def __init__(
        self, problem: Any, graph: Graph, method: Method, seed: int, dtype: Any, faults: Faults
    ) -> None:
        super().__init__(problem, graph, method, seed, dtype)
        self.faults, self.all_links = faults, self.block.links
        self.wires: DirectWires = self.network
        self.unroll = 1
        size = problem.size
        self.fault_seed = jax.random.key(faults.seed)
        d = graph.directed
        self.edge_ids = jnp.asarray(d.other * graph.nodes + d.owner, np.uint32)  # sender, receiver
        never = np.zeros(graph.nodes) + (1 - faults.awake)
        self.chances = Chances(
            two_state_chain(np.asarray(faults.drop), faults.burst),
            two_state_chain(never, faults.nap),
        )
        rho, liars = self.all_links.rho, faults.liars
        self.lies = liars and liars.lies(graph.nodes, problem.size, rho, d.owner, dtype)
        varying = faults.links
        self.links = None if varying is None else jnp.asarray(varying.on[:, d.edge])
        itemsize = np.dtype(dtype).itemsize
        self.message_bytes, _ = traffic(
            self.method,
            size,
            problem.loss.outputs,
            lambda numbers: compressed_bytes(faults, numbers, itemsize),
        )
        self.set_network(0)

    def set_network(self, round: int) -> None:
        """The network as it is in a round."""
        graph, faults = self.graph, self.faults
        d = graph.directed
        present = faults.present(graph.nodes, round)
        alive = present[d.owner] & present[d.other]
        up = np.ones(len(d.owner), bool)
        for i, j, first, last in faults.down:
            if first <= round <= last:
                up &= ~(((d.owner == i) & (d.other == j)) | ((d.owner == j) & (d.other == i)))
        self.network = FaultyWires(
            self.wires,
            jnp.asarray(d.owner),
            jnp.asarray(np.repeat(np.arange(graph.nodes), self.problem.counts)),
            jnp.asarray(alive),
            jnp.asarray(up),
            self.links,
            jnp.asarray(present),
            self.chances,
            faults.delay,
            bool((faults.awake < 1).any() or faults.leave or faults.join or faults.patience),
            faults.drop > 0,
            faults.bits,
            faults.keep,
            faults.feedback,
            faults.patience,
            self.method.news_head,
            1 if faults.links is None else faults.links.every,
            self.lies,
        )
        links, here = self.all_links, jnp.asarray(alive)
        rho, mixing = (None if w is None else jnp.where(here, w, 0) for w in links[1:3])
        total = links.total
        if rho is not None:
            sums = np.bincount(d.owner, np.asarray(rho), graph.nodes)
            total = jnp.asarray(sums[:, None], self.dtype)
        self.block = self.block._replace(links=links._replace(rho=rho, mixing=mixing, total=total))

    def start(self, X: np.ndarray, duals: np.ndarray | None) -> Any:
        """Before anything has come, neighbours are taken to be where the node is."""
        self.set_network(0)
        state, outbox = jax.tree.map(placed, super().start(X, duals))
        absent = ~self.faults.present(self.graph.nodes, -1) | ~np.asarray(self.network.present)
        calls = jnp.where(absent, 0, state.memory.calls)  # those who come count when they do
        state = state._replace(memory=state.memory._replace(calls=calls))
        self.origin_models = jnp.asarray(X, self.dtype)
        edges = len(self.graph.directed.owner)
        heard = assumed_messages(self.method.hears, self.network.owner, outbox)
        slots = self.faults.delay + 1
        delays, changes = self.faults.delay > 0, self.faults.compresses and self.faults.feedback
        # the first message of few bits is whole, as peers send it; of few numbers it is not
        first = outbox if self.faults.keep is None else tuple(map(jnp.zeros_like, outbox))
        news = [kind == "news" for kind in self.method.hears]
        held = tuple(
            None if told else hold(a, jnp, run=-1) for told, a in zip(news, first, strict=True)
        )
        mail = Mail(
            heard,
            jnp.full(edges, -1, jnp.int64),
            self.network.present,
            jnp.zeros(self.graph.nodes, bool),
            jnp.zeros(edges, bool),
            tuple(jnp.zeros((slots, *h.shape), h.dtype) for h in heard) if delays else None,
            jnp.full((slots, edges), -1, jnp.int64) if delays else None,
            held if changes else None,
            jnp.zeros(edges, jnp.int64),
            jnp.zeros(self.graph.nodes, jnp.int64) if any(news) else None,
            jnp.zeros((), jnp.int64),
            self.first_waiting() if self.faults.patience else None,
        )
        return jax.tree.map(lambda a: jnp.array(a, copy=True), (state, outbox, mail))

    def first_waiting(self) -> Waiting:
        """All neighbours are waited for at the start: they have met."""
        edges = len(self.edge_ids)
        rounds = jnp.zeros(self.graph.nodes, jnp.int64)
        return Waiting(jnp.zeros(edges, bool), jnp.ones(edges, bool), rounds)

    def compile_ahead(self, carry: Any, rounds: int) -> None:
        """Nothing: events cut a run into stretches of their own."""

    def advance(self, carry: Any, first: int, rounds: int) -> tuple[Any, float]:
        phases = len(self.method.phases)
        stops = sorted({-(-r // phases) * phases for r in self.faults.breaks})
        spent, at, end = 0.0, first, first + rounds
        while at < end:
            self.set_network(at)
            carry = self.apply_events(carry, at, phases)
            until = next((r for r in stops if at < r < end), end)
            carry, took = super().advance(carry, at, until - at)
            spent, at = spent + took, until
        return carry, spent

    def apply_events(self, carry: Any, round: int, phases: int) -> Any:
        """Nodes that are wiped, or come, in this round begin anew."""
        now = range(round - phases + 1, round + 1)
        wiped = [node for node, r in self.faults.wipe if r in now]
        come = [node for node, r in self.faults.join if r in now]
        if not wiped and not come:
            return carry
        V = self.graph.nodes
        who, new = np.isin(np.arange(V), [*wiped, *come]), np.isin(np.arange(V), come)
        here = (self.own_method, self.network, self.block, carry, self.origin_models)
        args = (*here, jnp.asarray(who), jnp.asarray(new))
        return compiled(restart_nodes, args, {})(*args)

    def edge_view(self, carry: Any) -> EdgeReport:
        return view_edges(self.own_method, self.wires, self.block, carry)

    def view(self, carry: Any) -> tuple[Array, Array]:
        return view_faulty(self.own_method, self.network, self.block, carry)

    def numbers_per_round(self) -> int:
        return super().numbers_per_round() + 2 * len(self.edge_ids) + self.graph.nodes

    def arguments(self, carry: Any, first: int, steps: int) -> tuple[Any, ...]:
        phases = len(self.method.phases)
        at = first + jnp.arange(steps * phases)
        edge = draw_bits(jax.random.fold_in(self.fault_seed, 0), self.edge_ids, at, 2)
        node = draw_bits(jax.random.fold_in(self.fault_seed, 1), self.block.ids, at, 1)[..., 0]
        fault_bits = tuple(a.reshape(steps, phases, *a.shape[1:]) for a in (edge, node))
        random_bits = self.random_bits(first, steps)
        return self.own_method, self.network, self.block, carry, random_bits, fault_bits

    def sent(self, carry: Any, rounds: int) -> int:
        return int(carry[2].sent.sum())

    def bytes_sent(self, carry: Any, rounds: int) -> float:
        sizes = self.message_bytes if self.edge_bytes is None else self.edge_bytes
        return float((np.asarray(carry[2].sent) * sizes).sum())

    def bodies(self, carry: Any) -> np.ndarray:
        """Those that went to somebody who is there, as the network has counted them."""
        counted = carry[2].bodies
        return np.zeros(self.graph.nodes, int) if counted is None else np.asarray(counted)


def compressed_bytes(faults: Faults, size: int, itemsize: int) -> float:
    """Of one vector: with the unit of rounded numbers, which message they are a change of (as peers
    send it, the first one apart, which is whole), and the places of those that are sent."""
    numbers = size if faults.keep is None else numbers_kept(faults.keep, size)
    places = 0 if faults.keep is None else 4 * numbers
    if faults.bits is None:
        return numbers * itemsize + places
    return packed_bytes(numbers, faults.bits) + UNIT_BYTES + faults.feedback + places


def assumed_messages(
    hears: tuple[str, ...], owner: Array, outbox: tuple[Array, ...]
) -> tuple[Array, ...]:
    """(e, n) what a neighbour would have said that is where the node is, with no duals, and has
    no news."""

    def said(kind: str, out: Array) -> Array:
        if kind == "news":
            return jnp.zeros((len(owner), out.shape[1]), out.dtype)
        return out if kind == "each" else out[owner]

    return tuple(map(said, hears, outbox))


def restart_nodes(
    method: Method, network: FaultyWires, p: Block, carry: Any, X: Array, who: Array, come: Array
) -> Any:
    """The nodes `who` as at the start; the neighbours of those that `come` expect nothing yet."""
    state, outbox, mail = carry
    first_state, first_outbox = method.init(p, X, None)
    new = network.select_nodes(who, first_state, state, getattr(method, "parts", ()))
    spent = {
        name: getattr(new.memory, name) + jnp.where(who, getattr(state.memory, name), 0)
        for name in ("calls", "evaluations", "bodies")
        if hasattr(new.memory, name)
    }
    new = new._replace(memory=new.memory._replace(**spent))
    sent = network.select_senders(method.hears, who, first_outbox, outbox)
    first_messages = method.init(p, method.answer(new), None)[1]
    assumed = assumed_messages(method.hears, network.owner, first_messages)
    lost = (who[network.owner] | come[network.wires.other])[:, None]
    heard = tuple(jnp.where(lost, w, h) for w, h in zip(assumed, mail.heard, strict=True))
    due = mail.due
    if due is not None:
        due = jnp.where(lost[:, 0], -1, due)
    waiting = mail.waiting
    if waiting is not None:  # over a new connection nobody is prompt before the first message
        again = who[network.owner] | who[network.wires.other]
        waiting = Waiting(
            waiting.unread & ~lost[:, 0], waiting.prompt & ~again, jnp.where(who, 0, waiting.rounds)
        )
    mail = mail._replace(heard=heard, fresh=mail.fresh | who, due=due, waiting=waiting)
    return new, sent, mail


@jax.jit
def view_faulty(method: Method, network: FaultyWires, p: Block, carry: Any) -> tuple[Array, Array]:
    """Models and duals, as if all that was said had been heard."""
    state, outbox, _ = carry
    coming = tuple(map(network.across, method.hears, outbox))
    inbox = network.received(coming).deliver(method.hears, p.links, outbox)
    return method.answer(state), method.duals(p.links, state, inbox, outbox)
