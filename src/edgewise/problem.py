"""What is to be minimised: sum_i f_i(x) + h_i(x), f_i over the samples that node i holds."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from edgewise import penalties
from edgewise.block import Block, Links
from edgewise.data.shards import Shards
from edgewise.data.stream import Stream
from edgewise.errors import DataError, ProblemError, UnknownName
from edgewise.rows import make_rows
from edgewise.smoothness import Smoothness


class Problem:
    """Shards, a loss and a penalty.

    shards         `edgewise.split(...)`, `Shards`, a list with one (X_i, y_i) per node, or a
                   `Stream` of samples without end
    loss           `Logistic(ridge=...)`, `Squared()`, `Huber()`, ..., or `CustomLoss(fn)`
    penalty        one for every node, or a list with one per node; penalties add up over nodes
    weights        "node": f_i is the mean over node i's samples (the paper); "sample": (V/N) times
                   their sum, so that the answer does not depend on how samples are split
    sample_weight  one weight per sample, in the order of the data given to `split` (or of the
                   shards): means become weighted means
    intercept      a last coordinate (C of them with C classes), outside ridge and penalty

    Nothing that was handed over may change afterwards: programs and optima are kept.

    >>> shards = [(np.eye(3), [1, 2, 3]), (np.eye(3)[:2], [4, 5])]
    >>> Problem(shards, edgewise.Squared(), penalty=[edgewise.L1(0.1), edgewise.NonNegative()])
    Problem(2 nodes, 5 samples, 3 unknowns, Squared)
    """

    def __init__(
        self,
        shards: Any,
        loss: Any,
        penalty: Any = None,
        weights: str = "node",
        sample_weight: Any = None,
        intercept: bool = False,
    ) -> None:
        self.stream = shards if isinstance(shards, Stream) else None
        if self.stream is not None:
            if weights != "node" or sample_weight is not None:
                raise ProblemError("a stream has no weights: leave weights and sample_weight out")
            shards = self.stream.holdout
        self.shards = shards if isinstance(shards, Shards) else Shards.from_parts(shards)
        for part in ("encode", "linear", "ridge"):
            if isinstance(loss, type) or not hasattr(loss, part):
                raise ProblemError(
                    f"loss={loss!r} is not a loss: use Logistic(), Squared(), Huber(), "
                    "SmoothedHinge(), Multinomial() or CustomLoss(fn)"
                )
        if intercept and not loss.linear:
            raise ProblemError("CustomLoss has no intercept: make it part of your function's x")
        self.intercept = bool(intercept)
        self.labels, self.classes = loss.encode(self.shards.y)
        if hasattr(loss, "outputs") and loss.outputs != 1:
            assert self.classes is not None
            loss = replace(loss, outputs=len(self.classes))
        self.loss = loss
        self.scale = sample_scale(self.shards, weights, sample_weight)
        p = self.shards.features
        width = loss.size if getattr(loss, "size", None) else p
        self.free = loss.outputs if self.intercept else 0
        self.size = int(width * loss.outputs + self.free)
        self.penalty: Any = penalties.NoPenalty() if penalty is None else penalty
        if isinstance(penalty, Iterable) and not hasattr(penalty, "prox"):
            self.penalty = [penalties.NoPenalty() if h is None else h for h in penalty]
        with jax.enable_x64(True):
            self._stacked = penalties.stack(self.penalty, self.nodes, self.size, free=self.free)
            self._try_parts()

    @property
    def nodes(self) -> int:
        return self.shards.nodes

    @property
    def counts(self) -> np.ndarray:
        """(V,) K_i."""
        return self.shards.counts

    def own(self, i: int) -> slice:
        """The samples of node i."""
        first = int(self.shards.first[i])
        return slice(first, first + int(self.counts[i]))

    @cached_property
    def smoothness(self) -> Smoothness:
        return Smoothness(self)

    @cached_property
    def same_penalty(self) -> bool:
        """Whether every node has the same h_i."""
        return not isinstance(self.penalty, list | tuple) or penalties.same(self.penalty)

    def encode(self, y: np.ndarray) -> np.ndarray:
        """Labels as numbers, by the classes that the problem was made with."""
        if self.classes is None:
            return np.asarray(y, np.float64)
        unknown = np.setdiff1d(y, self.classes)
        if len(unknown):
            raise DataError(f"label {unknown[0]!r} is none of the classes {list(self.classes)}")
        codes = np.searchsorted(self.classes, y).astype(np.float64)
        return codes if self.loss.outputs > 1 else 2 * codes - 1

    @property
    def penalised(self) -> bool:
        """Whether any node has a penalty."""
        every = self.penalty if isinstance(self.penalty, list | tuple) else [self.penalty]
        return not all(isinstance(h, penalties.NoPenalty) for h in every)

    def only(self, nodes: Any) -> "Problem":
        """The problem of some of the nodes, with losses and penalties as they are here."""
        at = np.concatenate([np.arange(self.own(i).start, self.own(i).stop) for i in nodes])
        made = object.__new__(Problem)
        for name in ("stream", "loss", "intercept", "classes", "free", "size"):
            setattr(made, name, getattr(self, name))
        made.shards = Shards(self.shards.X[at], self.shards.y[at], self.counts[nodes])
        made.labels = self.labels[at]
        made.scale = None if self.scale is None else self.scale[at]
        made.penalty = self.penalty
        if isinstance(self.penalty, list | tuple):
            made.penalty = [self.penalty[i] for i in nodes]
        with jax.enable_x64(True):
            made._stacked = penalties.stack(made.penalty, made.nodes, made.size, free=made.free)
        return made

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
            require_room(self.shards.X, dtype, jnp.zeros(()).devices().pop())
            rows = make_rows(self.shards.X, int(self.counts.max()), dtype, numbers)

        mask = None
        if self.intercept:
            mask = jnp.asarray(np.arange(self.size) < self.size - self.free, dtype)
        return Block(
            jnp.arange(self.nodes, dtype=jnp.int32),
            jnp.asarray(self.shards.first, jnp.int64),
            jnp.asarray(self.counts, jnp.int64),
            rows,
            jnp.asarray(self.labels, dtype),
            None if self.scale is None else jnp.asarray(self.scale, dtype),
            in_dtype(self.loss, dtype),
            in_dtype(self._stacked, dtype),
            mask,
            links,
        )

    def __repr__(self) -> str:
        return (
            f"Problem({self.nodes} nodes, {self.shards.samples} samples, {self.size} unknowns, "
            f"{type(self.loss).__name__})"
        )


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
        return jnp.asarray(a, dtype) if np.asarray(a).dtype.kind == "f" else jnp.asarray(a)

    return jax.tree.map(cast, tree)


def sample_scale(shards: Shards, weights: str, sample_weight: Any) -> np.ndarray | None:
    """(N,) factors a with f_i = (1/K_i) sum_k a_k loss_k, or None where all are one."""
    if not isinstance(weights, str) or weights not in ("node", "sample"):
        raise UnknownName("weights", weights, ["node", "sample"])
    counts = np.repeat(shards.counts, shards.counts).astype(np.float64)
    if sample_weight is None:
        if weights == "node":
            return None
        return counts * shards.nodes / shards.samples
    try:
        w = np.asarray(sample_weight, np.float64)
    except (TypeError, ValueError) as wrong:
        raise DataError("sample_weight must be numbers, one per sample") from wrong
    if w.shape != (shards.samples,):
        raise DataError(f"sample_weight has shape {w.shape}: give {shards.samples}, one per sample")
    if not np.isfinite(w).all() or (w < 0).any():
        raise DataError("sample_weight must be finite and not negative")
    w = w if shards.order is None else w[shards.order]
    sums = np.add.reduceat(w, shards.first)
    if weights == "sample":
        if w.sum() == 0:
            raise DataError("sample_weight is zero for every sample: give some a positive weight")
        return np.asarray(w * counts * shards.nodes / w.sum())
    if (sums == 0).any():
        node = int(np.argmin(sums))
        raise DataError(f"sample_weight is zero for all of node {node}: drop the node, or weigh it")
    return np.asarray(w * counts / np.repeat(sums, shards.counts))
