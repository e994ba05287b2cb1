"""How much of the truth a guess has: numbers alone, and what chance would have."""

import numpy as np

RECOVERED = 0.99  # correlation from which a row counts as recovered


def columns_of(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which columns vary, their means and their deviations: a row is right by how it differs from
    others."""
    spread = X.std(0)
    there = spread > 1e-12 * np.abs(X).max(initial=0)
    return there, X.mean(0)[there], spread[there]


def best_correlations(
    guesses: np.ndarray, rows: np.ndarray, centre: np.ndarray, scale: np.ndarray
) -> np.ndarray:
    """(K,) of every row with that of the guesses (m, n) that is like it most, after the best
    factor: what the guess and the row have beyond the centre, in deviations."""
    if not len(guesses):
        return np.zeros(len(rows))
    E, D, M = guesses / scale, rows / scale, centre / scale
    ED, EE = E @ D.T, np.maximum((E * E).sum(1), 1e-300)[:, None]
    c = ED / EE
    EM, DM, MM = (E @ M)[:, None], (D @ M)[None], M @ M
    top = c * ED - c * EM - DM + MM
    left = np.sqrt(np.maximum(c * c * EE - 2 * c * EM + MM, 1e-300))
    right = np.sqrt(np.maximum((D * D).sum(1)[None] - 2 * DM + MM, 1e-300))
    return (top / (left * right)).max(0)


def shuffled(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows of nobody: every column in an order of its own."""
    return rng.permuted(rows, axis=0)


def auc(inside: np.ndarray, outside: np.ndarray) -> tuple[float, float]:
    """The chance that a member scores higher, ties half; and its standard error (Hanley and McNeil
    1982)."""
    m, n = len(inside), len(outside)
    if not m or not n:
        return np.nan, np.nan
    order = np.sort(outside)
    below, upto = (np.searchsorted(order, inside, side=s) for s in ("left", "right"))
    a = float((below + upto).sum() / (2 * m * n))
    q1, q2 = a / (2 - a), 2 * a * a / (1 + a)
    variance = (a * (1 - a) + (m - 1) * (q1 - a * a) + (n - 1) * (q2 - a * a)) / (m * n)
    return a, float(np.sqrt(max(variance, 0)))


def correlation(guess: np.ndarray, truth: np.ndarray) -> float:
    """Of those that are known; NaN where one of the two does not vary."""
    known = np.isfinite(guess) & np.isfinite(truth)
    g, t = guess[known], truth[known]
    if len(g) < 3 or np.ptp(g) == 0 or np.ptp(t) == 0:
        return np.nan
    return float(np.corrcoef(g, t)[0, 1])
