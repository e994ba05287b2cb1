"""edgewise node, and edgewise network local and status"""

import json
import logging
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from rich.table import Table

from edgewise.cli import parts
from edgewise.cli.job import split_samples
from edgewise.cli.network_options import LocalOptions, NodeOptions, StatusOptions
from edgewise.cli.shell import output, print_json
from edgewise.errors import InputError

if TYPE_CHECKING:
    from edgewise.peers.config import PeerConfig

ONE_THREAD = {  # where many share a machine
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


def node(o: NodeOptions) -> None:
    """Run one peer: it waits for its neighbours, fits with them, and keeps its model and trace.

    Start it again with the same command after a crash: it goes on from its checkpoint.
    """
    from edgewise.peers.config import load, read
    from edgewise.peers.metrics import Metrics
    from edgewise.peers.peer import Peer

    if o.status:
        show([read(o.peer)], o)
        return
    if o.shard is None:
        raise InputError("no data: give --shard FILE, or --status to look at a peer that runs")
    config = load(o.peer)
    if config.fit.bits is not None:
        raise InputError(
            f"{config.path}: fit.bits is {config.fit.bits}, and peers cannot round their messages "
            'yet: take it out, at all peers; wire = "float32" halves them'
        )
    config.out.mkdir(parents=True, exist_ok=True)
    handlers: list[logging.Handler] = [logging.FileHandler(config.out / "log.txt")]
    if not o.json:
        handlers.append(logging.StreamHandler())
    told = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    log = logging.getLogger("edgewise.peers")
    log.setLevel(logging.INFO)
    for handler in handlers:
        handler.setFormatter(told)
        log.addHandler(handler)
    peer = Peer(config)
    metrics = Metrics(peer)
    port = metrics.open()
    if port is not None:
        log.info("peer %d tells its metrics at port %d", config.id, port)
    try:
        result = peer.fit(o.shard)
    finally:
        metrics.close()
    output(o).print(f"peer {config.id}: {result.message}", highlight=False)
    if o.json:
        last = result.trace[-1] if result.trace else {}
        print_json({"command": "node", "peer": config.id, "message": result.message, **last})


def local(o: LocalOptions) -> None:
    """Start all peers of a mesh on this machine, with a data set split among them, to try it."""
    from edgewise.peers import mesh
    from edgewise.peers.config import save

    peers = mesh.read_mesh(o.folder).peers
    shards, _ = split_samples(replace(o, nodes=len(peers)))
    loss = parts.loss(peers[min(peers)].fit.loss, 0.0)
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
    output(o).print(f"{len(peers)} peers run; their logs are in {o.folder}/peer*/log.txt")
    failures = run_all(peers, files)
    show(list(peers.values()), o)
    if failures:
        raise InputError("; ".join(f"peer {id}: {why}" for id, why in failures.items()))


def run_all(peers: "dict[int, PeerConfig]", files: dict[int, Path]) -> dict[int, str]:
    """Every peer in a process of its own, until all have ended; why some failed."""
    node = [sys.executable, "-m", "edgewise", "node", "--json"]
    with ExitStack() as opened:
        said = {id: opened.enter_context(TemporaryFile()) for id in peers}
        running = {
            id: subprocess.Popen(
                [*node, str(config.path), "--shard", str(files[id])],
                env=ONE_THREAD | dict(os.environ),
                stdout=subprocess.DEVNULL,
                stderr=said[id],
            )
            for id, config in peers.items()
        }
        try:
            codes = {id: process.wait() for id, process in running.items()}
        finally:
            for process in running.values():
                process.terminate()
        return {id: last_line(said[id]) for id, code in codes.items() if code}


def last_line(file: IO[bytes]) -> str:
    """What a command said last, which is why it failed; one that was killed says nothing."""
    file.seek(0)
    lines = file.read().decode(errors="replace").strip().split("\n")
    return lines[-1].removeprefix("error: ") or "it ended without a word"


def status(o: StatusOptions) -> None:
    """How the peers of a mesh are doing, those that run on this machine."""
    from edgewise.peers import mesh

    show(list(mesh.read_mesh(o.folder).peers.values()), o)


def show(configs: "list[PeerConfig]", o: Any) -> None:
    said = [status_of(config) for config in configs]
    table = Table("peer", "state", "rounds", "residual", "neighbours there", "bytes sent", "seen")
    for one in said:
        around = one.get("neighbours", {})
        there = f"{sum(n['connected'] for n in around.values())} of {len(around)}"
        residual = one.get("residual")
        table.add_row(
            str(one["peer"]),
            one["state"],
            f"{one.get('rounds', 0):,.0f}",
            "" if residual is None else f"{residual:.2e}",
            there if around else "",
            f"{one.get('bytes_sent', 0):,.0f}",
            f"{time.time() - one['time']:.0f} s ago" if "time" in one else "never",
        )
    output(o).print(table)
    if o.json:
        print_json({"command": "status", "peers": said})


def status_of(config: "PeerConfig") -> dict[str, Any]:
    path = config.out / "status.json"
    try:
        said: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return {"peer": config.id, "state": "not started"}
    except (OSError, ValueError) as problem:
        raise InputError(f"{path} cannot be read ({problem})") from None
    if said["state"] == "running" and not alive(said["pid"]):
        said["state"] = "died"
    return said


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
