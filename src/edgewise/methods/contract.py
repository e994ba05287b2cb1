"""What a method is. Every argument is said here, once.

    method, weights = method.prepare(knowledge)                      once, in NumPy
    state, outbox   = method.init(block, X, duals)                   once, under jit
    state, outbox   = method.<phase>(block, state, inbox, random_bits)  every round, under jit

Everything is over a *block* of v nodes: all of them in the simulator, some on a rank, one at a
peer. A method never knows how messages travel, and declares what it can do: engines, checks and
tables ask these members and never the class. mypy holds every method of the catalogue to `Method`,
`require_method` any other object. `MethodDefaults` answers for most methods: inherit it, and say
what differs.

Nothing but a method itself reads `eta` other than as numbers to print and as the step of a prox: a
node's metric may be a matrix. A phase may take several gradient steps between two messages.
"""

from dataclasses import is_dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.errors import MethodError
from edgewise.gradients.contract import Estimator, Exactness
from edgewise.methods.knowledge import Knowledge
from edgewise.problem.block import Block, Links

Messages = tuple[Array, ...]  # one array for each entry of `hears`
Weights = dict[str, np.ndarray]  # by kind, "rho" or "mixing": (m,) one per edge, for both ways


class EdgeReport(NamedTuple):
    """What a coupled method says of its couplings, for those who measure it."""

    nodes: dict[str, Any]  # `pull` (v, n) of the duals at each node; and (v,) sums over a node's
    # edges, of which each end counts half: `violation` squared, `natural`, the squared distance
    # from where dual and difference fit together, each row's beside its size, and `price`
    duals: Any  # (e, m) the same at both ends
    missed: Any  # (e,) squared violation of each


class Method(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]  # a `pytree` class, whose numbers jit is given

    # --- what it can do --------------------------------------------------------------------------

    @property
    def takes_penalty(self) -> bool:
        """Whether it has a prox. Without one a problem with a penalty is refused."""

    @property
    def heals(self) -> bool:
        """Whether it stays exact where messages are lost or late: what was last heard is then all
        that it holds of an edge, so that edges may come and go too."""

    @property
    def directed(self) -> bool:
        """Whether it takes a graph whose links go one way: it then hears "each", and nothing, which
        is zeros, where no link comes from."""

    def healing(self) -> "Method":
        """The same iterates in a form that heals; itself where there is no other."""

    def coupled(self, rows: int, has_data: bool, /) -> "Method | None":
        """The method where edges carry couplings, with so many rows at most, and nodes have data or
        costs alone; None where it has no such form."""

    @property
    def streams(self) -> bool:
        """Whether it takes each sample once, so that they may come from a stream."""

    @property
    def samples(self) -> int | None:
        """How many samples what it sends is made of in a round; None: all of a node's."""

    @property
    def data_by_gradient(self) -> bool:
        """Whether data reach what is sent through one gradient a round of its estimator alone."""

    @property
    def solves_subproblem(self) -> bool:
        """Whether a round solves a problem at every node: few rounds, many gradients."""

    @property
    def second_order(self) -> bool:
        """Whether it asks the losses for Hessians."""

    @property
    def exactness(self) -> Exactness:
        """Where it ends: at the optimum ("yes"), there but late, only near it, or at a floor."""

    @property
    def tunes(self) -> tuple[str, ...]:
        """The names of its step parameters, for `tune`: each a field that takes a number, or one
        per node or edge, and that `prepare` works out."""

    # --- what it sends and hears -----------------------------------------------------------------

    @property
    def hears(self) -> tuple[str, ...]:
        """For each vector that it sends, what comes back: "rho" or "mixing", the pull
        sum_j w_ij (x_j - x_i) with those weights, of (v, n) sent to all neighbours alike; or
        "each", (e, n) of what came along every directed edge, for a message of its own along each;
        or "news", (e, w) of what each neighbour told last, for a row (v, w) told to all of them.
        A row of news is a head, whose first number is 1 where the body has changed and else 0, and
        the body, which goes over a wire only where it is 1: it must be as it was else. News are of
        float32, and never compressed. Zeros: nothing has been heard."""

    @property
    def news_head(self) -> int:
        """How many numbers of a row of news go with every message."""

    def message_sizes(self, size: int, outputs: int, /) -> tuple[int, ...]:
        """The numbers of each vector that it sends, for models of this size, with so many outputs
        of the loss."""

    @property
    def phases(self) -> tuple[str, ...]:
        """The names of its methods that make up a step, one round each. Each takes (block, state,
        inbox, random_bits), `Messages` and (v, random_draws), and gives (state, outbox)."""

    @property
    def rounds_a_step(self) -> int | None:
        """How many phases there are; None where the graph decides on that, in `prepare`."""

    @property
    def random_draws(self) -> int:
        """How many 32-bit random numbers a node needs a round."""

    @property
    def sends_state(self) -> tuple[str, ...]:
        """The names of the state's fields that the outbox always equals, if it does: they are then
        not carried, and copied, twice."""

    # --- its parts -------------------------------------------------------------------------------

    @property
    def gradient(self) -> Estimator | None:
        """The estimator it is composed with; None where it has gradients of its own."""

    @property
    def eta(self) -> Any:
        """The step: a rule's name, a number, or one per node; (v, 1) once prepared."""

    def prepare(self, k: Knowledge, /) -> tuple[Self, Weights]:
        """Itself with all rules worked out in numbers, those of nodes for the block's own, and the
        weights of the edges known. Where it takes the whole network, and nobody here sees that, it
        raises MethodError (`Knowledge.whole`)."""

    def init(self, p: Block, X: Array, duals: Array | None, /) -> tuple[Any, Messages]:
        """The first state and the first messages, from models X (v, n). The state is a NamedTuple
        with `memory.calls` (v,). Its arrays lead with nodes, those of its `memory` may lead with
        samples, and those of its `edges`, a NamedTuple if there is one, with directed edges. A warm
        run has duals, (v, n) sums over a node's edges, or (e, n) where it hears "each"; None: zero.
        Chosen so that the first step needs no special case."""

    def answer(self, s: Any, /) -> Array:
        """(v, n) the models."""

    def duals(self, links: Links, s: Any, inbox: Messages, outbox: Messages, /) -> Array:
        """(v, n) each node's sum of duals, zeros where there are none: what a warm run begins
        from, and what residuals use where penalties differ."""


class MethodDefaults:
    """What holds for most methods."""

    gradient: Estimator | None

    takes_penalty: Any = False
    heals: Any = False
    directed: ClassVar[bool] = False
    data_by_gradient: Any = False
    solves_subproblem: Any = False
    second_order: ClassVar[bool] = False
    tunes: Any = ("eta",)
    phases: Any = ("step",)
    sends_state: Any = ()
    hears: Any
    news_head: ClassVar[int] = 0

    def message_sizes(self, size: int, outputs: int) -> tuple[int, ...]:
        return len(self.hears) * (size,)

    def healing(self) -> Self:
        return self

    def coupled(self, rows: int, has_data: bool) -> Any:
        return None

    @property
    def streams(self) -> bool:
        return self.gradient is not None and self.gradient.streams

    @property
    def samples(self) -> int | None:
        return None if self.gradient is None else self.gradient.samples

    @property
    def exactness(self) -> Exactness:
        return "yes" if self.gradient is None else self.gradient.exactness

    @property
    def rounds_a_step(self) -> int | None:
        return len(self.phases)

    @property
    def random_draws(self) -> int:
        return 0 if self.gradient is None else int(self.gradient.random_draws)

    def answer(self, s: Any) -> Array:
        return s.X

    def duals(self, links: Links, s: Any, inbox: Messages, outbox: Messages) -> Array:
        return jnp.zeros_like(s.X)


HEARD = {"rho", "mixing", "each", "news"}
UNWEIGHTED = {"each", "news"}
FIRST_NAMED = ("prepare", "init")  # whoever lacks these has something else altogether
MEMBERS = tuple(dict.fromkeys((*FIRST_NAMED, *(n for n in vars(Method) if not n.startswith("_")))))
ESTIMATOR_MEMBERS = ("__call__", *(n for n in vars(Estimator) if not n.startswith("_")))


def require_method(method: Any) -> Method:
    """The method; raises MethodError, with the name of what it lacks, where it is none."""
    if isinstance(method, type):
        raise MethodError(f"{method.__name__} is a class: give an object, {method.__name__}(...)")
    if not missing(method, ESTIMATOR_MEMBERS):
        name = type(method).__name__
        raise MethodError(f"{name} is an estimator, no method: use PrimalDual({name}(...))")
    lacking = missing(method, MEMBERS)
    if not lacking:
        lacking = missing(method, method.phases)
    if not lacking and not (isinstance(method.hears, tuple) and set(method.hears) <= HEARD):
        raise MethodError(
            f"{type(method).__name__}.hears is {method.hears!r}: give a tuple with an entry for "
            'each vector sent, "rho", "mixing", "each" or "news", as in hears = ("mixing",)'
        )
    if lacking:
        raise MethodError(
            f"{method!r} is no method, it has no {lacking!r}: use a name from "
            "edgewise.list_methods(); one of your own inherits MethodDefaults, see "
            "docs/adding-a-method.md"
        )
    if not is_dataclass(type(method)):
        raise MethodError(
            f"{type(method).__name__} is no pytree, so that jit cannot take it: write @pytree() "
            "(edgewise.backend.pytree) before its class, or see docs/adding-a-method.md"
        )
    made: Method = method
    return made


def require_prepared(method: Method, knowledge: Knowledge) -> tuple[Method, Weights]:
    """What `prepare` gives; raises MethodError where that is not what engines can run."""
    name, made = type(method).__name__, method.prepare(knowledge)
    if not (isinstance(made, tuple) and len(made) == 2):
        raise MethodError(
            f"{name}.prepare gives {type(made).__name__}: it must give the method and the weights "
            "of its edges, see docs/adding-a-method.md"
        )
    prepared, weights = made
    v, m = len(knowledge.own), len(knowledge.edges)
    if np.shape(prepared.eta) != (v, 1):
        raise MethodError(
            f"{name}.prepare gives an eta of shape {np.shape(prepared.eta)}: it must give "
            f"replace(self, eta=...) with a step for each node, {(v, 1)}"
        )
    for kind in set(prepared.hears) - UNWEIGHTED:
        if kind not in weights or np.shape(weights[kind]) != (m,):
            raise MethodError(
                f"{name} hears {kind!r}, and its prepare gives no weight for each edge: it must "
                f"give {{{kind!r}: ...}} of shape {(m,)}"
            )
    return prepared, weights


def require_estimator(owner: Any, gradient: Any, accelerated: bool = False) -> None:
    """Raises MethodError unless the owner, a method, can be composed with it."""
    name, kind = type(owner).__name__, type(gradient).__name__
    if isinstance(gradient, type) or not callable(gradient):
        raise MethodError(f"{name}({gradient!r}): give an estimator, such as SAGA() or Full()")
    lacking = missing(gradient, ESTIMATOR_MEMBERS)
    if lacking:
        raise MethodError(
            f"{name}({gradient!r}): this is no estimator, it has no {lacking!r}: give one such as "
            "SAGA() or Full(); one of your own inherits EstimatorDefaults, see "
            "docs/adding-a-method.md"
        )
    if gradient.accelerated and not accelerated:
        raise MethodError(
            f"{name} cannot take {kind}, which has momentum: use PrimalDual({kind}())"
        )


def missing(part: Any, members: tuple[str, ...]) -> str:
    """The first of the members that it lacks; nothing where it has all."""
    return next((m for m in members if not hasattr(part, m)), "")
