"""edgewise network status"""

from edgewise.cli.network_options import StatusOptions
from edgewise.cli.peer_status import show
from edgewise.cli.watch import watch_all
from edgewise.peers.operations import mesh


def status(o: StatusOptions) -> None:
    configs = list(mesh.read_mesh(o.folder).peers.values())
    if o.watch:
        watch_all(configs, o)
    else:
        show(configs, o)
