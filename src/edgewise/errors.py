"""Everything Edgewise raises on purpose, in one tree.

    EdgewiseError
    ├── InputError (also ValueError)     something handed in cannot be used
    │   ├── GraphError                   the graph: disconnected, self-loop, unknown node
    │   ├── DataError                    the samples: empty shard, NaN, one class, shapes
    │   │   └── DisclosureError          a count of so few people that a node does not tell it
    │   ├── ProblemError                 loss, penalty and data do not fit together
    │   ├── MethodError                  a method, its steps, or what it cannot take
    │   └── UnknownName                  a name nobody has, with the nearest that somebody has
    ├── DownloadError (also OSError)     a named data set could not be fetched or verified
    └── CheckpointError                  a checkpoint that is damaged or of another run

Each message says what is wrong and what to do about it. A run that diverges is not an error: it
returns what there is, with a DivergenceWarning; so does a centralised answer that missed its
tolerance, with a ReferenceWarning, and a sum over the network, with an AccuracyWarning.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral
from typing import Any


class EdgewiseError(Exception):
    """The root of the tree above."""


class InputError(EdgewiseError, ValueError):
    """Something handed in cannot be used."""


class GraphError(InputError):
    """The graph cannot carry the problem."""


class DataError(InputError):
    """The samples cannot be used as they are."""


class DisclosureError(DataError):
    """A node does not tell a count, as it is of too few people."""


class ProblemError(InputError):
    """Loss, penalty and data do not fit together."""


class MethodError(InputError):
    """A method cannot do what was asked of it."""


class UnknownName(InputError):
    """A name nobody has."""

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        known = sorted(known)
        near = get_close_matches(str(name).lower(), known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        super().__init__(f"unknown {kind} {name!r}: {hint}known are {', '.join(known)}")


def whole_number(name: str, value: Any, least: int, error: type[InputError]) -> int:
    """value, if it is a whole number from `least` up that fits 63 bits; else the given error."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or not least <= value < 2**63:
        raise error(f"{name} is {value!r}: give a whole number from {least} up")
    return int(value)


class DownloadError(EdgewiseError, OSError):
    """A named data set could not be fetched or verified."""


class CheckpointError(EdgewiseError):
    """A checkpoint is damaged or belongs to another run."""


class DivergenceWarning(UserWarning):
    """The iterates grew without bound; the message names a smaller step to try."""


class ReferenceWarning(UserWarning):
    """The centralised answer is short of its tolerance; the message says by how much."""


class AccuracyWarning(UserWarning):
    """A sum over the network is short of the accuracy asked for; the message says by how much."""


class FaultWarning(UserWarning):
    """A method is to run under faults that it is not exact under."""
