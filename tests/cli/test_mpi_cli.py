"""`mpiexec -n 3 edgewise solve --engine mpi`, as a user would."""

import json
import shutil

import numpy as np
import pytest
from mpi_launch import launch, missing

import edgewise as ew
from edgewise.running import run_folders as saved

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
CLOSE = 1e-10


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    X, y = ew.data.dataset("diabetes")
    X = (X - X.mean(0)) / X.std(0) / np.sqrt(X.shape[1])
    folder = tmp_path_factory.mktemp("data") / "shards"
    ew.data.write_shards(folder, ew.split(X, y / y.std(), nodes=5, how="size", seed=1))
    return folder


def solve(shards, out, *more):
    return ["solve", "--shards", shards, "--loss", "squared", "--graph", "ring", "--ridge", "0.1",
            "--method", "saga-pd",
            "--rounds", "400", "--record-every", "100", "--tol", "1e-5", "--out", out,
            "--no-reference", *more]  # fmt: skip


@pytest.fixture(scope="module")
def runs(shards, tmp_path_factory):
    """By one process, and by three ranks, the second time in two parts."""
    folder = tmp_path_factory.mktemp("runs")
    made = {name: folder / name for name in ("one", "three")}
    alone = launch(0, "mpi_cli.py", *solve(shards, made["one"]))
    mpi = ["--engine", "mpi", "--partition", "contiguous"]
    launch(3, "mpi_cli.py", *solve(shards, made["three"], *mpi, "--rounds", "200"))
    more = ["solve", "--resume", made["three"], "--rounds", "400", "--json"]
    job = launch(3, "mpi_cli.py", *more)
    return made, alone, job


def test_ranks_and_one_process_save_the_same_run(runs):
    made, alone, job = runs
    assert alone.status == job.status, job.err[-2000:]
    one, three = (saved.load_arrays(made[name]) for name in ("one", "three"))
    for name in ("x", "X", "duals"):
        assert np.abs(one[name] - three[name]).max() <= CLOSE
    for name in ("trace.csv", "model.json", "plot.png", "log.txt"):
        assert (made["three"] / name).exists()
    said = json.loads(job.out)  # once, not once a rank
    alike = json.loads((made["one"] / "result.json").read_text())
    for name in ("rounds", "oracle_calls", "bytes_sent", "residual", "score", "converged"):
        assert said[name] == pytest.approx(alike[name], rel=1e-8), name


def test_ranks_and_one_process_compare_and_tune_alike(shards):
    words = ["--shards", shards, "--loss", "squared", "--graph", "ring", "--ridge", "0.1"]
    words += ["--methods", "nids", "--budget", "40", "--per", "rounds", "--json", "--no-save"]
    job = launch(2, "mpi_cli.py", "compare", *words, "--engine", "mpi", "--accuracies", "1e-1,1e-3")
    assert job.status == 0, job.err[-2000:]
    ranks = json.loads(job.out)  # said once
    problem = ew.Problem(shards, loss=ew.Squared(ridge=0.1))
    given = {"accuracies": (1e-1, 1e-3), "show": False}
    alone = ew.compare(problem, ew.Graph.ring(5), ["nids"], 40, "rounds", **given)
    assert ranks["factors"]["nids"] == alone.tunings["nids"].factors
    assert ranks["ended"]["nids"] == pytest.approx(alone.ended("nids")[1], rel=1e-6)
    for row in ranks["costs"]:
        if row["unit"] != "seconds":
            cost = alone.cost("nids", row["accuracy"], row["unit"])[1]
            assert row["median"] == pytest.approx(cost, rel=1e-6)


def test_a_missing_shard_is_named_once(shards, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(shards, broken)
    (broken / "node-3.npz").unlink()
    job = launch(3, "mpi_cli.py", *solve(broken, tmp_path / "out", "--engine", "mpi"))
    assert job.status == 2
    assert job.err.count("error:") == 1
    assert "shard of node 3" in job.err
    assert "missing" in job.err
    assert not (tmp_path / "out").exists()  # left as it was found


def test_several_processes_without_the_engine_are_refused(shards, tmp_path):
    job = launch(2, "mpi_cli.py", *solve(shards, tmp_path / "out"))
    assert job.status == 2
    assert "--engine mpi" in job.err


def test_no_launcher_is_a_job_of_one_rank(shards, tmp_path):
    job = launch(0, "mpi_cli.py", *solve(shards, tmp_path / "out", "--engine", "mpi"))
    assert "over 1 ranks" in job.out
    assert (tmp_path / "out" / "model.npz").exists()


def test_an_unknown_engine_is_refused(shards, tmp_path):
    job = launch(0, "mpi_cli.py", *solve(shards, tmp_path / "out", "--engine", "mip"))
    assert job.status == 2
    assert "did you mean 'mpi'?" in job.err
