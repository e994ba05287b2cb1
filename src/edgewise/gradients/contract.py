"""What a gradient estimator is: a part that a method is composed with.

`Estimator` says what methods and engines use, and mypy holds every estimator to it.
`EstimatorDefaults` has those answers that most give: inherit it, and say what differs.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np
from jax import Array

from edgewise.errors import MethodError
from edgewise.problem.block import Block
from edgewise.problem.contract import Curvatures

# at the optimum; late; only near it; at a floor of rounding errors
Exactness = Literal["yes", "slowly", "no", "to 1e-7"]


class Counted(Protocol):
    """An estimator's memory: a NamedTuple of its own, whose arrays lead with the node or the sample
    axis. Where function values are asked for, it counts them as `evaluations` (v,)."""

    @property
    def calls(self) -> Array:
        """(v,) oracle calls of each node so far: the estimator counts, the engine reads."""


class Estimator(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]  # a `pytree` class, whose numbers jit is given

    @property
    def random_draws(self) -> int:
        """How many 32-bit random numbers a node needs for one gradient."""

    @property
    def secret_draws(self) -> bool:
        """Whether these hide something from neighbours, who know the seed: peers then take them
        from the operating system."""

    @property
    def samples(self) -> int | None:
        """How many samples a gradient is made of; None: all of a node's."""

    @property
    def streams(self) -> bool:
        """Whether it needs no more than those, so that they may come from a stream."""

    @property
    def exactness(self) -> Exactness:
        """Whether a method that is exact with whole gradients ends at the optimum with these."""

    @property
    def accelerated(self) -> bool:
        """Whether `point` is another place than the iterate. Few methods take such an estimator."""

    def auto_step(self, nodes: Curvatures, /) -> np.ndarray:
        """(k,) steps eta_i that are safe and not too short, each from a node's own numbers."""

    def local_step(self, nodes: Curvatures, /) -> np.ndarray:
        """(k,) the same for many steps between two messages."""

    def theory_step(self, nodes: Curvatures, /) -> np.ndarray:
        """(k,) the largest steps that the analysis allows."""

    def tuned(self, nodes: Curvatures, /) -> Self:
        """Itself with its own rules in numbers, one per node."""

    def init(self, p: Block, X: Array, /) -> Counted:
        """The memory of a run that begins at X (v, n)."""

    def __call__(
        self, p: Block, X: Array, memory: Any, random_bits: Array, /
    ) -> tuple[Array, Counted]:
        """Gradients (v, n), ridge included, and the memory after them, from random bits
        (v, random_draws). Called once a step; a method with several gradient steps between two
        messages calls it several times. Nodes beyond `p.active` are then asked for nothing: what
        is kept of their samples stays as it is (`memory.change` and `memory.retake` see to that,
        `Block.pick` gives them no share), what is kept of the nodes themselves the method puts
        back."""

    def point(self, memory: Any, X: Array, /) -> Array:
        """(v, n) where the gradient is taken, and the answer read."""

    @property
    def carries_sums(self) -> bool:
        """Whether the memory has sums that go on from step to step, of terms that it has too: what
        went wrong with them once, be it rounding, stays."""

    def summed_anew(self, p: Block, memory: Any, /) -> Counted:
        """The memory, with such sums taken of their terms."""

    def private(self, **noise: Any) -> "Estimator | None":
        """The same with clipped samples and noise (`PrivateGradient` takes these), where all that
        it gives can be accounted for; None where not."""


class EstimatorDefaults:
    """What holds for most estimators."""

    auto_step: Callable[[Curvatures], np.ndarray]

    secret_draws: ClassVar[bool] = False
    streams: ClassVar[bool] = False
    accelerated: ClassVar[bool] = False
    carries_sums: ClassVar[bool] = False

    @property
    def samples(self) -> int | None:
        return None

    @property
    def exactness(self) -> Exactness:
        return "yes"

    def local_step(self, nodes: Curvatures) -> np.ndarray:
        return self.auto_step(nodes)

    def theory_step(self, nodes: Curvatures) -> np.ndarray:
        raise MethodError(f"no analysis of {type(self).__name__} gives a step: use eta='auto'")

    def tuned(self, nodes: Curvatures) -> Self:
        return self

    def point(self, memory: Any, X: Array) -> Array:
        return X

    def summed_anew(self, p: Block, memory: Any) -> Any:
        return memory

    def private(self, **noise: Any) -> Estimator | None:
        return None
