"""The simulator with faults: the same steps, through a network that loses, delays and changes."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from edgewise.backend.programs import compiled
from edgewise.backend.quantiser import UNIT_BYTES, hold, packed_bytes
from edgewise.backend.random_bits import draw_bits
from edgewise.engines.faults import Faults
from edgewise.engines.faulty_wires import Chances, Faulty, Mail, Spells
from edgewise.engines.simulator import Simulator
from edgewise.engines.wires import Perfect
from edgewise.graph.graph import Graph
from edgewise.problem.block import Block


def run_faulty_rounds(
    method: Any, network: Faulty, p: Block, carry: Any, noise: Array, luck: Any, unroll: int
) -> Any:
    """As `run_rounds`; luck: (steps, phases, e, 2) and (steps, phases, v) random bits."""

    def body(carry: Any, now: Any) -> tuple[Any, None]:
        random_bits, (edge_luck, node_luck) = now
        state, outbox, mail = carry
        for k, phase in enumerate(method.phases):
            inbox, mail = network.deliver(method, p, outbox, mail, edge_luck[k])
            new_state, new_outbox = getattr(method, phase)(p, state, inbox, random_bits[k])
            if network.sleeps:
                awake, mail = network.awake(mail, node_luck[k])
                new_state = network.kept_by(awake, new_state, state)
                new_outbox = network.kept_outbox(method.hears, awake, new_outbox, outbox)
            state, outbox = new_state, new_outbox
            mail = mail._replace(round=mail.round + 1)
        return (state, outbox, mail), None

    return lax.scan(body, carry, (noise, luck), unroll=unroll)[0]


class FaultySimulator(Simulator):
    """Events are between two programs, chances within them."""

    program = staticmethod(run_faulty_rounds)

    def __init__(
        self, problem: Any, graph: Graph, method: Any, seed: int, dtype: Any, faults: Faults
    ) -> None:
        super().__init__(problem, graph, method, seed, dtype)
        self.faults, self.all_links = faults, self.block.links
        self.wires: Perfect = self.network
        self.unroll = 1
        size = problem.size
        self.luck_key = jax.random.key(faults.seed)
        d = graph.directed
        self.edge_ids = jnp.asarray(d.other * graph.nodes + d.owner, np.uint32)  # sender, receiver
        never = np.zeros(graph.nodes) + (1 - faults.awake)
        self.chances = Chances(
            spells(np.asarray(faults.drop), faults.burst), spells(never, faults.nap)
        )
        self.kept = None if faults.keep is None else max(1, int(np.ceil(faults.keep * size)))
        self.clear(0)

    def clear(self, round: int) -> None:
        """The network as it is in a round."""
        graph, faults = self.graph, self.faults
        d = graph.directed
        present = faults.present(graph.nodes, round)
        alive = present[d.owner] & present[d.other]
        up = np.ones(len(d.owner), bool)
        for i, j, first, last in faults.down:
            if first <= round <= last:
                up &= ~(((d.owner == i) & (d.other == j)) | ((d.owner == j) & (d.other == i)))
        self.network = Faulty(
            self.wires,
            jnp.asarray(d.owner),
            jnp.asarray(np.repeat(np.arange(graph.nodes), self.problem.counts)),
            jnp.asarray(alive),
            jnp.asarray(up),
            jnp.asarray(present),
            self.chances,
            faults.delay,
            bool((faults.awake < 1).any() or faults.leave or faults.join),
            faults.drop > 0,
            faults.bits,
            self.kept,
            faults.feedback,
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
        self.clear(0)
        state, outbox = super().start(X, duals)
        absent = ~self.faults.present(self.graph.nodes, -1) | ~np.asarray(self.network.present)
        calls = jnp.where(absent, 0, state.memory.calls)  # those who come count when they do
        state = state._replace(memory=state.memory._replace(calls=calls))
        self.origin_models = jnp.asarray(X, self.dtype)
        edges = len(self.graph.directed.owner)
        heard = own_words(self.method.hears, self.network.owner, outbox)
        slots = self.faults.delay + 1
        delays, changes = self.faults.delay > 0, self.faults.compresses and self.faults.feedback
        # the first message of few bits is whole, as peers send it; of few numbers it is not
        first = outbox if self.kept is None else tuple(map(jnp.zeros_like, outbox))
        held = tuple(hold(vectors, jnp, run=-1) for vectors in first)
        mail = Mail(
            heard,
            jnp.full(edges, -1, jnp.int64),
            self.network.present,
            jnp.zeros(self.graph.nodes, bool),
            jnp.zeros(edges, bool),
            tuple(jnp.zeros((slots, *h.shape), h.dtype) for h in heard) if delays else None,
            jnp.full((slots, edges), -1, jnp.int64) if delays else None,
            held if changes else None,
            jnp.zeros((), jnp.int64),
            jnp.zeros((), jnp.int64),
        )
        return jax.tree.map(lambda a: jnp.array(a, copy=True), (state, outbox, mail))

    def foresee(self, carry: Any, rounds: int) -> None:
        """Nothing: events cut a run into stretches of their own."""

    def advance(self, carry: Any, first: int, rounds: int) -> tuple[Any, float]:
        phases = len(self.method.phases)
        stops = sorted({-(-r // phases) * phases for r in self.faults.breaks})
        spent, at, end = 0.0, first, first + rounds
        while at < end:
            self.clear(at)
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
        here = (self.method, self.network, self.block, carry, self.origin_models)
        args = (*here, jnp.asarray(who), jnp.asarray(new))
        return compiled(begin_again, args, {})(*args)

    def view(self, carry: Any) -> tuple[Array, Array]:
        return peek(self.method, self.network, self.block, carry)

    def noise_per_round(self) -> int:
        return super().noise_per_round() + 2 * len(self.edge_ids) + self.graph.nodes

    def arguments(self, carry: Any, first: int, steps: int) -> tuple[Any, ...]:
        phases = len(self.method.phases)
        at = first + jnp.arange(steps * phases)
        edge = draw_bits(jax.random.fold_in(self.luck_key, 0), self.edge_ids, at, 2)
        node = draw_bits(jax.random.fold_in(self.luck_key, 1), self.block.ids, at, 1)[..., 0]
        luck = tuple(a.reshape(steps, phases, *a.shape[1:]) for a in (edge, node))
        return self.method, self.network, self.block, carry, self.random_bits(first, steps), luck

    def sent(self, carry: Any, rounds: int) -> int:
        return int(carry[2].sent)

    def present(self, round: int) -> np.ndarray:
        return self.faults.present(self.graph.nodes, max(round - 1, 0))

    @property
    def message_bytes(self) -> float:
        """With the unit of rounded numbers, which message they are a change of (as peers send it,
        the first one apart, which is whole), and the places of those that are sent."""
        numbers = self.problem.size if self.kept is None else self.kept
        places = 0 if self.kept is None else 4 * numbers
        if self.faults.bits is None:
            return numbers * self.dtype.itemsize + places
        return packed_bytes(numbers, self.faults.bits) + UNIT_BYTES + self.faults.feedback + places


def spells(part: np.ndarray, length: float | None) -> Spells:
    """Off for `part` of the time in all, and for `length` rounds on end in the mean."""
    if length is None:
        return Spells(jnp.asarray(part), jnp.asarray(part))
    begin = part / (length * (1 - part))
    return Spells(jnp.asarray(begin), jnp.asarray(np.full_like(begin, 1 - 1 / length)))


def own_words(hears: tuple[str, ...], owner: Array, outbox: tuple[Array, ...]) -> tuple[Array, ...]:
    """(e, n) what a neighbour would have said that is where the node is, with no duals."""
    return tuple(
        out if kind == "each" else out[owner] for kind, out in zip(hears, outbox, strict=True)
    )


def begin_again(
    method: Any, network: Faulty, p: Block, carry: Any, X: Array, who: Array, come: Array
) -> Any:
    """The nodes `who` as at the start; the neighbours of those that `come` expect nothing yet."""
    state, outbox, mail = carry
    first_state, first_outbox = method.init(p, X, None)
    new = network.kept_by(who, first_state, state)
    spent = {
        name: getattr(new.memory, name) + jnp.where(who, getattr(state.memory, name), 0)
        for name in ("calls", "evaluations")
        if hasattr(new.memory, name)
    }
    new = new._replace(memory=new.memory._replace(**spent))
    sent = network.kept_outbox(method.hears, who, first_outbox, outbox)
    meeting = method.init(p, method.answer(new), None)[1]
    lost = (who[network.owner] | come[network.wires.other])[:, None]
    heard = tuple(
        jnp.where(lost, w, h)
        for w, h in zip(own_words(method.hears, network.owner, meeting), mail.heard, strict=True)
    )
    due = mail.due
    if due is not None:
        due = jnp.where(lost[:, 0], -1, due)
    return new, sent, mail._replace(heard=heard, fresh=mail.fresh | who, due=due)


@jax.jit
def peek(method: Any, network: Faulty, p: Block, carry: Any) -> tuple[Array, Array]:
    """Models and duals, as if all that was said had been heard."""
    state, outbox, _ = carry
    coming = tuple(map(network.across, method.hears, outbox))
    inbox = network.inbox(method, p, outbox, coming)
    return method.answer(state), method.duals(p.links, state, inbox, outbox)
