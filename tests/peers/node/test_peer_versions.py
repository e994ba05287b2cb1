"""Peers of two releases that speak different versions of the protocol: both say so, and end; what
runs goes on."""

import asyncio
from dataclasses import replace

import jax
import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from memory_peers import run
from peer_ends import End, configs_of, until

from edgewise.errors import CheckpointError
from edgewise.peers.config.peer_config import Fit
from edgewise.peers.node import peer as peer_module
from edgewise.peers.node.fit_identity import require_same
from edgewise.peers.node.own_problem import one_node
from edgewise.peers.node.result import PeerError
from edgewise.peers.transport import frames
from edgewise.peers.transport.frames import HEADER, VERSION

pytestmark = pytest.mark.filterwarnings("ignore:.*has one neighbour")
FIT = Fit("saga-pd", weights="node", classes=(-1.0, 1.0), rounds=10**6)


class Later(End):
    """A peer of the next release, whose frames differ from the fourth byte on."""

    def __init__(self, config):
        super().__init__(config)
        self.heard = []
        for link in self.links.values():
            link.run = self.speak

    async def speak(self, stream, peer):
        text = HEADER.pack(frames.MAGIC, VERSION + 1, *[0] * 13) + b"anything"
        await stream.write(text)
        header = bytearray(HEADER.size)
        await stream.fill(memoryview(header))
        self.heard.append(bytes(header))
        await asyncio.sleep(60)


@pytest.fixture
def one(tmp_path, monkeypatch):
    monkeypatch.setattr(peer_module, "stop_on_signals", lambda _: (asyncio.Event(), None))
    configs = configs_of(tmp_path)
    rng = np.random.default_rng(0)
    data = rng.standard_normal((8, 3)), np.sign(rng.standard_normal(8))

    def peer(id):
        config = replace(configs[id], fit=FIT)
        config.out.mkdir(exist_ok=True)
        with jax.enable_x64(True):
            problem = one_node(config, data)
        made = peer_module.Peer(config)
        return made, asyncio.ensure_future(made.run(problem))

    return configs, peer


@pytest.mark.parametrize("own", [0, 1], ids=["dials", "is dialled"])
def test_a_peer_that_meets_another_version_ends_with_both_numbers_and_tells_its_own(one, own):
    configs, peer = one

    async def meet():
        _, running = peer(own)
        later = Later(configs[1 - own])
        try:
            await later.connections.open()
            with pytest.raises(PeerError) as ended:
                await asyncio.wait_for(running, 60)
            assert f"peer {1 - own} speaks version {VERSION + 1} " in str(ended.value)
            assert f"this peer {VERSION}: install the same release" in str(ended.value)
            magic, version, *_ = HEADER.unpack(later.heard[0])
            assert (magic, version) == (frames.MAGIC, VERSION)
        finally:
            await later.connections.close()

    run(meet())


def test_a_run_that_is_under_way_goes_on(one, caplog):
    configs, peer = one

    async def meet():
        (first, running), (_, other) = peer(0), peer(1)
        await until(lambda: getattr(first, "begun", False) and first.round > 5)
        other.cancel()
        await asyncio.gather(other, return_exceptions=True)
        later = Later(configs[1])
        await later.connections.open()
        try:
            await until(lambda: "peer 1 cut off: peer 1 speaks version" in caplog.text)
            before = first.round
            await until(lambda: first.round > before or running.done())
            assert not running.done()
            older = {**first.identity, "protocol": VERSION - 1}
            with pytest.raises(CheckpointError, match=f"= {VERSION - 1}, and here {VERSION}"):
                require_same(older, first.identity, "checkpoint.bin")
        finally:
            await later.connections.close()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    run(meet())
