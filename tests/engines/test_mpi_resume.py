"""A run goes on with another number of ranks, or none, as if it had never stopped."""

from pathlib import Path

import numpy as np
import pytest
from mpi_launch import missing, succeed
from mpi_resume import METHODS

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

CLOSE = 1e-10
# a table of samples, messages of edges, told rows, and couplings
QUICK = ("saga-pd", "edge form", "news", "couplings")
KEPT = QUICK[0]  # whose files are looked at
# How many ranks (0: the simulator), and how far they bring each chain.
STAGES = [
    (0, ["whole:32", "down:8"]),
    (2, ["up:8"]),
    (3, ["up:16", "down:16"]),
    (1, ["up:24", "down:24"]),
    (2, ["down:32"]),
    (0, ["up:32"]),
]


def asked_for(items):
    """Methods that the selected tests name, and the one whose files are looked at."""
    here = [item for item in items if item.path.name == Path(__file__).name]
    named = {item.callspec.params["name"] for item in here if hasattr(item, "callspec")}
    return [name for name in METHODS if name in named | {KEPT}]


@pytest.fixture(scope="module")
def job(request, tmp_path_factory):
    """The folder where all stages are done, and the files that a checkpoint was after each."""
    folder, files = tmp_path_factory.mktemp("resume"), {}
    names = asked_for(request.session.items)
    for ranks, chains in STAGES:
        succeed(ranks, "mpi_resume.py", folder, ranks, ",".join(names), *chains)
        for chain in chains:
            kept = folder / chain.split(":")[0]
            files[chain] = sorted(p.name for p in kept.glob(f"{KEPT}.npz*"))
    return folder, files


@pytest.mark.quick_if(lambda name, chain: name in QUICK)
@pytest.mark.parametrize("chain", ["up", "down"])
@pytest.mark.parametrize("name", METHODS)
def test_it_is_the_run_that_never_stopped(job, name, chain):
    with (
        np.load(job[0] / f"whole {name} 32.npz") as whole,
        np.load(job[0] / f"{chain} {name} 32.npz") as resumed,
    ):
        assert whole["rows"].shape[1] == 9
        for k in whole:
            np.testing.assert_allclose(resumed[k], whole[k], rtol=0, atol=CLOSE, err_msg=k)
        assert np.ptp(whole["X"]) > 0.02, "nothing moves: this shows nothing"


@pytest.mark.quick_if(lambda name: name in QUICK)
@pytest.mark.parametrize("name", METHODS)
def test_it_did_stop(job, name):
    for chain, ends in (("up", (8, 16, 24)), ("down", (16, 24))):
        for rounds in ends:
            with np.load(job[0] / f"{chain} {name} {rounds}.npz") as then:
                assert then["rows"][0].tolist() == list(range(0, rounds + 1, 4))


def test_only_the_last_parts_are_kept(job):
    for chain, ranks in (("up:8", 2), ("up:16", 3), ("down:16", 3), ("down:32", 2)):
        rounds = chain.split(":")[1]
        parts = [f"{KEPT}.npz.{rounds}.{rank}-of-{ranks}" for rank in range(ranks)]
        assert job[1][chain] == [f"{KEPT}.npz", *parts]


def test_a_single_process_keeps_one_file(job):
    for chain in ("up:24", "up:32", "down:8", "down:24"):
        assert job[1][chain] == [f"{KEPT}.npz"]
