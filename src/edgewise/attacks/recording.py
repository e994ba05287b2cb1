"""A run's messages as peers send them, round by round: all that attacks are given."""

from functools import cached_property
from typing import Any

import jax
import numpy as np

from edgewise.backend.placed import copied
from edgewise.engines.faults import Faults
from edgewise.engines.faulty_executor import FaultyExecutor
from edgewise.engines.simulator import Simulator, begin
from edgewise.errors import MethodError
from edgewise.graph.graph import Graph
from edgewise.methods.contract import Method
from edgewise.problem.problem import Problem

MOST_NUMBERS = 1 << 27  # of all messages kept: a gigabyte
EXACT, ROUNDED = 1e-6, 0.1  # of the models: how far off they may be read


class Recording:
    """Messages of `rounds` rounds and the first ones, from X = prox(0).

    sent    for each vector of an outbox (rounds + 1, rows, n), as receivers have it; a row per
            directed edge where a method `hears` "each", else one per node
    models  (rounds + 1, V, n) as any neighbour works them out of these messages
    last    (V, n) the models themselves at the end
    """

    def __init__(
        self,
        problem: Problem,
        graph: Graph,
        method: Method,
        rounds: int,
        seed: int = 0,
        dual_noise: float = 0.0,
        bits: int | None = None,
    ) -> None:
        self.problem, self.graph, self.rounds, self.seed = problem, graph, rounds, seed
        self.noisy, self.rounded = dual_noise > 0, bits is not None
        method, kind = method.healing(), np.dtype(np.float64)
        given = problem, graph, method, seed, kind
        made = Simulator(*given) if bits is None else FaultyExecutor(*given, Faults(bits=bits))
        self.executor, self.method = made, made.method
        self.require_room()
        self.run(dual_noise)

    def require_room(self) -> None:
        hears, problem = self.method.hears, self.problem
        sizes = self.method.message_sizes(problem.size, problem.loss.outputs)
        rows = {"each": self.graph.arc_count}
        round = sum(rows.get(h, self.graph.nodes) * n for h, n in zip(hears, sizes, strict=True))
        if round * (self.rounds + 1) > MOST_NUMBERS:
            raise MethodError(
                f"{self.rounds} rounds have {round * self.rounds:.1e} numbers in their messages: "
                f"look at {MOST_NUMBERS // round - 1} at most (rounds, --first)"
            )

    def run(self, dual_noise: float) -> None:
        made = self.executor
        self.origin = np.asarray(made.origin())
        carry = self.first_carry(dual_noise)
        kept: list[tuple[np.ndarray, ...]] = []
        for t in range(self.rounds):
            if not self.rounded:
                kept.append(self.outbox(carry))
            carry, _ = made.advance(carry, t, 1)
            if self.rounded:
                kept.append(self.as_received(carry))
        if not self.rounded:
            kept.append(self.outbox(carry))
        self.sent = tuple(np.stack(vectors) for vectors in zip(*kept, strict=True))
        self.rounds = len(kept) - 1
        self.last = np.asarray(made.view(carry)[0], np.float64)
        self.bytes = float(made.message_bytes)

    def first_carry(self, dual_noise: float) -> Any:
        """With random duals where some are asked for, of each directed edge its own: what a peer
        does with `dual_noise`."""
        made = self.executor
        if not dual_noise:
            return made.start(self.origin, None)
        if "each" not in made.method.hears or self.rounded:
            raise MethodError(
                f"dual_noise={dual_noise:g}: goes with primal-dual methods, and not with bits"
            )
        shape = self.graph.arc_count, self.problem.size
        noise = dual_noise * np.random.default_rng(self.seed).normal(size=shape)
        args = made.own_method, made.block, made.layout.place(self.origin)
        return copied(jax.jit(begin)(*args, made.layout.place_edges(noise)))

    def outbox(self, carry: Any) -> tuple[np.ndarray, ...]:
        return tuple(np.array(a, np.float64) for a in carry[1])

    def as_received(self, carry: Any) -> tuple[np.ndarray, ...]:
        """What went out in the round that has just been taken."""
        held = zip(carry[1], carry[2].held, strict=True)
        return tuple(np.array(o if h is None else h.recent, np.float64) for o, h in held)

    def require_readable(self) -> None:
        """Raises MethodError where messages do not tell models as `models` reads them: attacks
        would fail, which is no safety."""
        method, size = self.method, self.problem.size
        first = method.message_sizes(size, self.problem.loss.outputs)[0]
        told = len(method.phases) == 1 and first == size
        if told:
            off = np.abs(self.models[-1] - self.last).max()
            told = off <= (ROUNDED if self.rounded else EXACT) * np.abs(self.last).max()
        if not told:
            raise MethodError(
                f"what {type(method).__name__} sends with these settings is not what the attacks "
                "here can read, and others may: audit newton-pd, pd, saga-pd, svr-pd, local "
                "training without a radius, pdmm, dgd, extra or gradient tracking"
            )

    # --- what neighbours make of it --------------------------------------------------------------

    @cached_property
    def edge_weights(self) -> np.ndarray:
        """(e, 1) or (e, n) rho of the directed edges, which their ends know."""
        return np.asarray(self.executor.block.edge_weights())

    @cached_property
    def models(self) -> np.ndarray:
        """With m the messages of an edge, x_i(t+1) = (m_ij(t+1) + m_ji(t)) / (2 rho_ij); newton-pd
        sends 0.2 of what it sent before and 0.8 x_i; others x_i itself."""
        d, hears = self.graph.directed, self.method.hears
        X = np.empty((self.rounds + 1, self.graph.nodes, self.problem.size))
        X[0] = self.origin
        if hears[0] != "each":
            return self.sent[0]
        if len(hears) == 1:
            m = self.sent[0]
            by_edge = (m[1:] + m[:-1, d.reverse]) / (2 * self.edge_weights)
            for i in range(self.graph.nodes):
                X[1:, i] = by_edge[:, d.owner == i].mean(1)
            return X
        from edgewise.methods.newton_pd import RELAXATION

        first = np.searchsorted(d.owner, np.arange(self.graph.nodes))
        y = self.sent[0][:, first]
        X[1:] = (y[1:] - (1 - RELAXATION) * y[:-1]) / RELAXATION
        return X

    @cached_property
    def heard(self) -> tuple[np.ndarray, ...]:
        """For each vector (rounds + 1, e, n) what came along each directed edge to its owner."""
        d = self.graph.directed
        return tuple(
            a[:, d.reverse if kind == "each" else d.other]
            for kind, a in zip(self.method.hears, self.sent, strict=True)
        )
