"""`--watch`: what is shown comes from a peer's files."""

import io
import json
import logging
import os
import re
import subprocess
import sys
import time

import pytest
from rich.console import Console
from typer.testing import CliRunner

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from network_calls import call
from trace_rows import write_trace

from edgewise.cli import watch
from edgewise.cli.app import app
from edgewise.cli.peer_view import BLOCKS, PeerView
from edgewise.peers.config.peer_config import read
from edgewise.peers.node.peer import Peer
from edgewise.peers.node.result import PeerResult

START = time.time() + 3600  # nobody is stuck, however long the tests take
NEIGHBOUR = {
    "connected": True,
    "silent_seconds": 0.25,
    "streams": 3,
    "protocol_errors": 4,
    "bytes_sent": 2_000_000,
    "bytes_heard": 1_000_000,
    "behind": 17,
    "part": True,
}


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    call("init", "--nodes", 3, "--rounds", 5000, "--tol", "3e-6")
    found = read("mesh/peer0.toml")
    found.out.mkdir()
    return found


@pytest.fixture
def screen(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(watch, "Console", lambda: Console(file=shown, force_terminal=True))
    return shown


def write_status(config, **changes):
    said = {
        "peer": config.id,
        "state": "running",
        "pid": os.getpid(),
        "time": START,
        "refused": 5,
        "handshakes": 6,
        "rounds": 1240,
        "oracle_calls": 9920.0,
        "seconds": 12.5,
        "residual": 3.21e-5,
        "objective": 0.125,
        "bytes_sent": 4_000_000.0,
        "neighbours": {"1": NEIGHBOUR, "2": NEIGHBOUR | {"connected": False}},
    }
    part = config.out / "status.part"
    part.write_text(json.dumps(said | changes))
    part.replace(config.out / "status.json")  # as peers do, so that there is never half of it


def drawn(renderable):
    console = Console(file=io.StringIO(), width=120, color_system=None)
    console.print(renderable)
    return console.file.getvalue()


def node(*words, code=0):
    done = CliRunner().invoke(app, ["node", "mesh/peer0.toml", *words])
    assert done.exit_code == code, (done.output, done.exception)
    return done


# --- what is seen ---------------------------------------------------------------------------------


def test_a_residual_is_seen_with_whom_it_does_not_speak_of(config):
    write_status(config, away={"2": 90})
    view, without = PeerView(config), "3.21e-05 (without 2 since round 90)"
    assert without in drawn(watch.view(view))
    assert without in watch.line(view)
    assert watch.summary([view.status]).endswith("residuals up to 3.21e-05, without 2")


def test_the_view_shows_what_the_files_say(config):
    write_status(config)
    write_trace(config.out / "trace.csv", [10.0**-k for k in range(8)])
    text = drawn(watch.view(PeerView(config), ["one", "two"]))
    assert f"peer 0 of {config.mesh}" in text
    assert re.search(r"state +running", text)
    assert re.search(r"round +1,240 of 5,000", text)
    assert re.search(r"seconds +12\.5", text)
    assert "3.21e-05   stops at 1.73e-06 (tol 3e-06 for all)" in text
    assert re.search("".join(f"{block}+" for block in reversed(BLOCKS)), text)
    assert re.search(r"objective +0\.125", text)
    assert re.search(r"oracle calls +9,920", text)
    assert re.search(r"sent +4\.0 MB", text)
    assert "5 strangers, 6 failed TLS handshakes" in text
    assert re.search(r"1 +connected +17 +0\.2 s +2\.0 MB +1\.0 MB +2 +4", text)
    assert re.search(r"2 +away", text)
    assert re.search(r"one.*\n.*two", text)


def test_what_is_missing_does_not_break_the_view(config):
    (config.out / "status.json").write_text('{"state": "waiting", "neighbours": {"1": {}}}')
    peer = PeerView(config)
    assert re.search(r"state +waiting", drawn(watch.view(peer)))
    assert watch.line(peer).startswith("peer 0: waiting, round 0 of 5,000")
    (config.out / "status.json").write_text("{}")
    peer.refresh()
    assert "unknown" in drawn(watch.view(peer))


def test_a_neighbour_that_takes_no_part(config):
    write_status(config, neighbours={"1": NEIGHBOUR | {"part": False}})
    assert "connected, takes no part" in drawn(watch.view(PeerView(config)))


def test_speeds_are_those_of_the_last_seconds(config):
    write_status(config, time=START, rounds=100, bytes_sent=0)
    peer = PeerView(config)
    assert peer.per_second("rounds") == 100 / 12.5
    for later in range(1, 31):
        pace = 10 if later <= 15 else 50
        rounds = peer.status["rounds"] + pace
        write_status(config, time=START + later, rounds=rounds, bytes_sent=1000 * later)
        peer.refresh()
        peer.refresh()  # nothing new
    assert peer.per_second("rounds") == 50
    assert peer.per_second("bytes_sent") == 1000
    write_status(config, time=1040.0, rounds=5)  # from a checkpoint, or anew
    peer.refresh()
    assert peer.per_second("rounds") == 5 / 12.5
    write_status(config, time=1041.0, rounds=2500, state="finished")
    peer.refresh()
    assert peer.per_second("rounds") == 200


def test_a_former_run_is_not_taken_for_this_one(config):
    write_status(config, pid=1, state="finished")
    write_trace(config.out / "trace.csv", [1.0, 0.5])
    peer = PeerView(config, os.getpid())
    assert (peer.status, peer.trace.points) == ({"peer": 0, "state": "starting"}, [])
    write_status(config)
    peer.refresh()
    assert (peer.status["rounds"], len(peer.trace.points)) == (1240, 2)
    (config.out / "status.json").write_text("damaged")
    assert PeerView(config, os.getpid()).status["state"] == "starting"


@pytest.mark.parametrize("state", ["waiting", "running", "lingering"])
def test_one_that_is_under_way_without_a_process_has_died(config, state):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    write_status(config, pid=gone.pid, state=state)
    peer = PeerView(config)
    assert (peer.status["state"], peer.under_way) == ("died", False)


# --- the commands ---------------------------------------------------------------------------------


def test_watching_ends_with_the_peer(config, monkeypatch):
    monkeypatch.setattr(watch, "NOW_AND_THEN", 0.01)
    monkeypatch.setattr(watch, "MOMENT", 0.02)
    write_status(config)
    news = iter(
        [
            {"rounds": 2000, "time": START + 1000},
            {"rounds": 3000, "time": START + 2000},
            {"rounds": 4000, "state": "finished"},
        ]
    )
    sleep = time.sleep

    def meanwhile(seconds):  # between two looks, however long they take
        write_status(config, **next(news))
        sleep(seconds)

    monkeypatch.setattr("edgewise.cli.watch.time.sleep", meanwhile)
    said = node("--watch").stdout.splitlines()
    rounds = [int(re.search(r"round ([\d,]+) of", line)[1].replace(",", "")) for line in said]
    assert rounds == [1240, 2000, 3000, 4000]
    assert "running" in said[0]
    assert "1 of 2 neighbours there, 4.0 MB sent" in said[0]
    assert "finished" in said[-1]


def test_on_a_terminal_there_is_a_view(config, screen):
    write_status(config, state="finished")
    node("--watch")
    assert "─ peer 0 of" in screen.getvalue()
    assert screen.getvalue().endswith("\x1b[?25h")  # the cursor is back


def test_interrupting_the_view_leaves_the_peer_alone(config, monkeypatch):
    write_status(config)

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("edgewise.cli.watch.time.sleep", interrupted)
    assert "peer 0 goes on" in node("--watch").stdout


def test_a_peer_is_watched_while_it_runs(config, screen, monkeypatch):
    """With its log in the view, where its lines cannot be; in its file as always."""
    monkeypatch.setattr(watch, "MOMENT", 0.02)

    def fit(self, shard, **more):
        logging.getLogger("edgewise.peers").info("peer 1 is connected")
        write_status(self.config)
        until = time.monotonic() + 60
        while "1,240 of 5,000" not in screen.getvalue() and time.monotonic() < until:
            time.sleep(0.02)
        write_status(self.config, state="finished", rounds=1250)
        return PeerResult(None, 1250, 0.5, "finished after 1250 rounds", [])

    monkeypatch.setattr(Peer, "fit", fit)
    done = node("--shard", "none.npz", "--watch")
    assert "peer 0: finished after 1250 rounds" in done.stdout
    assert "1,250 of 5,000" in screen.getvalue()
    assert "INFO peer 1 is connected" in screen.getvalue()
    assert "peer 1 is connected" not in done.stderr
    assert "peer 1 is connected" in (config.out / "log.jsonl").read_text()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--watch", "--json"], "--watch is a view for people"),
        (["--watch", "--status"], "give one of the two"),
        (["--watch"], "peer 0 has not been started"),
        ([], "no data: give --shard FILE"),
    ],
)
def test_what_cannot_be_watched(config, words, why):
    assert why in node(*words, code=2).stderr


def test_all_peers_of_a_mesh(config):
    write_status(config, state="finished")
    said = call("status", "mesh", "--watch").stdout
    assert said == "1 finished, 2 not started: rounds 0 to 1,240, residuals up to 3.21e-05\n"


def test_alarms_are_shown_wherever_a_peer_is(config):
    write_status(config, alarms=["the edge to peer 1 pulls harder"], state="finished", ending=None)
    assert "peer 0: ALARM: the edge to peer 1 pulls harder" in node("--status").stdout
    assert "ALARM" in watch.summary([PeerView(config).status])
    assert "the edge to peer 1 pulls harder" in drawn(watch.view(PeerView(config)))


# --- --status for scripts -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "state", "code"),
    [
        ({}, "running", 0),
        ({"pid": 2**22 + 1}, "died", 4),  # no such process: above the largest number of one
        ({"time": time.time() - 100}, "stuck", 4),
        ({"state": "finished", "ending": {"exit_code": 3, "met": False, "tol": None}}, "", 3),
        ({"state": "finished", "pid": 2**22 + 1}, "finished", 0),
    ],
)
def test_the_exit_code_tells_a_dead_peer_from_a_live_one(config, said, state, code):
    write_status(config, **{"pid": os.getpid(), "time": time.time()} | said)
    assert state in node("--status", code=code).stdout
    assert state in call("status", "mesh", code=code).stdout
