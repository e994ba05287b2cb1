"""From files that never leave their hospitals to a table for a paper.

The RAND health insurance experiment (bundled with statsmodels): who goes to the doctor ten times a
year or more? Of its person-years 3,000 are dealt out to twelve hospitals of very unequal size, and
each keeps a CSV file. They agree on the levels of a category by a formula, fit one logistic
regression over a network, and add up small matrices for its standard errors. Three answers are
compared:

- all files in one place, by statsmodels: what one would publish if one were allowed to;
- the hospitals over their network, by Edgewise;
- a meta-analysis: each hospital fits alone, and coefficients are averaged, weighted by their
  inverse variances. A hospital without anybody of a level, or where a column tells all cases apart,
  has no estimate of that coefficient and is left out of it, as is usual.

    python examples/hospital_study.py --plot hospital_study.png
"""

import argparse
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import statsmodels.api as sm
from rich.console import Console
from rich.table import Table
from scipy.stats import norm
from statsmodels.datasets import randhie

import edgewise as ew

HOSPITALS, PEOPLE, OFTEN = 12, 3000, 10
FORMULA = "often ~ coinsurance + chronic + limited + C(health)"
HEALTH = {"hlthg": "2 good", "hlthf": "3 fair", "hlthp": "4 poor"}
WIDE = 10.0  # a standard error of a log odds ratio that says that there is no estimate


class Study(NamedTuple):
    """By coefficient: estimates and standard errors of the three ways."""

    names: tuple[str, ...]
    pooled: np.ndarray  # (d, 2)
    network: np.ndarray
    meta: np.ndarray
    hospitals: np.ndarray  # (d,) how many had an estimate for the meta-analysis


def main(arguments: Sequence[str] | None = None) -> Study:
    parser = argparse.ArgumentParser(
        description="One regression over the files of twelve hospitals."
    )
    parser.add_argument("--plot", metavar="FILE", help="write a picture")
    parser.add_argument("--seed", type=int, default=0, help="of who is at which hospital")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        files = written_files(Path(folder), options.seed)
        tables = [pd.read_csv(file) for file in files]
    sizes = [len(table) for table in tables]
    graph = ew.Graph.random(HOSPITALS, 24, seed=1)

    shards, design = ew.formula(FORMULA, tables, graph)
    problem = ew.Problem(shards, "logistic", weights="sample", intercept=design.intercept)
    result = ew.solve(problem, graph, tol=1e-9, reference=False)
    assert result.converged, result.message
    summary = result.summary()
    print(summary)
    terms = design.terms(tables[0])
    print(f"health, all levels together: {summary.wald_test(terms['C(health)'])}")
    print(f"likelihood ratio of the whole model: {summary.likelihood_ratio_test()}\n")

    everything = pd.concat(tables)
    pooled = fitted(design, everything)
    meta, hospitals = meta_analysis([fitted(design, table) for table in tables])
    network = np.stack([summary.coef, summary.std_err], 1)
    study = Study(summary.names, pooled, network, meta, hospitals)
    report(study, sizes)
    if options.plot:
        draw(study, options.plot)
        print(f"plot: {options.plot}")
    return study


def written_files(folder: Path, seed: int) -> list[Path]:
    """A CSV file per hospital."""
    rng = np.random.default_rng(seed)
    data = randhie.load_pandas().data
    data = data.iloc[rng.permutation(len(data))[:PEOPLE]]
    health = pd.Series("1 excellent", data.index)
    for column, level in HEALTH.items():
        health[data[column] == 1] = level
    table = pd.DataFrame(
        {
            "often": (data["mdvis"] >= OFTEN).astype(int),
            "coinsurance": data["lncoins"],
            "chronic": data["disea"],
            "limited": data["physlm"],
            "health": health,
        }
    )
    shards = ew.split(
        np.arange(PEOPLE)[:, None], table["often"], HOSPITALS, how="size", alpha=2, seed=seed
    )
    files = []
    for number, (rows, _) in enumerate(shards):
        files.append(folder / f"hospital{number}.csv")
        table.iloc[rows[:, 0].astype(int)].to_csv(files[-1], index=False)
    return files


def fitted(design: ew.Design, table: pd.DataFrame) -> np.ndarray:
    """(d, 2) estimates and standard errors by statsmodels; NaN where there are none."""
    X = sm.add_constant(design.apply(table), has_constant="add")
    there = X.columns[(X != 0).any()]
    made = np.full((X.shape[1], 2), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fit = sm.Logit(design.response(table), X[there].astype(float)).fit(
                disp=False, maxiter=200
            )
        except (np.linalg.LinAlgError, sm.tools.sm_exceptions.PerfectSeparationError):
            return made
    at = X.columns.get_indexer(there)
    made[at] = np.stack([fit.params, fit.bse], 1)
    made[~(made[:, 1] < WIDE)] = np.nan  # it went off to infinity
    return made


def meta_analysis(alone: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """(d, 2) means weighted by inverse variances, and (d,) of how many hospitals."""
    each = np.array(alone)
    weights = np.nan_to_num(each[..., 1] ** -2.0)
    total = weights.sum(0)
    mean = (weights * np.nan_to_num(each[..., 0])).sum(0) / total
    return np.stack([mean, total**-0.5], 1), (weights > 0).sum(0)


def report(study: Study, sizes: list[int]) -> None:
    table = Table("odds ratio of", "all in one place", "network", "meta-analysis", "of", "off by")
    shown = norm.ppf(0.975)

    def cell(estimate: np.ndarray) -> str:
        coef, error = estimate
        low, high = np.exp([coef - shown * error, coef + shown * error])
        return f"{np.exp(coef):.3f} ({low:.3f} to {high:.3f})"

    for j, name in enumerate(study.names):
        off = (study.meta[j, 0] - study.pooled[j, 0]) / study.pooled[j, 1]
        cells = map(cell, (study.pooled[j], study.network[j], study.meta[j]))
        table.add_row(name, *cells, str(study.hospitals[j]), f"{off:+.2f} std err")
    Console(width=130).print(table)
    far = np.abs(study.network - study.pooled).max()
    print(f"{min(sizes)} to {max(sizes)} people a hospital")
    print(
        f"network and all in one place: estimates and standard errors differ by {far:.1e} at most"
    )


def draw(study: Study, path: str) -> None:
    import matplotlib.pyplot as plt

    names, height = study.names[1:], np.arange(len(study.names) - 1)[::-1]
    figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
    ways = {"all in one place": study.pooled, "network": study.network, "meta-analysis": study.meta}
    for k, (label, values) in enumerate(ways.items()):
        colour = ("0.3", "C0", "C1")[k]
        coef, error = values[1:].T
        ax.errorbar(
            coef, height - 0.2 * (k - 1), xerr=1.96 * error, fmt="o", color=colour, label=label
        )
    ax.axvline(0, color="0.8", linewidth=1, zorder=0)
    ax.set_yticks(height, names)
    ax.set(xlabel="log odds ratio, 95 % interval")
    figure.legend(loc="outside right center", fontsize="small")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
