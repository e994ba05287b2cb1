"""The runs of `edgewise reproduce`, on a machine where Edgewise cannot be installed.

    PYTHONPATH=src python tools/reproduce_runs.py out/reproduce ring unregularised --jobs 8
    edgewise reproduce ring unregularised --scale paper      # elsewhere: judged, drawn, written

It draws nothing and judges nothing, so that neither Matplotlib nor a command line has to be there:
JAX, SciPy, scikit-learn, networkx, optax and rich will do. Every run is kept as soon as it is made:
one may stop this at any time, carry the folder back and forth, and go on. Runs are known by the
version of Edgewise, which is read from pyproject.toml here.
"""

import argparse
import time
import tomllib
from pathlib import Path

import edgewise

ROOT = Path(__file__).resolve().parents[1]
edgewise.__version__ = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

from edgewise.experiments import EXPERIMENTS  # noqa: E402
from edgewise.experiments.experiment import SCALES, Job  # noqa: E402


def main() -> None:
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    asked.add_argument("out", type=Path)
    asked.add_argument("names", nargs="+", choices=EXPERIMENTS)
    asked.add_argument("--scale", choices=SCALES, default="paper")
    asked.add_argument("--jobs", type=int, default=8, help="methods at a time; Fig. 6 has one")
    o = asked.parse_args()
    for name in o.names:
        began = time.monotonic()
        EXPERIMENTS[name].run(
            Job(SCALES[o.scale], o.out / o.scale / name, jobs=o.jobs, tunings=o.out)
        )
        print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
