"""What an audit found, attack by attack."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

NEIGHBOUR, NEIGHBOURS = "one neighbour", "all neighbours"
COALITION, ANYBODY, LISTENER = "coalition", "who has the model", "who listens"


class Finding(NamedTuple):
    """One number that an attacker gets, beside what the same attack gets where there is nothing to
    get: truth that was shuffled, or by chance."""

    who: str
    attack: str
    measure: str  # rows recovered, median correlation, AUC, correlation
    got: float
    error: float  # standard error; NaN: it is a count of all there are
    chance: float
    of: int  # rows, samples or nodes that it was tried on


class Line(NamedTuple):
    """What TLS lets through."""

    message_bytes: float  # of a round's vectors along an edge
    sizes: int  # how many different ones there are
    matrices: int  # of the messages those that are longer, by a matrix
    rounds: int


@dataclass(frozen=True, eq=False)
class Audit:
    """What attacks got from the messages of a run (`edgewise.audit`).

    findings      a `Finding` for each attacker, attack and measure
    by_node       for some of them (who, attack): (V,) numbers node by node
    line          what sizes tell who listens
    assumed       what attackers were taken to know
    not_tried     attacks that this method, loss or penalty has no form of here: silence about them
                  is no safety
    """

    method: str
    rounds: int
    findings: list[Finding]
    by_node: dict[tuple[str, str], np.ndarray]
    line: Line
    assumed: list[str]
    not_tried: list[str]

    def __getitem__(self, key: tuple[str, ...]) -> Finding:
        """By (who, attack) or (who, attack, measure)."""
        for found in self.findings:
            if (found.who, found.attack, found.measure)[: len(key)] == key:
                return found
        raise KeyError(key)

    def to_dict(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "rounds": self.rounds,
            "findings": [clean(f._asdict()) for f in self.findings],
            "by_node": [
                {"who": who, "attack": attack, "values": [number(v) for v in values]}
                for (who, attack), values in self.by_node.items()
            ],
            "line": self.line._asdict(),
            "assumed": self.assumed,
            "not_tried": self.not_tried,
        }

    def __repr__(self) -> str:
        lines = [f"audit of {self.rounds} rounds of {self.method}"]
        for f in self.findings:
            error = "" if np.isnan(f.error) else f" +- {f.error:.2f}"
            got = f"{f.got:.2f}{error} (chance {f.chance:.2f})"
            lines.append(f"{f.who:24} {f.attack:28} {f.measure:20} {got}")
        return "\n".join(lines + [f"not tried: {what}" for what in self.not_tried])


def number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def clean(found: dict[str, Any]) -> dict[str, Any]:
    return {k: number(v) if isinstance(v, float) else v for k, v in found.items()}
