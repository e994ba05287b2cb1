"""A disk that is full, and files that somebody deletes: what there is to say is said, the model is
kept somewhere, and no line is half a line."""

import asyncio
import errno
import json
import logging
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from uneven import problem_of

import edgewise as ew
from edgewise.peers.config.peer_config import Fit
from edgewise.peers.node import checkpoint, saving
from edgewise.peers.node.ending import Absence, Ending
from edgewise.peers.node.trace_writer import TraceWriter
from edgewise.peers.operations import logs

FULL = OSError(errno.ENOSPC, "No space left on device")
ENDING = Ending("converged", 70, 1e-8, 1e-6, 5, True)


def no_room(path):
    return OSError(errno.ENOSPC, "No space left on device", str(path))


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A peer in whose folder nothing can be written, though elsewhere it can."""
    monkeypatch.setattr(saving, "source_of", lambda peer: {})
    real = saving.replacing

    @contextmanager
    def replacing(path, **options):
        if path.is_relative_to(tmp_path / "out"):
            raise no_room(path)
        with real(path, **options) as file:
            yield file

    async def save(head, arrays):
        raise no_room(tmp_path / "out" / "checkpoint.bin")

    monkeypatch.setattr(saving, "replacing", replacing)
    monkeypatch.setattr(checkpoint, "contents", lambda _: ({}, {}))
    monkeypatch.setattr(saving.tempfile, "tempdir", str(tmp_path))
    return SimpleNamespace(
        config=SimpleNamespace(out=tmp_path / "out", id=3),
        problem=problem_of(7, 1),
        settled_fit=Fit("pdmm"),
        method_note="",
        residual=1e-8,
        privacy=None,
        round=70,
        save=save,
        trace=TraceWriter(tmp_path / "out" / "trace.csv", {}),
    )


# --- the end --------------------------------------------------------------------------------------


def test_the_model_goes_elsewhere_and_the_end_says_where(own):
    x = np.arange(7.0)
    unsaved = saving.save_model(own, x, ENDING, {})
    assert f"{own.config.out / 'model.npz'} cannot be written (No space left" in unsaved
    where = Path(unsaved.split("it is in ")[1])
    assert where.stat().st_mode & 0o777 == 0o700
    assert np.array_equal(np.load(where / "model.npz")["x"], x)
    assert ew.load_model(where).provenance["peer"] == 3


def test_where_nothing_can_be_written_the_model_is_in_the_log(own, monkeypatch, caplog):
    def mkdtemp(**_):
        raise FULL

    monkeypatch.setattr(saving.tempfile, "mkdtemp", mkdtemp)
    with caplog.at_level(logging.ERROR):
        assert saving.save_model(own, np.arange(7.0), ENDING, {}).endswith("it is in the log")
    assert f"x = {json.dumps(np.arange(7.0).tolist())}" in caplog.text


def test_a_checkpoint_that_fails_at_last_is_told_of_and_raises_nothing(own):
    unsaved = asyncio.run(saving.save_at_last(own))
    assert unsaved.startswith("no checkpoint of round 70: ")
    assert str(own.config.out / "checkpoint.bin") in unsaved


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        (ENDING, 2),
        (Ending("stopped", 70, 1.0, 1e-6, 5, False), 2),
        (Ending("rounds", 70, 1.0, 1e-6, 5, False), 1),
        (Ending("rounds", 70, 1.0, None, 5, False, {2: Absence(3, False)}), 3),
    ],
)
def test_what_could_not_be_written_is_no_success(ending, code):
    ended = replace(ending, unsaved="no model in its folder: ...")
    assert ended.exit_code == code
    assert ended.message.endswith("no model in its folder: ...")
    assert ended.table()["unsaved"]


# --- the trace ------------------------------------------------------------------------------------


def rows(path):
    return list(ew.Trace.load(path)["rounds"])


@pytest.fixture
def trace(tmp_path):
    writer = TraceWriter(tmp_path / "trace.csv", {})
    writer.begin(0)
    for round in (10, 20):
        writer.add(rounds=round, residual=0.5)
        writer.flush()
    return writer


@pytest.mark.parametrize("more", [True, False])
def test_a_trace_that_is_deleted_is_written_again_with_its_head(trace, more):
    trace.path.unlink()
    if more:
        trace.add(rounds=30)
    trace.flush()
    assert rows(trace.path) == [10, 20, 30][: 2 + more]


def test_lines_that_others_left_in_a_trace_go(trace):
    with trace.path.open("a") as file:
        file.write("17,3")
    trace.add(rounds=30)
    trace.flush()
    assert rows(trace.path) == [10, 20, 30]


def test_no_line_is_left_half_by_a_full_disk(trace, monkeypatch):
    """Half of what is to go goes, as a disk has it that is full in between."""

    class Filling:
        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def write(self, data):
            self.file.write(data[: len(data) // 2])
            raise FULL

    real = Path.open

    def filling(path, *words):
        return Filling(real(path, *words))

    before = trace.path.read_bytes()
    trace.add(rounds=30)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", filling)
        with pytest.raises(OSError, match=r"No space left on device: .*trace\.csv"):
            trace.flush()
    assert trace.path.read_bytes() == before
    trace.add(rounds=40)
    trace.flush()
    assert rows(trace.path) == [10, 20, 30, 40]


# --- the log --------------------------------------------------------------------------------------


def test_a_log_that_cannot_be_written_is_told_of_once_and_ends_nothing(tmp_path, capsys):
    shown = logging.NullHandler()
    with logs.logging_to(tmp_path, 3, shown):
        (kept,) = (h for h in logs.log.handlers if isinstance(h, logs.KeptLines))

        class Full:
            def write(self, *_):
                raise FULL

            flush = close = write

        kept.stream.close()
        kept.stream = Full()
        for _ in range(3):
            logs.log.info("a line")
    said = capsys.readouterr().err
    assert said.count("cannot be written (No space left on device)") == 1
    assert str(tmp_path / "log.jsonl") in said
