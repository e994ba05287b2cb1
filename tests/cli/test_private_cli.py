"""`edgewise solve --dp-epsilon`: what it says was spent, and what it refuses."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("dp_accounting", reason="pip install 'edgewise[privacy]'")

from command_line import call, said

PRIVATE = ("--dp-epsilon", 3, "--dp-delta", 1e-5, "--dp-clip", 1, "--dp-rounds", 20)


@pytest.fixture
def table(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 12)), np.arange(60) % 2
    np.savetxt(
        "rows.csv",
        np.c_[X, y],
        delimiter=",",
        header=",".join("abcdefghijkl") + ",label",
        comments="",
    )
    return ("solve", "rows.csv", "--nodes", 4, "--graph", "ring")


def test_what_was_spent_is_said_and_kept(table):
    done = said(*table, *PRIVATE, "--out", "run")
    assert done["method"] == "pd"
    assert done["rounds"] == 20
    assert done["privacy"]["epsilon"] == pytest.approx(3)
    assert set(done["privacy"]["by_distance"]) == {"1", "2"}
    assert not Path("run/checkpoint.bin").exists()
    assert json.loads(Path("run/model.json").read_text())["provenance"]["residual"] is None
    audited = said("audit", "run")
    assert any("drawn anew" in line for line in audited["assumed"])
    found = {(f["who"], f["attack"]): f["got"] for f in audited["findings"]}
    assert found["all neighbours", "first gradient"] < 0.9  # without noise it is 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*PRIVATE, "--tol", 1e-3), "tol does not go with differential privacy"),
        ((*PRIVATE, "--summary"), "--summary does not go with --dp-epsilon"),
        ((*PRIVATE, "--scale"), "scaled by means and spreads"),
        ((*PRIVATE, "--checkpoint", "a.bin"), "checkpoint does not go with"),
        (PRIVATE[:4], "--dp-epsilon goes with --dp-clip"),
        (PRIVATE[4:], "--dp-clip goes with --dp-epsilon"),
    ],
)
def test_what_is_refused(table, words, message):
    refused = call(*table, *words, "--no-save", code=2)
    assert message in " ".join(refused.output.split())
