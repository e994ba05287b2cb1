"""Runs that stop and go on: test_mpi_resume.py starts it with a folder, how many ranks there are
(0: no MPI), the methods, and which chains go on to which round."""

import sys
from pathlib import Path

import numpy as np
from coupled_grid import coupled_grid
from mpi_cases import models, seen
from news_method import Bulletin
from sharded_cases import GRID, MIXED, build, saga

import edgewise as ew
from edgewise.methods.catalogue import make

METHODS = {
    "saga-pd": saga(),  # a table of all samples
    "edge form": saga("edge"),  # messages of all edges
    "svr-pd-es": make("svr-pd-es"),
    "pdmm": make("pdmm"),
    "news": Bulletin(),  # and arrays of edges, and of matrices, in its state
    "newton-pd": make("newton-pd"),
    "couplings": make("pdmm"),  # whose state has most that is of edges
}


def main(folder, ranks, names, chains):
    engine = ew.MPI(partition="metis" if ranks == 3 else "contiguous") if ranks else None
    problems = {taken: build(GRID, penalty=MIXED if taken else None) for taken in (True, False)}
    for chain, rounds in chains:
        for name in names:
            problem, options = problems[METHODS[name].takes_penalty], {}
            if name == "couplings":
                problem, options = coupled_grid()
            path = None if chain == "whole" else folder / chain / f"{name}.npz"
            result = ew.solve(
                problem,
                GRID,
                METHODS[name],
                rounds=rounds,
                record_every=4,
                reference=False,
                checkpoint=path,
                engine=engine,
                **options,
            )
            if engine is None or engine.rank == 0:
                X, duals = models(result)
                arrays = seen(result) | {"X": X, "duals": duals}
                np.savez(folder / f"{chain} {name} {rounds}.npz", **arrays)


if __name__ == "__main__":
    told = [stage.split(":") for stage in sys.argv[4:]]
    stages = [(chain, int(rounds)) for chain, rounds in told]
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3].split(","), stages)
