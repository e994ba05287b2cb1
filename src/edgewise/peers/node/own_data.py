"""A peer's own data, as the schema says that they are to be, and part of them held out."""

import logging
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgewise.data import frames
from edgewise.data.arrays import missing_labels
from edgewise.data.cells import absent, label_column, others, read_cells, read_labels, some
from edgewise.data.frames import Frame, place, source
from edgewise.data.loading import kind_of_file, read_samples
from edgewise.data.preparation import Preparation
from edgewise.data.row_terms import TermColumns
from edgewise.data.scaling import Standardization
from edgewise.data.shards import TERMS, Shards
from edgewise.data.tables import read_table
from edgewise.errors import DataError, InputError
from edgewise.peers.config.peer_config import PeerConfig
from edgewise.peers.config.schema import TEXT, Schema

log = logging.getLogger("edgewise.peers")


class OwnData(NamedTuple):
    """Samples to fit to, and samples to try the model on."""

    shards: Shards | None
    held: Shards | None = None


def own_data(config: PeerConfig, shard: Any, test: Any = None, label: str | None = None) -> OwnData:
    """shard: a file, (X, y), or a table with its labels; None where the peer has a cost alone."""
    if shard is None:
        return OwnData(None)
    shards = read_shard(config, shard, label)
    if test is not None:
        if not config.sums_first:
            raise InputError(
                f"{config.path}: samples to test with are added up over all peers, and [fit] has "
                'weights = "node", no standardize and no holdout: set one of them, or leave the '
                "test out"
            )
        if config.fit.holdout is not None:
            raise InputError(
                f"{config.path}: fit.holdout takes samples to test with from the shard: leave it "
                "out, or the test"
            )
        return OwnData(shards, read_shard(config, test, label))
    if config.fit.holdout is None:
        return OwnData(shards)
    return held_out(shards, config.fit.holdout, config.fit.seed, config.id)


def held_out(shards: Shards, part: float, seed: int, id: int) -> OwnData:
    """Drawn by the seed and the peer's number: the same again after a restart."""
    n = shards.samples
    count = min(round(part * n), n - 1)
    if not count:
        return OwnData(shards)
    drawn = np.random.default_rng([seed, id]).permutation(n)
    return OwnData(rows(shards, np.sort(drawn[count:])), rows(shards, np.sort(drawn[:count])))


def rows(shards: Shards, which: np.ndarray) -> Shards:
    terms = {name: a[which] for name in TERMS if (a := getattr(shards, name)) is not None}
    return Shards(
        shards.X[which],
        shards.y[which],
        np.array([len(which)]),
        columns=shards.columns,
        lines=None if shards.lines is None else shards.lines[which],
        scaling=shards.scaling,
        preparation=shards.preparation,
        **terms,
    )


def read_shard(config: PeerConfig, shard: Any, label: str | None) -> Shards:
    schema = config.schema
    if isinstance(shard, str | PathLike):
        path = Path(shard)
        if kind_of_file(path) == "table" and schema is not None:
            known = {*schema.names, *schema.ignore, schema.label or "", label or ""}
            known |= {*config.terms.names}
            table = read_table(path, names=known - {""})
            return by_schema(schema, table, None, label, config.terms)
        terms = config.terms if kind_of_file(path) == "table" else TermColumns()
        samples = read_samples(path, config.fit.features, label=label or "last", terms=terms)
        made = Shards(
            samples.X,
            samples.y,
            np.array([len(samples.y)]),
            columns=samples.columns,
            lines=samples.lines,
            preparation=samples.preparation,
            offset=samples.terms.offset,
            weight=samples.terms.weight,
        )
    elif isinstance(shard, Shards):
        made = shard
    elif schema is not None and frames.is_frame(table := frames.as_pandas(shard)):
        return by_schema(schema, table, None, label, config.terms)
    else:
        if schema is not None and frames.is_frame(X := frames.as_pandas(shard[0])):
            return by_schema(schema, X, shard[1], None, config.terms)
        made = Shards.from_parts([shard])
    return made if schema is None else of_numbers(schema, made, str(config.path))


# --- by the schema --------------------------------------------------------------------------------


def preparation_of(schema: Schema) -> Preparation:
    return Preparation(
        columns=schema.names,
        missing=None,
        levels={c.name: c.levels for c in schema.columns if c.type == TEXT},
        fills={c.name: c.fill for c in schema.columns if c.fill is not None},
        indicated=(),
        label=schema.label,
    )


def scaling_of(schema: Schema, made: Preparation) -> Standardization | None:
    """By the schema's fixed numbers, where it has some."""
    if not schema.scaled:
        return None
    centre, scale = [], []
    for column in schema.columns:
        wide = len(made._names_of(column.name))
        centre += [column.centre or 0.0] * wide
        scale += [column.scale or 1.0] * wide
    return Standardization(np.array(centre), np.array(scale))


def by_schema(
    schema: Schema, table: Frame, y: Any, label: str | None, terms: TermColumns
) -> Shards:
    """Columns by name, in the schema's order; y where the table has no labels itself."""
    table = table.set_axis([str(name) for name in table.columns], axis=1)
    table, of_rows = terms.taken_from(table, label or schema.label)
    if y is None:
        target = label_column(table, label or schema.label or "last")
        y = checked_labels(schema, table, target)
        table = table.drop(columns=target)
    require_columns(schema, table)
    y = of_rows.rates(y, source(table))
    made = preparation_of(schema)
    names = {name: getattr(terms, name) for name in ("offset", "exposure", "trials")}
    made = replace(made, **names)
    for column in schema.columns:
        if column.type == TEXT:
            table = with_texts(table, column.name)
        require_cells(schema, table, column.name)
    frame = made.apply(table)
    scaling = scaling_of(schema, made)
    X: Any = frame if scaling is None else scaling.apply(frame.to_numpy())
    lines = np.asarray(frame.index, np.int64) if frame.index.name == frames.LINE else None
    counts = np.array([len(frame)])
    options: dict[str, Any] = {"lines": lines, "scaling": scaling, "preparation": made}
    options |= {name: getattr(of_rows, name) for name in TERMS}
    return Shards(X, y, counts, columns=made.names, **options)


def require_columns(schema: Schema, table: Frame) -> None:
    own = list(table.columns)
    lacking = [name for name in schema.names if name not in own]
    extra = [name for name in own if name not in schema.names and name not in schema.ignore]
    if lacking and all(name.isdigit() for name in own):
        raise DataError(
            f"{source(table)}the first line names no columns, and the schema knows them by name: "
            f"put a header on top, {some(schema.names)}"
        )
    if lacking:
        beside = f", and has {some(extra)} besides" if extra else ""
        raise DataError(
            f"{source(table)}there is no column {some(quoted(lacking))}, which the schema "
            f"has{beside}: give the schema's columns, in whatever order"
        )
    if extra:
        raise DataError(
            f"{source(table)}the schema does not know column {some(quoted(extra))}: list it under "
            "ignore in [schema], or take it out of the table"
        )


def quoted(names: list[str]) -> list[str]:
    return [f'"{name}"' for name in names]


def with_texts(table: Frame, name: str) -> Frame:
    """Levels that are numbers, 1, 2, 3, are texts: whole ones without a point."""
    column = table[name]
    if frames.kind_of(column) != "number":
        return table
    values = frames.as_floats(column).astype(np.float64)
    texts = [None if np.isnan(v) else str(int(v)) if v == int(v) else str(v) for v in values]
    return table.assign(**{name: np.array(texts, object)})


def require_cells(schema: Schema, table: Frame, name: str) -> None:
    """That the cells are of the schema's type, and there."""
    column = next(c for c in schema.columns if c.name == name)
    cells = read_cells(table, name)
    if column.type != TEXT and cells.dtype.kind == "O":
        there = np.flatnonzero(~absent(cells))
        raise DataError(
            f'{source(table)}column "{name}", {place(table, there[0])}{others(there)}: '
            f"{str(cells[there[0]])[:40]!r} is text, and the schema says that it holds numbers"
        )
    gaps = np.flatnonzero(absent(cells))
    if len(gaps) and column.fill is None:
        raise DataError(
            f'{source(table)}column "{name}", {place(table, gaps[0])}{others(gaps)}: the cell is '
            "empty: leave the row out, or say what stands for it, as fill = 0.0, in the column's "
            "entry of [schema], the same at all peers"
        )


def checked_labels(schema: Schema, table: Frame, target: str) -> np.ndarray:
    """Of the schema's classes, as it has them."""
    y = read_labels(table, target)
    gaps = np.flatnonzero(missing_labels(y))
    if len(gaps):
        raise DataError(
            f'{source(table)}column "{target}", {place(table, gaps[0])}{others(gaps)}: there is no '
            "label: leave the row out"
        )
    if schema.classes is None:
        return y
    words = isinstance(schema.classes[0], str)
    if words and y.dtype.kind not in "US":
        y = np.array([str(int(v)) if v == int(v) else str(v) for v in y.astype(float)])
    known = set(schema.classes)
    strange = np.array([k for k, value in enumerate(y.tolist()) if value not in known], int)
    if len(strange):
        raise DataError(
            f'{source(table)}column "{target}", {place(table, strange[0])}{others(strange)}: '
            f"{y[strange[0]].item()!r} is none of the schema's classes, {some(schema.classes)}"
        )
    return y


def of_numbers(schema: Schema, shards: Shards, at: str) -> Shards:
    """Features that were numbers before, as npz and LIBSVM hold them: by name where they have
    names, else by their number alone."""
    made = preparation_of(schema)
    names = made.names
    if shards.columns is not None:
        table = [name for name in names if name not in shards.columns]
        extra = [name for name in shards.columns if name not in (*names, *schema.ignore)]
        if table or extra:
            what = f"no column {some(quoted(table))}" if table else f"also {some(quoted(extra))}"
            raise DataError(f"the data have {what}, unlike the schema in {at}: make them the same")
        order = [shards.columns.index(name) for name in names]
        X = shards.X[:, order]
    elif shards.features != len(names):
        raise DataError(
            f"the data have {shards.features} columns, the schema in {at} {len(names)}: "
            f"{some(names)}"
        )
    else:
        X = shards.X
        log.warning("the data name no columns: only their number was held against the schema")
    scaling = scaling_of(schema, made)
    X = X if scaling is None else scaling.apply(X)
    options: dict[str, Any] = {"lines": shards.lines, "scaling": scaling}
    options |= {name: getattr(shards, name) for name in TERMS}
    return Shards(X, shards.y, shards.counts, columns=names, **options)
