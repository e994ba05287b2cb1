"""edgewise doctor"""

import importlib.metadata
import os
import platform
import re

import jax
from rich.table import Table

from edgewise import __version__
from edgewise.backend.cache import folder
from edgewise.cli.options import ListOptions
from edgewise.cli.shell import output, print_json
from edgewise.running.checks import precision

PACKAGE_OF = re.compile(r"([\w.-]+).*extra == ['\"]([\w.-]+)['\"]")


def doctor(o: ListOptions) -> None:
    required: list[str] = []
    extras: dict[str, list[str]] = {}
    for line in importlib.metadata.requires("edgewise") or []:
        found = PACKAGE_OF.match(line)
        if found and found[1] == "edgewise":
            continue  # an extra that stands for others
        if found:
            extras.setdefault(found[2], []).append(found[1])
        else:
            required.append(re.split(r"[^\w.-]", line)[0])
    missing = {e: [p for p in packages if not version(p)] for e, packages in extras.items()}
    devices = [str(d) for d in jax.devices()]
    facts = {
        "edgewise": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "devices": devices,
        "precision": str(precision(None)),
        "cache": str(folder()),
        "packages": {p: version(p) for p in sorted({*required, "jaxlib"})},
        "extras": {e: {"missing": lacking} for e, lacking in missing.items()},
    }
    table = Table(show_header=False)
    for name in ("edgewise", "python", "system", "precision", "cache"):
        table.add_row(name.replace("_", " "), str(facts[name]))
    table.add_row("devices", ", ".join(devices))
    for package in sorted({*required, "jaxlib"}):
        table.add_row(package, version(package) or "[red]missing[/]")
    for extra, lacking in missing.items():
        ask = f"pip install {' '.join(lacking)}" if lacking else "complete"
        table.add_row(f"extra {extra}", ask)
    output(o).print(table)
    if o.json:
        print_json(facts)


def version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
