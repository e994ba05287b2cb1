"""edgewise network local"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING

import numpy as np
import typer

from edgewise import spec
from edgewise.cli.inputs import split_samples
from edgewise.cli.network_options import LocalOptions
from edgewise.cli.peer_status import Status, show, status_of, table_of
from edgewise.cli.shell import INTERRUPTED, output
from edgewise.cli.watch import follow, summary
from edgewise.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from edgewise.peers.config.peer_config import PeerConfig

Processes = dict[int, "subprocess.Popen[bytes]"]

ONE_THREAD = {  # where many share a machine
    "NPROC": "1",  # XLA's own threads, which the flag below leaves as many as there are cores
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
TICK = 0.2  # seconds between two looks at the processes
SAME_REASON = 3.0  # seconds for others to give up after the first, as two that do not fit do
IN_ORDER = 30.0  # seconds for a checkpoint and farewells, after which a peer is killed


def local(o: LocalOptions) -> None:
    from edgewise.peers.config.peer_config import save
    from edgewise.peers.operations import mesh

    peers = mesh.read_mesh(o.folder).peers
    if o.nodes not in (None, len(peers)):
        raise InputError(f"{o.folder} has {len(peers)} peers: leave --nodes {o.nodes} out")
    shards, _ = split_samples(replace(o, nodes=len(peers)))
    loss = spec.loss(peers[min(peers)].fit.loss, 0.0)
    classes = loss.encode(shards.y)[1]
    data = Path(o.folder) / "data"
    data.mkdir(exist_ok=True)
    files = {}
    for place, (id, config) in enumerate(sorted(peers.items())):
        X, y = shards[place]
        files[id] = data / f"peer{id}.npz"
        np.savez(files[id], X=X if isinstance(X, np.ndarray) else X.toarray(), y=y)
        if classes is not None and config.fit.classes is None:
            known = tuple(np.asarray(classes).tolist())
            save(replace(config, fit=replace(config.fit, classes=known)))
    console = output(o)
    console.print(f"{len(peers)} peers run; their logs are in {o.folder}/peer*/log.jsonl")
    try:
        failures = run_all(peers, files, console)
    except KeyboardInterrupt:
        print("stopped: the same command goes on from the checkpoints", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    show(list(peers.values()), o)
    if failures:
        raise InputError("; ".join(f"peer {id}: {why}" for id, why in failures.items()))


def run_all(
    peers: "dict[int, PeerConfig]", files: dict[int, Path], console: "Console"
) -> dict[int, str]:
    """Every peer in a process of its own, until all have ended; why some failed."""
    with started(peers, files) as (running, heard):

        def over(seconds: float) -> bool:
            until = time.monotonic() + seconds
            while (codes := [process.poll() for process in running.values()]).count(None):
                if any(code > 0 for code in codes if code is not None):
                    time.sleep(SAME_REASON)
                    return True  # it gave up, and those that have not may wait for it for ever
                if time.monotonic() >= until:
                    return False
                time.sleep(TICK)
            return True

        def statuses() -> list[Status]:
            return [status_of(config, running[id].pid) for id, config in peers.items()]

        follow(
            console, lambda: table_of(statuses()), lambda: summary(statuses()), over, stays=False
        )
        codes = {id: process.poll() for id, process in running.items()}
        return {id: last_line(heard[id]) for id, code in codes.items() if code}


@contextmanager
def started(
    peers: "dict[int, PeerConfig]", files: dict[int, Path]
) -> Iterator[tuple[Processes, dict[int, IO[bytes]]]]:
    """The processes, and what they say on stderr; those that still run are stopped in the end."""
    node = [sys.executable, "-m", "edgewise", "node", "--json"]
    running: Processes = {}
    with ExitStack() as opened:
        heard: dict[int, IO[bytes]] = {id: opened.enter_context(TemporaryFile()) for id in peers}
        opened.enter_context(interrupted_by_sigterm())
        try:
            for id, config in peers.items():
                running[id] = subprocess.Popen(
                    [*node, str(config.path), "--shard", str(files[id])],
                    env=ONE_THREAD | dict(os.environ),
                    stdout=subprocess.DEVNULL,
                    stderr=heard[id],
                )
            yield running, heard
        finally:
            stop(running)


@contextmanager
def interrupted_by_sigterm() -> Iterator[None]:
    """Which would leave the peers running, with nobody who stops them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def stop(running: Processes) -> None:
    for process in running.values():
        process.terminate()
    until = time.monotonic() + IN_ORDER
    for process in running.values():
        try:
            process.wait(max(until - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def last_line(file: IO[bytes]) -> str:
    """What a command said last, which is why it failed; one that was killed says nothing."""
    file.seek(0)
    lines = file.read().decode(errors="replace").strip().split("\n")
    return lines[-1].removeprefix("error: ") or "it ended without a word"
