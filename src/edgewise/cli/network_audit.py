"""edgewise network audit"""

import typer
from rich import filesize

from edgewise.cli.network_options import AuditOptions
from edgewise.cli.shell import output, print_json
from edgewise.errors import InputError

BROKEN = 1  # exit code


def audit(o: AuditOptions) -> None:
    from edgewise.peers.operations.audit import FILE, verified

    if o.action != "verify" or not o.folders:
        raise InputError("say what to do: edgewise network audit verify mesh/peer3")
    if o.head is not None and len(o.folders) > 1:
        raise InputError("--head is the hash of one peer: give one folder")
    found, console = {folder: verified(folder, o.head) for folder in o.folders}, output(o)
    for folder, verdict in found.items():
        sizes = ", ".join(f"{filesize.decimal(n)} of {k}" for k, n in sorted(verdict.left.items()))
        told = (
            f"BROKEN: {verdict.wrong}"
            if verdict.wrong
            else f"{verdict.lines} lines hang together; the last has the hash {verdict.head}"
        )
        left = f"; what left the host: {sizes}" if sizes else ""
        console.print(f"{folder}/{FILE}: {told}{left}", highlight=False, soft_wrap=True)
    if o.json:
        print_json(
            {"command": "network audit", "peers": {f: v._asdict() for f, v in found.items()}}
        )
    if any(verdict.wrong for verdict in found.values()):
        raise typer.Exit(BROKEN)
