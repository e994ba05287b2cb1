"""What goes between devices when nodes are spread over them, and what a round takes.

    python benchmarks/devices.py                 8 devices, made up on the CPU
    python benchmarks/devices.py --real          those there are, 1, 2, 4, ... of them

Devices made up on a CPU share its cores, and its memory is as near to one as to the other: with
more of them no round gets faster, and the times say only what spreading costs. Bytes are exact.
"""

import argparse
import os
import time

parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("--real", action="store_true", help="the devices that JAX finds")
parser.add_argument("--rounds", type=int, default=100, help="rounds timed at a time")
OPTIONS = parser.parse_args()
if not OPTIONS.real:  # before JAX starts
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax  # noqa: E402
import numpy as np  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import edgewise as ew  # noqa: E402
from edgewise.engines.devices import SeveralDevices, bytes_between_devices  # noqa: E402
from edgewise.engines.simulator import Simulator  # noqa: E402
from edgewise.methods.catalogue import make  # noqa: E402
from edgewise.running.checks import precision  # noqa: E402

NODES, EDGES, SAMPLES, FEATURES, REPEATS = 400, 1200, 50, 500, 7
FORMS = {"node form": make("saga-pd"), "edge form": ew.PrimalDual(ew.SAGA(), form="edge")}


class Timed:
    """An engine, and the shortest stretch so far."""

    def __init__(self, engine: Simulator) -> None:
        self.engine, self.best, self.done = engine, np.inf, 0
        self.carry = engine.start(engine.origin(), None)

    def go_on(self, rounds: int) -> None:
        self.carry, seconds = self.engine.advance(self.carry, self.done, rounds)
        self.best, self.done = min(self.best, seconds / rounds), self.done + rounds


def main() -> None:
    X, y = ew.data.epsilon_like(rows=NODES * SAMPLES, features=FEATURES)
    problem = ew.Problem(ew.split(X, y, nodes=NODES), ew.Logistic(ridge=1e-3), ew.L1(1e-4))
    graphs = {
        "random": ew.Graph.random(NODES, EDGES, seed=0),
        "grid": ew.Graph.grid(20, NODES // 20),
    }
    there = jax.devices()
    numbers = [d for d in (1, 2, 4, 8) if d <= len(there)]
    table = Table(title=f"{NODES} nodes, {FEATURES} unknowns, saga-pd", title_justify="left")
    heads = (
        "",
        "devices",
        "kB between them a round",
        "edges that cross",
        "us a round",
        "x 1 device",
    )
    for heading in heads:
        table.add_column(heading, justify="right" if heading else "left")
    start = time.perf_counter()
    with jax.enable_x64(True):
        for kind, graph in graphs.items():
            for form, method in FORMS.items():
                rest = (problem, graph, method, 0, precision(None))
                plain = Timed(Simulator(*rest))
                spread = {
                    d: Timed(Simulator(*rest, SeveralDevices(problem, graph, rest[-1], there[:d])))
                    for d in numbers
                }
                for _ in range(REPEATS):  # in turns, so that all see the same moods of the machine
                    for timed in (plain, *spread.values()):
                        timed.go_on(OPTIONS.rounds)
                base = spread[1].best
                table.add_row(
                    f"{kind}, {form}", "plain", "", "", f"{1e6 * plain.best:.0f}",
                    f"{plain.best / base:.2f}",
                )  # fmt: skip
                for d, timed in spread.items():
                    engine = timed.engine
                    table.add_row(
                        "", str(d), f"{bytes_between_devices(engine) / 1e3:,.0f}",
                        f"{engine.layout.placement.crossing_share:.1%}", f"{1e6 * timed.best:.0f}",
                        f"{timed.best / base:.2f}",
                    )  # fmt: skip
    console = Console(width=110)
    console.print(table)
    console.print(f"{jax.default_backend()}, {time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
