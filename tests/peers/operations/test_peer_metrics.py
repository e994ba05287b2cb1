"""What a peer tells Prometheus, scraped as Prometheus would."""

import io
import json
import logging
import math
import re
import time
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")
pytest.importorskip(
    "prometheus_client", reason="peers need prometheus-client: pip install 'edgewise[peers]'"
)

from network_calls import call
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from edgewise.cli.app import app
from edgewise.cli.network_local import last_line
from edgewise.errors import InputError
from edgewise.peers.config.peer_config import read, save
from edgewise.peers.node.edge_watch import EdgeWatch
from edgewise.peers.node.peer import Peer
from edgewise.peers.node.result import PeerResult
from edgewise.peers.operations import expiry, health
from edgewise.peers.operations.metrics import Metrics
from edgewise.running.trace import Trace


def link(**said):
    usual = {"connected": True, "last_heard": time.monotonic(), "streams": 1, "protocol_errors": 0}
    return SimpleNamespace(**usual | {"bytes_sent": 0, "bytes_heard": 0, "stale_rounds": 0} | said)


def peer(metrics="127.0.0.1:0", certificate=Path("none.pem"), **attributes):
    config = SimpleNamespace(
        id=3, metrics=metrics, path=Path("peer3.toml"), certificate=certificate
    )
    return SimpleNamespace(config=config, **attributes)


def running(**said):
    links = {
        1: link(bytes_sent=1200, bytes_heard=900, streams=4, last_heard=time.monotonic() - 30),
        7: link(connected=False, streams=0, protocol_errors=2, stale_rounds=12),
    }
    connections = SimpleNamespace(refused=5, failed_handshakes=6)
    usual = {"round": 40, "residual": 1e-3, "connections": connections, "links": links}
    usual |= {"pulls": {1: 0.25}, "edge_watch": SimpleNamespace(moved={1: 1e-4})}
    return peer(**usual | {"alarms": {"fit": "far worse"}} | said)


@pytest.fixture
def scrape():
    opened = []

    def look(peer):
        metrics = Metrics(peer)
        port = metrics.open()
        opened.append(metrics)
        return lambda: samples(port)

    yield look
    for metrics in opened:
        metrics.close()


def samples(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    return {
        (sample.name, sample.labels.get("neighbour")): sample
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_every_number_is_told_as_it_is(scrape):
    told = scrape(running())()
    assert {sample.labels["peer"] for sample in told.values()} == {"3"}
    values = {key: sample.value for key, sample in told.items()}
    silent = {j: values.pop(("edgewise_neighbour_silent_seconds", j)) for j in ("1", "7")}
    assert silent["1"] == pytest.approx(30, abs=5)
    assert silent["7"] == pytest.approx(0, abs=5)
    assert values == {
        ("edgewise_rounds_total", None): 40,
        ("edgewise_residual", None): 1e-3,
        ("edgewise_alarms", None): 1,
        ("edgewise_refused_total", None): 5,
        ("edgewise_failed_handshakes_total", None): 6,
        ("edgewise_neighbour_stale_rounds", "1"): 0,
        ("edgewise_neighbour_stale_rounds", "7"): 12,
        ("edgewise_neighbour_pull", "1"): 0.25,
        ("edgewise_neighbour_pull_moved", "1"): 1e-4,
        ("edgewise_neighbour_connected", "1"): 1,
        ("edgewise_neighbour_connected", "7"): 0,
        ("edgewise_neighbour_sent_bytes_total", "1"): 1200,
        ("edgewise_neighbour_sent_bytes_total", "7"): 0,
        ("edgewise_neighbour_heard_bytes_total", "1"): 900,
        ("edgewise_neighbour_heard_bytes_total", "7"): 0,
        ("edgewise_neighbour_reconnects_total", "1"): 3,
        ("edgewise_neighbour_reconnects_total", "7"): 0,
        ("edgewise_neighbour_protocol_errors_total", "1"): 0,
        ("edgewise_neighbour_protocol_errors_total", "7"): 2,
    }


def test_a_second_look_sees_what_has_changed(scrape):
    one = running(residual=math.inf)
    look = scrape(one)
    assert look()["edgewise_residual", None].value == math.inf
    one.round, one.residual, one.links[9] = 50, 1e-4, link(bytes_sent=8)
    told = look()
    assert told["edgewise_rounds_total", None].value == 50
    assert told["edgewise_residual", None].value == 1e-4
    assert told["edgewise_neighbour_sent_bytes_total", "9"].value == 8


def test_there_is_nothing_to_tell_before_the_fit_begins(scrape):
    assert scrape(peer())() == {}


def asked(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
            return answer.status, json.loads(answer.read())["reason"]
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.loads(refusal.read())["reason"]


def test_health_and_readiness_follow_the_peer():
    one = running(state="waiting", beat=time.monotonic())
    metrics = Metrics(one)
    port = metrics.open()
    try:
        assert asked(port, "/healthz") == (200, "alive")
        assert asked(port, "/readyz") == (503, "it is waiting")
        one.state = "running"
        assert asked(port, "/readyz") == (200, "takes part")
        one.links[1].connected = False
        assert asked(port, "/readyz") == (503, "no neighbour is connected")
        one.links.clear()
        assert asked(port, "/readyz") == (200, "takes part"), "the only peer there is"
        one.beat -= 90
        for path in ("/healthz", "/readyz"):
            code, why = asked(port, path)
            assert code == 503
            assert why.startswith("its event loop has not turned for 9")
    finally:
        metrics.close()


def test_it_is_alive_before_the_fit_begins_and_not_ready():
    assert health.alive(peer()) == (True, "alive")
    assert health.ready(peer()) == (False, "it is starting")


def test_when_the_certificate_ends_is_told_and_warned_of(scrape, tmp_path, caplog):
    call("init", "--nodes", 3, "--out", tmp_path / "mesh", "--days", 29)
    config = read(tmp_path / "mesh" / "peer1.toml")
    told = scrape(running(certificate=config.certificate))()
    left = told["edgewise_certificate_expiry_timestamp_seconds", None].value - time.time()
    assert left == pytest.approx(29 * 86400, abs=3600)
    reminder = expiry.Reminder()
    for _ in range(2):
        reminder.look(config)
    assert caplog.text.count("the certificate of peer 1 expires in 28 days") == 1, "once a day"
    call("renew", tmp_path / "mesh", "--days", 40)
    assert expiry.warning(config) == ""


def test_metrics_that_all_may_read_are_warned_of(caplog):
    metrics = Metrics(running(metrics="0.0.0.0:0"))
    metrics.open()
    metrics.close()
    assert "have no password" in caplog.text


def test_metrics_can_be_off_and_end():
    assert Metrics(peer(metrics=None)).open() is None
    metrics = Metrics(running())
    port = metrics.open()
    assert samples(port)
    metrics.close()
    metrics.close()
    with pytest.raises(urllib.error.URLError):
        samples(port)


def test_a_port_that_is_taken_is_named():
    first = Metrics(running())
    port = first.open()
    try:
        with pytest.raises(InputError, match=rf"peer3.toml: .*peer.metrics, 127.0.0.1:{port}"):
            Metrics(running(metrics=f"127.0.0.1:{port}")).open()
    finally:
        first.close()


# --- edgewise node --------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(logging.getLogger("edgewise.peers"), "handlers", [])
    call("init", "--nodes", 3)


def local(*words):
    return CliRunner().invoke(app, ["network", "local", "mesh", "--data", "wine", *words])


def node(*words):
    return CliRunner().invoke(app, ["node", "mesh/peer0.toml", "--shard", "none.npz", *words])


def test_a_node_tells_its_metrics_while_it_fits_and_no_longer(place, monkeypatch):
    ports = []

    def fit(self, shard, **more):
        log = Path("mesh/peer0/log.jsonl").read_text()
        ports.append(int(re.search(r"peer 0 tells its metrics at port (\d+)", log)[1]))
        self.round, self.residual, self.links, self.alarms = 7, 0.5, {1: link()}, {}
        self.connections = SimpleNamespace(refused=0, failed_handshakes=0)
        self.pulls, self.edge_watch = {}, EdgeWatch()
        assert samples(ports[0])["edgewise_rounds_total", None].value == 7
        return PeerResult(None, 7, 0.5, "finished", Trace({"rounds": []}))

    monkeypatch.setattr(Peer, "fit", fit)
    done = node()
    assert (done.exit_code, len(ports)) == (0, 1), done.output
    with pytest.raises(urllib.error.URLError):
        samples(ports[0])


@pytest.mark.parametrize(("level", "kept"), [("debug", 3), ("info", 2), ("error", 1)])
def test_a_node_logs_what_it_is_asked_to(place, monkeypatch, level, kept):
    def fit(self, shard, **more):
        for told in (logging.DEBUG, logging.INFO, logging.ERROR):
            log.log(told, "said at %d", told)
        return PeerResult(None, 7, 0.5, "finished after 7 rounds", Trace({"rounds": []}))

    log = logging.getLogger("edgewise.peers")
    monkeypatch.setattr(Peer, "fit", fit)
    config = read("mesh/peer0.toml")
    save(replace(config, metrics=None))
    assert node("--log-level", level).exit_code == 0
    lines = [json.loads(line) for line in Path("mesh/peer0/log.jsonl").read_text().splitlines()]
    assert len(lines) == kept


def test_a_fatal_error_is_in_the_log_too(place, monkeypatch):
    def fit(self, shard, **more):
        raise InputError("nothing fits")

    monkeypatch.setattr(Peer, "fit", fit)
    done = node()
    assert done.exit_code == 2
    assert done.stderr.count("nothing fits") == 1
    last = json.loads(Path("mesh/peer0/log.jsonl").read_text().splitlines()[-1])
    assert (last["level"], last["event"]) == ("ERROR", "ended: nothing fits")


@pytest.mark.parametrize("command", [node, local])
def test_a_level_that_there_is_not_is_refused(place, command):
    done = command("--log-level", "loud")
    assert done.exit_code == 2
    assert "--log-level is one of debug, info, warning, error, not loud" in done.stderr


def test_why_a_process_failed_is_its_last_line():
    assert last_line(io.BytesIO(b"WARNING: a\nerror: no data\n\n")) == "no data"
    assert last_line(io.BytesIO(b"")) == "it ended without a word"
