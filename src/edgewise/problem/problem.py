"""What is to be minimised: sum_i f_i(x) + h_i(x), f_i over the samples that node i holds."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from os import PathLike
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from edgewise.backend.placed import placed
from edgewise.data.folders import FolderShards
from edgewise.data.preparation import Preparation
from edgewise.data.scaling import Standardization
from edgewise.data.shards import Shards, rows_of
from edgewise.data.stream import Stream
from edgewise.errors import DataError, ProblemError
from edgewise.plotting.displays import problem_html, shown
from edgewise.problem import penalties
from edgewise.problem.block import Block, Links
from edgewise.problem.common_points import conflict
from edgewise.problem.contract import Loss
from edgewise.problem.costs import Costs, describe, sized_penalties, without_data
from edgewise.problem.from_text import loss_of, penalties_of
from edgewise.problem.losses import Squared
from edgewise.problem.offsets import Offsets, as_rates
from edgewise.problem.penalty_sum import PenaltySum
from edgewise.problem.rows import make_rows
from edgewise.problem.sample_weights import Weights
from edgewise.problem.smoothness import Smoothness
from edgewise.problem.stacked_penalties import same, stack
from edgewise.problem.whole_nodes import is_whole, whole_nodes


class Problem:
    """Shards, a loss and a penalty.

    shards         `edgewise.split(...)`, `Shards`, a list with one (X_i, y_i) per node, a folder
                   of shards (its files are read when they are needed), or a `Stream` of samples
                   without end
    loss           `Logistic(ridge=...)`, `Squared()`, `Huber()`, ..., `CustomLoss(fn)`; or text, as
                   the command line takes it: "logistic", "huber:0.5"
    penalty        one for every node, or a list with one per node; penalties add up over nodes. At
                   one node too: `L1(0.1) + Box(-1, 1)`. Or texts: "l1:0.1 + box:-1,1"
    weights        "node": f_i is the mean over node i's samples (the paper); "sample": (V/N) times
                   their sum, so that the answer does not depend on how samples are split
    sample_weight  one weight per sample, in the order of the data given to `split` (or of the
                   shards): means become weighted means
    intercept      a last coordinate (C of them with C classes), outside ridge and penalty
    offset         one number per sample, in that order, which is added to its margin
    exposure       one per sample: how long, or how many, each was watched; its logarithm is added
                   to the offset. With `Poisson`, `Gamma`, `Tweedie`, `NegativeBinomial`
    trials         one per sample, with `Binomial`: labels are then successes, and each trial counts
    classes        all labels there are, where these shards may lack some of them; default: those
                   that they have
    cost           a node's cost that takes no data, `Quadratic(Q, q)` or `Linear(q)`: one for all,
                   or a list with one, or None, per node. Shards may then have None for a node
                   without data, or be left out. Where nodes differ in how many unknowns they have,
                   say what holds between them: `solve(between=...)`

    Nothing that was handed over may change afterwards: programs and optima are kept.

    >>> shards = [(np.eye(3), [1, 2, 3]), (np.eye(3)[:2], [4, 5])]
    >>> Problem(shards, edgewise.Squared(), penalty=[edgewise.L1(0.1), edgewise.NonNegative()])
    Problem(2 nodes, 5 samples, 3 unknowns, Squared)
    """

    couples = False  # whether edges carry something else than that models are equal
    reach: np.ndarray | None = None  # (E, 2) norms of the ends' matrices, where they do

    def __init__(
        self,
        shards: Any = None,
        loss: Any = None,
        penalty: Any = None,
        weights: str = "node",
        sample_weight: Any = None,
        intercept: bool = False,
        classes: Any = None,
        cost: Any = None,
        offset: Any = None,
        exposure: Any = None,
        trials: Any = None,
    ) -> None:
        shards, self.sizes, self.cost, self.cost_tops, self.unlike = describe(shards, cost)
        of_rows = any(a is not None for a in (sample_weight, offset, exposure, trials))
        if self.cost is not None and not self.cost.lossy.all():
            if weights != "node" or of_rows:
                raise ProblemError(
                    "weights, sample_weight, offset, exposure and trials go with data at every "
                    "node: leave them out"
                )
            loss = loss if self.cost.lossy.any() else Squared()  # of no data
        self.stream = shards if isinstance(shards, Stream) else None
        if self.stream is not None:
            if weights != "node" or of_rows:
                raise ProblemError(
                    "a stream has no weights and no offsets: leave weights, sample_weight, offset "
                    "and exposure out"
                )
            shards = self.stream.holdout
        if isinstance(shards, str | PathLike):
            shards = FolderShards(shards)
        elif not isinstance(shards, Shards | FolderShards):
            shards = Shards.from_parts(shards)
        self.shards: Shards | FolderShards = shards
        loss, penalty = loss_of(loss), penalties_of(penalty, shards.nodes)
        self.ids = np.arange(self.nodes)  # what random bits depend on: `only` keeps them
        for part in ("encode", "linear", "ridge"):
            if isinstance(loss, type) or not hasattr(loss, part):
                raise ProblemError(
                    f"loss={loss!r} is not a loss: use Logistic(), Squared(), Huber(), "
                    "SmoothedHinge(), Multinomial() or CustomLoss(fn)"
                )
        if intercept and not loss.linear:
            raise ProblemError(
                f"{type(loss).__name__} has no intercept: "
                + (
                    "its model takes none"
                    if is_whole(loss)
                    else "make it part of your function's x"
                )
            )
        if is_whole(loss) and (self.stream is not None or self.cost is not None):
            raise ProblemError(
                f"{type(loss).__name__} goes with samples that nodes hold: leave streams and costs "
                "out"
            )
        if trials is not None:
            whole = self.shards.whole if isinstance(self.shards, FolderShards) else self.shards
            self.shards, sample_weight = as_rates(whole, loss, trials, sample_weight)
        self.intercept = bool(intercept)
        if isinstance(self.shards, FolderShards) and (
            is_whole(loss) or self.shards.terms or not manifest_suffices(self.shards, loss)
        ):
            self.shards = self.shards.whole
        if classes is not None:
            self.classes = loss.encode(np.asarray(classes))[1]
        elif isinstance(self.shards, Shards):
            self.labels, self.classes = loss.encode(self.shards.y)
        else:
            known = self.shards.classes
            self.classes = None if known is None else loss.encode(known)[1]
        if hasattr(loss, "outputs") and loss.outputs != 1:
            assert self.classes is not None
            loss = replace(loss, outputs=len(self.classes))
        self.loss: Loss = loss
        if classes is not None and isinstance(self.shards, Shards):
            self.labels = self.encode(self.shards.y)
        held = self.shards.weight if isinstance(self.shards, Shards) else None
        self._weights = Weights(weights, sample_weight, self.nodes, self.shards.samples, held)
        self._offsets = Offsets(offset, exposure, self.shards, loss)
        if isinstance(self.shards, Shards):
            self.scale = self._weights.factors(self.shards, self.ids)
            self.offset = self._offsets.of(self.shards)
        self.held = self.shards
        if is_whole(loss):
            self._gather_nodes()
            loss = self.loss
        p = self.shards.features
        width = loss.size if getattr(loss, "size", None) else p
        self.free = loss.outputs if self.intercept else 0
        self.size = int(width * loss.outputs + self.free)
        if not len(self.sizes):
            self.sizes = np.full(self.nodes, self.size)
        elif self.size != p:
            raise ProblemError(
                f"{self.unlike}{'; ' if self.unlike else ''}costs, and nodes of unequal sizes, go "
                "with losses of one output and no intercept: add a column of ones instead"
            )
        if self.cost is not None:
            self.scale = without_data(self.scale, self.cost.lossy, self.shards.counts)
        self.penalty: Any = penalties.NoPenalty() if penalty is None else penalty
        if isinstance(penalty, Iterable) and not hasattr(penalty, "prox"):
            self.penalty = [penalties.NoPenalty() if h is None else h for h in penalty]
        if self.unequal:
            self.penalty = sized_penalties(self.penalty, self.sizes)
        with jax.enable_x64(True):
            self._stacked = stack(self.penalty, self.nodes, self.size, free=self.free)
            self._try_parts()
        self._require_points()

    def _gather_nodes(self) -> None:
        """Each node's samples as one row, which its loss reads."""
        assert isinstance(self.shards, Shards)
        made = whole_nodes(self.shards, self.loss, self.labels, self.scale)
        self.shards, self.loss, self.scale = made
        self.labels = made.shards.y

    @property
    def nodes(self) -> int:
        return self.shards.nodes

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns of X, where the shards know them."""
        return self.held.columns

    @property
    def scaling(self) -> Standardization | None:
        """What the shards have been through, where they know: models come back from before it."""
        return self.held.scaling

    @property
    def preparation(self) -> Preparation | None:
        """How the shards were made of a table, where they know."""
        return self.held.preparation

    @property
    def unequal(self) -> bool:
        """Whether nodes have models of different sizes."""
        return bool((self.sizes != self.size).any())

    @property
    def counts(self) -> np.ndarray:
        """(V,) K_i."""
        return self.shards.counts

    def own(self, i: int) -> slice:
        """The samples of node i."""
        first = int(self.shards.first[i])
        return slice(first, first + int(self.counts[i]))

    @cached_property
    def labels(self) -> np.ndarray:
        """(N,) as the loss takes them."""
        return self.encode(self.shards.y)

    @cached_property
    def scale(self) -> np.ndarray | None:
        """(N,) factors a with f_i = (1/K_i) sum_k a_k loss_k, or None where all are one."""
        return self._weights.factors(self.shards, self.ids)

    @cached_property
    def offset(self) -> np.ndarray | None:
        """(N,) what is added to each sample's margin, or None."""
        return self._offsets.of(self.shards)

    @cached_property
    def case_weights(self) -> np.ndarray | None:
        """(N,) `sample_weight` of the samples held, node after node; None where all are one."""
        return self._weights.of(self.held)

    @cached_property
    def smoothness(self) -> Smoothness:
        return Smoothness(self)

    @cached_property
    def same_penalty(self) -> bool:
        """Whether every node has the same h_i."""
        return not isinstance(self.penalty, list | tuple) or same(self.penalty)

    def encode(self, y: np.ndarray) -> np.ndarray:
        """Labels as numbers, by the classes that the problem was made with."""
        if self.classes is None:
            return np.asarray(self.loss.encode(y)[0])
        unknown = np.setdiff1d(y, self.classes)
        if len(unknown):
            known = self.classes.tolist()
            raise DataError(f"label {unknown[0].item()!r} is none of the classes {known}")
        return np.asarray(self.loss.encode(self.classes)[0])[np.searchsorted(self.classes, y)]

    @property
    def convex(self) -> bool:
        """Whether the loss is, by its own word: runs else end at a stationary point."""
        return bool(getattr(self.loss, "convex", True))

    @property
    def smooth(self) -> bool:
        """Whether the loss's curvature is bounded, by its own word, as step rules need it."""
        return bool(getattr(self.loss, "smooth", True))

    @property
    def penalised(self) -> bool:
        """Whether any node has a penalty."""
        every = self.penalty if isinstance(self.penalty, list | tuple) else [self.penalty]
        return not all(getattr(h, "absent", False) for h in every)

    def only(self, nodes: Any) -> "Problem":
        """The problem of some of the nodes, with ids, losses, weights and penalties as they are
        here. Of a folder it reads these nodes' files and no other."""
        here = np.asarray(nodes)
        if here.dtype.kind not in "iu" or here.ndim != 1 or not here.size:
            raise ProblemError(f"only({nodes!r}): give the numbers of one node or more, as a list")
        if here.min() < 0 or here.max() >= self.nodes:
            raise ProblemError(f"only({nodes!r}): nodes are 0 to {self.nodes - 1}")
        rows = rows_of(self.shards, here)
        made = object.__new__(Problem)
        for name in ("stream", "loss", "intercept", "classes", "free", "size"):
            setattr(made, name, getattr(self, name))
        made.ids, made.shards, made.sizes = self.ids[here], self.shards.of(here), self.sizes[here]
        made.held = self.held.of(here) if is_whole(self.loss) else made.shards
        made.cost = None if self.cost is None else Costs(*(a[here] for a in self.cost))
        made.cost_tops = None if self.cost_tops is None else self.cost_tops[here]
        if isinstance(self.shards, Shards):
            made.labels = self.labels[rows]
            made.scale = None if self.scale is None else self.scale[rows]
            made.offset = None if self.offset is None else self.offset[rows]
        else:
            made.labels = self.encode(made.shards.y)
            made.scale = self._weights.factors(made.shards, made.ids, rows)
            made.offset = self._offsets.of(made.shards, rows)
        if isinstance(self.held, Shards):
            known = self.case_weights
            made.case_weights = None if known is None else known[rows_of(self.held, here)]
        else:
            made.case_weights = self._weights.of(made.held, rows_of(self.held, here))
        made.penalty = self.penalty
        if isinstance(self.penalty, list | tuple):
            made.penalty = [self.penalty[i] for i in here]
        with jax.enable_x64(True):
            made._stacked = stack(made.penalty, made.nodes, made.size, free=made.free)
        return made

    def _require_points(self) -> None:
        """That sets which were put together at one node have a point in common."""
        several = isinstance(self.penalty, list | tuple)
        for i, h in enumerate(self.penalty if several else [self.penalty]):
            if isinstance(h, PenaltySum) and conflict(h, self.size - self.free) is not None:
                at = f" of node {i}" if several else ""
                raise ProblemError(f"no point satisfies the penalty{at}, {h}: loosen a part of it")

    def _try_parts(self) -> None:
        """Trace what users may have written, once, so that what does not fit is said here."""
        X = jax.ShapeDtypeStruct((self.nodes, self.size), np.float64)
        t = jax.ShapeDtypeStruct((self.nodes, 1), np.float64)
        x, d, y = (
            jax.ShapeDtypeStruct(shape, np.float64)
            for shape in ((self.size,), (self.shards.features,), ())
        )
        checks: list[tuple[str, Any, tuple[Any, ...], tuple[int, ...]]] = [
            ("penalty's prox(x, t) of a vector x", self._stacked.prox, (X, t), X.shape),
            ("penalty's value(x)", self._stacked.value, (X,), (self.nodes,)),
        ]
        if not self.loss.linear:
            checks.append(("CustomLoss's fn(x, d, y)", self.loss.fn, (x, d, y), ()))
        for what, part, given, shape in checks:
            try:
                out = jax.eval_shape(part, *given)
                fits = out.shape == shape and out.dtype == np.float64
            except Exception as error:
                raise ProblemError(
                    f"the {what} cannot be traced by JAX ({type(error).__name__}: "
                    f"{str(error).splitlines()[0]}): write it with jax.numpy, without branches on "
                    "values"
                ) from error
            if not fits:
                raise ProblemError(
                    f"the {what} gives {out.dtype}{out.shape[1:] if len(shape) else out.shape}: "
                    f"it must give {shape[1:] if len(shape) else 'one number'}, in x's own dtype"
                )

    def block(self, links: Links | None, dtype: Any, rows: Any = None) -> Block:
        """All nodes as one block, its numbers in `dtype`; data are shared, not copied, where dtype
        and alignment allow, or `rows` where they are given. Call within `jax.enable_x64(True)`."""
        numbers = self.size if not self.loss.linear else self.shards.features
        if rows is None:
            require_room(self.shards.X, dtype, placed(np.zeros(())).devices().pop())
            rows = make_rows(self.shards.X, int(self.counts.max()), dtype, numbers)

        mask = None
        if self.intercept:
            mask = placed(np.arange(self.size) < self.size - self.free, dtype)
        return Block(
            placed(self.ids, jnp.int32),
            placed(self.shards.first, jnp.int64),
            placed(self.counts, jnp.int64),
            rows,
            placed(self.labels, dtype),
            None if self.scale is None else placed(self.scale, dtype),
            in_dtype(self.loss, dtype),
            in_dtype(self._stacked, dtype),
            mask,
            links,
            cost=None if self.cost is None else in_dtype(self.cost, dtype),
            offset=None if self.offset is None else jnp.asarray(self.offset, dtype),
        )

    @shown
    def _repr_html_(self) -> str:
        return problem_html(self)

    @property
    def samples_of_nodes(self) -> np.ndarray:
        """(V,) as `counts`, but zero where a node has no data: there it has one row, of nothing;
        and as they came where a loss takes a node as one."""
        real = np.ones(self.nodes) if self.cost is None else self.cost.lossy[:, 0]
        return (self.held.counts * real).astype(int)

    def __repr__(self) -> str:
        samples = int(self.samples_of_nodes.sum())
        least = f"{self.sizes.min()} to " if self.unequal else ""
        what = f", {type(self.loss).__name__}" if samples else ""
        return f"Problem({self.nodes} nodes, {samples} samples, {least}{self.size} unknowns{what})"


def manifest_suffices(shards: FolderShards, loss: Any) -> bool:
    """Whether it says all that a loss must know of the labels ahead: classes, where it has any."""
    if shards.classes is not None:
        return True
    try:
        return loss.encode(np.array([1, 2]).astype(shards.label_dtype))[1] is None
    except DataError:
        return False  # the labels themselves will tell why


def require_room(X: Any, dtype: Any, device: Any) -> None:
    """That the data fit the device's memory, where it says how much it has."""
    memory = getattr(device, "memory_stats", lambda: None)() or {}
    if "bytes_limit" not in memory:
        return
    width = min(max(X.dtype.itemsize, 4), np.dtype(dtype).itemsize)
    needed = X.size * width if isinstance(X, np.ndarray) else X.nnz * (width + 4)  # and a column
    free = memory["bytes_limit"] - memory.get("bytes_in_use", 0)
    if needed > free:
        smaller = ', use dtype="float32"' if width > 4 else ""
        raise DataError(
            f"the data take {needed / 1e9:.3g} GB, and of the {memory['bytes_limit'] / 1e9:.3g} GB "
            f"that JAX may use of {device} {free / 1e9:.3g} GB are free: spread the nodes over "
            f"several devices (devices=){smaller}, give fewer samples, or leave the GPU alone "
            "(JAX_PLATFORMS=cpu)"
        )


def in_dtype(tree: Any, dtype: Any) -> Any:
    """The tree with its real numbers in dtype, and all its leaves as JAX arrays."""

    def cast(a: Any) -> Any:
        return placed(a, dtype) if np.asarray(a).dtype.kind == "f" else placed(a)

    return jax.tree.map(cast, tree)
