"""A fit's coefficients as text, in the shape that statisticians know."""

from typing import Any

import numpy as np

from edgewise.inference.covariance import KINDS

LONGEST = 32  # letters of a name
WIDTH = 11


def estimate_rows(fit: Any, level: float, exponentiated: bool) -> tuple[list[str], np.ndarray]:
    """Heads of columns, and (d, 6) numbers."""
    ends = fit.interval(level)
    coef = fit.coef
    if exponentiated:
        with np.errstate(over="ignore"):
            coef, ends = np.exp(coef), np.exp(ends)
    letter = "z" if np.isinf(fit.df) else "t"
    low, high = f"[{(1 - level) / 2:.4g}", f"{(1 + level) / 2:.4g}]"
    heads = [
        "exp(coef)" if exponentiated else "coef",
        "std err",
        letter,
        f"P>|{letter}|",
        low,
        high,
    ]
    return heads, np.column_stack([coef, fit.std_err, fit.statistic, fit.p_values, ends])


def as_text(fit: Any, level: float, exponentiated: bool) -> str:
    heads, rows = estimate_rows(fit, level, exponentiated)
    title = f"{fit.loss}: {fit.samples:g} samples at {fit.nodes} nodes"
    if fit.events is not None:
        title += f", {fit.events:g} events"
    out = table_lines(title, facts(fit), heads, fit.names, rows)
    if exponentiated:
        out.append("std err is that of coef.")
    return "\n".join([*out, *fit.notes])


def table_lines(
    title: str, pairs: list[tuple[str, str]], heads: list[str], names: Any, rows: np.ndarray
) -> list[str]:
    names = [shortened(name) for name in names]
    first = max(12, *map(len, names))
    line = first + WIDTH * len(heads)
    out = [title.center(line).rstrip(), "=" * line, *in_two_columns(pairs, line)]
    out += ["=" * line] if pairs else []
    out += [" " * first + "".join(head.rjust(WIDTH) for head in heads), "-" * line]
    chance = next((k for k, head in enumerate(heads) if head.startswith("P>")), -1)
    for name, row in zip(names, rows, strict=True):
        cells = [number(a) for a in row]
        if chance >= 0:
            cells[chance] = f"{row[chance]:.3f}"
        out.append(name.ljust(first) + "".join(cell.rjust(WIDTH) for cell in cells))
    return [*out, "=" * line]


def facts(fit: Any) -> list[tuple[str, str]]:
    t = "normal" if np.isinf(fit.df) else f"t, {fit.df:g} df"
    known = [
        ("Covariance", KINDS.get(fit.kind, fit.kind)),
        ("Intervals by", t),
        ("Residual df", f"{fit.df_residual:.6g}"),
        ("Scale", f"{fit.scale:.6g}" if fit.estimated else None),
        ("Log-likelihood", fit.log_likelihood),
        ("AIC", fit.aic),
        ("BIC", fit.bic),
        ("Deviance", fit.deviance),
        ("Null deviance", fit.null_deviance),
        ("Pearson chi2", fit.pearson),
    ]
    return [(name, f"{a:.6g}" if isinstance(a, float) else a) for name, a in known if a is not None]


def in_two_columns(pairs: list[tuple[str, str]], line: int) -> list[str]:
    half = (len(pairs) + 1) // 2
    width = line // 2 - 1

    def cell(pair: tuple[str, str]) -> str:
        return f"{pair[0]}:" + pair[1].rjust(width - len(pair[0]) - 1)

    left, right = pairs[:half], [*pairs[half:], ("", "")]
    return [
        (cell(a) + "  " + (cell(b) if b[0] else "")).rstrip()
        for a, b in zip(left, right, strict=False)
    ]


def number(a: float) -> str:
    """Four significant digits at least, and no more than fit."""
    if not np.isfinite(a):
        return str(a)
    if a == 0 or 1e-3 <= abs(a) < 1e5:
        return f"{a:.4f}"
    return f"{a:.3e}"


def shortened(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 3] + "..."
