"""What happens to the ranks of a job: test_mpi_events.py starts it, with the name of one of the
functions below, a folder and more; every rank leaves what it saw in the folder."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
from sharded_cases import GRID, build, saga

import edgewise as ew
from edgewise.data import folders
from edgewise.engines.rank_communicator import RankExchange
from edgewise.engines.rank_executor import RankExecutor
from edgewise.errors import EdgewiseError
from edgewise.running import checkpoint

SETTINGS = {"method": saga(), "record_every": 2, "reference": False}
PAIR = ew.Graph.from_edges([(0, 1)])


def before(owner, name, do):
    """`do` is called ahead of every call of the method, with how many there were."""
    original, calls = getattr(owner, name), []

    def both(*args, **kwargs):
        do(len(calls))
        calls.append(None)
        return original(*args, **kwargs)

    setattr(owner, name, both)


def attempt(do):
    """What a call raised: the type and the text."""
    try:
        do()
    except EdgewiseError as error:
        return [type(error).__name__, str(error)]
    return None


def solve(engine, problem=None, graph=GRID, **options):
    problem = build(graph) if problem is None else problem
    return ew.solve(problem, graph, engine=engine, **SETTINGS | {"rounds": 6} | options)


# --- runs that end in order ----------------------------------------------------------------------


def recording(engine, folder):
    """How a run ends: what each rank has of it, and which rows its callback was told."""
    told = []

    def ends(**options):
        result = solve(engine, rounds=40, **options)
        return [result.message.split(" after ")[0].split(":")[0], len(result.trace["rounds"])]

    def enough(row):
        told.append(row["rounds"])
        return row["rounds"] >= 8

    plain = solve(engine)
    return {
        "callback": ends(callback=enough),
        "told": told,
        "tol": ends(tol=float(plain.trace["residual"][2]) * 1.0001),
        "budget": ends(oracle_budget=float(plain.trace["oracle_calls"][1])),
        "shape": plain.X.shape,
        "rows": len(engine.place(build(GRID), GRID)[0].nodes[engine.rank]),
    }


def refusals(engine, folder):
    """Errors of every rank alike are ordinary ones, and leave the job as it was."""
    stream = ew.Problem(ew.Stream(lambda node, size, rng: None, build(GRID).shards), ew.Logistic())
    bad = {
        "rounds": lambda: solve(engine, rounds=0),
        "X0": lambda: solve(engine, X0=np.zeros(3)),
        "faults": lambda: solve(engine, faults=ew.Faults(drop=0.1)),
        "devices": lambda: solve(engine, devices=1),
        "ranks": lambda: solve(engine, graph=PAIR),
        "stream": lambda: ew.solve(stream, GRID, "spd", engine=engine),
        "partition": lambda: solve(ew.MPI(partition=[0, 1])),
    }
    return {name: attempt(do) for name, do in bad.items()} | {"after": solve(engine).message}


def shards(engine, folder):
    """Of a folder every rank reads its own files; what is wrong with one file, all ranks say."""
    read, whole = [], build(GRID)
    read_node = folders.read_node

    def noting(where, node, manifest=None):
        read.append(int(node))
        return read_node(where, node, manifest)

    folders.read_node = noting
    problem = ew.Problem(folder / "shards", ew.Logistic(ridge=0.05))
    result, own = solve(engine, problem), engine.place(problem, GRID)[0].nodes[engine.rank].tolist()
    folders.read_node = read_node
    held = solve(engine, whole)
    apart = float(np.abs(result.X - held.X).max())
    wrong = {
        kind: attempt(lambda kind=kind: solve(engine, ew.Problem(folder / kind, ew.Logistic())))
        for kind in ("missing", "corrupt")
    }
    return {"read": read, "own": own, "apart": apart, **wrong}


def interrupted(engine, folder):
    """Ctrl-C reaches one rank, in its second stretch of rounds."""

    def hit(calls):
        if engine.rank == 1 and calls == 1:
            os.kill(os.getpid(), signal.SIGINT)

    before(RankExecutor, "advance", hit)
    result = solve(engine, rounds=40)
    return {"message": result.message, "rounds": result.trace["rounds"].tolist()}


def stall(engine, folder):
    """One rank is late by two seconds, in the middle: what the others' processes work meanwhile."""
    exchange, waits = RankExchange.swap, []

    def timed(post, leaving, **how):
        if engine.rank == 1 and len(waits) == 8:
            time.sleep(2)
        wall, cpu = time.perf_counter(), time.process_time()
        came = exchange(post, leaving, **how)
        waits.append([time.perf_counter() - wall, time.process_time() - cpu])
        return came

    RankExchange.swap = timed
    solve(engine, rounds=12, record_every=12)
    return {"waits": waits}


def other_run(engine, folder):
    """A checkpoint of another run, and one that cannot be read."""
    path = folder / "run.npz"
    solve(engine, checkpoint=path)
    refused = attempt(lambda: solve(engine, checkpoint=path, seed=5))
    went_on = solve(engine, checkpoint=path, rounds=8).trace["rounds"].tolist()
    engine.largest(0.0)  # nobody writes before all have read
    if engine.rank == 0:
        path.write_bytes(b"no checkpoint")
    engine.largest(0.0)
    return {
        "refused": refused,
        "went on": went_on,
        "damaged": attempt(lambda: solve(engine, checkpoint=path)),
    }


# --- and those that do not -----------------------------------------------------------------------


def leave_word(folder):
    (folder / "when").write_text(str(time.time()))


def uncaught(engine, folder):
    solve(engine, ew.Problem(folder / "missing", ew.Logistic()))


def one_raises(engine, folder):
    def fail(calls):
        if engine.rank == 1 and calls == 1:
            leave_word(folder)
            raise ZeroDivisionError("in the middle")

    before(RankExecutor, "advance", fail)
    solve(engine, rounds=40)


def bad_callback(engine, folder):
    def fail(row):
        if row["rounds"] == 4:
            leave_word(folder)
            raise RuntimeError("of the user's own")

    solve(engine, rounds=40, callback=fail)


def one_dies(engine, folder):
    def die(calls):
        if engine.rank == 1 and calls == 1:
            leave_word(folder)
            os.kill(os.getpid(), signal.SIGKILL)

    before(RankExecutor, "advance", die)
    solve(engine, rounds=40)


def dies_before_the_head(engine, folder):
    """Six rounds are saved. Eight would be, but rank 0 dies when all parts are written."""
    path = folder / "run.npz"
    solve(engine, checkpoint=path)
    head = path.read_bytes()
    write = checkpoint.write

    def die_at_the_head(target, *what):
        if target == path:
            assert path.read_bytes() == head
            leave_word(folder)
            os.kill(os.getpid(), signal.SIGKILL)
        write(target, *what)

    checkpoint.write = die_at_the_head
    solve(engine, checkpoint=path, rounds=8)


def go_on(engine, folder):
    """To ten rounds, from what is there, and without stopping."""
    told = []
    result = solve(engine, checkpoint=folder / "run.npz", rounds=10, callback=told.append)
    names = sorted(p.name for p in folder.glob("run.npz*"))
    apart = float(np.abs(result.X - solve(engine, rounds=10).X).max())
    return {"told": [row["rounds"] for row in told], "apart": apart, "files": names}


def main(name, folder):
    engine = ew.MPI()
    saw = globals()[name](engine, folder)
    (folder / f"{name}.{engine.rank}.json").write_text(json.dumps(saw))


if __name__ == "__main__":
    for name in sys.argv[1].split(","):
        main(name, Path(sys.argv[2]))
