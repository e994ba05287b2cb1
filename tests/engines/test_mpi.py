"""The ranks of an MPI job give the simulator's iterates, duals, counts and traces.

mpi_cases.py has the runs: a job for each number of ranks, and one process of the simulator. They
run what the selected tests ask for. `make test` has one method of each kind at two ranks, and
`make test-all` every method at 1, 2, 4 and 8.
"""

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from mpi_cases import (
    GRAPHS,
    METHODS,
    PARTITIONS,
    PLAN,
    RANKS,
    REPRESENTATIVES,
    SPECIAL,
    cases,
    key,
    kinds,
)
from mpi_launch import missing, succeed

import edgewise as ew
from edgewise.running.trace import COLUMNS

needs_mpi = pytest.mark.skipif(bool(missing()), reason=missing())

CLOSE, FLOAT32 = 1e-10, 1e-4
DIFFERENCES = 1e-6  # sk-pd-fd divides what rounding leaves by a step of 1e-8
FLOAT32_MATRICES = 1e-7  # one that rounds to another float32 moves models by some 1e-9
ARRAYS = ("X", "duals", "x", "rows", "apart", "eta")
MORE_OF_THE_SAME = {"constraints", "custom loss, svrg", "squared, sparse", "star", "warm"}
MORE_OF_THE_SAME |= {"star, two vectors", "couplings, sampled"}
LOOKED_INTO = ("an optimum", "multinomial", "float32", "a short end")
NAMES = [c for c in COLUMNS if c != "seconds"]
COUNTED = [NAMES.index(c) for c in ("rounds", "oracle_calls", "vectors_sent", "function_values")]


def asked_for(items):
    """{ranks: names of cases} that the selected tests look at; 0 ranks: all of them."""
    wanted = defaultdict(dict)  # in order, each once
    for item in items:
        if item.path.name == Path(__file__).name and "found" in item.fixturenames:
            given = getattr(item, "callspec", None)
            names = LOOKED_INTO if given is None else [given.params["name"]]
            ranks = 3 if given is None else given.params.get("ranks", 3)
            for name in names:
                case = name if ranks == 3 else key(name, *PLAN[name, ranks][:2])
                wanted[ranks][case] = wanted[0][case] = True
    return wanted


@pytest.fixture(scope="module")
def found(request, tmp_path_factory):
    """{ranks: {"case|array": array}}; 0 ranks: the simulator."""
    folder, wanted = tmp_path_factory.mktemp("ranks"), asked_for(request.session.items)

    def run(ranks):
        path = folder / f"{ranks}.npz"
        succeed(ranks, "mpi_cases.py", ranks, path, *wanted[ranks], timeout=3600)
        with np.load(path) as file:
            return dict(file)

    jobs = sorted(wanted, key=lambda ranks: -ranks or -99)
    with ThreadPoolExecutor(2) as pool:  # the simulator has one core, the first jobs the other
        return dict(zip(jobs, pool.map(run, jobs), strict=True))


def agree(found, ranks, name, close=CLOSE):
    one, several = ({k: found[r][f"{name}|{k}"] for k in ARRAYS} for r in (0, ranks))
    for k in ARRAYS:
        assert one[k].shape == several[k].shape, k
        np.testing.assert_allclose(several[k], one[k], rtol=0, atol=close, err_msg=k)
    np.testing.assert_array_equal(several["rows"][COUNTED], one["rows"][COUNTED])
    assert name not in found[ranks]["wrong"], "ranks came to different results"
    assert np.ptp(one["X"]) > 0.02, "nothing moves: this shows nothing"
    assert len(one["rows"][0]) > 1


@needs_mpi
@pytest.mark.quick_if(lambda name, ranks: name in REPRESENTATIVES and ranks == 2)
@pytest.mark.parametrize(("name", "ranks"), PLAN)
def test_ranks_give_the_simulators_iterates(found, name, ranks):
    close = {"sk-pd-fd": DIFFERENCES, "newton-pd": FLOAT32_MATRICES}.get(name, CLOSE)
    agree(found, ranks, key(name, *PLAN[name, ranks][:2]), close)


@needs_mpi
@pytest.mark.quick_if(lambda name: name not in MORE_OF_THE_SAME)
@pytest.mark.parametrize("name", SPECIAL)
def test_whatever_the_problem(found, name):
    agree(found, 3, name, FLOAT32 if name == "float32" else CLOSE)


def test_the_quick_ones_are_of_every_kind():
    every, quick = (
        set().union(*(kinds(METHODS[name]) for name in names))
        for names in (METHODS, REPRESENTATIVES)
    )
    assert quick == every
    assert len(REPRESENTATIVES) < len(METHODS) / 2


@needs_mpi
def test_the_cases_are_what_they_say(found):
    gap = found[0]["an optimum|rows"][NAMES.index("bregman")]
    assert np.isfinite(gap).all()
    assert found[0]["multinomial|X"].shape[1] == 3 * 5
    assert found[0]["float32|rows"][NAMES.index("bytes_sent")][-1] == 12 * 2 * 20 * 5 * 4
    assert found[0]["a short end|rows"][0].tolist() == [0, 4, 8, 10]


def test_every_method_graph_and_partition_meets_every_number_of_ranks():
    assert {name for name, _ in PLAN} >= set(ew.list_methods())
    for ranks in RANKS:
        at = {name: PLAN[name, r] for name, r in PLAN if r == ranks}
        assert set(at) >= set(ew.list_methods())
        assert {graph for graph, _, _ in at.values()} == set(GRAPHS)
        assert {penalty for _, penalty, _ in at.values()} == {"l1", "per node", "none"}
        assert {how for _, _, how in at.values()} == set(PARTITIONS)
    assert set(cases(0)) == {k for ranks in (*RANKS, 3) for k in cases(ranks)}
