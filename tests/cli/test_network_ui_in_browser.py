"""The page as somebody sees it: live, dark and light, on a laptop and on a phone; and what peers
say stays text there."""

import threading
import time

import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from browser import browser, complaints, resize
from network_calls import call
from pretended_peers import BAD, SCRIPT, metrics_of, peers_in, write_status

from edgewise.cli.dashboard.overview import Overview
from edgewise.cli.dashboard.server import PageServer
from edgewise.cli.dashboard.sources import sources_of

METRICS = f"""edgewise_rounds_total{{peer="{BAD}"}} 7
edgewise_residual{{peer="{BAD}"}} 0.5
edgewise_neighbour_connected{{peer="{BAD}",neighbour="{SCRIPT}"}} 1
"""
WIDTHS = "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
TEXTS = "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)"
PAPER = "return getComputedStyle(document.querySelector('.panel')).backgroundColor"


def test_the_page_is_live_in_both_themes_and_takes_nothing_for_markup(tmp_path):
    call("init", "--nodes", 4, "--graph", "ring", "--tol", "1e-6", "--out", tmp_path / "mesh")
    peers = peers_in(tmp_path / "mesh")
    for config in peers[:3]:
        write_status(config, alarms=[BAD] if config.id == 1 else [])
    with metrics_of(METRICS, reason=f"it is {BAD}") as at:
        sources = sources_of([str(tmp_path / "mesh"), at])
        with Overview(sources) as overview, PageServer(0, overview) as server:
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
            with browser(tmp_path / "profile") as window:
                looked_at(window, server.url, peers)
            server.shutdown()


def looked_at(window, url, peers):
    def texts(what):
        return window.execute_script(TEXTS, what)

    def until(holds, what):
        end = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < end, what
            time.sleep(0.1)

    papers = []
    for theme in ("light", "dark"):
        wanted = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        window.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
        for size in ((1300, 1000), (400, 800)):
            resize(window, *size)
            window.get(url)
            until(lambda: len(texts("#peers tbody tr")) == 5, "a row for each peer")
            wide, seen = window.execute_script(WIDTHS)
            assert wide <= seen
        papers.append(window.execute_script(PAPER))
    assert papers[0] != papers[1]
    window.execute_script("document.getElementById('theme').click()")  # light, whatever it was
    assert window.execute_script(PAPER) == papers[0]

    assert len(texts("#graph circle")) == 6  # and whom nobody watches
    assert sum("not connected" in text for text in texts("#graph line title")) == 1
    assert len(texts("#residuals polyline")) == 4
    assert texts("#live-text") == ["live"]
    assert f"Peer 1: {BAD}" in texts("#notices li")
    assert f"{BAD}" in texts("#peers button")
    window.execute_script("[...document.querySelectorAll('#peers button')].at(-1).click()")
    assert SCRIPT in texts("#links td")
    assert window.execute_script("return window.entered") is None
    assert not texts("img")

    write_status(peers[0], rounds=123_456)
    until(lambda: "123,456" in texts("#peers td"), "a round that was told later")
    assert complaints(window) == []
