"""What a peer's command logs: once, in order, and no more than anybody can read."""

import json
import logging
import warnings
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from edgewise.peers.operations.logs import FILE, JsonLines, LastLines, RateLimit, logging_to

log = logging.getLogger("edgewise.peers")


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass only when a test says so."""
    now = [1000.0]
    monkeypatch.setattr("edgewise.peers.operations.logs.time.monotonic", lambda: now[0])

    def pass_seconds(seconds):
        now[0] += seconds

    return pass_seconds


@pytest.fixture
def logged(tmp_path):
    """A log that is kept, what is shown of it, and its file's lines."""
    shown = LastLines(100)

    def lines():
        return [json.loads(line) for line in (tmp_path / FILE).read_text().splitlines()]

    with logging_to(tmp_path, 3, shown):
        yield shown.lines, lines


@pytest.fixture
def of_the_package():
    handler = LastLines(100)
    logging.getLogger("edgewise").addHandler(handler)
    yield handler
    logging.getLogger("edgewise").removeHandler(handler)


def test_a_line_is_an_object_with_whatever_else_is_known(logged):
    _, lines = logged
    before = datetime.now(UTC)
    log.info("peer %d is connected", 5, extra={"neighbour": 5, "streams": 2})
    (line,) = lines()
    at = datetime.fromisoformat(line.pop("time"))
    assert abs((at - before).total_seconds()) < 60
    assert at.utcoffset().total_seconds() == 0
    assert line == {
        "level": "INFO",
        "peer": 3,
        "event": "peer 5 is connected",
        "neighbour": 5,
        "streams": 2,
    }


def test_what_json_cannot_hold_becomes_what_it_can(logged):
    _, lines = logged
    log.info("looked", extra={"residual": float("inf"), "file": logging})
    assert lines()[0]["residual"] is None
    assert "module 'logging'" in lines()[0]["file"]


def test_a_traceback_stays_in_its_line(logged):
    _, lines = logged
    try:
        raise ValueError("no\nway")
    except ValueError:
        log.exception("failed")
    (line,) = lines()
    assert line["event"] == "failed"
    assert "ValueError: no\nway" in line["traceback"]


def test_people_see_lines_and_no_json(logged):
    shown, _ = logged
    log.info("peer %d is away", 5, extra={"neighbour": 5})
    assert len(shown) == 1
    assert shown[0].endswith(" INFO peer 5 is away")


def test_a_warning_comes_once(logged, of_the_package):
    """Also Python's own; and the handler of the whole package does not repeat it."""
    shown, lines = logged
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("peer 3 has 1 neighbour, 100% of them", UserWarning, stacklevel=1)
    log.warning("refused")
    assert [line["event"] for line in lines()] == [
        "peer 3 has 1 neighbour, 100% of them",
        "refused",
    ]
    assert len(shown) == 2
    assert list(of_the_package.lines) == []


def test_nothing_is_left_behind(tmp_path):
    before = (log.level, log.propagate, list(log.handlers), list(log.filters))
    show = warnings.showwarning
    with suppress(ZeroDivisionError), logging_to(tmp_path, 3, LastLines(1)):
        assert len(log.handlers) == len(before[2]) + 2
        raise ZeroDivisionError("all is over")
    assert (log.level, log.propagate, log.handlers, log.filters) == before
    assert warnings.showwarning is show
    log.warning("afterwards")
    (line,) = (tmp_path / FILE).read_text().splitlines()
    assert json.loads(line)["event"] == "ended: all is over"  # and nothing from afterwards


def test_a_peer_that_is_started_again_adds_to_its_log(tmp_path):
    for _ in range(2):
        with logging_to(tmp_path, 3, LastLines(1)):
            log.info("begins")
    assert len((tmp_path / FILE).read_text().splitlines()) == 2


# --- no more than anybody can read ----------------------------------------------------------------


def test_the_same_kind_of_warning_comes_once_in_a_while(logged, clock):
    shown, lines = logged
    for k in range(38):
        log.warning("cut off: %s", f"round {k}", extra={"neighbour": 1})
    assert [line["event"] for line in lines()] == ["cut off: round 0"]
    clock(10.5)
    log.warning("cut off: %s", "round 38", extra={"neighbour": 1})
    last = lines()[-1]
    assert last["event"] == "cut off: round 38 (and 37 more)"
    assert last["more"] == 37
    assert len(shown) == len(lines()) == 2
    clock(10.5)
    log.warning("cut off: %s", "round 39", extra={"neighbour": 1})
    assert lines()[-1]["event"] == "cut off: round 39"


def test_another_neighbour_or_another_kind_is_not_held_back(logged, clock):
    _, lines = logged
    for neighbour in (1, 2, 1, 2):
        log.warning("cut off", extra={"neighbour": neighbour})
        log.error("refused", extra={"neighbour": neighbour})
    assert len(lines()) == 4


def test_news_is_held_back_only_if_a_neighbour_decides_how_much_there_is(logged, clock):
    _, lines = logged
    for _ in range(5):
        log.info("waiting for peers")
        log.info("peer %d is connected", 1, extra={"neighbour": 1})
    assert [line["event"] for line in lines()].count("waiting for peers") == 5
    assert len(lines()) == 6


def test_what_was_held_back_is_told_in_the_end(tmp_path, clock):
    shown = LastLines(100)
    with logging_to(tmp_path, 3, shown):
        for k in range(4):
            log.warning("refused: %d", k)
        log.warning("other")
    events = [json.loads(line)["event"] for line in (tmp_path / FILE).read_text().splitlines()]
    assert events == ["refused: 0", "other", "refused: 3 (and 2 more)"]
    assert len(shown.lines) == 3


def test_a_filter_of_its_own_keeps_to_its_time(clock):
    sparing = RateLimit(quiet=1.0)

    def passes():
        return sparing.filter(logging.makeLogRecord({"msg": "x", "levelno": logging.WARNING}))

    assert [passes(), passes()] == [True, False]
    clock(1.5)
    assert passes()
    assert sparing.left() == []


def test_no_field_of_a_record_is_taken_for_an_extra():
    record = logging.getLogger("x").makeRecord("x", 20, "f", 1, "said %d", (1,), None)
    logging.Formatter("%(asctime)s %(message)s").format(record)  # as another handler may have done
    assert set(json.loads(JsonLines(0).format(record))) == {"time", "level", "peer", "event"}
