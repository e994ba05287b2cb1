"""A peer's trace.csv is a trace as every run has one, also after a kill, and can be reported on."""

import numpy as np
import pytest
from typer.testing import CliRunner

import edgewise as ew
from edgewise.cli.app import app
from edgewise.errors import InputError
from edgewise.peers.node.trace_writer import TraceWriter
from edgewise.running.trace import COLUMNS

KNOWN = ("rounds", "oracle_calls", "vectors_sent", "bytes_sent", "seconds", "residual", "objective")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "peer3" / "trace.csv"


def written(path, rounds, begin=0):
    writer = TraceWriter(path, {"method": "saga-pd", "peer": 3})
    writer.begin(begin)
    for r in rounds:
        writer.add(
            rounds=r,
            oracle_calls=8 * r,
            vectors_sent=2 * r,
            bytes_sent=120 * r,
            seconds=r / 3,
            residual=1 / (r + 1),
            objective=0.1 + 1 / 3**r,
        )
        writer.flush()
    return writer


def test_a_peers_trace_is_loaded_as_any(path):
    kept = written(path, [10, 20, 30]).table()
    loaded = ew.Trace.load(path)
    assert list(loaded.columns) == list(COLUMNS)
    assert kept.meta == {"method": "saga-pd", "peer": 3}
    for column in COLUMNS:
        assert np.array_equal(loaded[column], kept[column], equal_nan=True)
        assert np.isnan(loaded[column]).all() == (column not in KNOWN)
    assert "nan" not in path.read_text()  # what nobody knows is left empty


def test_a_saved_trace_of_a_run_has_the_same_columns(tmp_path, path):
    result = ew.solve(*small(), "saga-pd", rounds=20, record_every=10)
    for name in ("trace.csv", "trace.npz"):
        loaded = ew.Trace.load(result.trace.save(tmp_path / name))
        for column in COLUMNS:
            assert np.array_equal(loaded[column], result.trace[column])
    written(path, [10])
    heads = [p.read_text().splitlines()[0] for p in (tmp_path / "trace.csv", path)]
    assert heads[0] == heads[1]
    star = ew.reference(small()[0]).objective
    assert np.allclose(result.trace["objective"], star + result.trace["objective_gap"])


def small():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 3))
    problem = ew.Problem(ew.split(X, np.sign(X[:, 0]), nodes=3), loss=ew.Logistic(ridge=0.1))
    return problem, ew.Graph.ring(3)


@pytest.mark.parametrize("cut", ["40", "40,320,80,4800,13.3,", "40,1,2,3,4,,,,0.1,,0.123"])
def test_half_a_line_at_the_end_is_no_row(path, cut):
    written(path, [10, 20, 30])
    with path.open("a") as file:
        file.write(cut)
    assert list(ew.Trace.load(path)["rounds"]) == [10, 20, 30]


def test_rows_of_rounds_that_were_lost_are_written_again(path):
    written(path, [10, 20, 30])
    with path.open("a") as file:
        file.write("40,3")
    writer = written(path, [30, 40], begin=20)
    assert list(writer.table()["rounds"]) == [10, 20, 30, 40]
    assert list(ew.Trace.load(path)["rounds"]) == [10, 20, 30, 40]
    assert list(written(path, [10]).table()["rounds"]) == [10]


def test_a_table_of_something_else_is_no_trace(tmp_path):
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    np.savez(tmp_path / "other.npz", x=np.ones(3))
    np.save(tmp_path / "other.npy", np.ones(3))
    (tmp_path / "half.npz").write_bytes((tmp_path / "other.npz").read_bytes()[:50])
    for name, why in [
        ("other.csv", "no column of rounds"),
        ("other.npz", "meta"),
        ("other.npy", ""),
        ("half.npz", ""),
    ]:
        with pytest.raises(InputError, match=f"{name} is no trace .*{why}.*Trace.save"):
            ew.Trace.load(tmp_path / name)
    with pytest.raises(InputError, match=r"there is no trace .*gone\.npz"):
        ew.Trace.load(tmp_path / "gone.npz")


def report(*words, code=0):
    done = CliRunner().invoke(app, ["report", *map(str, words)])
    assert done.exit_code == code, done.output
    return done


def test_peers_are_reported_on_by_their_folder_or_their_trace(path, tmp_path):
    written(path, [10, 20, 30])
    (path.parent / "status.json").write_text("{}")
    for given in (path, path.parent):
        done = report(given, "--out", tmp_path / "peers.png")
        assert "3.2e-02" in done.stdout  # the last residual
        assert (tmp_path / "peers.png").stat().st_size > 5000


def test_what_no_peer_knows_cannot_be_drawn(path, tmp_path):
    written(path, [10, 20, 30])
    done = report(path, "--y", "bregman", "--out", tmp_path / "peers.png", code=2)
    assert "none of these knows its bregman" in done.stderr
