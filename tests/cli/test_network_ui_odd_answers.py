"""`edgewise network ui`: no answer of a peer, whatever it is, takes the page from the others."""

import json
import socket
import threading
import time
from contextlib import contextmanager

import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from network_calls import call
from pretended_peers import metrics_of, peers_in, told, write_status

from edgewise.cli.dashboard import overview as looking
from edgewise.cli.dashboard import timely_fetch
from edgewise.cli.dashboard.overview import Overview, Speeds
from edgewise.cli.dashboard.sources import number, sources_of


@pytest.fixture
def folder(tmp_path):
    call("init", "--nodes", 3, "--out", str(tmp_path / "mesh"))
    return tmp_path / "mesh"


@contextmanager
def answering(pieces, pause=0.0):
    """To whoever connects first: these bytes, one after the other."""
    over = threading.Event()

    def answer(end):
        with end:
            end.recv(1000)
            try:
                for piece in pieces:
                    end.sendall(piece)
                    if over.wait(pause):
                        return
            except OSError:
                return

    def serve(server):
        while not over.is_set():
            try:
                end, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(end,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        over.set()


def test_numbers_that_no_float_holds_are_none():
    for odd in (10**400, 1e999, float("nan"), True, "1", [1]):
        assert number(odd) is None
    speeds = Speeds()
    speeds.add(0.0, -1.7e308, 0.0)
    speeds.add(1.0, 1.7e308, 0.0)
    assert not speeds.told


def test_huge_numbers_are_shown_or_left_out(folder):
    sent = "".join(
        f'edgewise_neighbour_sent_bytes_total{{peer="7",neighbour="{k}"}} 1.7e308\n' for k in "12"
    )
    with metrics_of(sent + 'edgewise_alarms{peer="7"} 1.7e308\n') as at:
        (peer,) = told(at)["peers"]
    assert (peer["id"], peer["state"], peer["bytes_sent"]) == ("7", "running", None)
    assert peer["alarms"][0].startswith("1.7e+308 alarms")
    one, two, _ = peers_in(folder)
    write_status(one, neighbours={"1": {"connected": True, "streams": float("inf")}})
    write_status(two, rounds=10**400)
    one_told, two_told, _ = told(folder)["peers"]
    assert (one_told["neighbours"][0]["reconnects"], one_told["round"]) == (0, 400)
    assert two_told["state"] == "unreadable"
    write_status(one, time=1e308)
    assert told(folder)["peers"][0]["time"] == 1e308


def test_one_that_raises_leaves_the_others_on_the_page(folder):
    good, *_ = peers_in(folder)
    write_status(good)
    (bad, fine, *_) = sources = sources_of([str(folder)])
    bad.look = lambda now: 1 / 0
    overview = Overview([fine, bad])
    overview.refresh()
    overview.pool.shutdown()
    peers = json.loads(overview.text)["peers"]
    assert [peer["state"] for peer in peers] == ["not started", "unreadable"]
    assert "division" in peers[1]["said"]
    assert len(sources) == 3


def test_an_answer_that_nests_without_end_is_no_answer():
    deep = b"HTTP/1.0 200 OK\r\n\r\n" + b"[" * 200_000
    with answering([deep]) as at:
        (peer,) = told(at)["peers"]
    assert peer["state"] == "no answer"


@pytest.mark.parametrize("before", [b"", b"HTTP/1.0 200 OK\r\n\r\n"], ids=["headers", "body"])
def test_who_answers_byte_by_byte_is_not_waited_for(monkeypatch, before):
    """200 bytes, each within the time-out of a socket, which is 0.4 s: 20 s in all."""
    monkeypatch.setattr(timely_fetch, "PATIENCE", 0.4)
    sent = []

    def drops():
        yield before or b"H"
        for _ in range(200):
            sent.append(1)
            yield b"x"

    with answering(drops(), pause=0.1) as at:
        (peer,) = told(at)["peers"]
    assert peer["state"] == "no answer"
    assert len(sent) < 200


def test_the_thread_goes_on_after_a_failure_and_the_end_waits_for_nobody(folder, monkeypatch):
    monkeypatch.setattr(looking, "EVERY", 0.01)
    held, times = threading.Event(), []
    overview = Overview(sources_of([str(folder)]))

    def fails(now):
        times.append(now)
        if len(times) in (2, 3):
            raise RuntimeError("odd")
        if len(times) == 4:
            held.wait(60)
        return {}

    monkeypatch.setattr(overview, "as_told", fails)
    with overview:
        while len(times) < 4:
            time.sleep(0.01)
    assert not held.is_set()  # the thread still waits
    assert overview.thread.is_alive()
    held.set()
