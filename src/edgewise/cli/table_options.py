"""Options of files with columns: CSV and its like, Parquet, Arrow."""

from dataclasses import dataclass, fields
from typing import Annotated, Any

import typer

from edgewise.cli import completion as names


def option(help: str, *flags: str, **more: Any) -> Any:
    return typer.Option(*flags, help=help, rich_help_panel="Tables", **more)


@dataclass(frozen=True)
class TableOptions:
    missing: Annotated[
        str | None,
        option(
            "Rows with missing cells: drop; or fill them with the mean or the median of the column "
            "over all rows, or with the mean beside a column that says where (indicator).",
            show_default="refuse",
            autocompletion=names.missing,
        ),
    ] = None
    encode: Annotated[
        str | None,
        option(
            "Columns of text: onehot, zeros and ones for each level of all rows.",
            show_default="refuse",
            autocompletion=names.encodings,
        ),
    ] = None
    na: Annotated[
        list[str] | None,
        option(
            "What stands for a missing cell besides ?, NA and the like: -999, say. May be repeated."
        ),
    ] = None
    ignore: Annotated[list[str] | None, option("A column to leave out. May be repeated.")] = None
    separator: Annotated[
        str | None,
        option("Between cells: one character, comma, tab or space.", show_default="found out"),
    ] = None
    decimal: Annotated[str | None, option("Decimal mark: . or ,", show_default="found out")] = None
    encoding: Annotated[
        str | None, option("Of the text: utf-8, cp1252, ...", show_default="found out")
    ] = None
    header: Annotated[
        bool | None,
        option(
            "Whether the first line names the columns.",
            "--header/--no-header",
            show_default="found out",
        ),
    ] = None
    offset: Annotated[
        str | None, option("A column that is added to every margin, as log_exposure. No feature.")
    ] = None
    exposure: Annotated[
        str | None,
        option(
            "A column of how long, or how many, were watched: its logarithm is added to margins."
        ),
    ] = None
    case_weight: Annotated[
        str | None, option("A column of weights: how many samples a row stands for.")
    ] = None
    trials: Annotated[
        str | None,
        option("A column of trials, of which labels are the successes: for --family binomial."),
    ] = None


def table_options(o: TableOptions) -> dict[str, Any]:
    """Those that are given, by the names that `read_samples` has."""
    given = {f.name: getattr(o, f.name) for f in fields(TableOptions)}
    return {name: value for name, value in given.items() if value is not None}
