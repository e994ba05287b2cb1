"""What neighbours compare of their tables: the schema, or without one the columns' names."""

import hashlib
import json
import logging
from typing import Any

from edgewise.peers.config import schema as schemas
from edgewise.peers.config.schema import Schema, different_names, short
from edgewise.running.model_form import counted

log = logging.getLogger("edgewise.peers")

MOST_TOLD = 20_000  # bytes; of longer ones a hash a column
MOST_HASHES = 2_000  # columns; of more one hash of all
HOW = (
    "give all peers' tables the same columns in the same order, or a [schema], by which each peer "
    "orders its own (`edgewise network schema FILE`)"
)


def told(schema: Schema | None, columns: tuple[str, ...] | None) -> dict[str, Any]:
    """columns: the names of the data's own, where they have some."""
    if schema is not None:
        whole = schema.table()
        fits = len(json.dumps(whole)) <= MOST_TOLD
        return {"digest": schema.digest, "schema": whole if fits else None, "columns": None}
    if columns is None or counted(columns):
        return {"digest": None, "schema": None, "columns": None}
    names = list(columns)
    if len(json.dumps(names)) > MOST_TOLD:
        names = [digest_of(name)[:8] for name in names]
    if len(names) > MOST_HASHES:
        names = [digest_of(names)]
    return {"digest": digest_of(list(columns)), "schema": None, "columns": names}


def digest_of(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def difference(other: int, mine: dict[str, Any], theirs: Any) -> str:
    """What differs between two peers' tables, or nothing."""
    try:
        return differing(other, mine, theirs)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        return f"peer {other} says nothing usable of its table"


def differing(other: int, mine: dict[str, Any], theirs: dict[str, Any]) -> str:
    own, their = mine["digest"], theirs["digest"]
    if own == their:
        return ""
    by_schema = [said["digest"] is not None and said["columns"] is None for said in (mine, theirs)]
    if all(by_schema):
        a, b = mine["schema"], theirs["schema"]
        what = schemas.difference(a, b) if a is not None and b is not None else "another digest"
        return (
            f"the schema of peer {other} differs: {what or 'in the order of keys'}: give all peers "
            "the same [schema]"
        )
    if any(by_schema):
        has, lacks = f"peer {other}", "this peer"
        has, lacks = (has, lacks) if by_schema[1] else (lacks, has)
        return f"{has} has a [schema] and {lacks} none: give all peers the same"
    if own is None or their is None:
        nameless = "its own data have none" if own is None else "that peer's data have none"
        log.warning(
            "names of columns are not compared with those of peer %d, as %s: only their number is",
            other,
            nameless,
        )
        return ""
    what = different_names(mine["columns"], theirs["columns"])
    return f"the table of peer {other} differs: {what or short(their)}: {HOW}"
