"""Rounds a second of peers on this host, against their transport with nothing around it.

    python benchmarks/peers.py                   2,000 and 20,000 unknowns
    python benchmarks/peers.py --sizes 2000      these only

8 processes, each with 4 of the 8 others as neighbours, over mutual TLS on the loopback interface.

peers  saga-pd in batches of 8, strict, a checkpoint and a row of the trace every 10 rounds
bare   streams of the same kind between the same processes: a round writes one frame of the same
       size to each neighbour and waits for one from each; nothing is computed, checked or kept
steps  the same, and each round takes the method's step with what came and sends its result: what
       no program that does the method's work can spare

The processes do all in turns, so that all see the same moods of the machine. With fewer cores than
peers a round takes the CPU time of all of them, and overhead is all of it that is not the bare
transport's; processes then also push each other out of the caches, so that everything costs a
multiple of what it does alone. Compare the ratios. Starting and compiling are not in the times.
"""

import argparse
import asyncio
import multiprocessing
import os
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import edgewise as ew
from edgewise.cli.network_local import ONE_THREAD
from edgewise.peers.config.peer_config import Fit, PeerConfig
from edgewise.peers.node.own_problem import one_node
from edgewise.peers.node.peer import Peer
from edgewise.peers.node.stepper import Stepper, facts_of
from edgewise.peers.node.supported_methods import method_of
from edgewise.peers.operations import mesh
from edgewise.peers.transport.connections import Connections
from edgewise.peers.transport.edge_facts import EdgeFacts
from edgewise.peers.transport.frames import (
    HEADER,
    VECTORS,
    Frame,
    MessageFormat,
    encode,
    max_frame_bytes,
)
from edgewise.peers.transport.heartbeat import Stream

PEERS, SAMPLES = 8, 100
GRAPH = ew.Graph.from_edges([(i, (i + hop) % PEERS) for i in range(PEERS) for hop in (1, 2)])
ROUNDS = {2_000: 400, 20_000: 120}  # timed at a time, by number of unknowns
WARM_UP = 50  # rounds before: compiling, and all streams come about
REPEATS = 5
PATIENCE = 600.0  # seconds that the slowest process may be behind the first one
WIRE = "float64"
PORT = 28_700  # and those after it
Lap = tuple[float, float]  # seconds and CPU seconds of a round


# --- a process ------------------------------------------------------------------------------------


class Clock:
    """Marks the moments of two rounds of one process."""

    def __init__(self, rounds: int) -> None:
        self.first, self.last = WARM_UP, WARM_UP + rounds
        self.marks: dict[int, tuple[float, float]] = {}

    def at(self, round: int) -> None:
        if round in (self.first, self.last):
            self.marks.setdefault(round, (time.perf_counter(), time.process_time()))

    def lap(self) -> Lap:
        begun, over = self.marks[self.first], self.marks[self.last]
        rounds = self.last - self.first
        return (over[0] - begun[0]) / rounds, (over[1] - begun[1]) / rounds


class Wire:
    """The place of a `Link` in `Connections`: hands out the stream as it is."""

    def __init__(self, other: int) -> None:
        self.other, self.streams, self.gone = other, 0, False
        self.opened, self.done = asyncio.Event(), asyncio.Event()

    async def run(self, stream: Stream, _: Any) -> None:
        self.read, self.write = stream.read, stream.write
        self.streams += 1
        self.opened.set()
        await self.done.wait()


class Steps:
    """The method's work with nothing around it: from the frames that came to those to send."""

    def __init__(self, config: PeerConfig, n: int) -> None:
        problem, d = one_node(config, samples(n, config.id)), len(config.neighbours)
        own = facts_of(problem, d)
        method = method_of(config.fit, penalised=False)
        alone = Stepper(problem, config.id, method, config.fit.seed, np.float64, own)
        self.local = alone.among([EdgeFacts(own, own)] * d)
        self.carry, self.places = self.local.start(), range(d)

    def __call__(self, round: int, came: list[bytes]) -> list[bytes]:
        numbers = [np.frombuffer(frame, np.float64, offset=HEADER.size)[None] for frame in came]
        self.carry, sent = self.local.step(self.carry, round, self.local.gathered(numbers))
        return [a_frame(self.local.outgoing(sent, place)) for place in self.places]


def a_frame(vectors: np.ndarray) -> bytes:
    return encode(Frame(VECTORS, payload=vectors), WIRE)


async def bare(
    config: PeerConfig, n: int, rounds: int, together: Callable[[], Any], steps: Steps | None = None
) -> Lap:
    format = MessageFormat(1, n, WIRE)
    wires = {neighbour.id: Wire(neighbour.id) for neighbour in config.neighbours}
    connections: Any = Connections(config, wires, max_frame_bytes(format), None)
    frames, clock = [a_frame(np.zeros((1, n)))] * len(wires), Clock(rounds)
    await connections.open()
    for wire in wires.values():
        await wire.opened.wait()
    for round in range(clock.last + 1):
        clock.at(round)
        for wire, frame in zip(wires.values(), frames, strict=True):
            await wire.write(frame)
        came = [await wire.read() for wire in wires.values()]
        if steps is not None:
            frames = steps(round, came)
    await asyncio.to_thread(together)  # whoever closes takes what is on the way with it
    for wire in wires.values():
        wire.done.set()
    await connections.close()
    return clock.lap()


async def peers(config: PeerConfig, n: int, rounds: int) -> Lap:
    clock = Clock(rounds)
    with jax.enable_x64(True):
        problem = one_node(config, samples(n, config.id))
    await Peer(config).run(problem, lambda row: clock.at(int(row["rounds"])))
    return clock.lap()


async def all_laps(
    configs: dict[int, PeerConfig], repeats: int, together: Callable[[], Any], said: "Queue[Any]"
) -> None:
    """All sizes in turn, in one event loop."""
    for n, config in configs.items():
        for repeat in range(repeats):
            await asyncio.to_thread(together)
            alone = await bare(config, n, ROUNDS[n], together)
            await asyncio.to_thread(together)
            with jax.enable_x64(True):
                stepping = await bare(config, n, ROUNDS[n], together, Steps(config, n))
            await asyncio.to_thread(together)
            ours = await peers(replace(config, out=config.out / str(repeat)), n, ROUNDS[n])
            if config.id == 0:
                said.put((n, alone, stepping, ours))


def process(
    configs: dict[int, PeerConfig], repeats: int, barrier: Barrier, said: "Queue[Any]"
) -> None:
    """What one of the peers does; peer 0 tells the laps."""
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # as `edgewise node` does
    try:
        asyncio.run(all_laps(configs, repeats, lambda: barrier.wait(PATIENCE), said))
    except BaseException:
        traceback.print_exc()
        barrier.abort()  # or else the others wait
        raise


def samples(n: int, id: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = ew.data.epsilon_like(rows=SAMPLES, features=n, seed=id)
    return np.asarray(X), y


# --- all of them ----------------------------------------------------------------------------------


def mesh_for(n: int, folder: Path, port: int) -> dict[int, PeerConfig]:
    rounds = WARM_UP + ROUNDS[n] + 10  # the last one writes the model, and says farewell
    fit = Fit("saga-pd", ("batch=8",), ridge=1e-3, rounds=rounds, mode="strict", wire=WIRE)
    fit = replace(fit, weights="node", classes=(-1.0, 1.0))
    made = mesh.create(folder, GRAPH, fit, [()] * PEERS, lambda i: "127.0.0.1", port, 2)
    return made.peers


def measure(sizes: list[int], repeats: int) -> dict[int, list[tuple[Lap, ...]]]:
    """Of each size, (bare, steps, peers) again and again."""
    os.environ |= ONE_THREAD | dict(os.environ)
    spawn = multiprocessing.get_context("spawn")
    barrier, said = spawn.Barrier(PEERS), spawn.Queue()
    with tempfile.TemporaryDirectory() as folder:
        meshes = {
            n: mesh_for(n, Path(folder) / str(n), PORT + PEERS * k) for k, n in enumerate(sizes)
        }
        crew = [
            spawn.Process(
                target=process,
                args=({n: all_of[id] for n, all_of in meshes.items()}, repeats, barrier, said),
            )
            for id in range(PEERS)
        ]
        for one in crew:
            one.start()
        for one in crew:
            one.join()
    if any(one.exitcode for one in crew):
        raise SystemExit("a process failed")
    laps: dict[int, list[tuple[Lap, ...]]] = {n: [] for n in sizes}
    for _ in range(len(sizes) * repeats):
        n, *one_of_each = said.get()
        laps[n].append(tuple(one_of_each))
    return laps


def report(laps: dict[int, list[tuple[Lap, ...]]]) -> Table:
    title = f"{PEERS} peers, {len(GRAPH.edges)} edges, saga-pd, strict: rounds/s and overhead"
    heads = ["unknowns", "bare", "steps", "peers", "steps", "peers", "of each", "in CPU time"]
    table = Table(*heads, title=title, title_justify="left")
    for n, all_of in laps.items():
        seen = np.array(all_of)  # (repeats, bare or steps or peers, seconds or CPU seconds)
        over = seen[:, 1:] / seen[:, :1] - 1
        rates = [f"{1 / np.median(seen[:, k, 0]):,.0f}" for k in range(3)]
        each = " ".join(f"{one:.0%}" for one in over[:, 1, 0])
        (steps, _), (peers, cpu) = np.median(over, axis=0)
        table.add_row(f"{n:,}", *rates, f"{steps:.0%}", f"{peers:.0%}", each, f"{cpu:.0%}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=list(ROUNDS), choices=list(ROUNDS))
    parser.add_argument("--repeats", type=int, default=REPEATS)
    options = parser.parse_args()
    start = time.perf_counter()
    laps = measure(options.sizes, options.repeats)
    console = Console(width=110)
    console.print(report(laps))
    console.print(f"{os.cpu_count()} cores, {time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
