"""A model's coefficients by the names of their columns, for a terminal."""

from contextlib import suppress

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

import edgewise as ew
from edgewise.errors import InputError
from edgewise.running.run_folders import Saved

MOST_SHOWN = 12
MOST_CLASSES = 5


def model_of(run: Saved) -> ew.FittedModel | None:
    """The model in the folder of a run or a peer that knows its columns, if there is one."""
    with suppress(InputError):
        model = ew.load_model(run.folder)
        return model if model.columns is not None else None
    return None


def table_of_coefficients(model: ew.FittedModel) -> Table | None:
    """Those that count most, which a coefficient times the spread of its column in the fit tells;
    without a standardisation the coefficient alone. None with more classes than a line holds."""
    if len(model.coef) > MOST_CLASSES or model.columns is None:
        return None
    scale = np.ones(model.features) if model.scaling is None else model.scaling.scale
    weight = np.abs(model.coef * scale).max(0)
    order = [int(j) for j in np.argsort(-weight, kind="stable") if weight[j] > 0]
    rows = model.scaling is not None and model.scaling.unit_rows
    unit = "of rows of length 1" if rows else "per unit"
    zeros = model.features - len(order)
    left = len(order) - len(order[:MOST_SHOWN])
    rest = [f"{left} smaller ones" if left else "", f"{zeros} zero" if zeros else ""]
    caption = ", ".join(filter(None, rest))
    made = Table(
        title=f"coefficients, {unit}",
        box=SIMPLE_HEAD,
        caption=f"and {caption}, in model.json" if caption else None,
    )
    made.add_column("column", overflow="fold")
    heads = [""] if model.classes is None else [str(name) for name in model.classes.tolist()]
    for head in [f"towards {heads[1]}"] if len(heads) == 2 else heads:
        made.add_column(escape(head), justify="right")
    for j in order[:MOST_SHOWN]:
        made.add_row(escape(model.columns[j]), *(f"{w:.4g}" for w in model.coef[:, j]))
    made.add_row("[dim]intercept[/]", *(f"{b:.4g}" for b in model.intercept))
    return made
