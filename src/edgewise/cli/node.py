"""edgewise node"""

import logging
import os
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from edgewise.cli.completion import log_levels
from edgewise.cli.network_options import NodeOptions
from edgewise.cli.peer_status import show
from edgewise.cli.shell import output, print_json
from edgewise.cli.watch import LINES, on_a_terminal, require_no_json, watch, watching
from edgewise.errors import InputError
from edgewise.fileio import make_folder

if TYPE_CHECKING:
    from edgewise.peers.config.peer_config import PeerConfig
    from edgewise.peers.node.result import PeerResult

log = logging.getLogger("edgewise.peers")


def node(o: NodeOptions) -> None:
    from edgewise.peers.config.peer_config import load, read

    if o.watch:
        require_no_json(o)
        if o.status:
            raise InputError("--status tells once, --watch keeps telling: give one of the two")
    if o.status:
        show([read(o.peer)], o)
    elif o.shard is not None or (not o.watch and read(o.peer).cost):
        level_of(o.log_level)
        config = load(o.peer)
        otherwise = "give a folder where you may write as out"
        make_folder(config.out, otherwise, exist_ok=True, mode=0o700)
        result = run(config, o.shard, o)
        output(o).print(f"peer {config.id}: {result.message}", highlight=False)
        ending = result.ending
        if o.json:
            last = {name: float(a[-1]) for name, a in result.trace.columns.items() if len(a)}
            last = {name: value for name, value in last.items() if np.isfinite(value)}
            known: dict[str, Any] = {} if ending is None else {"ending": ending.table()}
            known |= {} if result.scores is None else {"held_out": result.scores}
            print_json(
                {"command": "node", "peer": config.id, "message": result.message, **last, **known}
            )
        if ending is not None and ending.exit_code:
            raise typer.Exit(ending.exit_code)
    elif o.watch:
        watch(read(o.peer))
    else:
        raise InputError(
            "no data: give --shard FILE, or --status or --watch to look at a peer that runs"
        )


def run(config: "PeerConfig", shard: str | None, o: NodeOptions) -> "PeerResult":
    import jax

    from edgewise.backend.memory import forget_compiling
    from edgewise.peers.node.peer import Peer
    from edgewise.peers.operations.logs import LastLines, logging_to
    from edgewise.peers.operations.metrics import Metrics

    with ExitStack() as stack:
        recent = LastLines(LINES)
        shown = recent if o.watch and on_a_terminal() else logging.StreamHandler()
        shown.setLevel(logging.WARNING if o.json else logging.NOTSET)
        stack.enter_context(logging_to(config.out, config.id, shown, level_of(o.log_level)))
        # Several peers may share a GPU, and a peer seldom needs three quarters of one.
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        # Every step is waited for at once: to hand it to another thread takes longer than it does.
        jax.config.update("jax_cpu_enable_async_dispatch", False)
        allow_many_files()
        peer = Peer(config)
        peer.when_compiled = forget_compiling
        metrics = Metrics(peer)
        port = metrics.open()
        stack.callback(metrics.close)
        if port is not None:
            log.info("peer %d tells its metrics at port %d", config.id, port, extra={"port": port})
        if o.watch:
            stack.enter_context(watching(config, os.getpid(), recent.lines))
        return peer.fit(shard, test=o.test, label=o.label)


def level_of(name: str) -> int:
    if name not in log_levels():
        raise InputError(f"--log-level is one of {', '.join(log_levels())}, not {name}")
    return int(getattr(logging, name.upper()))


def allow_many_files() -> None:
    """Who connects and says nothing holds a descriptor for a while; there should be some left."""
    try:
        import resource
    except ImportError:  # no such limits
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
