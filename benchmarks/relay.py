"""What a relay costs: the same frames between two ends, directly and by `edgewise network relay`.

    python benchmarks/relay.py

Two ends in this process send each other vectors in turn, over TLS on the loopback interface; the
relay is a process of its own. Medians of several goes, directly and by the relay in turn. On one
machine it takes time of the two ends' cores; elsewhere the way to it and back comes on top.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import edgewise as ew
from edgewise.peers.config.peer_config import Fit, PeerConfig
from edgewise.peers.operations import mesh
from edgewise.peers.relay.identity import certify
from edgewise.peers.transport.connections import Connections
from edgewise.peers.transport.frames import VECTORS, Frame, MessageFormat, max_frame_bytes
from edgewise.peers.transport.links import Link
from edgewise.peers.transport.wakeup import Wakeup

PORT, RELAY = 28540, 28550
SIZES, ROUNDS, GOES = (30, 10_000), 300, 5


class End:
    def __init__(self, config: PeerConfig, size: int) -> None:
        self.id, self.other, self.wakeup = config.id, 1 - config.id, Wakeup()
        format = MessageFormat(1, size, "float64")
        self.link = Link(self.id, self.other, True, format, 10**6, self.wakeup)
        links = {self.other: self.link}
        self.connections = Connections(config, links, max_frame_bytes(format), self)

    def greet(self, link: Link) -> dict[str, Any]:
        return {"resume_at": 0, "incarnation": f"of {self.id}"}

    def meet(self, link: Link, greeting: dict[str, Any]) -> None:
        pass

    async def turn(self, round: int, vector: np.ndarray) -> None:
        ends = {"sender": self.id, "receiver": self.other, "saved": round}
        self.link.post(Frame(VECTORS, round, payload=vector, **ends))

    async def hears(self, round: int) -> None:
        while not self.link.has_message(round):
            self.wakeup.clear()
            await self.wakeup.wait()
        self.link.take_message(round)


async def seconds(configs: list[PeerConfig], size: int) -> float:
    """Of a round: one way, and back."""
    a, b = (End(config, size) for config in configs)
    for end in (b, a):
        await end.connections.open()
    try:
        while not (a.link.connected and b.link.connected):
            await asyncio.sleep(0.01)
        vector, began = np.random.default_rng(0).standard_normal((1, size)), 0.0
        for round in range(-20, ROUNDS):
            began = time.perf_counter() if round == 0 else began
            for sends, hears in ((a, b), (b, a)):
                await sends.turn(round + 20, vector)
                await hears.hears(round + 20)
        return (time.perf_counter() - began) / ROUNDS
    finally:
        for end in (a, b):
            await end.connections.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as passing:
        folder = Path(passing) / "mesh"
        graph = ew.Graph.from_edges([(0, 1)])
        made = mesh.create(folder, graph, Fit(), [()] * 2, lambda i: "127.0.0.1", PORT, 2)
        certify(folder, made.peers[0].mesh, 2)
        direct = list(made.peers.values())
        at = f"127.0.0.1:{RELAY}"
        relayed = [
            replace(c, neighbours=tuple(replace(n, relay=at) for n in c.neighbours)) for c in direct
        ]
        words = ["network", "relay", str(folder), "--listen", at, "--megabytes", "100000"]
        relay = subprocess.Popen([sys.executable, "-m", "edgewise", *words])
        try:
            for size in SIZES:
                took = [
                    [asyncio.run(seconds(configs, size)) for configs in (direct, relayed)]
                    for _ in range(GOES)
                ]
                plain, by_relay = np.median(took, 0) * 1e3
                print(
                    f"{size:,} numbers: a round {plain:.2f} ms, by the relay {by_relay:.2f} ms, "
                    f"{by_relay / plain:.1f} times",
                    flush=True,
                )
        finally:
            relay.terminate()
            with suppress(subprocess.TimeoutExpired):
                relay.wait(10)


if __name__ == "__main__":
    main()
