"""Peers as far as their streams go, in this process: no data, no steps."""

import asyncio
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import numpy as np
from peer_process import free_ports

import edgewise as ew
from edgewise.peers.config.peer_config import Fit
from edgewise.peers.operations import mesh
from edgewise.peers.transport.connections import Connections
from edgewise.peers.transport.frames import VECTORS, Frame, MessageFormat, max_frame_bytes
from edgewise.peers.transport.links import Link
from edgewise.peers.transport.wakeup import Wakeup

PATIENCE = 60  # seconds


def configs_of(folder, nodes=2, host="127.0.0.1"):
    """Of a complete graph, each at a port of its own."""
    ports = free_ports(nodes)
    graph = ew.Graph.from_edges([(i, j) for i in range(nodes) for j in range(i)])
    made = mesh.create(folder, graph, Fit(), [()] * nodes, lambda i: host, 40000, 2).peers

    def at(id):
        return f"{host}:{ports[id]}"

    for id, config in made.items():
        around = tuple(replace(n, address=at(n.id)) for n in config.neighbours)
        made[id] = replace(config, listen=at(id), neighbours=around)
    return made


def elsewhere(config, id, address):
    """With another address for one of its neighbours."""
    around = [replace(n, address=address) if n.id == id else n for n in config.neighbours]
    return replace(config, neighbours=tuple(around))


class End:
    """One peer's connections and links."""

    def __init__(self, config, size=5, strict=True):
        self.config, self.wakeup = config, Wakeup()
        format = MessageFormat(1, size, "float64")
        self.links = {
            n.id: Link(config.id, n.id, strict, format, 10**6, self.wakeup)
            for n in config.neighbours
        }
        self.connections = Connections(config, self.links, max_frame_bytes(format), self)

    def greet(self, link):
        return {"resume_at": link.awaited_round, "incarnation": f"of {self.config.id}"}

    def meet(self, link, greeting):
        pass

    def post(self, to, round, numbers):
        payload = np.asarray(numbers, float)[None]
        ends = {"sender": self.config.id, "receiver": to}
        self.links[to].post(Frame(VECTORS, round, payload=payload, **ends))


@asynccontextmanager
async def opened(*configs, **options):
    ends = [End(config, **options) for config in configs]
    try:
        for end in ends:
            await end.connections.open()
        yield ends
    finally:
        for end in ends:
            with suppress(AttributeError):  # it never came to listen
                await end.connections.close()


async def until(holds, patience=PATIENCE):
    end = time.monotonic() + patience
    while not holds():
        assert time.monotonic() < end, "not in time"
        await asyncio.sleep(0.005)
