"""Rows of each node, as attackers get them, beside the true ones and beside rows of nobody."""

from typing import NamedTuple

import numpy as np

from edgewise.attacks.batch_fit import fitted_rows
from edgewise.attacks.curvature_news import directions, hessians, tells_hessians
from edgewise.attacks.gradients_seen import Seen
from edgewise.attacks.local_fit import can_fit, local_rows
from edgewise.attacks.membership import rows_with_intercept
from edgewise.attacks.recording import Recording
from edgewise.attacks.row_recovery import Changes, changes, draws, guesses
from edgewise.attacks.scores import RECOVERED, best_correlations, columns_of, shuffled
from edgewise.gradients import SAGA
from edgewise.problem.problem import Problem

SPANNED = 1e-7  # part of the largest singular value


class Rows(NamedTuple):
    true: list[np.ndarray]  # of each victim (K,) the best correlation of a guess with every row
    shuffled: list[np.ndarray]  # the same with rows of nobody
    bar: float  # from which a row is recovered
    spanned: float  # the part of a row that lies in the span of what was seen, in the median
    spanned_shuffled: float


def rows_found(r: Recording, seen: Seen, victims: np.ndarray, secret: bool, patient: bool) -> Rows:
    problem, rng = r.problem, np.random.default_rng(r.seed)
    drawn = None if secret or not seen.single else draws(r)
    every = rows_with_intercept(problem, np.arange(problem.shards.samples))
    there, centre, scale = columns_of(every)
    true, fake = [], []
    spanned: tuple[list[np.ndarray], list[np.ndarray]] = [], []
    for i in np.flatnonzero(victims).tolist():
        own = None if drawn is None else drawn[:, i]
        candidates = node_guesses(r, seen, i, own)
        if patient and seen.whole[i] and can_fit(r, not secret):
            fit = local_rows(r, seen.heard, i)
            candidates = candidates if fit is None else np.concatenate([candidates, fit])
        candidates = by_class(problem, candidates)[:, there]
        rows = every[problem.own(i)][:, there]
        nobody = shuffled(rows, rng)
        for some, parts in zip((rows, nobody), spanned, strict=True):
            parts.append(part_in_span(candidates / scale, some / scale))
        true.append(best_correlations(candidates, rows, centre, scale))
        fake.append(best_correlations(candidates, nobody, centre, scale))
    medians = (float(np.median(np.concatenate(parts))) for parts in spanned)
    return Rows(true, fake, RECOVERED, *medians)


def by_class(problem: Problem, guesses: np.ndarray) -> np.ndarray:
    """(m, n) multiples of rows; with several outputs there is one for each, and (m C, p)."""
    C, p = problem.loss.outputs, problem.shards.features
    if C == 1 or not len(guesses):
        return guesses[:, : p + problem.intercept]
    rows = guesses[:, : C * p].reshape(len(guesses), C, p)
    if problem.intercept:
        rows = np.concatenate([rows, guesses[:, C * p :, None]], 2)
    return rows.reshape(len(guesses) * C, -1)


def part_in_span(seen: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(K,) how much of each row's length lies in the span of vectors (m, n). Whole gradients of
    fewer samples than columns span no more than the rows."""
    if not len(seen) or not seen.any():
        return np.zeros(len(rows))
    s, vt = np.linalg.svd(seen, full_matrices=False)[1:]
    inside = rows @ vt[s > SPANNED * s[0]].T
    return np.linalg.norm(inside, axis=1) / np.maximum(np.linalg.norm(rows, axis=1), 1e-300)


def node_changes(r: Recording, seen: Seen, node: int, drawn: np.ndarray | None) -> Changes:
    G = np.nan_to_num(seen.values[:, node])
    count = int(r.problem.counts[node])
    return changes(r.method.gradient, G, count, drawn, bool(seen.whole[node]))


def node_guesses(r: Recording, seen: Seen, node: int, drawn: np.ndarray | None) -> np.ndarray:
    """(m, n) of one node."""
    if tells_hessians(r):
        H = hessians(r)[node]
        return np.concatenate([directions(H), np.nan_to_num(seen.values[:, node])])
    G = np.nan_to_num(seen.values[:, node])
    if not seen.single:
        return np.concatenate([G, np.diff(G, axis=0)])
    problem, count = r.problem, int(r.problem.counts[node])
    seen_changes = node_changes(r, seen, node, drawn)
    made = guesses(seen_changes, count)
    gradient = r.method.gradient
    hidden = np.isnan(seen.values[:, node]).any() or not seen.whole[node]
    if isinstance(gradient, SAGA) and drawn is not None and drawn.shape[1] > 1 and not hidden:
        values, X, most = seen_changes.values, seen.at[:, node], int(problem.counts.max())
        fit = fitted_rows(problem.loss, values, drawn, X, count, most, problem.intercept, r.seed)
        made = made if fit is None else np.concatenate([made, fit])
    return made
