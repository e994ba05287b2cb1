"""What a peer tells Prometheus, scraped as Prometheus would."""

import math
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip(
    "prometheus_client", reason="metrics need prometheus-client: pip install 'edgewise[peers]'"
)

from prometheus_client.parser import text_string_to_metric_families

from edgewise.errors import InputError
from edgewise.peers.metrics import Metrics


def link(**said):
    usual = {"connected": True, "heard_at": time.monotonic(), "streams": 1, "garbage": 0}
    return SimpleNamespace(**usual | {"bytes_sent": 0, "bytes_heard": 0} | said)


def peer(metrics="127.0.0.1:0", **attributes):
    config = SimpleNamespace(id=3, metrics=metrics, path=Path("peer3.toml"))
    return SimpleNamespace(config=config, **attributes)


def running(**said):
    links = {
        1: link(bytes_sent=1200, bytes_heard=900, streams=4, heard_at=time.monotonic() - 30),
        7: link(connected=False, streams=0, garbage=2),
    }
    board = SimpleNamespace(refused=5)
    return peer(**{"round": 40, "residual": 1e-3, "board": board, "links": links} | said)


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
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
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
        ("edgewise_refused_total", None): 5,
        ("edgewise_neighbour_connected", "1"): 1,
        ("edgewise_neighbour_connected", "7"): 0,
        ("edgewise_neighbour_sent_bytes_total", "1"): 1200,
        ("edgewise_neighbour_sent_bytes_total", "7"): 0,
        ("edgewise_neighbour_heard_bytes_total", "1"): 900,
        ("edgewise_neighbour_heard_bytes_total", "7"): 0,
        ("edgewise_neighbour_reconnects_total", "1"): 3,
        ("edgewise_neighbour_reconnects_total", "7"): 0,
        ("edgewise_neighbour_garbage_total", "1"): 0,
        ("edgewise_neighbour_garbage_total", "7"): 2,
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
