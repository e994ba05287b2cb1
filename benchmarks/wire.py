"""Bytes on the wire to an answer, and what compressed messages save of them.

    python benchmarks/wire.py                   a9a, diabetes and spambase, as in libraries.py
    python benchmarks/wire.py --problem a9a     one of them; may be given again
    python benchmarks/wire.py --page            the table in docs/performance.md again

Every run goes on until its residual, which peers can tell by themselves, is 1e-6, looked at every
ten rounds. Bytes are of all edges, both ways, as `bytes_sent` of the trace counts them and peers
send them: headers are in it. Uncompressed first; then numbers of 8 bits (`--bits 8` of a peer);
then the largest tenth of a message's numbers; then both. Compressed messages are changes, so that
all of these are exact; each is checked against the optimum. Methods then run in edge form, which
has a message an edge where node form has one a node. --limit CPU seconds a run, compiling included;
kept in docs/data/wire.json.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import wire_page
from libraries_problems import PROBLEMS, make, ours
from libraries_race import Shared, rounded
from ordinary import BESIDE

import edgewise as ew
from edgewise.methods.auto import choose

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "docs" / "data" / "wire.json"
METHODS = ("auto", "lt-saga-pd")
SENT = {
    "whole": {},
    "8 bits": {"bits": 8},
    "a tenth": {"keep": 0.1},
    "a tenth, 8 bits": {"keep": 0.1, "bits": 8},
}
TOL, EVERY, ROUNDS = 1e-6, 10, 20_000


def run(problem: Shared, method: str, sent: dict[str, Any], limit: float) -> dict[str, Any]:
    given, graph = ours(problem)
    began = time.process_time()
    result = ew.solve(
        given,
        graph,
        method,
        rounds=ROUNDS,
        tol=TOL,
        record_every=EVERY,
        reference=False,
        progress=False,
        faults=ew.Faults(**sent) if sent else None,
        callback=lambda _: time.process_time() - began > limit,
    )
    trace = result.trace
    return {
        "method": choose(method, given, graph, None, None)[1],
        "reached": bool(result.converged),
        "rounds": int(trace["rounds"][-1]),
        "megabytes": float(trace["bytes_sent"][-1]) / 1e6,
        "residual": float(trace["residual"][-1]),
        "off": float(np.abs(result.X - problem.optimum).max()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=BESIDE, help="folder with the data")
    parser.add_argument("--problem", action="append", choices=PROBLEMS, help="default: all")
    parser.add_argument("--limit", type=float, default=60.0, help="CPU seconds a run may take")
    parser.add_argument("--page", action="store_true", help="nothing but the table again")
    o = parser.parse_args()
    warnings.simplefilter("ignore")
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for name in () if o.page else o.problem or PROBLEMS:
        problem = make(name, o.data)
        kept[name] = {}
        for method in METHODS:
            for told, sent in SENT.items():
                found = rounded(run(problem, method, sent, o.limit))
                kept[name].setdefault(method, {})[told] = found
                print(name, method, told, *found.values(), flush=True)
                KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    wire_page.write(ROOT / "docs" / "performance.md", kept)


if __name__ == "__main__":
    main()
