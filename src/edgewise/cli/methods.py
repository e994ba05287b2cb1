"""edgewise methods"""

from typing import Any

from rich import box
from rich.table import Table

import edgewise as ew
from edgewise.cli.options import ListOptions
from edgewise.cli.shell import output, print_json
from edgewise.methods.catalogue import make


def methods(o: ListOptions) -> None:
    advice = ew.list_methods()
    rows = {name: properties(make(name)) | {"advice": advice[name]} for name in advice}
    caption = "[bold]heals[/]: exact under faults; [bold]vectors[/]: sent an edge and round"
    table = Table(caption=caption, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("method", "penalty", "exact", "heals", "vectors", "advice"):
        table.add_column(column, no_wrap=column != "advice")
    for name, row in rows.items():
        shown = (row[k] for k in ("penalty", "exact", "heals", "vectors_a_round", "advice"))
        table.add_row(name, *(cell(value) for value in shown))
    output(o).print(table)
    if o.json:
        print_json(rows)


def properties(method: Any) -> dict[str, Any]:
    deep = getattr(method, "depth", 1) is None  # as many rounds a step as the graph asks for
    return {
        "penalty": bool(getattr(method, "takes_penalty", True)),
        "vectors_a_round": len(method.hears),
        "rounds_a_step": None if deep else len(method.phases),
        "exact": exactness(method),
        "heals": bool(method.heals) or hasattr(method, "form"),
        "steps": "+".join(getattr(method, "tunes", ("eta",))),
    }


def exactness(method: Any) -> str:
    """Where it ends: at the optimum, slowly, near it, or at a floor."""
    gradient = getattr(method, "gradient", None)
    if isinstance(method, ew.DCS):
        return "slowly"
    if isinstance(method, ew.DGD) or isinstance(gradient, ew.SGD):
        return "no"
    differences = isinstance(getattr(gradient, "oracle", None), ew.FiniteDifference)
    return "to 1e-7" if differences else "yes"


def cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "by graph" if value is None else str(value)
