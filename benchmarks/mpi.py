"""What a round over MPI takes, and how much of that is neither computing nor sending.

    python benchmarks/mpi.py                     1, 2, 4 and 8 ranks on this host
    python benchmarks/mpi.py --ranks 2 4         these only

It starts the jobs by itself, each of which measures everything in turns, so that all parts see the
same moods of the machine. With more ranks than cores no round gets faster. Compare the ratios.

local     the engine's own compiled step, by all ranks at once and in step with a barrier after
          each, less what the barrier alone takes
bare      the same vectors by mpi4py and nothing around it, less what writing them takes: they are
          written anew for each round, or else they stay in the reader's cache
overhead  engine / (local + bare) - 1
by hand   the compiled step and then the bare exchange of what it wrote, in one loop: beyond
          local + bare it has what the two take from each other, caches above all
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

import edgewise as ew
from edgewise.backend.programs import compiled
from edgewise.engines.native import simulator
from edgewise.engines.placement import GraphPart, partition
from edgewise.engines.rank_communicator import RankCommunicator, in_turn
from edgewise.engines.rank_executor import RankExecutor, one_round
from edgewise.engines.simulator import Simulator
from edgewise.methods.catalogue import make
from edgewise.running.checks import precision

NODES, EDGES, SAMPLES = 50, 250, 20
ROUNDS = {2_000: 300, 20_000: 40}  # timed at a time, by number of unknowns
REPEATS, STALL = 5, 3.0
ON_ONE_HOST = ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
SHARED_MEMORY = ["--mca", "pml", "ob1", "--mca", "btl", "self,sm"]  # starts a second sooner
Parts = list[tuple[int, np.ndarray]]
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def the_graph() -> ew.Graph:
    return ew.Graph.random(NODES, EDGES, seed=1)


# --- a rank --------------------------------------------------------------------------------------


class Bare:
    """A rank's vectors, without edgewise."""

    def __init__(self, rank: RankExecutor) -> None:
        vectors, n = rank.communicator.part.vectors, rank.problem.size
        self.mpi, self.comm = rank.communicator.engine.mpi, rank.exchange.comm
        self.sent = np.zeros((len(vectors.leaving), n))
        self.came = np.zeros((vectors.received, n))
        self.to = parts(self.sent, vectors.send)
        self.come = parts(self.came, vectors.receive)
        sides = (vectors.send, vectors.receive)
        self.counts = [[n * len(rows) for rows in side.values()] for side in sides]

    def write(self) -> None:
        self.sent += 1.0

    def point_to_point(self) -> None:
        self.exchange(self.to, self.come)

    def exchange(self, to: Parts, come: Parts) -> None:
        requests = [self.comm.Irecv(part, rank) for rank, part in come]
        requests += [self.comm.Isend(part, rank) for rank, part in to]
        self.mpi.Request.Waitall(requests)

    def collective(self) -> None:
        sent, came = (self.sent, self.counts[0]), (self.came, self.counts[1])
        self.comm.Ineighbor_alltoallv(sent, came).Wait()


def parts(vectors: np.ndarray, items: dict[int, np.ndarray]) -> Parts:
    return [(rank, vectors[rows]) for rank, rows in in_turn(items).items()]


class Local:
    """The program that the engine runs, on what came once."""

    def __init__(self, rank: RankExecutor, carry: Any, rounds: int) -> None:
        self.fixed, tree = jax.tree.flatten((rank.own_method, rank.network, rank.block))
        noise = rank.random_bits(0, rounds).reshape(rounds, -1, rank.method.random_draws)
        state, _ = carry  # what node form sends is a part of its state
        self.before, form = jax.tree.flatten((state, (), noise, jnp.zeros((), jnp.int32)))
        self.came = rank.exchange.came
        args = (self.fixed, self.before, self.came)
        self.program = compiled(
            one_round, args, rank.options, 1, trees=(tree, form), phase=rank.method.phases[0]
        )
        self.before = [jnp.array(a, copy=True) for a in self.before]  # the engine's are donated
        self.restart()

    def restart(self) -> None:
        self.leaves = [jnp.array(a, copy=True) for a in self.before]

    def step(self) -> None:
        self.leaves, (packed,) = self.program(self.fixed, self.leaves, self.came)
        self.packed = np.asarray(packed)  # waits until it is there; no copy


class Rounds:
    """An engine that goes on from where it was."""

    def __init__(self, engine: Simulator) -> None:
        self.engine, self.done = engine, 0
        self.carry = engine.start(engine.origin(), None)

    def lap(self, rounds: int) -> float:
        self.carry, seconds = self.engine.advance(self.carry, self.done, rounds)
        self.done += rounds
        return seconds / rounds


def measure(engine: ew.MPI, folder: Path, rounds: int) -> dict[str, Any]:
    """Median microseconds of a round and of its parts, each as the slowest rank sees it."""
    problem = ew.Problem(folder, ew.Logistic(ridge=1e-3))
    rest = (problem, the_graph(), make("saga-pd"), 0, precision(None))
    rank = RankExecutor(*rest, RankCommunicator(engine, problem, rest[1]))
    ours, bare, barrier = Rounds(rank), Bare(rank), engine.comm.Barrier
    local = Local(rank, ours.carry, rounds)
    far = [(other, buffer) for buffer, other, _ in rank.exchange.receive]

    def by_hand() -> None:
        local.step()
        bare.exchange(parts(local.packed, rank.communicator.part.vectors.send), far)

    def timed(*does: Callable[[], None]) -> Callable[[], float]:
        def lap() -> float:
            local.restart()
            barrier()
            start = time.perf_counter()
            for _ in range(rounds):
                for do in does:
                    do()
            return (time.perf_counter() - start) / rounds

        return lap

    laps = {
        "engine": lambda: ours.lap(rounds),
        "by hand": timed(by_hand),
        "barrier": timed(barrier),
        "step, barrier": timed(local.step, barrier),
        "write, barrier": timed(bare.write, barrier),
        "write, point to point": timed(bare.write, bare.point_to_point),
        "write, collective": timed(bare.write, bare.collective),
    }
    if engine.ranks == 1:
        whole = {"plain": Rounds(Simulator(*rest)), "compiled": Rounds(simulator(*rest))}
        laps |= {name: lambda run=run: run.lap(rounds) for name, run in whole.items()}
    seen: dict[str, list[float]] = {name: [] for name in laps}
    for repeat in range(1 + REPEATS):
        for name, lap in laps.items():
            barrier()
            slowest = engine.largest(lap())
            if repeat:  # the first compiles and warms up
                seen[name].append(1e6 * slowest)
    middle: dict[str, Any] = {name: float(np.median(all_of_it)) for name, all_of_it in seen.items()}
    writing = middle["write, barrier"] - middle["barrier"]
    if engine.ranks == 2:
        middle["stall"] = stall(rank, bare)
    rank.close()
    rank.communicator.close()
    return middle | {
        "local": middle["step, barrier"] - middle["barrier"],
        "bare": middle["write, point to point"] - writing,
        "collective": middle["write, collective"] - writing,
    }


def stall(rank: RankExecutor, bare: Bare) -> dict[str, float]:
    """CPU seconds that rank 0 burns while rank 1 sleeps: in our exchange, and in a bare one."""
    burnt = {}
    waits = {"engine": lambda: rank.exchange.swap([bare.sent]), "bare": bare.point_to_point}
    for name, wait in waits.items():
        rank.communicator.engine.comm.Barrier()
        if rank.communicator.rank == 1:
            time.sleep(STALL)
        before = time.process_time()
        wait()
        burnt[name] = time.process_time() - before
    return burnt


def job(folder: Path) -> None:
    engine = ew.MPI()  # before JAX starts
    said: dict[str, Any] = {}
    with jax.enable_x64(True):
        for n, rounds in ROUNDS.items():
            said[str(n)] = measure(engine, folder / str(n), rounds)
    if engine.rank == 0:
        print(json.dumps(said))


# --- all jobs ------------------------------------------------------------------------------------


def launch(ranks: int, folder: str) -> dict[str, Any]:
    beside = Path(sys.executable).with_name("mpiexec")
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    if mpiexec is None:
        raise SystemExit("no mpiexec: pip install 'edgewise[mpi]'")
    command = [mpiexec, "-n", str(ranks), *ON_ONE_HOST, *SHARED_MEMORY]
    script = [sys.executable, "-m", "mpi4py", __file__, "--job", folder]
    everywhere = os.environ | AS_ROOT
    done = subprocess.run(
        command + script, env=everywhere, stdout=subprocess.PIPE, text=True, check=True
    )
    (said,) = (line for line in done.stdout.splitlines() if line.startswith("{"))
    return dict(json.loads(said))


def vectors(graph: ew.Graph, how: str, ranks: int) -> int:
    """That all ranks together send in a round, in node form."""
    home = partition(how, graph, np.full(graph.nodes, SAMPLES), ranks)
    return sum(len(GraphPart(graph, home, rank).vectors.leaving) for rank in range(ranks))


def times_table(said: dict[int, dict[str, Any]], n: int) -> Table:
    title = f"{n:,} unknowns, {NODES} nodes, {EDGES} edges, saga-pd: us a round"
    heads = ["ranks", "engine", "rounds/s", "local", "bare", "by collective", "overhead"]
    heads += ["x by hand", "x plain", "x compiled"]
    table = Table(*heads, title=title, title_justify="left")
    whole = said.get(1, {}).get(str(n))
    for ranks, sizes in said.items():
        t = sizes[str(n)]
        apart = t["local"] + t["bare"]
        cells = [f"{t[k]:,.0f}" for k in ("engine", "local", "bare", "collective")]
        cells.insert(1, f"{1e6 / t['engine']:,.0f}")
        others = [t["by hand"], *([whole["plain"], whole["compiled"]] if whole else [])]
        against = [f"{t['engine'] / other:.2f}" for other in others]
        table.add_row(str(ranks), *cells, f"{t['engine'] / apart - 1:.0%}", *against)
    return table


def vectors_table(numbers: list[int]) -> Table:
    grid = ew.Graph.grid(5, NODES // 5)
    order = np.random.default_rng(0).permutation(NODES)
    shuffled = ew.Graph.from_edges(order[grid.edges], nodes=NODES)
    graphs = {"random": the_graph(), "grid": grid, "grid, shuffled": shuffled}
    table = Table("vectors between ranks a round", "ranks", "metis", "contiguous")
    for name, graph in graphs.items():
        for ranks in numbers:
            sent = [str(vectors(graph, how, ranks)) for how in ("metis", "contiguous")]
            table.add_row(name, str(ranks), *sent)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--job", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job is not None:
        job(options.job)
        return
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for n in ROUNDS:
            X, y = ew.data.epsilon_like(rows=NODES * SAMPLES, features=n)
            ew.data.write_shards(Path(folder) / str(n), ew.split(X, y, nodes=NODES))
        said = {ranks: launch(ranks, folder) for ranks in options.ranks}
    console = Console(width=110)
    for n in ROUNDS:
        console.print(times_table(said, n))
        if 1 in said:
            alone = said[1][str(n)]
            of_both = ", ".join(f"{k} {alone[k]:,.0f}" for k in ("plain", "compiled"))
            console.print(f"one process with all nodes, us a round: {of_both}\n")
    console.print(vectors_table([ranks for ranks in options.ranks if ranks > 1]))
    if 2 in said:
        burnt = said[2][str(max(ROUNDS))]["stall"]
        of_both = ", ".join(f"{name} {seconds:.2f}" for name, seconds in burnt.items())
        console.print(f"CPU seconds of rank 0 while rank 1 sleeps {STALL:.0f} s: {of_both}")
    console.print(f"{os.cpu_count()} cores, {time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
