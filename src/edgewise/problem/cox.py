"""Cox's proportional hazards: a loss of a whole node, its own negative log partial likelihood."""

from dataclasses import replace
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from edgewise.backend.pytree import pytree
from edgewise.data.arrays import is_sparse
from edgewise.errors import DataError, ProblemError
from edgewise.problem.contract import Labels, NodeLoss
from edgewise.problem.losses import numbers, require_not_negative
from edgewise.problem.survival_labels import times_and_events

TIES = ("efron", "breslow")


@pytree("ties", "entry", "size")
class CoxPH:
    """The negative log partial likelihood of a node's samples, over their number:

        f_i(x) = 1/K_i sum_{events k} ( log sum_{j at risk at t_k} exp <d_j, x>  -  <d_k, x> )

    Every node is a stratum: nobody is at risk but beside those of the same node, so that nothing
    but models leaves it, and sum_i f_i is exact. With `Problem(weights="sample")` the optimum is
    that of the stratified fit of all data together; with "node" every node counts alike.

    Labels are `survival_labels(time, event)`: the time, negative where it was censored.

    ties    "efron" or "breslow": how those are counted who have events at the same time
    entry   the column of X that is no covariate but the time from which on a sample was observed
            (left truncation): at risk are those with entry < t <= time
    ridge   (ridge / 2) |x|^2 beside the mean

    `Problem(sample_weight=)` weighs cases as R's coxph does. A pass is O(K n) after one sort.
    Predictors within a node that differ by more than 700 (87 in float32) are clipped.
    A sample of the problem is a node: an oracle call is one partial likelihood.
    """

    ties: str = "efron"
    entry: int | None = None
    ridge: Any = 0.0
    size: int | None = None  # of x, which Problem fills in
    linear: ClassVar[Literal[False]] = False
    whole: ClassVar[Literal[True]] = True
    hessian_continuous: ClassVar[bool] = True
    convex: ClassVar[bool] = True
    outputs: ClassVar[int] = 1
    smoothness: ClassVar[None] = None

    def __post_init__(self) -> None:
        require_not_negative(self, ridge=self.ridge)
        if self.ties not in TIES:
            raise ProblemError(f"CoxPH(ties={self.ties!r}): give 'efron' or 'breslow'")
        if self.entry is not None and not isinstance(self.entry, int | np.integer):
            raise ProblemError(f"CoxPH(entry={self.entry!r}): give the number of a column of X")

    def encode(self, y: np.ndarray) -> Labels:
        times_and_events(numbers(y, "CoxPH")[0])
        return np.asarray(y, np.float64), None

    # --- a node as one row -----------------------------------------------------------------------

    def for_columns(self, columns: int) -> "CoxPH":
        """The same with its size, of X with so many columns."""
        if self.entry is None:
            return replace(self, size=columns)
        if not -columns <= self.entry < columns or columns < 2:
            raise ProblemError(
                f"CoxPH(entry={self.entry}): X has {columns} columns, and needs one for the entry "
                "and one covariate at least"
            )
        return replace(self, entry=int(self.entry) % columns, size=columns - 1)

    def row(self, X: Any, y: np.ndarray, weight: np.ndarray, length: int) -> np.ndarray:
        """What `fn` takes of a node: its samples by time, with what does not change of them, and
        zeros up to `length` samples."""
        X = np.asarray(X.toarray() if is_sparse(X) else X, np.float64)
        time, event = times_and_events(y)
        entry = None
        if self.entry is not None:
            entry, X = X[:, self.entry], np.delete(X, self.entry, 1)
            if (late := np.flatnonzero(entry >= time)).size:
                raise DataError(
                    f"a sample enters at {entry[late[0]]:g} and leaves at {time[late[0]]:g}: give "
                    "entries before the end of observation"
                )
        order = np.argsort(time, kind="stable")
        X, time, event, weight = X[order], time[order], event[order], weight[order]
        first = np.searchsorted(time, time, side="left")
        died = event * weight
        events = event & (weight > 0)
        of = np.flatnonzero(events)
        many = np.bincount(first[of], minlength=len(time))  # events of a time
        sums = np.bincount(first[of], weights=weight[of], minlength=len(time))
        rank, share, charge = np.zeros(len(time)), np.zeros(len(time)), np.zeros(len(time))
        rank[of] = np.arange(len(of)) - np.searchsorted(first[of], first[of], side="left")
        share[of] = rank[of] / many[first[of]] if self.ties == "efron" else 0.0
        charge[of] = sums[first[of]] / many[first[of]]
        parts = [X, weight, died, charge, share, first]
        if entry is not None:
            entry = entry[order]
            late = np.argsort(entry, kind="stable")
            parts += [late, np.searchsorted(entry[late], time, side="left")]
        made = np.column_stack(parts).astype(np.float64)
        spare = np.zeros((length - len(made), made.shape[1]))
        if entry is not None:
            spare[:, -2] = np.arange(len(made), length)
        return np.concatenate([made, spare]).ravel()

    def curvatures(self, rows: np.ndarray) -> np.ndarray:
        """(v,) bounds on the Hessians: a covariance of those at risk is at most the square of how
        far they are from any one point, and each event has one."""
        parts = rows.reshape(len(rows), -1, self.width)
        D, weight, charge = parts[..., : self.size], parts[..., self._at], parts[..., self._at + 2]
        live = (weight > 0)[..., None]
        low = np.where(live, D, np.inf).min(1, keepdims=True)
        high = np.where(live, D, -np.inf).max(1, keepdims=True)
        far = (np.where(live, D - (low + high) / 2, 0) ** 2).sum(-1).max(1)
        return np.asarray(far * charge.sum(1) / weight.sum(1))

    # --- the likelihood --------------------------------------------------------------------------

    @property
    def _at(self) -> int:
        """The column of the weights."""
        assert self.size is not None
        return self.size

    @property
    def width(self) -> int:
        return self._at + (5 if self.entry is None else 7)

    def fn(self, x: Array, d: Array, y: Array) -> Array:
        """f_i of a node's row d."""
        parts = d.reshape(-1, self.width)
        D, at = parts[:, : self.size], self._at
        weight, died, charge, share, first = parts[:, at : at + 5].T
        first = jnp.asarray(first, jnp.int32)
        z = jnp.matmul(D, x, precision=jax.lax.Precision.HIGHEST)
        live, least = weight > 0, jnp.finfo(x.dtype).tiny
        top = jax.lax.stop_gradient(jnp.where(live, z, -jnp.inf).max())
        hazard = jnp.where(live, weight * jnp.exp(jnp.where(live, z - top, 0)), 0)
        risk = at_least(hazard)[first]
        if self.entry is not None:
            late, before = (jnp.asarray(a, jnp.int32) for a in parts[:, at + 5 :].T)
            behind = jnp.append(at_least(hazard[late]), 0)
            risk = risk - behind[before]
        risk = jnp.maximum(jnp.where(charge > 0, risk, 1), least)
        dying = jnp.where(charge > 0, hazard, 0)
        together = jax.ops.segment_sum(dying, first, len(first), indices_are_sorted=False)[first]
        log_risk = jnp.log(risk)
        part = together * jnp.exp(-log_risk)  # not over risk, whose square underflows
        logs = log_risk + jnp.log1p(-share * part) + top
        return (charge @ logs - died @ z) / weight.sum()


def at_least(a: Array) -> Array:
    """Sums from each entry to the last."""
    return jnp.cumsum(a[::-1])[::-1]


NODE_LOSSES: tuple[type[NodeLoss], ...] = (CoxPH,)  # held to the contract by mypy
