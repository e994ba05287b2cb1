"""edgewise methods and edgewise doctor"""

import importlib.metadata
import os
import platform
import re
from typing import Any

import jax
from rich import box
from rich.table import Table

import edgewise as ew
from edgewise import __version__
from edgewise.backend.cache import folder
from edgewise.cli.options import ListOptions
from edgewise.cli.shell import output, print_json
from edgewise.methods.catalogue import make
from edgewise.methods.contract import Method
from edgewise.running.checks import precision

PACKAGE_OF = re.compile(r"([\w.-]+).*extra == ['\"]([\w.-]+)['\"]")


def methods(o: ListOptions) -> None:
    """What there is, what each needs, and when to take it."""
    rows = {name: needs(make(name)) | {"advice": line} for name, line in ew.list_methods().items()}
    told = "[bold]heals[/]: exact under faults; [bold]vectors[/]: sent an edge and round"
    table = Table(caption=told, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("method", "penalty", "exact", "heals", "vectors", "advice"):
        table.add_column(column, no_wrap=column != "advice")
    for name, row in rows.items():
        kept = (row[k] for k in ("penalty", "exact", "heals", "vectors_a_round", "advice"))
        table.add_row(name, *(said(value) for value in kept))
    output(o).print(table)
    if o.json:
        print_json(rows)


def needs(method: Method) -> dict[str, Any]:
    return {
        "penalty": method.takes_penalty,
        "vectors_a_round": len(method.hears),
        "rounds_a_step": method.rounds_a_step,
        "exact": method.exactness,
        "heals": method.healing().heals,
        "steps": "+".join(method.tunes),
        "streams": method.streams,
        "solves_subproblem": method.solves_subproblem,
        "second_order": method.second_order,
    }


def said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "by graph" if value is None else str(value)


def doctor(o: ListOptions) -> None:
    """Versions, devices and precision, and what is missing for which extra."""
    required: list[str] = []
    extras: dict[str, list[str]] = {}
    for line in importlib.metadata.requires("edgewise") or []:
        found = PACKAGE_OF.match(line)
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
