"""What each way of fitting tells neighbours and others, and what it costs in rounds and bytes.

    python benchmarks/leakage.py                  breast_cancer, which comes with scikit-learn
    python benchmarks/leakage.py --data FOLDER    spambase too, from FOLDER/spambase.svm.xz
    python benchmarks/leakage.py --page           the tables in docs/privacy.md again
    python benchmarks/leakage.py --only pdmm      what is kept is not measured again, but this is

Ten peers as `edgewise network init` connects them, four neighbours each, columns standardised,
rows of length 1, uneven shares of the labels, logistic loss with ridge 0.03 and an intercept. Of
spambase 1,000 rows. `ew.audit` makes each run again and attacks its first 300 rounds (60 of second
order); "all neighbours" are those of each peer in turn, the coalition is three peers. Rounds and
kilobytes a peer sends are those to residual 1e-6. Last, local training where draws are known: rows
fitted through its steps, at the peers with the fewest samples. Kept in docs/data/leakage.json.
"""

import argparse
import json
import lzma
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np
from ordinary import BESIDE
from privacy_page import write
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import normalize, scale

import edgewise as ew
from edgewise.attacks.local_fit import local_rows
from edgewise.attacks.membership import rows_with_intercept
from edgewise.attacks.recording import Recording
from edgewise.attacks.scores import RECOVERED, best_correlations, columns_of
from edgewise.attacks.views import all_neighbours
from edgewise.methods.catalogue import make

ROOT = Path(__file__).parents[1]
KEPT, PAGE = ROOT / "docs" / "data" / "leakage.json", ROOT / "docs" / "privacy.md"
PEERS, RIDGE, TOL, MOST, ROWS = 10, 0.03, 1e-6, 30_000, 1000
FITTED, LOCAL_STEPS = 3, (2, 5, "auto")
BATCH = ew.PrimalDual(ew.SAGA(batch=8))
WAYS: dict[str, tuple[Any, dict[str, Any]]] = {
    "single samples (saga-pd)": (ew.PrimalDual(ew.SAGA()), {"secret_draws": True}),
    "batches of 8, draws known (strict)": (BATCH, {}),
    "batches of 8, draws secret (tolerant)": (BATCH, {"secret_draws": True}),
    "the same, rounded to 8 bits": (BATCH, {"secret_draws": True, "bits": 8}),
    "the same, dual noise 1": (BATCH, {"secret_draws": True, "dual_noise": 1.0}),
    "the same, the first 30 rounds alone": (BATCH, {"secret_draws": True, "rounds": 30}),
    "whole gradients (pd)": ("pd", {}),
    "local training (lt-saga-pd)": ("lt-saga-pd", {}),
    "local training, dual noise 1": ("lt-saga-pd", {"dual_noise": 1.0}),
    "local minima (pdmm)": ("pdmm", {}),
    "second order (newton-pd)": ("newton-pd", {"rounds": 60}),
    "differential privacy, epsilon 8": ("pd", {"privacy": ew.DP(8.0, 1e-5, 1.0, noise_seed=0)}),
    "differential privacy, epsilon 1": ("pd", {"privacy": ew.DP(1.0, 1e-5, 1.0, noise_seed=0)}),
}
GOT = {
    "rows, one neighbour": ("one neighbour", "rows", "recovered"),
    "rows, all neighbours": ("all neighbours", "rows", "recovered"),
    "rows, coalition": ("coalition", "rows", "recovered"),
    "likeness, all neighbours": ("all neighbours", "rows", "median correlation"),
    "share, one neighbour": ("one neighbour", "label share", "correlation"),
    "share, all neighbours": ("all neighbours", "label share", "correlation"),
    "share's error, one neighbour": ("one neighbour", "label share", "error"),
    "share's error, all neighbours": ("all neighbours", "label share", "error"),
    "members, messages": ("all neighbours", "membership by messages", "AUC"),
    "members, model": ("who has the model", "membership by loss of the model", "AUC"),
}


def problems(folder: Path | None) -> dict[str, ew.Problem]:
    sets = {"breast_cancer": ew.data.dataset("breast_cancer")}
    if folder is not None:
        with lzma.open(folder / "spambase.svm.xz", "rb") as file:
            X, y = load_svmlight_file(file)
        some = np.random.default_rng(0).permutation(X.shape[0])[:ROWS]
        sets["spambase"] = X.toarray()[some], y[some]
    made = {}
    for name, (X, y) in sets.items():
        shards = ew.split(normalize(scale(X)), y, PEERS, "label", seed=0)
        made[name] = ew.Problem(shards, ew.Logistic(ridge=RIDGE), intercept=True)
    return made


def measured(problem: ew.Problem, method: Any, more: dict[str, Any]) -> dict[str, Any]:
    graph = ew.Graph.circulant(PEERS)
    found = ew.audit(problem, graph, method, **more)
    out: dict[str, Any] = {}
    for name, key in GOT.items():
        try:
            f = found[key]
            out[name] = {"got": f.got, "error": f.error, "chance": f.chance, "of": f.of}
        except KeyError:
            out[name] = None
    kept = json.loads(json.dumps(out).replace("NaN", "null"))
    return kept | cost(problem, graph, method, more)


def cost(problem: ew.Problem, graph: ew.Graph, method: Any, more: dict[str, Any]) -> dict[str, Any]:
    """As peers run: in the form that heals. A private run has its rounds, and no tol."""
    if "privacy" in more:
        return {"rounds": None, "kilobytes": 0.0}
    bits, noise = more.get("bits"), more.get("dual_noise", 0.0)
    chosen = make(method).healing()
    given: dict[str, Any] = {"tol": TOL, "record_every": 10, "reference": False, "progress": False}
    if noise:  # sums of random duals, as those of the edges would add up to
        duals = np.random.default_rng(0).normal(size=(PEERS, problem.size))
        duals *= noise * np.sqrt(graph.degrees)[:, None]
        given["duals"] = duals - duals.mean(0)
    result = ew.solve(
        problem, graph, chosen, MOST, faults=ew.Faults(bits=bits) if bits else None, **given
    )
    trace = result.trace
    return {
        "rounds": int(trace["rounds"][-1]) if result.converged else None,
        "kilobytes": float(trace["bytes_sent"][-1]) / 1e3 / PEERS,
    }


def fitted_through(problem: ew.Problem) -> dict[str, Any]:
    """Rows of FITTED peers, by who knows the draws of local training."""
    who = np.argsort(problem.counts, kind="stable")[:FITTED].tolist()
    every = rows_with_intercept(problem, np.arange(problem.shards.samples))
    there, centre, scales = columns_of(every)
    out: dict[str, Any] = {}
    with jax.enable_x64(True):
        for tau in LOCAL_STEPS:
            method = ew.PrimalDual(ew.SAGA(), local=tau)
            r = Recording(problem, ew.Graph.circulant(PEERS), make(method), 300)
            like = []
            for node in who:
                found = local_rows(r, all_neighbours(r).heard[0], node)
                rows = every[problem.own(node)][:, there]
                like.append(best_correlations(found[:, there], rows, centre, scales))
            of = np.concatenate(like)
            recovered, median = float((of > RECOVERED).mean()), float(np.median(of))
            out[str(tau)] = {"recovered": recovered, "median": median, "of": len(of)}
            print("local steps", tau, out[str(tau)], flush=True)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, nargs="?", const=BESIDE, help="folder of real sets")
    parser.add_argument("--only", help="part of a way's name: that is measured anew")
    parser.add_argument("--page", action="store_true", help="from what was kept, no runs")
    o = parser.parse_args()
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    if not o.page:
        for name, problem in problems(o.data).items():
            for way, (method, more) in WAYS.items():
                if o.only not in way if o.only else way in kept.get(name, {}):
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    kept.setdefault(name, {})[way] = measured(problem, method, more)
                print(name, way, json.dumps(kept[name][way]), flush=True)
                kept[name] = {w: kept[name][w] for w in WAYS if w in kept[name]}
                KEPT.write_text(json.dumps(kept, indent=1) + "\n")
        if not o.only or o.only == "steps":
            kept["local steps"] = fitted_through(problems(None)["breast_cancer"])
            KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    write(PAGE, kept)


if __name__ == "__main__":
    main()
