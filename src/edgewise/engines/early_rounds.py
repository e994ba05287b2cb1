"""The first rounds of a small network, run by NumPy: compiling them would take longer."""

import time
from typing import Any

import jax
import numpy as np

from edgewise.backend.numpy_program import NumpyProgram
from edgewise.backend.programs import interpreted
from edgewise.backend.random_bits import draw_by_numpy
from edgewise.engines.layout import Layout, OneDevice
from edgewise.problem.block import Block

EARLY_ROUNDS = 1000  # that NumPy runs in less time than compiling them takes
EARLY_LOCAL_ROUNDS = 30  # where a round is many steps
FEW_NODES = 32  # that it takes one after another, in a pass over uneven samples


class EarlyRounds:
    """What a simulator asks NumPy for. A carry of NumPy's arrays is of a run that began so."""

    early: Any = None  # the program of rounds that NumPy may run
    program: Any
    problem: Any
    layout: Layout
    method: Any
    own_method: Any
    network: Any
    block: Block
    seed: Any

    def called(self, f: Any, *args: Any, here: bool = True) -> Any:
        program = self.by_numpy(f, args) if here else None
        return self.layout.call(f, *args) if program is None else program(*args)

    def by_numpy(self, f: Any, args: tuple[Any, ...], **static: Any) -> NumpyProgram | None:
        """f, for a network that is small enough for NumPy to run it: nothing is to be compiled."""
        if type(self.layout) is not OneDevice or self.problem.nodes > FEW_NODES:
            return None
        return interpreted(f, args, **static)

    def early_steps(self, carry: Any, first: int, steps: int) -> int:
        """Of so many steps those that NumPy takes: a matter of rounds' numbers alone, so that a run
        comes to the same iterates wherever it is looked at, or stopped and resumed."""
        local = getattr(self.method, "local", None)
        most = EARLY_ROUNDS if local is None else EARLY_LOCAL_ROUNDS
        early = max(0, min(steps, (most - first) // len(self.method.phases)))
        return early if early and self.early_program(carry) is not None else 0

    def early_program(self, carry: Any) -> NumpyProgram | None:
        if not is_numpy(carry) or self.program is not self.early or self.problem.stream is not None:
            return None
        return self.by_numpy(self.early, self.early_arguments(carry, 0, 1), unroll=1)

    def advance_early(self, carry: Any, first: int, steps: int) -> tuple[Any, float]:
        program: Any = self.early_program(carry)
        args = self.early_arguments(carry, first, steps)
        start = time.perf_counter()
        return program(*args), time.perf_counter() - start

    def early_arguments(self, carry: Any, first: int, steps: int) -> tuple[Any, ...]:
        phases, draws = len(self.method.phases), self.method.random_draws
        bits = draw_by_numpy(self.seed, self.block.ids, first + np.arange(steps * phases), draws)
        bits = bits.reshape(steps, phases, *bits.shape[1:])
        return self.own_method, self.network, self.block, carry, bits, None


def is_numpy(carry: Any) -> bool:
    return all(isinstance(a, np.ndarray) for a in jax.tree.leaves(carry))
