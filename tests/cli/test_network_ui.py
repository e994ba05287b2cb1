"""`edgewise network ui`: what the page is told, and who may ask for it."""

import http.client
import os
import re
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from end_with_parent import ending_with_us
from network_calls import call, refused
from pretended_peers import BAD, SCRIPT, metrics_of, peers_in, told, write_status

from edgewise.cli.dashboard import overview as looking
from edgewise.cli.dashboard.overview import Overview, Speeds
from edgewise.cli.dashboard.server import PageServer, page
from edgewise.cli.dashboard.sources import sources_of
from edgewise.errors import InputError

SAFE = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@pytest.fixture
def folder(tmp_path):
    call("init", "--nodes", 4, "--graph", "ring", "--tol", "1e-6", "--out", str(tmp_path / "mesh"))
    return tmp_path / "mesh"


# --- what it is told ------------------------------------------------------------------------------


def test_peers_on_this_machine_are_told_by_their_files(folder):
    one, two, three, _ = peers_in(folder)
    write_status(one, alarms=["far worse"], refused=3, handshakes=2)
    gone = {n: {"connected": n != "2", "streams": 1} for n in ("0", "2")}
    write_status(two, neighbours=gone)
    write_status(three, pid=2**22 - 1)  # nobody's
    state = told(folder)
    assert state["meshes"] == [one.mesh]
    peers = {peer["id"]: peer for peer in state["peers"]}
    assert [peers[k]["state"] for k in "0123"] == ["running", "running", "died", "not started"]
    assert peers["0"]["alarms"] == ["far worse"]
    assert (peers["0"]["refused"], peers["0"]["failed_handshakes"]) == (3, 2)
    assert peers["0"]["residual"] == 1e-3
    assert peers["0"]["goal"] == pytest.approx(1e-6 / 2)
    assert peers["0"]["curve"][0] == [10, 1.0]
    assert peers["0"]["certificate_days"] == pytest.approx(365, abs=0.1)
    edges = {tuple(edge["ends"]): edge["connected"] for edge in state["edges"]}
    assert edges == {("0", "1"): True, ("0", "3"): None, ("1", "2"): False, ("2", "3"): None}
    assert set(state["places"]) == set("0123")


def test_a_peer_elsewhere_is_told_by_its_metrics_as_text(tmp_path):
    text = (
        "# TYPE edgewise_rounds counter\n"
        f'edgewise_rounds_total{{peer="{BAD}"}} 70\n'
        f'edgewise_residual{{peer="{BAD}"}} +Inf\n'
        f'edgewise_alarms{{peer="{BAD}"}} 2\n'
        f'edgewise_neighbour_connected{{peer="x",neighbour="{SCRIPT}"}} 1\n'
        f'edgewise_neighbour_sent_bytes_total{{peer="x",neighbour="{SCRIPT}"}} 1200\n'
        f'edgewise_neighbour_connected{{peer="x",neighbour="{"long" * 1000}"}} 0\n'
    )
    with metrics_of(text) as at:
        state = told(at)
    (peer,) = state["peers"]
    assert (peer["id"], peer["state"], peer["round"]) == (BAD, "running", 70)
    assert peer["residual"] is None
    assert peer["alarms"] == ["2 alarms, which its own log names"]
    assert peer["neighbours"][0]["sent"] == peer["bytes_sent"] == 1200
    assert max(len(link["id"]) for link in peer["neighbours"]) == 300
    with metrics_of(text, reason=f"it is {BAD}") as at:
        assert told(at)["peers"][0]["state"] == BAD


def test_what_does_not_answer_or_is_no_metrics_is_said(folder):
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        closed = nobody.getsockname()[1]
    many = "".join(f'edgewise_neighbour_connected{{neighbour="{k}"}} 1\n' for k in range(5000))
    with metrics_of("no { metrics") as at, metrics_of(many) as crowded:
        state = told(f"http://127.0.0.1:{closed}", at)
        assert len(told(crowded)["peers"][0]["neighbours"]) == 200
    assert [peer["state"] for peer in state["peers"]] == ["no answer", "no answer"]
    assert state["peers"][0]["said"] == "Connection refused"
    (one, *_) = peers_in(folder)
    one.out.mkdir()
    (one.out / "status.json").write_text("{")
    assert told(folder)["peers"][0]["state"] == "unreadable"
    write_status(one, neighbours=[1, 2])
    assert told(folder)["peers"][0]["state"] == "unreadable"
    for wrong in ("file://etc/passwd", "http://"):
        with pytest.raises(InputError, match="no address of metrics"):
            sources_of([wrong])


def test_speeds_are_those_of_the_last_seconds_and_begin_anew():
    speeds = Speeds()
    for at in range(20):
        speeds.add(float(at), 10.0 * at, 1000.0 * at)
    assert speeds.told[-1] == (19, 10, 1000)
    speeds.add(20.0, 5.0, 10.0)  # started anew
    speeds.add(21.0, 25.0, 30.0)
    assert speeds.told[-1] == (21, 20, 20)


def test_parts_that_do_not_hang_together_are_all_spread_out():
    at = looking.spread_out([(0, 1), (1, 2), (2, 0), (3, 4)], 6)
    apart = [abs(at[i] - at[j]).max() for i in range(6) for j in range(i)]
    assert min(apart) > 0.1
    assert (at.min(), at.max()) == (0, 1)


# --- who may ask ----------------------------------------------------------------------------------


@contextmanager
def served(folder):
    with Overview(sources_of([str(folder)])) as overview, PageServer(0, overview) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield server
        server.shutdown()


def asked(server, path="/", method="GET", **headers):
    line = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    try:
        line.request(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})
        answer = line.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        line.close()


def test_answers_are_for_this_machine_alone_and_for_no_other_page(folder):
    with served(folder) as server:
        assert server.server_address[0] == "127.0.0.1"
        for path in ("/", "/state.json"):
            status, headers, text = asked(server, path)
            assert status == 200
            assert text
            assert SAFE.items() <= headers.items()
            assert not [name for name in headers if name.startswith("Access-Control")]
            for host in ("127.0.0.1:9", "localhost", f"[::1]:{server.server_port}"):
                assert asked(server, path, Host=host)[0] == 200
            for host in ("evil.example", "127.0.0.1.evil.example", "evil.example:80@127.0.0.1", ""):
                refusal = asked(server, path, Host=host)
                assert refusal[0] == 421
                assert b"peer" not in refusal[2]
            for site in ("cross-site", "same-site"):
                assert asked(server, path, Sec_Fetch_Site=site)[0] == 403
            assert asked(server, path, Sec_Fetch_Site="same-origin")[0] == 200
            assert asked(server, path, method="HEAD")[2] == b""
            for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
                status, headers, _ = asked(
                    server, path, method=method, Origin="http://evil.example"
                )
                assert status == 405
                assert not [name for name in headers if name.startswith("Access-Control")]
        for path in ("/../pyproject.toml", "/page.js", "//evil.example/"):
            assert asked(server, path)[0] == 404


def test_the_page_runs_its_own_script_alone_and_makes_no_markup():
    text, policy = page()
    assert "default-src 'none'" in policy
    assert "'unsafe" not in policy
    assert "connect-src 'self'" in policy
    script = re.search(r"<script>(.*)</script>", text.decode(), re.DOTALL)[1]
    for sink in (
        "innerHTML",
        "outerHTML",
        "insertAdjacent",
        "document.write",
        "eval(",
        "Function(",
    ):
        assert sink not in script
    fetched = re.findall(r"(?:https?:)?//[\w.]+", text.decode())
    assert set(fetched) <= {"http://www.w3.org"}  # the name of SVG


def test_a_port_that_is_taken_is_named_and_the_command_ends_in_order(folder):
    with served(folder) as server:
        assert f"port {server.server_port}" in refused("ui", folder, "--port", server.server_port)
    assert "--port is 70000" in refused("ui", folder, "--port", 70000)
    assert "there is no folder mesh here" in refused("ui")
    command = [sys.executable, "-m", "edgewise", "network", "ui", str(folder), "--port", "0"]
    page = subprocess.Popen(
        ending_with_us(*command), stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    line = page.stdout.readline()
    assert re.match(r"4 peers at http://127\.0\.0\.1:\d+/, on this machine alone", line)
    time.sleep(0.2)
    page.send_signal(2)
    assert page.wait(60) in (0, 130)
