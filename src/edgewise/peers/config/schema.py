"""[schema]: what every peer's table holds, column by column, the same at all peers.

[schema]
label = "diagnosis"
classes = ["benign", "malignant"]     of a classification
ignore = ["patient"]                  columns that a table may have besides
columns = [
  { name = "age", type = "number", unit = "years" },
  { name = "sex", type = "text", levels = ["f", "m"] },
  { name = "crp", type = "number", unit = "mg/l", centre = 5.0, scale = 20.0, fill = 5.0 },
]

unit          said to whoever reads it, and compared
centre, scale fixed numbers that the column is scaled by
fill          what stands for a missing cell; without one a missing cell is refused
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from edgewise.errors import InputError, UnknownName
from edgewise.fileio import read_toml, toml
from edgewise.peers.config.rules import are_classes, is_number, is_text

NUMBER, TEXT = "number", "text"
TABLE = "schema"
HOW = "`edgewise network schema FILE` proposes one"


@dataclass(frozen=True)
class Column:
    name: str
    type: str = NUMBER
    unit: str = ""
    levels: tuple[str, ...] = ()
    centre: float | None = None
    scale: float | None = None
    fill: float | str | None = None

    def toml(self) -> str:
        """With a place for the unit."""
        unit = {"unit": self.unit} if self.type == NUMBER else {}
        return toml({"name": self.name, "type": self.type, **unit, **self.table()})

    def table(self) -> dict[str, Any]:
        """What is not as usual."""
        given = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}
        return {k: v for k, v in given.items() if k in ("name", "type") or v not in (None, "", [])}


@dataclass(frozen=True)
class Schema:
    columns: tuple[Column, ...]
    label: str | None = None
    classes: tuple[Any, ...] | None = None
    ignore: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def scaled(self) -> bool:
        return any(c.centre is not None or c.scale is not None for c in self.columns)

    def table(self) -> dict[str, Any]:
        """As JSON holds it, and what neighbours compare: what is ignored is each peer's own."""
        label = {"label": self.label} if self.label is not None else {}
        classes = {"classes": list(self.classes)} if self.classes is not None else {}
        return {**label, **classes, "columns": [column.table() for column in self.columns]}

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self.table()).encode()).hexdigest()

    def text(self) -> str:
        """As TOML, a column a line."""
        given = self.table()
        del given["columns"]
        if self.ignore:
            given["ignore"] = list(self.ignore)
        lines = [f"[{TABLE}]", *(f"{key} = {toml(value)}" for key, value in given.items())]
        return "\n".join(
            [*lines, "columns = [", *(f"  {c.toml()}," for c in self.columns), "]", ""]
        )


# --- reading --------------------------------------------------------------------------------------


def read_schema(path: str | Path) -> Schema:
    """Of a file that has nothing but a [schema]."""
    given = read_toml(path)
    if set(given) != {TABLE}:
        raise InputError(f"{path} is to have a [schema], and nothing else: {HOW}")
    return schema_in(given[TABLE], str(path))


def schema_in(given: Any, at: str) -> Schema:
    if not isinstance(given, Mapping):
        raise InputError(f"{at}: schema is no table: write [schema]")
    known = ("label", "classes", "ignore", "columns")
    for key in given:
        if key not in known:
            raise UnknownName(f"key in {at}:", f"schema.{key}", [f"schema.{k}" for k in known])
    label, classes, ignore = (given.get(key) for key in known[:3])
    if label is not None and not is_text(label):
        raise InputError(f"{at}: schema.label is {label!r}: give the name of a column")
    if classes is not None and not are_classes(classes):
        raise InputError(
            f"{at}: schema.classes is {classes!r}: give two labels or more, all numbers or all "
            "texts, none twice"
        )
    if ignore is not None and not (isinstance(ignore, list) and all(map(is_text, ignore))):
        raise InputError(f"{at}: schema.ignore is {ignore!r}: give a list of names")
    listed = given.get("columns")
    if not isinstance(listed, list) or not listed:
        raise InputError(f"{at}: schema.columns is missing: list the columns ({HOW})")
    columns = tuple(column_in(each, at) for each in listed)
    names = [column.name for column in columns]
    for name in (*names, *(ignore or ())):
        if names.count(name) > 1 or (label == name):
            raise InputError(f'{at}: schema says "{name}" twice: leave one out')
    return Schema(columns, label, None if classes is None else tuple(classes), tuple(ignore or ()))


def column_in(given: Any, at: str) -> Column:
    if not isinstance(given, Mapping) or not is_text(given.get("name")):
        raise InputError(f'{at}: schema.columns has {given!r}: write {{ name = "age" }}')
    name = given["name"]
    known = ("name", "type", "unit", "levels", "centre", "scale", "fill")
    for key in given:
        if key not in known:
            raise UnknownName(f'key in {at}: schema, column "{name}":', key, known)
    made = Column(**dict(given) | {"levels": tuple(given.get("levels", ()))})
    wrong = wrong_in(made)
    if wrong:
        raise InputError(f'{at}: schema, column "{name}": {wrong}')
    return made


def wrong_in(column: Column) -> str:
    """What of a column cannot be used, or nothing."""
    if column.type not in (NUMBER, TEXT):
        return f"type is {column.type!r}: give number or text"
    if not isinstance(column.unit, str):
        return f"unit is {column.unit!r}: give a text"
    if column.type == NUMBER:
        if column.levels:
            return 'levels go with type = "text"'
        for name in ("centre", "scale", "fill"):
            value = getattr(column, name)
            if value is not None and not is_number(value):
                return f"{name} is {value!r}: give a number"
        if column.scale is not None and column.scale <= 0:
            return f"scale is {column.scale}: give a positive number"
        return ""
    levels = column.levels
    if not levels or not all(map(is_text, levels)) or len(set(levels)) < len(levels):
        return "levels is to list all the texts that the column may hold, each once"
    if column.centre is not None or column.scale is not None:
        return "centre and scale go with numbers: its levels become columns of zeros and ones"
    if column.fill is not None and column.fill not in levels:
        return f"fill is {column.fill!r}: give one of its levels"
    return ""


# --- what differs ---------------------------------------------------------------------------------


def difference(mine: dict[str, Any], theirs: dict[str, Any]) -> str:
    """In words: what `theirs` has, and `mine` then; nothing where they are the same."""
    for key in ("label", "classes"):
        if mine.get(key) != theirs.get(key):
            return f"{key} = {short(theirs.get(key))}, and here {short(mine.get(key))}"
    own, their = ([c["name"] for c in said["columns"]] for said in (mine, theirs))
    wrong = different_names(own, their)
    if wrong:
        return wrong
    for a, b in zip(mine["columns"], theirs["columns"], strict=True):
        for key in {**a, **b}:
            if a.get(key) != b.get(key):
                return (
                    f'{key} = {short(b.get(key))} for column "{a["name"]}", and here '
                    f"{short(a.get(key))}"
                )
    return ""


def different_names(own: list[str], their: list[str]) -> str:
    for name in own:
        if name not in their:
            return f"no column {short(name)}, which is here"
    for name in their:
        if name not in own:
            return f"a column {short(name)}, which is not here"
    for k, (a, b) in enumerate(zip(own, their, strict=False), 1):
        if a != b:
            return f"column {k} is {short(b)}, and here {short(a)}: the order is another"
    return ""


def short(value: Any) -> str:
    """What somebody else chose, for a line of the log."""
    text = json.dumps(value) if isinstance(value, str) else repr(value)
    return text if len(text) <= 100 else text[:100] + "..."
