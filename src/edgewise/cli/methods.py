"""edgewise methods"""

from typing import Any

from rich import box
from rich.table import Table

import edgewise as ew
from edgewise.cli.options import ListOptions
from edgewise.cli.shell import output, print_json
from edgewise.methods.auto import LOCAL, MOST_UNKNOWNS, NEWTON, STREAMING
from edgewise.methods.catalogue import AUTO, make, takes_couplings
from edgewise.methods.contract import Method


def methods(o: ListOptions) -> None:
    advice = ew.list_methods()
    rows = {name: properties(make(name)) | {"advice": advice[name]} for name in advice}
    caption = (
        "[bold]heals[/]: exact under faults; [bold]couples[/]: models need not be equal, between=; "
        "[bold]vectors[/]: sent an edge and round\n"
        f"[bold]{AUTO}[/], the default: {NEWTON} up to {MOST_UNKNOWNS:,} unknowns, else {LOCAL}; "
        f"{STREAMING} for streams"
    )
    table = Table(caption=caption, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("method", "penalty", "exact", "heals", "couples", "vectors", "advice"):
        table.add_column(column, no_wrap=column != "advice")
    for name, row in rows.items():
        cells = ("penalty", "exact", "heals", "couplings", "vectors_a_round", "advice")
        shown = (row[k] for k in cells)
        table.add_row(name, *(cell(value) for value in shown))
    output(o).print(table)
    if o.json:
        print_json(rows)


def properties(method: Method) -> dict[str, Any]:
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
        "couplings": takes_couplings(method),
    }


def cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "by graph" if value is None else str(value)
