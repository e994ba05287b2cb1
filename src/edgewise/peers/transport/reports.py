"""What neighbours tell each other of a sum over the network: text, in frames of their own."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from edgewise.peers.transport.frames import SUM, Frame, ProtocolError, encode

UNIT = 1 << 1074  # of 1: every float64 is a whole number of these parts
MOST_PARTS = 3  # floats that a sum is told in
LARGEST = 1e150
LONGEST_STAGE = 32  # letters
MOST_STAGES = 32


class Report(NamedTuple):
    """Where a peer is in the tree that a sum goes up by, and what its part of the tree comes to."""

    stage: str  # which sum
    root: int
    hops: int  # to the root
    parent: int | None
    ids: tuple[int, ...] = ()  # whose numbers are in `sums`; nobody's before all are there
    sums: tuple[int, ...] = ()  # in UNITs
    total: bool = False  # whether these are the sums over the network, for all to take


def exact(numbers: Iterable[float]) -> tuple[int, ...]:
    """As whole numbers, whose sums are exact: in whatever order they are taken, they are equal."""
    pairs = (float(number).as_integer_ratio() for number in numbers)
    return tuple(n * (UNIT // d) for n, d in pairs)


def rounded(sums: Iterable[int]) -> np.ndarray:
    """The nearest float64 of each."""
    return np.array([n / UNIT for n in sums], np.float64)


def parts_of(n: int) -> list[float]:
    """Floats that add up to the number, or to within 2^-159 of it."""
    parts = [n / UNIT]
    while len(parts) < MOST_PARTS and (n := n - exact(parts[-1:])[0]):
        parts.append(n / UNIT)
    return parts


def encoded(report: Report, sender: int, receiver: int) -> bytes:
    said = report._asdict() | {"sums": [parts_of(n) for n in report.sums]}
    text = json.dumps(said, separators=(",", ":")).encode()
    return encode(Frame(SUM, sender=sender, receiver=receiver, payload=text))


def report_in(text: bytes, most_sums: int) -> Report:
    try:
        said: Any = json.loads(text)
        parent = said["parent"]
        report = Report(
            str(said["stage"]),
            whole(said["root"]),
            whole(said["hops"]),
            None if parent is None else whole(parent),
            tuple(map(whole, said["ids"])),
            tuple(sum_in(parts) for parts in said["sums"]),
            bool(said["total"]),
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as wrong:
        raise ProtocolError("a report of a sum that cannot be read") from wrong
    if len(report.stage) > LONGEST_STAGE or len(report.sums) > most_sums:
        raise ProtocolError(f"{len(report.sums)} sums, {most_sums} are the most")
    if len(set(report.ids)) < len(report.ids) or bool(report.ids) != bool(report.sums):
        raise ProtocolError("a report of sums that does not say whose they are")
    return report


def whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 10**9:
        raise ValueError("no number of a peer")
    return value


def sum_in(parts: Any) -> int:
    if not isinstance(parts, list) or not 0 < len(parts) <= MOST_PARTS:
        raise ValueError("no sum")
    numbers = [float(part) for part in parts]
    if not all(abs(number) <= LARGEST for number in numbers):  # NaN neither
        raise ValueError("no usual sum")
    return sum(exact(numbers))


class Reports:
    """Those of one neighbour and to it, the last of each stage: they say all that those before
    said, and go again over a new stream."""

    def __init__(self, most_sums: int) -> None:
        self.most_sums = most_sums
        self.heard: dict[str, Report] = {}
        self.told: dict[str, Report] = {}
        self.due: list[Report] = []

    def tell(self, report: Report) -> bool:
        """Whether that is news."""
        if self.told.get(report.stage) == report:
            return False
        self.told[report.stage] = report
        self.due = [r for r in self.due if r.stage != report.stage] + [report]
        return True

    def tell_again(self) -> None:
        self.due = list(self.told.values())

    def next(self) -> Report | None:
        return self.due.pop(0) if self.due else None

    def hear(self, text: bytes) -> None:
        report = report_in(text, self.most_sums)
        if len(self.heard) >= MOST_STAGES and report.stage not in self.heard:
            raise ProtocolError("too many sums")
        self.heard[report.stage] = report
