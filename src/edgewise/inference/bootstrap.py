"""A bootstrap over nodes: fits to nodes drawn with replacement, all of them by the same few sums.

Draws come from the seed, so that every node knows how often it was drawn in which replicate. It
adds its Hessian and its gradient at the replicate's model so often, and all take the replicate's
Newton step. What is resampled are nodes, as they are what differs: hospitals, not patients.
"""

from collections.abc import Generator
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from edgewise.errors import MethodError, ProblemError, UnknownName, whole_number
from edgewise.inference.covariance import scaled_inverse
from edgewise.inference.estimation import (
    FEW_CLUSTERS,
    Ask,
    require_inference,
)
from edgewise.inference.node_sums import node_sums, stacked_slopes
from edgewise.inference.sums import NUMBERS, whole
from edgewise.inference.text_table import table_lines
from edgewise.inference.units import Units
from edgewise.problem.problem import Problem

STEPS, DONE = 30, 1e-7  # of Newton at most, and a step in standard errors of the fit that ends it
AT_A_TIME = 1 << 20  # numbers of a sum
FAR = 1e3  # standard errors of the fit: a replicate that goes there has no optimum


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Estimates of nodes drawn with replacement: `result.bootstrap()`. Printed, it is a table."""

    names: tuple[str, ...]
    coef: np.ndarray = field(repr=False)  # of the fit to all nodes
    estimates: np.ndarray = field(repr=False)  # (B, d) of replicates that have an optimum
    failed: int  # replicates that have none
    nodes: int
    loss: str

    @property
    def std_err(self) -> np.ndarray:
        return self.estimates.std(0, ddof=1)

    def interval(self, level: float = 0.95, kind: str = "t") -> np.ndarray:
        """(d, 2). kind: "t", coef and its standard error with Student's t of V - 1 degrees of
        freedom; "percentile", quantiles of the estimates; "basic", these mirrored about coef."""
        from scipy import stats  # half a second that peers without a summary do without

        if not 0 < level < 1:
            raise ProblemError(f"an interval of level {level!r}: give a number between 0 and 1")
        if kind == "t":
            far = stats.t(self.nodes - 1).ppf((1 + level) / 2) * self.std_err
            return np.stack([self.coef - far, self.coef + far], 1)
        if kind not in ("percentile", "basic"):
            raise UnknownName("kind of interval", kind, ["t", "percentile", "basic"])
        ends = np.quantile(self.estimates, [(1 - level) / 2, (1 + level) / 2], axis=0).T
        return ends if kind == "percentile" else 2 * self.coef[:, None] - ends[:, ::-1]

    def frame(self, level: float = 0.95, kind: str = "t") -> Any:
        """A pandas table."""
        import pandas as pd

        ends = self.interval(level, kind)
        low, high = f"[{(1 - level) / 2:.4g}", f"{(1 + level) / 2:.4g}]"
        rows = np.column_stack([self.coef, self.std_err, ends])
        return pd.DataFrame(rows, index=list(self.names), columns=["coef", "std err", low, high])

    def __str__(self) -> str:
        frame = self.frame()
        title = f"{self.loss}: {len(self.estimates)} bootstrap replicates of {self.nodes} nodes"
        out = table_lines(title, [], list(frame.columns), self.names, frame.to_numpy())
        if self.failed:
            out.append(f"{self.failed} more replicates have no optimum, and are left out.")
        if self.nodes < FEW_CLUSTERS:
            out.append(
                f"{self.nodes} nodes are few to draw from: standard errors tend to be too small."
            )
        return "\n".join(out)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def bootstrap_steps(
    problem: Problem, x: np.ndarray, replicates: int, seed: int, nodes: int
) -> Generator[Ask, np.ndarray, Bootstrap]:
    """nodes: of the network; those of `problem` have their numbers in `ids`."""
    require_inference(problem, debias=False)
    whole_number("replicates", replicates, 2, MethodError)
    whole_number("seed", seed, 0, MethodError)
    if nodes < 2:
        raise ProblemError("one node cannot be drawn from: a bootstrap over nodes takes several")
    d, free = problem.size, problem.free
    held = np.arange(d) < d - free
    ridge, at = float(np.asarray(problem.loss.ridge)), NUMBERS.index("counted")
    drawn = np.random.default_rng(seed).multinomial(nodes, np.full(nodes, 1 / nodes), replicates)

    def own_counted(p: Problem, i: int) -> np.ndarray:
        sums = node_sums(p, i, x)
        each = np.zeros((3, nodes))
        each[0, int(p.ids[i])] = sums.numbers[at]
        each[1, int(p.ids[i])] = sums.number("quadratic")
        out = np.zeros(3 * nodes + d)
        out[: 3 * nodes] = each.ravel()
        out[3 * nodes :] = np.diag(sums.hessian)
        return out

    told = yield own_counted
    counted, quadratic = told[:nodes], told[nodes : 2 * nodes]
    shrink = (drawn @ counted) * ridge + drawn @ quadratic  # (B,) the ridge's weight
    unit = 1 / np.sqrt(np.maximum(told[3 * nodes :], np.finfo(float).tiny))  # a rough size of steps

    models = np.tile(x, (replicates, 1))
    before, left = models.copy(), np.full(replicates, np.inf)  # the squared Newton decrement there
    state = np.zeros(replicates, int)  # 0 on its way, 1 at its optimum, -1 without one
    stretch = max(AT_A_TIME // (d * (d + 1) // 2 + d), 1)
    for _ in range(STEPS):
        live = np.flatnonzero(state == 0)
        for begin in range(0, len(live), stretch):
            part = live[begin : begin + stretch]
            H, g = unpacked((yield own_slopes(models[part], drawn[part])), d)
            for b, matrix, slope in zip(part, H, g, strict=True):
                R = held * shrink[b]
                inverse, flat = scaled_inverse(matrix + np.diag(R))
                if flat is not None or not np.isfinite(slope).all():
                    state[b] = -1
                    continue
                slope = slope + R * models[b]
                step = inverse @ slope
                off = float(slope @ step)
                if off > left[b]:  # the last step went too far
                    models[b] = (models[b] + before[b]) / 2
                    continue
                before[b], left[b] = models[b], off
                models[b] -= step
                if np.abs(step / unit).max() <= DONE:
                    state[b] = 1
                elif np.abs((models[b] - x) / unit).max() > FAR * np.sqrt(len(counted)):
                    state[b] = -1
        if not (state == 0).any():
            break
    units = Units(problem)
    fine = models[state == 1]
    if len(fine) < max(2, replicates // 2):
        raise ProblemError(
            f"{replicates - len(fine)} of {replicates} replicates have no optimum: nodes are too "
            "few or too small to be drawn with replacement; give a ridge, or take "
            'summary("cluster")'
        )
    estimates = fine @ units.T.T
    failed = replicates - len(fine)
    return Bootstrap(
        units.names, units.coef(x), estimates, failed, nodes, type(problem.loss).__name__
    )


def own_slopes(models: np.ndarray, drawn: np.ndarray) -> Ask:
    """(B, d(d+1)/2 + d) flat: so often as the node was drawn, its Hessian and its gradient."""
    upper = np.triu_indices(models.shape[1])

    def ask(problem: Problem, i: int) -> np.ndarray:
        often = drawn[:, int(problem.ids[i])]
        out = np.zeros((len(models), len(upper[0]) + models.shape[1]))
        here = np.flatnonzero(often)
        if len(here):
            H, g = stacked_slopes(problem, i, models[here])
            each = np.concatenate([H[:, upper[0], upper[1]], g], 1)
            out[here] = often[here, None] * each
        return out.ravel()

    return ask


def unpacked(flat: np.ndarray, d: int) -> tuple[list[np.ndarray], np.ndarray]:
    half = d * (d + 1) // 2
    table = flat.reshape(-1, half + d)
    return [whole(row, d) for row in table[:, :half]], table[:, half:]
