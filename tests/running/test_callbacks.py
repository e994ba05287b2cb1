"""Callbacks, and TensorBoard as the real package reads what we wrote."""

import subprocess
import sys

import numpy as np
import pytest

import edgewise as ew
from edgewise.errors import InputError
from edgewise.running.trace import COLUMNS


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(0)
    shards = [(rng.standard_normal((6, 3)), rng.standard_normal(6)) for _ in range(4)]
    return ew.Problem(shards, loss=ew.Squared(ridge=0.1)), ew.Graph.ring(4)


def read(folder):
    """{column: {round: value}}, by TensorBoard's own reader."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    events = EventAccumulator(str(folder)).Reload()
    return {
        tag: {e.step: float(make_ndarray(e.tensor_proto)) for e in events.Tensors(tag)}
        for tag in events.Tags()["tensors"]
    }


def test_a_callback_is_told_every_row_once(small):
    rows = []
    result = ew.solve(*small, "pd", rounds=30, record_every=10, callback=rows.append)
    assert [list(row) for row in rows] == [list(COLUMNS)] * 4
    for name in COLUMNS:
        np.testing.assert_array_equal([row[name] for row in rows], result.trace[name])


def test_a_callback_can_end_a_run(small):
    result = ew.solve(
        *small, "pd", rounds=500, record_every=10, callback=lambda row: row["rounds"] >= 20
    )
    assert result.trace["rounds"].tolist() == [0, 10, 20]
    assert "stopped by the callback after 20 rounds" in result.message
    assert not result.converged


def test_a_resumed_run_tells_the_new_rows_only(small, tmp_path):
    rows = []
    where = {"checkpoint": tmp_path / "state.npz", "record_every": 10}
    ew.solve(*small, "pd", rounds=20, **where)
    ew.solve(*small, "pd", rounds=40, callback=rows.append, **where)
    assert [row["rounds"] for row in rows] == [30, 40]


def test_tensorboard_reads_the_trace(small, tmp_path):
    where = {"checkpoint": tmp_path / "state.npz", "record_every": 10, "reference": False}
    with ew.TensorBoard(tmp_path / "board") as board:
        ew.solve(*small, "pd", rounds=20, callback=board, **where)
    with ew.TensorBoard(tmp_path / "board") as board:  # goes on in the same curves
        trace = ew.solve(*small, "pd", rounds=40, callback=board, **where).trace
    curves = read(tmp_path / "board")
    of_a_reference = {"objective", "objective_gap", "bregman"}
    assert set(curves) == set(COLUMNS) - {"rounds"} - of_a_reference
    for name, curve in curves.items():
        assert list(curve) == [0, 10, 20, 30, 40]
        np.testing.assert_allclose(list(curve.values()), trace[name], rtol=1e-6)


def test_without_the_package_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorboard.summary", None)
    with pytest.raises(InputError, match=r"pip install 'edgewise\[tensorboard\]'"):
        ew.TensorBoard(tmp_path)


def test_the_command_line_writes_it_into_the_runs_folder(tmp_path):
    command = [sys.executable, "-m", "edgewise", "solve", "iris", "--loss", "multinomial"]
    more = ["--ridge", "0.1", "--nodes", "4", "--rounds", "100", "--record-every", "50"]
    more += ["--tensorboard"]
    ran = subprocess.run([*command, *more, "--out", tmp_path / "run"], capture_output=True)
    assert ran.returncode in (0, 1), ran.stderr
    assert list(read(tmp_path / "run")["residual"]) == [0, 50, 100]
    refused = subprocess.run([*command, *more, "--no-save"], capture_output=True, text=True)
    assert refused.returncode == 2
    assert "leave --no-save out" in refused.stderr
