"""The simulated network with faults: the last message heard along each edge is kept."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from edgewise.backend.pytree import pytree
from edgewise.backend.quantiser import Held, nearer, quantise, restore, take
from edgewise.engines.wires import DirectWires, ReceivedMessages
from edgewise.gradients.memory import coin
from edgewise.problem.block import match


class Mail(NamedTuple):
    """What is under way and what has arrived; edges as their receiving ends see them."""

    heard: tuple[Array, ...]  # (e, n) a vector sent each: the last one that came
    stamp: Array  # (e,) the round that it was sent in
    fresh: Array  # (v,) whether a node has something new to send
    asleep: Array  # (v,)
    cut: Array  # (e,) whether messages get lost
    flight: Any  # (delay + 1, e, n) a vector sent each, by the round they were sent in; or None
    due: Any  # (delay + 1, e) the round that they arrive in, -1: never; or None
    held: Any  # `Held` of each vector sent, where changes are sent, or None
    sent: Array  # (e,) messages so far
    bodies: Any  # (v,) bodies of news so far, over directed edges; None where there are no news
    round: Array  # ()
    waiting: Any = None  # Waiting, where nodes have patience


class Waiting(NamedTuple):
    """Whom a node still waits for before it steps: what `peers.node.peer.Peer.ready` goes by."""

    unread: Array  # (e,) something new has come since the node's last step
    prompt: Array  # (e,) the neighbour has spoken since it was last waited for in vain
    rounds: Array  # (v,) that the node has waited


class TwoStateChain(NamedTuple):
    """Probabilities that something is off in a round, by whether it was in the one before: Gilbert
    and Elliott's model of bursts of losses."""

    begin: Any  # after a round in which it was not
    last: Any  # after one in which it was

    def off(self, before: Array, random_bits: Array) -> Array:
        return coin(random_bits, jnp.where(before, self.last, self.begin))


def two_state_chain(part: np.ndarray, length: float | None) -> TwoStateChain:
    """Off for `part` of the time in all, and for `length` rounds on end in the mean."""
    if length is None:
        return TwoStateChain(jnp.asarray(part), jnp.asarray(part))
    begin = part / (length * (1 - part))
    return TwoStateChain(jnp.asarray(begin), jnp.asarray(np.full_like(begin, 1 - 1 / length)))


class Chances(NamedTuple):
    cut: TwoStateChain
    sleep: TwoStateChain  # (v,)


@pytree("delay", "sleeps", "drops", "bits", "keep", "feedback", "patience", "news_head", "every")
class FaultyWires:
    """A network that keeps what it has heard from round to round, in `Mail`."""

    wires: DirectWires
    owner: Any  # (e,)
    node_of: Any  # (N,) whose sample it is
    alive: Any  # (e,) both ends are present
    up: Any  # (e,) the link is not down
    links: Any  # (T, e) the links there are, stretch by stretch, and again; None: all
    present: Any  # (v,)
    chances: Chances
    delay: int
    sleeps: bool  # whether anybody ever does not step
    drops: bool
    bits: int | None
    keep: float | None  # part of a message's numbers that are sent
    feedback: bool
    patience: int  # rounds that a node waits for neighbours who are prompt
    news_head: int  # numbers of news that go with every message
    every: int  # rounds of a stretch
    lies: Any = None  # Lies, where some nodes lie

    def transmit(
        self, hears: tuple[str, ...], outbox: tuple[Array, ...], mail: Mail, random_bits: Array
    ) -> tuple[tuple[Array, ...], Mail]:
        """A round of messages: what the outbox was as sent, and the mail after it. random_bits
        (e, 2)."""
        sending = mail.fresh[self.wires.other] & self.alive
        if self.links is not None:
            sending &= self.links[mail.round // self.every % len(self.links)]
        cut = mail.cut
        if self.drops:
            cut = self.chances.cut.off(mail.cut, random_bits[:, 0])
        arriving = sending & self.up & ~cut
        if self.lies is not None:
            outbox = self.lies.told(hears, outbox, mail.heard, mail.round)
        outbox, held = self.compressed(hears, outbox, mail)
        coming = tuple(map(self.across, hears, outbox))
        bodies = mail.bodies
        for kind, c in zip(hears, coming, strict=True):
            if kind == "news":
                bodies = bodies.at[self.wires.other].add(sending & has_body(c))
        mail = mail._replace(cut=cut, held=held, sent=mail.sent + sending, bodies=bodies)
        if self.delay:
            return outbox, self.delayed(hears, coming, arriving, mail, random_bits[:, 1])
        mail = mail._replace(heard=self.taken(hears, arriving, coming, mail.heard))
        return outbox, noted(mail, arriving, arriving)

    def received(self, heard: tuple[Array, ...]) -> ReceivedMessages:
        """The wires of a round, once its messages are in."""
        return ReceivedMessages(heard, self.alive)

    def across(self, kind: str, out: Array) -> Array:
        """(e, n) what each edge's far end says, seen from its owner."""
        return out[self.wires.reverse if kind == "each" else self.wires.other]

    def taken(
        self,
        hears: tuple[str, ...],
        new: Array,
        coming: tuple[Array, ...],
        heard: tuple[Array, ...],
    ) -> tuple[Array, ...]:
        """What edges hold after the `new` (e,) of the messages. News without a body leave the one
        that was heard before."""

        def take(kind: str, c: Array, h: Array) -> Array:
            replaced = new[:, None]
            if kind == "news":
                in_head = jnp.arange(c.shape[1]) < self.news_head
                replaced = replaced & (in_head | has_body(c)[:, None])
            return jnp.where(replaced, c, h)

        return tuple(map(take, hears, coming, heard))

    def delayed(
        self,
        hears: tuple[str, ...],
        coming: tuple[Array, ...],
        arriving: Array,
        mail: Mail,
        random_bits: Array,
    ) -> Mail:
        slots = self.delay + 1
        late = ((random_bits.astype(jnp.uint64) * slots) >> 32).astype(mail.round.dtype)
        slot = mail.round % slots
        due = mail.due.at[slot].set(jnp.where(arriving, mail.round + late, -1))
        flight = tuple(f.at[slot].set(c) for f, c in zip(mail.flight, coming, strict=True))
        ages = (mail.round - jnp.arange(slots)) % slots  # rounds since each slot was filled
        landed = jnp.where(due == mail.round, mail.round - ages[:, None], -1)  # sent in which round
        newest = landed.max(0)
        here = newest > mail.stamp
        from_slot = newest % slots
        edges = jnp.arange(len(here))
        landing = tuple(f[from_slot, edges] for f in flight)
        heard = self.taken(hears, here, landing, mail.heard)
        stamp = jnp.where(here, newest, mail.stamp)
        mail = mail._replace(heard=heard, stamp=stamp, flight=flight, due=due)
        return noted(mail, newest >= 0, here)

    def awake(self, mail: Mail, random_bits: Array) -> tuple[Array, Mail]:
        """(v,) who steps in this round; random_bits (v,)."""
        asleep = self.chances.sleep.off(mail.asleep, random_bits)
        awake = self.present & ~asleep
        if self.patience:
            awake, mail = self.impatient(awake, mail)
        return awake, mail._replace(asleep=asleep, fresh=awake)

    def impatient(self, awake: Array, mail: Mail) -> tuple[Array, Mail]:
        """(v,) who steps of those awake: who has something new from all prompt neighbours, or from
        all where none is prompt, and who has waited long enough."""
        unread, prompt, rounds = mail.waiting

        def any_edge(of: Array) -> Array:
            return jnp.zeros_like(awake).at[self.owner].max(of)

        waited_for = self.alive & (prompt | ~any_edge(prompt & self.alive)[self.owner])
        ready = ~any_edge(waited_for & ~unread)
        steps = awake & (ready | (rounds >= self.patience))
        read = steps[self.owner]
        waiting = Waiting(
            unread & ~read,
            prompt & (unread | ~read),
            jnp.where(steps, 0, rounds + awake),
        )
        return steps, mail._replace(waiting=waiting)

    def select_nodes(self, who: Array, new: Any, old: Any, parts: Any = ()) -> Any:
        """`select`, of each of the parts too where nodes run in groups."""
        if not parts:
            return self.select(who, new, old)
        chosen = tuple(
            replace(self, owner=part.block.links.owner, node_of=part.owners).select(
                who[part.nodes], a, b
            )
            for part, a, b in zip(parts, new.parts, old.parts, strict=True)
        )
        whole = self.select(who, new._replace(parts=()), old._replace(parts=()))
        return whole._replace(parts=chosen)

    def select(self, who: Array, new: Any, old: Any) -> Any:
        """`new` at the nodes `who` and `old` at the others, in arrays that lead with nodes, with
        their samples or edges, or are scalars. As many of one as of the other: a memory has
        samples."""
        owners = (self.owner, self.node_of)

        def choose(path: Any, a: Array, b: Array) -> Array:
            if not a.ndim:
                return a
            memory = any(getattr(key, "name", "") == "memory" for key in path)
            rows = [who[of] for of in (owners if memory else owners[::-1])]
            sizes = {len(r): r for r in (*rows, who)}
            return jnp.where(match(sizes[a.shape[0]], a), a, b)

        return jax.tree_util.tree_map_with_path(choose, new, old)

    def select_senders(self, hears: tuple[str, ...], who: Array, new: Any, old: Any) -> Any:
        rows = (who[self.owner] if kind == "each" else who for kind in hears)
        return tuple(jnp.where(r[:, None], a, b) for r, a, b in zip(rows, new, old, strict=True))

    # --- compression -----------------------------------------------------------------------------

    def compressed(
        self, hears: tuple[str, ...], outbox: tuple[Array, ...], mail: Mail
    ) -> tuple[tuple[Array, ...], Any]:
        """What receivers will hold of the outbox, and the same to send changes of. News go as they
        are."""
        if self.bits is None and self.keep is None:
            return outbox, None
        if not self.feedback:
            squeezed = (
                out if kind == "news" else self.squeeze(out)
                for kind, out in zip(hears, outbox, strict=True)
            )
            return tuple(squeezed), None
        held = tuple(map(self.sent_change, hears, outbox, mail.held, len(hears) * [mail.fresh]))
        as_sent = (out if h is None else h.recent for out, h in zip(outbox, held, strict=True))
        return tuple(as_sent), held

    def sent_change(self, kind: str, out: Array, held: Held | None, fresh: Array) -> Held | None:
        if held is None:
            return None
        from_other, base = nearer(held, out, jnp)
        new = take(held, from_other, base + self.squeeze(out - base), jnp)
        sends = (fresh[self.owner] if kind == "each" else fresh)[:, None]
        return Held(*(jnp.where(sends, a, b) for a, b in zip(new, held, strict=True)))

    def squeeze(self, rows: Array) -> Array:
        if self.keep is not None:
            least = least_of(jnp.abs(rows), numbers_kept(self.keep, rows.shape[1]))
            rows = jnp.where(jnp.abs(rows) >= least, rows, 0)
        if self.bits is not None:
            rows = restore(*quantise(rows, self.bits, jnp), jnp)
        return rows


def has_body(news: Array) -> Array:
    """(rows,) whether a body goes with them."""
    return news[:, 0] > 0


def numbers_kept(keep: float, size: int) -> int:
    return max(1, int(np.ceil(keep * size)))


def noted(mail: Mail, came: Array, new: Array) -> Mail:
    """The mail with it noted along which edges anything came, and anything new."""
    if mail.waiting is None:
        return mail
    unread, prompt, rounds = mail.waiting
    return mail._replace(waiting=Waiting(unread | new, prompt | came, rounds))


def least_of(sizes: Array, kept: int) -> Array:
    """(v, 1) a bound that the `kept` largest of each row are not below, and no others, by halving:
    `lax.top_k` is slow on a CPU."""

    def halve(_: Array, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = (low + high) / 2
        many = (sizes >= middle).sum(1, keepdims=True) > kept
        return jnp.where(many, middle, low), jnp.where(many, high, middle)

    top = sizes.max(1, keepdims=True)
    return lax.fori_loop(0, jnp.finfo(sizes.dtype).nmant, halve, (jnp.zeros_like(top), top))[1]
