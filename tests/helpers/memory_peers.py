"""Peers in one event loop of this process, whose streams are queues instead of TLS: all else of a
run is theirs. One whose task is cancelled ends as one that is killed, with its last checkpoint.

Streams.delay: seconds that a frame takes, either way
"""

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar

import jax

from edgewise.peers.node import peer as peer_module
from edgewise.peers.node.own_problem import one_node
from edgewise.peers.transport.frames import ProtocolError
from edgewise.peers.transport.links import Mismatch


class QueueStream:
    """A `heartbeat.Stream` that nothing can silence."""

    heard_at = sent_at = float("inf")
    writing = 0

    def __init__(self, dialled, coming, going, most):
        self.dialled, self.read = dialled, coming.get
        self.going, self.most = going, most

    def serial(self):
        """There is no certificate."""

    async def write(self, data):
        assert len(data) <= self.most
        frame = bytes(data)
        if Streams.delay:
            asyncio.get_running_loop().call_later(Streams.delay, self.going.put_nowait, frame)
        else:
            self.going.put_nowait(frame)


class Streams:
    """In the place of `Connections`; `here` are those of all peers that run."""

    here: ClassVar[dict] = {}
    delay = 0.0

    def __init__(self, config, links, most_bytes, peer):
        self.config, self.links, self.most, self.peer = config, links, most_bytes, peer
        self.failure, self.refused, self.port, self.tasks = None, 0, 0, {}
        self.failed_handshakes = 0

    async def open(self):
        self.here[self.config.id] = self
        for neighbour in self.config.neighbours:
            self.connect(neighbour)

    def connect(self, neighbour):
        if neighbour.dial:
            self.tasks[neighbour.id] = asyncio.ensure_future(self.dial(neighbour.id))

    async def look_for_revoked(self):
        """Nobody has a certificate."""

    def stop_dialling(self, id):
        task = self.tasks.pop(id, None)
        if task is not None:
            task.cancel()

    async def dial(self, id):
        while True:
            other = self.here.get(id)
            if other is not None and self.config.id in other.links:
                there, back = asyncio.Queue(), asyncio.Queue()
                ends = (
                    self.talk(id, back, there, True),
                    other.talk(self.config.id, there, back, False),
                )
                await asyncio.gather(*ends)
            await asyncio.sleep(0.02)

    async def talk(self, id, coming, going, dialled):
        link = self.links[id]
        try:
            await link.run(QueueStream(dialled, coming, going, self.most), self.peer)
        except ProtocolError as what:
            link.count_error(what)
        except Mismatch as what:
            self.failure = what
            link.wakeup.set()
        except (OSError, EOFError):
            pass
        finally:
            going.put_nowait(None)

    async def close(self):
        self.here.pop(self.config.id, None)
        for link in self.links.values():
            link.close()
        tasks = list(self.tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def run(work):
    """All in float64: when one peer of a thread ends, the others go on."""
    with jax.enable_x64(True):
        return asyncio.run(work)


class MemoryPeers:
    def __init__(self, made, monkeypatch, delay=0.0, **options):
        monkeypatch.setattr(peer_module, "Connections", Streams)
        monkeypatch.setattr(peer_module, "stop_on_signals", lambda _: (asyncio.Event(), None))
        monkeypatch.setattr(Streams, "delay", delay)
        Streams.here.clear()
        self.configs = {i: replace(c, **options) for i, c in made.peers.items()}
        self.folder, self.tasks, self.peers = made.folder, {}, {}

    def start(self, *ids):
        for i in ids:
            data = self.folder / "data" / f"peer{i}.npz"
            with jax.enable_x64(True):
                problem = one_node(self.configs[i], data if data.exists() else None)
            self.start_with(i, problem)

    def start_with(self, i, problem, held=None):
        self.peers[i] = peer_module.Peer(self.configs[i])
        self.peers[i].held = held
        self.tasks[i] = asyncio.ensure_future(self.peers[i].run(problem))

    def round(self, i):
        return getattr(self.peers[i], "round", 0)

    async def until_round(self, i, round):
        while self.round(i) < round:
            assert not self.tasks[i].done(), self.tasks[i]
            await asyncio.sleep(0.01)

    async def kill(self, i):
        self.tasks[i].cancel()
        with suppress(asyncio.CancelledError):
            await self.tasks[i]

    async def results(self):
        ids = sorted(self.tasks)
        return dict(zip(ids, await asyncio.gather(*(self.tasks[i] for i in ids)), strict=True))
