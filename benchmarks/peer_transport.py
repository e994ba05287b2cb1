"""What a round between two peers costs, with nothing but its messages: ours, asyncio's TLS, gRPC.

    python benchmarks/peer_transport.py                 16 kB each way
    python benchmarks/peer_transport.py --numbers 200   1.6 kB

Two processes over mutual TLS 1.3 on the loopback interface write a frame each and read the other's,
again and again. All ways take turns in one run, so that all see the same moods of the machine:
compare the ratios. Where others use the cores, CPU time says more than time. gRPC is left out
where it is not installed.
"""

import argparse
import asyncio
import multiprocessing
import socket
import ssl
import tempfile
import time
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import edgewise as ew
from edgewise.peers.config.certificates import name_of
from edgewise.peers.config.peer_config import Fit, PeerConfig
from edgewise.peers.operations import mesh
from edgewise.peers.transport.frames import VECTORS, Frame, encode
from edgewise.peers.transport.tls_contexts import contexts_of
from edgewise.peers.transport.tls_stream import TlsStream

ROUNDS, WARM_UP, REPEATS = 3000, 300, 5
LARGEST = 1 << 24
Lap = tuple[float, float]  # microseconds and CPU microseconds of a round


async def lap(read: Callable[[], Awaitable[Any]], write: Callable[[bytes], Any], n: int) -> Lap:
    frame = encode(Frame(VECTORS, payload=np.zeros((1, n))))
    for round in range(WARM_UP + ROUNDS):
        if round == WARM_UP:
            begun, used = time.perf_counter(), time.process_time()
        await write(frame)
        await read()
    seen = time.perf_counter() - begun, time.process_time() - used
    await asyncio.sleep(0.2)  # the other end may still read
    return 1e6 * seen[0] / ROUNDS, 1e6 * seen[1] / ROUNDS


async def ours(config: PeerConfig, port: int, calls: bool, ready: Any, n: int) -> Lap:
    loop, contexts = asyncio.get_running_loop(), contexts_of(config)
    if calls:
        _, stream = await loop.create_connection(
            lambda: TlsStream(LARGEST, True), "127.0.0.1", port
        )
        await stream.handshake(contexts.caller, name_of(config.mesh, 1))
        return await lap(stream.read, stream.write, n)
    called = loop.create_future()
    await loop.create_server(
        lambda: TlsStream(LARGEST, False, called.set_result), "127.0.0.1", port
    )
    ready.set()
    stream = await called
    await stream.handshake(contexts.called)
    return await lap(stream.read, stream.write, n)


async def asyncio_streams(config: PeerConfig, port: int, calls: bool, ready: Any, n: int) -> Lap:
    contexts, size = contexts_of(config), len(encode(Frame(VECTORS, payload=np.zeros((1, n)))))

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Lap:
        async def write(frame: bytes) -> None:
            writer.write(frame)
            await writer.drain()

        return await lap(lambda: reader.readexactly(size), write, n)

    if calls:
        ends = await asyncio.open_connection(
            "127.0.0.1", port, ssl=contexts.caller, server_hostname="x"
        )
        return await talk(*ends)
    called = asyncio.get_running_loop().create_future()
    server = await asyncio.start_server(
        lambda *ends: called.set_result(ends), "127.0.0.1", port, ssl=contexts.called
    )
    ready.set()
    async with server:
        return await talk(*await called)


async def grpc_streams(config: PeerConfig, port: int, calls: bool, ready: Any, n: int) -> Lap:
    import grpc

    authority, key, certificate = config.credentials()
    if calls:
        name = ("grpc.ssl_target_name_override", name_of(config.mesh, 1))
        shown = grpc.ssl_channel_credentials(authority, key, certificate)
        async with grpc.aio.secure_channel(f"127.0.0.1:{port}", shown, options=[name]) as channel:
            call = channel.stream_stream("/edgewise/Talk")()
            return await lap(call.read, call.write, n)
    over = asyncio.get_running_loop().create_future()

    async def talk(_: Any, context: Any) -> None:
        over.set_result(await lap(context.read, context.write, n))

    server = grpc.aio.server()
    handler = grpc.stream_stream_rpc_method_handler(talk)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("edgewise", {"Talk": handler}),)
    )
    server.add_secure_port(
        f"127.0.0.1:{port}", grpc.ssl_server_credentials([(key, certificate)], authority, True)
    )
    await server.start()
    ready.set()
    seen: Lap = await over
    await server.stop(0)
    return seen


WAYS = {"ours": ours, "asyncio's TLS": asyncio_streams, "gRPC": grpc_streams}


def process(way: str, config: PeerConfig, port: int, ready: Any, n: int, said: Any) -> None:
    said.put(asyncio.run(WAYS[way](config, port, config.id == 0, ready, n)))


def measured(way: str, configs: dict[int, PeerConfig], n: int) -> Lap:
    """The mean of both ends."""
    spawn = multiprocessing.get_context("spawn")
    ready, said = spawn.Event(), spawn.Queue()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    crew = [
        spawn.Process(target=process, args=(way, configs[id], port, ready, n, said))
        for id in (1, 0)
    ]
    for one in crew:
        one.start()
        ready.wait(60)
    laps = np.array([said.get(timeout=600) for _ in crew])
    for one in crew:
        one.join()
    both: Lap = tuple(laps.mean(axis=0))
    return both


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--numbers", type=int, default=2000, help="of 8 bytes, in a message")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    options = parser.parse_args()
    ways = [way for way in WAYS if way != "gRPC" or find_spec("grpc")]
    with tempfile.TemporaryDirectory() as folder:
        ring = ew.Graph.ring(3)
        made = mesh.create(Path(folder) / "mesh", ring, Fit(), [()] * 3, lambda i: "x", 1024, 2)
        seen = [
            [measured(way, made.peers, options.numbers) for way in ways]
            for _ in range(options.repeats)
        ]
    middle = np.median(np.array(seen), axis=0)
    title = f"{8 * options.numbers:,} bytes each way, a round; {ssl.OPENSSL_VERSION}"
    table = Table("", "us", "CPU us", "to ours", "CPU to ours", title=title, title_justify="left")
    for way, (us, cpu) in zip(ways, middle, strict=True):
        ratios = f"{us / middle[0, 0]:.2f}", f"{cpu / middle[0, 1]:.2f}"
        table.add_row(way, f"{us:.0f}", f"{cpu:.0f}", *ratios)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
