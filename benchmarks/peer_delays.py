"""Real fits over lines with a delay: rounds and seconds to a tolerance.

    python benchmarks/peer_delays.py                    0, 10, 50 and 100 ms, both modes
    python benchmarks/peer_delays.py --delays 0 50      these only
    python benchmarks/peer_delays.py --peers 10         as many as that

Five peers in one process, over mutual TLS, fit breast cancer data (569 x 30, columns scaled, rows
normalised, intercept, sorted by label, ridge 0.03) with the default method to 1e-8. Every line goes
through a proxy that delays each way. Seconds count from the first row of the trace (round 10), so
that starting and compiling are left out. All share one core: at 0 ms that is what takes the time.
"""

import argparse
import asyncio
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import edgewise as ew
from edgewise.peers.config.peer_config import Fit, PeerConfig
from edgewise.peers.node import peer as peer_module
from edgewise.peers.node.own_problem import one_node
from edgewise.peers.operations import mesh

TOL = 1e-8
DELAYS = [0.0, 10.0, 50.0, 100.0]  # ms, each way
PIECE = 1 << 16
PORT = 28_900  # and those after it


class DelayedLine:
    """Passes on what comes, each piece a while after it came, to the address `to`, and back."""

    def __init__(self, to: str, seconds: float) -> None:
        host, port = to.rsplit(":", 1)
        self.to, self.seconds = (host, int(port)), seconds

    async def open(self) -> str:
        self.server = await asyncio.start_server(self.connect, "127.0.0.1", 0)
        return f"127.0.0.1:{self.server.sockets[0].getsockname()[1]}"

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection(*self.to)
        except OSError:  # it has not begun yet
            writer.close()
            return
        await asyncio.gather(self.pass_on(reader, back), self.pass_on(there, writer))

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        with suppress(OSError):
            while data := await reader.read(PIECE):
                loop.call_later(self.seconds, writer.write, data)
        loop.call_later(self.seconds, writer.close)


def made_peers(folder: Path, graph: ew.Graph, mode: str) -> dict[int, PeerConfig]:
    fit = Fit(ridge=0.03, intercept=True, classes=(0, 1), mode=mode)
    fit = replace(fit, tol=TOL, rounds=10**5, patience=5.0)
    return mesh.create(folder, graph, fit, [()] * graph.nodes, lambda i: "127.0.0.1", PORT, 2).peers


def parts(count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    X, y = ew.data.dataset("breast_cancer")
    X = (np.asarray(X) - np.mean(X, axis=0)) / np.std(X, axis=0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    order = np.array_split(np.argsort(y, kind="stable"), count)
    return [(X[part], y[part]) for part in order]


async def fitted(peers: dict[int, PeerConfig], seconds: float) -> list[Any]:
    lines, runs = [], []
    for config, data in zip(peers.values(), parts(len(peers)), strict=True):
        around = []
        for neighbour in config.neighbours:
            if neighbour.dial:
                lines.append(DelayedLine(neighbour.address, seconds))
                neighbour = replace(neighbour, address=await lines[-1].open())
            around.append(neighbour)
        config = replace(config, neighbours=tuple(around), metrics=None)
        runs.append(peer_module.Peer(config).run(one_node(config, data)))
    try:
        return await asyncio.gather(*runs)
    finally:
        for line in lines:
            line.server.close()


def measured(graph: ew.Graph, mode: str, delay: float) -> tuple[int, float, float]:
    """Rounds until all had met tol, the slowest one's seconds, and ms a round."""
    with tempfile.TemporaryDirectory() as folder, jax.enable_x64(True):
        found = asyncio.run(fitted(made_peers(Path(folder) / "mesh", graph, mode), delay / 1e3))
    if not all(result.ending.met for result in found):
        raise SystemExit(found[0].message)
    each = []
    for result in found:
        residuals = result.trace["residual"]
        above = np.flatnonzero(residuals > TOL / graph.nodes**0.5)
        met = int(above[-1]) + 1 if len(above) else 0
        rounds, seconds = (result.trace[k] for k in ("rounds", "seconds"))
        each.append((rounds[met], seconds[met] - seconds[0]))
    rounds, seconds = map(max, zip(*each, strict=True))
    return int(rounds), float(seconds), 1e3 * float(seconds) / max(rounds - 10, 1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--delays", type=float, nargs="+", default=DELAYS, help="ms, each way")
    parser.add_argument("--peers", type=int, default=5)
    options = parser.parse_args()
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # as `edgewise node` does
    peer_module.stop_on_signals = lambda _: (asyncio.Event(), lambda: None)  # five in one thread
    table = Table("graph", "delay, ms", "mode", "rounds", "seconds", "ms a round")
    graphs = {
        "four neighbours": ew.Graph.circulant(options.peers),
        "ring": ew.Graph.ring(options.peers),
    }
    for name, graph in graphs.items():
        for delay in options.delays:
            for mode in ("strict", "tolerant"):
                rounds, seconds, each = measured(graph, mode, delay)
                row = name, f"{delay:g}", mode, str(rounds), f"{seconds:.2f}", f"{each:.1f}"
                table.add_row(*row)
                print(*row, flush=True)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
