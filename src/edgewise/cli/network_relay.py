"""edgewise network relay"""

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from edgewise.cli.network_options import RelayOptions
from edgewise.cli.node import allow_many_files, level_of
from edgewise.cli.shell import output, print_json
from edgewise.errors import InputError
from edgewise.fileio import make_folder

if TYPE_CHECKING:
    from edgewise.peers.relay.identity import RelayIdentity
    from edgewise.peers.relay.limits import Limits

FOLDER = "relay"  # of its log, beside its key


def relay(o: RelayOptions) -> None:
    from edgewise.peers.config.addresses import is_address
    from edgewise.peers.operations.logs import logging_to
    from edgewise.peers.relay.identity import identity_in
    from edgewise.peers.relay.limits import Limits

    if o.make:
        make(o)
        return
    if not is_address(o.listen):
        raise InputError(f"--listen is {o.listen!r}: give HOST:PORT, as 0.0.0.0:24690")
    if o.connections < 2 or not o.megabytes > 0:
        raise InputError("--connections is 2 or more, --megabytes more than 0")
    identity = identity_in(o.folder)
    limits = Limits(o.connections, bytes_per_second=1e6 * o.megabytes)
    folder = Path(o.folder) / FOLDER if o.out is None else Path(o.out)
    make_folder(folder, "give a folder where you may write as --out", exist_ok=True, mode=0o700)
    allow_many_files()
    shown = logging.StreamHandler()
    with logging_to(folder, "relay", shown, level_of(o.log_level)):
        asyncio.run(until_stopped(identity, o.listen, limits))


async def until_stopped(identity: "RelayIdentity", listen: str, limits: "Limits") -> None:
    from edgewise.peers.node.signals import stop_on_signals
    from edgewise.peers.relay.server import Relay

    stop, _ = stop_on_signals(asyncio.Event())
    passes_on = Relay(identity, listen, limits)
    await passes_on.open()
    try:
        await stop.wait()
    finally:
        await passes_on.close()


def make(o: RelayOptions) -> None:
    from edgewise.peers.operations.authority import CERTIFICATE
    from edgewise.peers.operations.mesh import read_mesh
    from edgewise.peers.relay.identity import KEY, PEM, certify

    mesh = read_mesh(o.folder)
    certify(mesh.folder, next(iter(mesh.peers.values())).mesh, o.days)
    output(o).print(
        f"made {PEM} and {KEY}: copy both and {CERTIFICATE} to the relay's host, and start "
        '`edgewise network relay FOLDER` there; write relay = "HOST:PORT" into [peer] of the '
        "TOML files, or into a [[neighbour]] at both ends of an edge",
        highlight=False,
        soft_wrap=True,
    )
    if o.json:
        print_json({"command": "network relay", "files": [PEM, KEY, CERTIFICATE]})
