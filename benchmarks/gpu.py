"""What a GPU makes of a round and of a full pass, with the kernels of edgewise.native and without.

    python benchmarks/gpu.py            the paper's size: V=50, E=250, K=2000, n=2000, float32
    python benchmarks/gpu.py --rounds 500

"us" is the fastest stretch of so many rounds, "compiling" the first of them less another: what
compiling its program took. The share of the copy bandwidth of a full gradient counts two reads of
the data, once for the margins and once for the gradients.
"""

import argparse
import os
import time
from typing import Any

import jax
import numpy as np
from iteration import SIZES, build
from rich.console import Console
from rich.table import Table

import edgewise as ew
from edgewise.engines.native import simulator
from edgewise.methods.catalogue import make

METHODS = {
    "saga-pd": make("saga-pd"),
    "saga-pd, edge": ew.PrimalDual(ew.SAGA(), form="edge"),
    "svr-pd": make("svr-pd"),
    "lsvr-pd": make("lsvr-pd"),
    "pd (full gradients)": make("pd"),
}
STRETCHES = 4


def stretches(problem: ew.Problem, graph: ew.Graph, method: Any, rounds: int) -> tuple[float, ...]:
    """Seconds per round: of the fastest stretch, and of all but the first; seconds to compile."""
    with jax.enable_x64(True):
        run = simulator(problem, graph, method, 0, np.dtype("float32"))
        carry = run.start(run.origin(), None)
        start = time.perf_counter()
        carry, _ = run.advance(carry, 0, rounds)
        first = time.perf_counter() - start
        spent = []
        for k in range(1, STRETCHES + 1):
            carry, seconds = run.advance(carry, k * rounds, rounds)
            spent.append(seconds)
    return min(spent) / rounds, sum(spent) / (STRETCHES * rounds), first - min(spent)


def copy_bandwidth(size: int, times: int = 20) -> float:
    """Bytes read and written per second, of arrays of so many bytes."""
    add = jax.jit(lambda a: a + 1)
    a = jax.block_until_ready(add(jax.numpy.ones(size // 4, np.float32)))
    start = time.perf_counter()
    for _ in range(times):
        a = add(a)
    jax.block_until_ready(a)
    return 2 * size * times / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=2000, help="rounds timed per method")
    rounds = parser.parse_args().rounds
    console = Console(width=120)
    if jax.default_backend() != "gpu":
        console.print("This needs a GPU and a jax that knows it; benchmarks/iteration.py does not.")
        return
    size = SIZES["paper"]
    problem, graph = build(**size)
    data = 4 * problem.shards.X.size
    bandwidth = copy_bandwidth(data)
    title = ", ".join(f"{k}={v}" for k, v in size.items())
    table = Table(title=f"{jax.devices()[0].device_kind}, {title}", title_justify="left")
    for heading in (
        "",
        "us",
        "us, passes in",
        "plain us",
        "plain, passes in",
        "compiling s",
        "plain",
    ):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    full: list[float] = []
    for name, method in METHODS.items():
        some = rounds if "full" not in name else max(1, rounds // 20)
        found = []
        for switch in ("1", "0"):
            os.environ["EDGEWISE_NATIVE"] = switch
            found.append(stretches(problem, graph, method, some))
        times = [1e6 * seconds for one in found for seconds in one[:2]]
        compiling = [one[2] for one in found]
        full = [times[0], times[2]]
        table.add_row(name, *(f"{a:.1f}" for a in [*times, *compiling]))
    console.print(table)
    shares = [100 * 2 * data / (1e-6 * us) / bandwidth for us in full]
    console.print(
        f"copying runs at {bandwidth / 1e12:.2f} TB/s; full gradients at {shares[0]:.0f} % of "
        f"that, plain ones at {shares[1]:.0f} %"
    )


if __name__ == "__main__":
    main()
