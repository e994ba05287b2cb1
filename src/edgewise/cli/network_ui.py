"""edgewise network ui"""

import threading
import webbrowser
from pathlib import Path

from edgewise.cli.network_options import PageOptions
from edgewise.cli.shell import output
from edgewise.errors import InputError


def ui(o: PageOptions) -> None:
    from edgewise.cli.dashboard.overview import Overview
    from edgewise.cli.dashboard.server import PageServer
    from edgewise.cli.dashboard.sources import sources_of

    if not 0 <= o.port <= 65535:
        raise InputError(f"--port is {o.port}: give one up to 65535, or 0 for any that is free")
    if not o.sources and not Path("mesh").is_dir():
        raise InputError(
            "there is no folder mesh here: name the one that `edgewise network init` wrote, TOML "
            "files of peers on this machine, or addresses of peers' metrics (http://host:9464)"
        )
    sources = sources_of(o.sources or ["mesh"])
    with Overview(sources) as overview, PageServer(o.port, overview) as server:
        several = "peer" if len(sources) == 1 else "peers"
        output(o).print(
            f"{len(sources)} {several} at {server.url}, on this machine alone; Ctrl-C ends the "
            "page, and leaves the peers alone",
            highlight=False,
            soft_wrap=True,
        )
        if o.open:
            threading.Timer(0.2, webbrowser.open, [server.url]).start()
        try:
            server.serve_forever(poll_interval=0.1)
        except KeyboardInterrupt:
            return
