"""The compiled rounds of many nodes, in place of the simulator's own."""

import time
from functools import cached_property
from typing import Any, NamedTuple

import jax
import numpy as np

from edgewise.engines.native import node_program, panels
from edgewise.engines.native.estimators import CompiledFormula, FlatMemory, Samples
from edgewise.engines.native.kernels import NUMBERS, Edges, PanelState
from edgewise.engines.native.panels import Numbers
from edgewise.engines.native.rounds import NativeSimulator, share_out
from edgewise.engines.native.vectors import NARROW


class Opened(NamedTuple):
    """A carry as the compiled rounds work on it, and the state that it was made of."""

    rule: CompiledFormula
    samples: Samples
    state: PanelState
    edges: Edges
    numbers: Numbers
    memory: FlatMemory
    old: Any


def rows_to_change(v: int, n: int, dtype: Any) -> Numbers:
    """(1, v, n) zeros, with room after the last, as whole vectors are read."""
    return panels.aligned((v * n + NARROW,), dtype)[: v * n].reshape(1, v, n)


class ManyNodesSimulator(NativeSimulator):
    """State lies node by node, as the simulator has it, and stays NumPy's from call to call: a copy
    of a million nodes' would take as long as rounds."""

    kept: tuple[Any, ...] = ()  # arrays of the last carry: the next call changes them in place

    def advance(self, carry: Any, first: int, rounds: int) -> tuple[Any, float]:
        carry, spent = super().advance(carry, first, rounds)
        start = time.perf_counter()
        if isinstance(carry, Opened):
            carry = self.closed(carry)
        return carry, spent + time.perf_counter() - start

    def run_rounds(
        self, carry: Any, picked: Numbers, share: Numbers, batch: Numbers, coins: Numbers
    ) -> Any:
        """As many as there are picks. The carry stays opened between stretches of random bits."""
        trial = len(picked) == 0
        given = carry if isinstance(carry, Opened) else self.opened(carry, share, batch, trial)
        drawn = *map(panels.read_only, (picked, coins)), np.zeros(picked.shape[1])
        spare = self.nothing() if trial else self.spare

        def args(threads: int, shared: Numbers) -> tuple[Any, ...]:
            models = panels.aligned((threads, self.problem.size), self.dtype)
            rule, samples, state, *rest = given[:-1]
            margins = np.zeros((0, 0))
            return rule, samples, state, spare, *rest, *drawn, margins, models, shared

        pieces = self.problem.nodes // node_program.LEAST_NODES
        share_out(node_program.work, 0 if trial else pieces - 1, args)
        if len(picked) % 2 == 0:
            return given
        X, self.spare = self.spare, given.state.X
        return given._replace(state=given.state._replace(X=X))

    def opened(self, carry: Any, share: Numbers, batch: Numbers, trial: bool) -> Opened:
        """For a trial without the nodes' state, of which there may be much."""
        (old, (sent,)), method, p = carry, self.method, self.block
        rule = panels.rule_of(method, p.loss)
        state = panels.panels_of(old, sent, rule, self.nothing if trial else self.own)
        numbers = np.zeros((0, NUMBERS))
        if not trial:
            numbers = panels.numbers_now(self.numbers, p, old, batch, rule.estimator)
        memory = panels.memory_of(method.gradient, p, old.memory, 1)
        samples = panels.samples_of(p, share, batch)
        return Opened(rule, samples, state, self.flat_edges, numbers, memory, old)

    def own(self, a: Any) -> Numbers:
        """(1, v, n), to be changed."""
        if any(a is mine for mine in self.kept):
            return np.asarray(a)[None]
        v, n = a.shape
        made = rows_to_change(v, n, a.dtype)
        made[0] = a
        return made

    def nothing(self, a: Any = None) -> Numbers:
        return rows_to_change(0, self.problem.size, self.dtype)

    @cached_property
    def spare(self) -> Numbers:
        """(1, v, n) where models are written in rounds of one parity."""
        return rows_to_change(self.problem.nodes, self.problem.size, self.dtype)

    def closed(self, given: Opened) -> Any:
        """The carry that it has become."""
        known = given.state, given.memory, given.numbers
        state, _ = panels.carry_of(given.old, *known, lambda a: a[0], False)
        # where it lies: others may keep it, so that the next call begins with a copy
        X = jax.device_put(state.X, may_alias=True)
        state = state._replace(X=X)
        self.kept = tuple(a for a in jax.tree.leaves(state) if isinstance(a, np.ndarray))
        return state, (X,)
