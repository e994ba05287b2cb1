"""`edgewise network relay`, and a network that is set up with one."""

import asyncio
import json
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from end_with_parent import ending_with_us
from network_calls import call, refused
from paths import ROOT
from peer_ends import opened, until
from peer_process import ENVIRONMENT, free_ports

from edgewise.errors import InputError
from edgewise.peers.config.peer_config import read, save
from edgewise.peers.operations import mesh
from edgewise.peers.relay import server
from edgewise.peers.relay.limits import Limits
from edgewise.peers.transport import relay_words
from edgewise.peers.transport.callers import MOST_UNKNOWN

pytestmark = pytest.mark.filterwarnings("ignore:.*has one neighbour")


def test_a_network_with_a_relay_is_set_up_grows_and_runs_by_it(tmp_path):
    at = f"127.0.0.1:{free_ports(1)[0]}"
    folder = tmp_path / "mesh"
    done = call("init", "--nodes", "2", "--relay", at, "--out", str(folder))
    assert "edgewise network relay FOLDER" in done.output
    call("add", str(folder), "--neighbours", "0,1")
    configs = mesh.read_mesh(folder).peers
    assert {n.relay for config in configs.values() for n in config.neighbours} == {at}
    assert "relay = false" not in configs[0].path.read_text()
    command = ["-m", "edgewise", "network", "relay", str(folder), "--listen", at]
    relay = subprocess.Popen(
        ending_with_us(sys.executable, *command), env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
    )

    async def meet():
        async with opened(configs[0], configs[2]) as ends:
            await until(lambda: ends[0].links[2].connected and ends[1].links[0].connected)

    try:
        asyncio.run(meet())
    finally:
        relay.send_signal(signal.SIGTERM)
        said = relay.communicate()[1]
    assert relay.returncode == 0, said
    assert "peer 0 at 127.0.0.1" in said
    lines = [json.loads(line) for line in (folder / "relay/log.jsonl").read_text().splitlines()]
    assert lines[-1]["event"].startswith("passed on ")
    assert {line["peer"] for line in lines} == {"relay"}


def test_both_ends_of_an_edge_have_one_relay_and_false_stands_for_none(tmp_path):
    call("init", "--nodes", "3", "--relay", "relay:24690", "--out", str(tmp_path))
    configs = mesh.read_mesh(tmp_path).peers
    direct = [replace(n, relay=None) if n.id == 1 else n for n in configs[0].neighbours]
    save(replace(configs[0], neighbours=tuple(direct)))
    again = read(configs[0].path)
    assert [n.relay for n in again.neighbours] == [None, "relay:24690"]
    with pytest.raises(InputError, match=r"peer0\.toml reaches 1 by relay = False"):
        mesh.read_mesh(tmp_path)


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (["init", "--nodes", "3", "--relay", "relay"], "--relay is 'relay'"),
        (["relay", "nowhere", "--listen", "x"], "--listen is 'x'"),
        (["relay", "nowhere", "--connections", "1"], "--connections is 2 or more"),
        (["relay", "nowhere"], "relay.pem cannot be read"),
        (["relay", "nowhere", "--make"], "nowhere has no peers"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path, monkeypatch, words, wrong):
    monkeypatch.chdir(tmp_path)
    assert wrong in refused(*words)


def test_limits_and_words_are_as_the_pages_say():
    told, limits = (ROOT / "docs/operations.md").read_text(), Limits()
    assert f"{MOST_UNKNOWN} callers" in told
    burst = server.BURST * limits.calls_per_second
    assert f"{limits.calls_per_second:.0f} calls a second from an address ({burst:.0f} at" in told
    assert f"{limits.connections} connections (`--connections`)" in told
    assert f"{limits.of_a_peer} of a peer, {limits.bytes_per_second / 1e6:.0f} MB" in told
    assert f"without a byte for {limits.idle:.0f} seconds" in told
    protocol = (ROOT / "docs/protocol.md").read_text()
    assert f"at most {relay_words.MOST_WORDS:,} bytes" in protocol
    assert f"the peer, within {server.WORDS_WITHIN:.0f} seconds" in protocol
    assert f'{{"relay": {relay_words.VERSION}, "wants": 5}}' in protocol
    assert f"not joined within {limits.waits:.0f} seconds" in protocol
