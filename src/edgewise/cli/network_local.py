"""edgewise network local"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING

import numpy as np
import typer

import edgewise as ew
from edgewise import spec
from edgewise.cli.inputs import split_samples
from edgewise.cli.network_options import LocalOptions
from edgewise.cli.node import level_of
from edgewise.cli.peer_status import Status, show, status_of, table_of
from edgewise.cli.shell import INTERRUPTED, NEIGHBOURS_AWAY, NOT_CONVERGED, output
from edgewise.cli.watch import follow, summary
from edgewise.data.shards import TERMS
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
SHORT = (NOT_CONVERGED, NEIGHBOURS_AWAY)  # of tol, or of neighbours: an end like any other
IN_ORDER = 30.0  # seconds for a checkpoint and farewells, after which a peer is killed


def local(o: LocalOptions) -> None:
    from edgewise.peers.operations import mesh

    level_of(o.log_level)
    peers = mesh.read_mesh(o.folder).peers
    if o.nodes not in (None, len(peers)):
        raise InputError(f"{o.folder} has {len(peers)} peers: leave --nodes {o.nodes} out")
    files = own_files(peers, Path(o.folder) / "data") if o.data is None else {}
    if o.shard is not None:
        if o.data is not None:
            raise InputError("both data to split and --shard are given: leave one out")
        files = dict(each_of("shard", o.shard, peers))
    shards = None
    if not files:
        files, shards = split_files(peers, o)
    console = output(o)
    console.print(f"{len(peers)} peers run; their logs are in {o.folder}/peer*/log.jsonl")
    try:
        failures, short = run_all(peers, words_of(peers, files, o), console)
    except KeyboardInterrupt:
        print("stopped: the same command goes on from the checkpoints", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    finally:
        if shards is not None:
            tell_models(peers, shards)
    show(list(peers.values()), o)
    for told in {status_of(config).get("held_out_words") for config in peers.values()} - {None}:
        console.print(told, highlight=False, soft_wrap=True)
    if failures:
        raise InputError("; ".join(f"peer {id}: {why}" for id, why in failures.items()))
    if short:
        for id in short:
            ending = status_of(peers[id]).get("ending") or {}
            print(f"peer {id}: {ending.get('message', 'did not arrive')}", file=sys.stderr)
        raise typer.Exit(max(short.values()))


def own_files(peers: "dict[int, PeerConfig]", data: Path) -> dict[int, Path | None]:
    """Data that lie there already, where some peers have a cost instead."""
    files = {id: data / f"peer{id}.npz" for id in peers}
    found = {id: path if path.exists() else None for id, path in files.items()}
    enough = all(found[id] or config.cost for id, config in peers.items())
    enough = enough and any(config.couples for config in peers.values())
    return found if enough else {}


def each_of(option: str, pattern: str, peers: "dict[int, PeerConfig]") -> dict[int, Path]:
    """Every peer's own file."""
    if "{id}" not in pattern and len(peers) > 1:
        raise InputError(
            f"--{option} {pattern} is one file for all peers: give {{id}} where a peer's number is"
        )
    files = {id: Path(pattern.replace("{id}", str(id))) for id in peers}
    for path in files.values():
        if not path.exists():
            raise InputError(f"--{option} {pattern}: there is no file {path}")
    return files


def words_of(
    peers: "dict[int, PeerConfig]", files: dict[int, Path | None], o: LocalOptions
) -> dict[int, list[str]]:
    """What each peer is started with, besides its TOML file."""
    tests = {} if o.test is None else each_of("test", o.test, peers)
    label = ["--label", o.label] if o.shard is not None and o.label != "last" else []
    words: dict[int, list[str]] = {id: ["--log-level", o.log_level, *label] for id in peers}
    for id in peers:
        for option, path in (("--shard", files[id]), ("--test", tests.get(id))):
            words[id] += [] if path is None else [option, str(path)]
    return words


def split_files(
    peers: "dict[int, PeerConfig]", o: LocalOptions
) -> tuple[dict[int, Path | None], ew.Shards]:
    """A part of the data for each peer."""
    from edgewise.peers.config.peer_config import save

    shards = split_samples(replace(o, nodes=len(peers)))
    loss = spec.loss(peers[min(peers)].fit.loss, 0.0)
    classes = loss.encode(shards.y)[1]
    data = Path(o.folder) / "data"
    data.mkdir(exist_ok=True)
    files: dict[int, Path | None] = {}
    for place, (id, config) in enumerate(sorted(peers.items())):
        X, y = shards[place]
        files[id] = path = data / f"peer{id}.npz"
        arrays = {"X": X if isinstance(X, np.ndarray) else X.toarray(), "y": y}
        if shards.columns is not None:
            arrays["columns"] = np.array(shards.columns)
        own = slice(int(shards.first[place]), int(shards.first[place]) + len(y))
        terms = {name: a[own] for name in TERMS if (a := getattr(shards, name)) is not None}
        np.savez(path, **arrays, **terms)  # type: ignore[arg-type]
        if classes is not None and config.fit.classes is None:
            known = tuple(np.asarray(classes).tolist())
            save(replace(config, fit=replace(config.fit, classes=known)))
    return files, shards


def tell_models(peers: "dict[int, PeerConfig]", shards: ew.Shards) -> None:
    """Peers were handed data that were prepared and scaled, and do not know; who predicts has data
    as they were."""
    if shards.scaling is None and shards.preparation is None:
        return
    for config in peers.values():
        with suppress(InputError):  # a peer that was stopped before it had a model
            model = ew.load_model(config.out)
            if model.scaling is None and model.preparation is None:
                known = replace(model, preparation=shards.preparation)
                (known if shards.scaling is None else known.before(shards.scaling)).save(config.out)


def run_all(
    peers: "dict[int, PeerConfig]",
    words: dict[int, list[str]],
    console: "Console",
) -> tuple[dict[int, str], dict[int, int]]:
    """Every peer in a process of its own, until all have ended: why some failed, and the exit codes
    of those that ended in order and did not arrive."""
    with started(peers, words) as (running, heard):

        def over(seconds: float) -> bool:
            until = time.monotonic() + seconds
            while (codes := [process.poll() for process in running.values()]).count(None):
                if any(code > 0 and code not in SHORT for code in codes if code is not None):
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
        failures = {id: last_line(heard[id]) for id, c in codes.items() if c and c not in SHORT}
        return failures, {id: c for id, c in codes.items() if c in SHORT}


@contextmanager
def started(
    peers: "dict[int, PeerConfig]", words: dict[int, list[str]]
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
                    [*node, str(config.path), *words[id]],
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
