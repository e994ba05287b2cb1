"""`edgewise audit`: a run's folder in, a table and audit.json out."""

import json

import numpy as np
from command_line import call

SOLVE = ("--nodes", 4, "--graph", "ring", "--ridge", 0.1, "--method", "saga-pd", "--rounds", 40)


def test_a_run_is_replayed_against_its_neighbours(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(32, 5))
    np.savez("data.npz", X=X, y=np.where(X[:, 0] > 0, 1, -1))
    call("solve", "data.npz", *SOLVE, "--no-reference", "--out", "run", code=1)
    with open("run/run.toml", "a") as file:
        file.write("drop = 0.1\n")  # as if it had lost messages: that is not replayed, and said
    done = call("audit", "run", "--first", 60, "--coalition", "0,1", "--no-members")
    kept = json.loads((tmp_path / "run" / "audit.json").read_text())
    got = {(f["who"], f["attack"], f["measure"]): f["got"] for f in kept["findings"]}
    assert kept["method"] == "saga-pd"
    assert kept["rounds"] == 60
    assert got["all neighbours", "rows", "recovered"] > 0.9
    assert "the coalition is 0, 1" in kept["assumed"]
    assert any("--drop" in what for what in kept["not_tried"])
    assert "replayed without" in " ".join(done.output.split())
    assert "is no run" in call("audit", "nowhere", code=2).stderr
