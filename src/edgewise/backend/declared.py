"""Which formula a class says that it is, so that an engine may run a compiled copy of it.

A class declares it in its own body: `compiled_as = "saga"`. A subclass does not inherit that, as it
may compute something else; one that does not may declare it anew.
"""

from dataclasses import fields, is_dataclass
from typing import Any


def declared(thing: Any) -> str | None:
    """The formula of its class, unless the class says none or the object has changed parts."""
    kind = type(thing)
    said = vars(kind).get("compiled_as")
    name: str | None = said.fget(thing) if isinstance(said, property) and said.fget else said
    known = {f.name for f in fields(kind)} if is_dataclass(kind) else set()
    return name if name and vars(thing).keys() <= known else None
