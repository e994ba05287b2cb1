"""How the ranks of a job record, stop, fail and wait: mpi_events.py has what happens to them."""

import json
import shutil
import sys

import pytest
from mpi_launch import launch, missing, succeed
from sharded_cases import GRID, build

import edgewise as ew
from edgewise.data import write_shards
from edgewise.engines.mpi import PATIENCE

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

RANKS = 3
ORDERLY = ("recording", "refusals", "shards", "stall", "other_run", "interrupted")
SLACK = 60.0  # seconds for a launcher to notice and to end, on a busy machine


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Shards, the same without one, and with a changed one."""
    folder = tmp_path_factory.mktemp("job")
    write_shards(folder / "shards", build(GRID).shards)
    for kind in ("missing", "corrupt"):
        shutil.copytree(folder / "shards", folder / kind)
    (folder / "missing" / "node-07.npz").unlink()
    damaged = folder / "corrupt" / "node-04.npz"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"!")
    return folder


@pytest.fixture(scope="module")
def saw(folder):
    """{event: what each rank saw}, of those that a job survives."""
    succeed(RANKS, "mpi_events.py", ",".join(ORDERLY), folder, timeout=400)
    return {name: read(folder, name, RANKS) for name in ORDERLY}


def read(folder, name, ranks):
    return [json.loads((folder / f"{name}.{rank}.json").read_text()) for rank in range(ranks)]


def fails(name, folder, within):
    """A job that must end by itself, not long after what happens in it, and not well."""
    job = launch(2, "mpi_events.py", name, folder, timeout=200)
    assert job.status != 0
    assert job.ended - float((folder / "when").read_text()) < within + SLACK
    assert not list(folder.glob(f"{name}.*")), "a rank went on to the end"
    return job.err


def test_a_run_ends_at_all_ranks_for_the_same_reason(saw):
    for rank in saw["recording"]:
        assert rank["callback"] == ["stopped by the callback", 5]
        assert rank["tol"] == ["reached tol", 3]
        assert rank["budget"] == ["oracle budget spent", 2]


def test_rank_0_alone_speaks_and_has_all_models(saw):
    first, *others = saw["recording"]
    assert first["told"] == [0, 2, 4, 6, 8]
    assert first["shape"] == [12, 5]
    assert [rank["told"] for rank in others] == [[]] * 2
    assert [rank["shape"] for rank in others] == [[rank["rows"], 5] for rank in others]
    assert sum(rank["rows"] for rank in saw["recording"]) == 12


def test_errors_of_every_rank_are_ordinary_ones(saw):
    says = {
        "rounds": ["MethodError", "rounds"],
        "X0": ["ProblemError", "X0 has shape (3,)"],
        "faults": ["MethodError", "faults"],
        "devices": ["MethodError", "devices"],
        "ranks": ["MethodError", "3 ranks for 2 nodes"],
        "stream": ["MethodError", "streams"],
        "partition": ["MethodError", "each of the 12 nodes"],
    }
    for rank in saw["refusals"]:
        for name, (kind, text) in says.items():
            assert rank[name][0] == kind, name
            assert text in rank[name][1]
        assert rank["after"].startswith("ran all 6 rounds")


def test_ranks_read_their_own_files_only(saw):
    for rank in saw["shards"]:
        assert sorted(rank["read"]) == rank["own"]
        assert 0 < len(rank["own"]) < 12
        assert rank["apart"] <= 1e-10
    assert sorted(node for rank in saw["shards"] for node in rank["own"]) == list(range(12))


def test_a_bad_shard_is_named_by_all_ranks(saw):
    for kind, node, text in (("missing", 7, "is missing"), ("corrupt", 4, "SHA-256")):
        first, *others = [rank[kind] for rank in saw["shards"]]
        assert first[0] == "DataError"
        assert f"the shard of node {node}," in first[1]
        assert f"node-{node:02d}.npz" in first[1]
        assert text in first[1]
        assert others == [first] * 2


def test_a_bad_shard_ends_a_job(folder):
    job = launch(2, "mpi_events.py", "uncaught", folder)
    assert job.status not in (0, None)
    assert "the shard of node 7," in job.err
    assert "failed, all stop" not in job.err  # nobody had to be ended


def test_ctrl_c_at_one_rank_stops_all_in_order(saw):
    for rank in saw["interrupted"]:
        assert rank["message"].startswith("interrupted after 4 rounds")
        assert rank["rounds"] == [0, 2, 4]


def test_waiting_leaves_the_cores_alone(saw):
    """A rank that waits for a sleeper works for a small part of the time."""
    first, _, third = (max(rank["waits"]) for rank in saw["stall"])
    for wall, cpu in (first, third):
        assert wall > 1.5
        assert cpu < 1.0


def test_one_rank_that_raises_ends_the_job_and_is_named(tmp_path):
    said = fails("one_raises", tmp_path, PATIENCE)
    assert "rank 1 failed, all stop: ZeroDivisionError: in the middle" in said
    assert "Traceback" in said


def test_so_does_a_callback(tmp_path):
    said = fails("bad_callback", tmp_path, PATIENCE)
    assert "rank 0 failed, all stop: RuntimeError: of the user's own" in said


def test_a_rank_that_is_killed_ends_the_job(tmp_path):
    fails("one_dies", tmp_path, 0)


def test_a_checkpoint_of_another_run_is_refused_by_all_ranks(saw):
    for rank in saw["other_run"]:
        for kind, text in (("refused", "another run"), ("damaged", "no readable checkpoint")):
            assert rank[kind][0] == "CheckpointError"
            assert text in rank[kind][1]
        assert rank["went on"] == [0, 2, 4, 6, 8]


def test_a_crash_before_the_head_is_written_leaves_the_former_checkpoint(tmp_path):
    fails("dies_before_the_head", tmp_path, 0)
    assert len(list(tmp_path.glob("run.npz.8.*"))) == 2, "it did not come so far"
    succeed(RANKS, "mpi_events.py", "go_on", tmp_path)
    ranks = read(tmp_path, "go_on", RANKS)
    assert ranks[0]["told"] == [8, 10]
    assert max(rank["apart"] for rank in ranks) <= 1e-10
    assert sorted(p.name for p in tmp_path.glob("run.npz*")) == [
        "run.npz",
        *(f"run.npz.10.{rank}-of-3" for rank in range(3)),
    ]


def test_without_mpi4py_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ew.errors.InputError, match=r"edgewise\[mpi\]"):
        ew.MPI()


def test_an_engine_is_not_given_by_name():
    with pytest.raises(ew.errors.MethodError, match=r"engine='mpi': give edgewise\.MPI"):
        ew.solve(build(GRID), GRID, engine="mpi")
