"""What a GPU makes of a round and of a full pass: with the kernels of edgewise.native, those of
Triton (by Pallas) and those in CUDA (by CuPy), and without.

    python benchmarks/gpu.py            the paper's size: V=50, E=250, K=2000, n=2000, float32
    python benchmarks/gpu.py --rounds 500
    python benchmarks/gpu.py --only saga-pd cuda

"us" is the fastest stretch of so many rounds, then the mean of all but the first, "compiling" the
first of them less another: what compiling its program took. Of local training rounds are far
fewer, and "us" are of a step of all nodes. The share of the copy bandwidth of a full gradient
counts two reads of the data, once for the margins and once for the gradients.
"""

import argparse
import os
import sys
import time
from importlib.util import find_spec
from typing import Any

import jax
import numpy as np
from iteration import SIZES, build
from rich.console import Console
from rich.table import Table

import edgewise as ew
from edgewise.engines.native import cuda_device, fits_cuda, fits_gpu, simulator
from edgewise.methods.catalogue import make

METHODS = {
    "saga-pd": make("saga-pd"),
    "saga-pd, edge": ew.PrimalDual(ew.SAGA(), form="edge"),
    "svr-pd": make("svr-pd"),
    "lsvr-pd": make("lsvr-pd"),
    "pd (full gradients)": make("pd"),
    "local saga, 50 steps": ew.PrimalDual(ew.SAGA(), local=50),
    "local svrg, 50 steps": ew.PrimalDual(ew.SVRG(), local=50),
}
SWITCHES = {"triton": "1", "cuda": "cuda", "plain": "0"}  # EDGEWISE_NATIVE
STRETCHES = 4


def why_not(kernels: str, problem: ew.Problem, method: Any) -> str | None:
    """Why it would be another program that is timed."""
    if kernels == "cuda" and find_spec("cupy") is None:
        return "no CuPy is installed: pip install cupy-cuda13x, or cupy-cuda12x"
    if kernels == "cuda" and not fits_cuda(problem, method):
        return "the kernels in CUDA do not take it"
    if kernels == "triton" and (not fits_gpu(problem) or fits_cuda(problem, method)):
        return "this jax has no Triton in Pallas"
    return None


def stretches(problem: ew.Problem, graph: ew.Graph, method: Any, rounds: int) -> tuple[float, ...]:
    """Seconds per round: of the fastest stretch, and of all but the first; seconds to compile."""
    with jax.enable_x64(True):
        run = simulator(problem, graph, method, 0, np.dtype("float32"))
        carry = run.start(run.origin(), None)
        print(f"  {type(run).__name__}", file=sys.stderr)
        start = time.perf_counter()
        carry, _ = run.advance(carry, 0, rounds)
        first = time.perf_counter() - start
        spent = []
        for k in range(1, STRETCHES + 1):
            carry, seconds = run.advance(carry, k * rounds, rounds)
            spent.append(seconds)
        if getattr(run, "works", True) is False:
            raise RuntimeError("the kernels did not run: the log above says why")
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
    parser.add_argument("--only", nargs="*", default=[], help="of methods and kernels, by names")
    parser.add_argument("--threads", type=int, help="of a block of the kernels in CUDA, at most")
    given = parser.parse_args()
    if given.threads:
        cuda_device.MOST_THREADS = given.threads
    rounds = given.rounds
    methods = {k: m for k, m in METHODS.items() if k in given.only} or METHODS
    switches = {k: s for k, s in SWITCHES.items() if k in given.only} or SWITCHES
    console = Console(width=140)
    if jax.default_backend() != "gpu":
        console.print("This needs a GPU and a jax that knows it; benchmarks/iteration.py does not.")
        return
    size = SIZES["paper"]
    problem, graph = build(**size)
    data = 4 * problem.shards.X.size
    bandwidth = copy_bandwidth(data)
    title = ", ".join(f"{k}={v}" for k, v in size.items())
    table = Table(title=f"{jax.devices()[0].device_kind}, {title}", title_justify="left")
    table.add_column("", no_wrap=True)
    for kernels in switches:
        for heading in (f"{kernels} us", "mean", "compiling s"):
            table.add_column(heading, justify="right", no_wrap=True)
    full: dict[str, float] = {}
    reasons: dict[str, list[str]] = {}
    for name, method in methods.items():
        steps = method.local or 1
        slow = "full" in name or steps > 1
        some, row = max(1, rounds // 20) if slow else rounds, []
        for kernels, switch in switches.items():
            os.environ["EDGEWISE_NATIVE"] = switch
            try:
                if reason := why_not(kernels, problem, method):
                    raise RuntimeError(reason)
                fastest, mean, compiling = stretches(problem, graph, method, some)
            except RuntimeError as error:
                row += ["-"] * 3
                reasons.setdefault(f"{kernels}: {error}", []).append(name)
                continue
            row += [f"{1e6 * a / steps:.2f}" for a in (fastest, mean)] + [f"{compiling:.1f}"]
            if "full" in name:
                full[kernels] = fastest
        table.add_row(name, *row)
    console.print(table)
    for reason, names in reasons.items():
        console.print(f"{reason} ({'; '.join(names)})")
    for kernels, seconds in full.items():
        share = 100 * 2 * data / seconds / bandwidth
        console.print(f"{kernels}: full gradients at {share:.0f} % of the copy bandwidth")
    console.print(f"copying runs at {bandwidth / 1e12:.2f} TB/s")


if __name__ == "__main__":
    main()
