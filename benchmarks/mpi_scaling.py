"""Strong and weak scaling over MPI ranks, one core each.

    python benchmarks/mpi_scaling.py               1 and 2 ranks
    python benchmarks/mpi_scaling.py --ranks 1 2 4 as many as there are idle cores

Strong: 20 nodes over all ranks. Weak: 10 nodes for each rank. Every rank has one core. Wall: of a
round, as the slowest rank sees it; it says nothing where others use the cores. CPU: what the
busiest rank computes in a round, its waiting not counted but for a first tenth of a millisecond;
half of one rank's, at two ranks, is perfect strong scaling, as much is perfect weak scaling.
Least of five stretches, after one that compiles.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

NODES, PER_RANK = 20, 10
SAMPLES, FEATURES, DEGREE = 200, 500, 4
METHODS = {"lt-saga-pd": 20, "saga-pd": 400}  # rounds of a stretch
REPEATS = 5


def job(nodes: int) -> None:
    rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})  # before JAX makes its threads
    import jax
    from mpi import Rounds

    import edgewise as ew
    from edgewise.engines.rank_communicator import RankCommunicator
    from edgewise.engines.rank_executor import RankExecutor
    from edgewise.methods.catalogue import make
    from edgewise.running.checks import precision

    engine = ew.MPI()
    X, y = ew.data.epsilon_like(rows=nodes * SAMPLES, features=FEATURES)
    problem = ew.Problem(ew.split(X, y, nodes=nodes), ew.Logistic(ridge=1e-3))
    graph = ew.Graph.random(nodes, nodes * DEGREE // 2, seed=1)
    said = {}
    with jax.enable_x64(True):
        for method, rounds in METHODS.items():
            rest = (problem, graph, make(method), 0, precision(None))
            rank = RankExecutor(*rest, RankCommunicator(engine, problem, graph))
            run, cells = Rounds(rank), []
            run.lap(rounds)  # compiles
            for _ in range(REPEATS):
                engine.comm.Barrier()
                start = time.process_time()
                wall = engine.largest(run.lap(rounds))
                cells.append((wall, engine.largest((time.process_time() - start) / rounds)))
            said[method] = [min(cell[k] for cell in cells) for k in (0, 1)]
            rank.close()
            rank.communicator.close()
    if engine.rank == 0:
        print(json.dumps(said))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--job", type=int, help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.job is not None:
        job(o.job)
        return
    from mpi import AS_ROOT, ON_ONE_HOST, SHARED_MEMORY
    from rich.console import Console
    from rich.table import Table

    table = Table("ranks", "", "nodes", "method", "wall, ms", "CPU, ms", "CPU / 1 rank's")
    base: dict[tuple[str, str], float] = {}
    for kind in ("strong", "weak"):
        for ranks in o.ranks:
            nodes = NODES if kind == "strong" else PER_RANK * ranks
            mpiexec = Path(sys.executable).with_name("mpiexec")
            command = [mpiexec, "-n", str(ranks), *ON_ONE_HOST, *SHARED_MEMORY]
            command += [sys.executable, __file__, "--job", str(nodes)]
            env = {**os.environ, **AS_ROOT, "OMP_NUM_THREADS": "1"}
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(done.stderr)
            for method, (wall, cpu) in json.loads(done.stdout.splitlines()[-1]).items():
                one = base.setdefault((kind, method), cpu)
                cells = [f"{1e3 * wall:.2f}", f"{1e3 * cpu:.2f}", f"{cpu / one:.2f}"]
                print(ranks, kind, nodes, method, *cells, file=sys.stderr, flush=True)
                table.add_row(str(ranks), kind, str(nodes), method, *cells)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
