"""How far Cox's coefficients over pooled risk sets are from lifelines' data's own, by the grid.

python benchmarks/pooled_cox.py        needs lifelines beside Edgewise, for its data sets

The largest difference of any coefficient from that of Cox's partial likelihood with Efron's ties,
over its standard error, with times of the grid at quantiles of the times of events.
"""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from statsmodels.datasets import heart
from statsmodels.duration.hazard_regression import PHReg

import edgewise as ew

INTERVALS = (2, 3, 5, 10, 20)


def data_sets():
    own = heart.load_pandas().data
    yield "heart", np.maximum(own["survival"], 0.5), own["censors"], own[["age"]]
    package = importlib.util.find_spec("lifelines")
    if package is None:
        sys.exit("install lifelines for its data sets")
    folder = Path(package.submodule_search_locations[0]) / "datasets"
    rossi = pd.read_csv(folder / "rossi.csv")
    yield "rossi", rossi.pop("week"), rossi.pop("arrest"), rossi
    gbsg2 = pd.read_csv(folder / "gbsg2.csv")
    gbsg2["tgrade"] = gbsg2["tgrade"].str.len()
    time, event = gbsg2.pop("time"), gbsg2.pop("cens")
    yield "gbsg2", time, event, pd.get_dummies(gbsg2, drop_first=True)


def main() -> None:
    print("| data | exposure |", " | ".join(map(str, INTERVALS)), "| all times |")
    print("|---|---|" + "---|" * (len(INTERVALS) + 1))
    for name, time, event, X in data_sets():
        time, event = np.asarray(time, float), np.asarray(event) == 1
        X = np.asarray(X, float)
        X = (X - X.mean(0)) / X.std(0)
        cox = PHReg(time, X, status=event.astype(int), ties="efron").fit(method="newton", tol=1e-12)
        labels, times = ew.survival_labels(time, event), np.unique(time[event])
        for exposure in ("time", "risk set"):
            ends = [
                np.unique(np.quantile(time[event], np.arange(1, n + 1) / n, method="higher"))
                for n in INTERVALS
            ]
            cells = []
            for grid in [*ends, times]:
                inner = grid[:-1] if exposure == "time" else grid
                star = ew.reference(ew.pooled_cox([(X, labels)], inner, exposure))
                off = (star.x[-X.shape[1] :] - cox.params) / cox.bse
                cells.append(f"{np.abs(off).max():.3f}")
            print(f"| {name} | {exposure} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
