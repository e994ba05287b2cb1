"""A peer looked at again and again: how fast it is, and how its residual came down."""

import csv
import math
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from edgewise.cli.peer_status import UNDER_WAY, Status, status_of

if TYPE_CHECKING:
    from pathlib import Path

    from edgewise.peers.config.peer_config import PeerConfig

SPAN = 10.0  # seconds over which a speed is measured
ENOUGH = 4000  # points of a curve that is some hundred columns wide at most
BLOCKS = "▁▂▃▄▅▆▇█"


class PeerView:
    def __init__(self, config: "PeerConfig", pid: int | None = None) -> None:
        """pid: of the process that is meant, where what an earlier one left is of no interest."""
        self.config, self.pid = config, pid
        self.trace = TraceTail(config.out / "trace.csv")
        self.seen: deque[Moment] = deque()
        self.status: Status = {}
        self.refresh()

    def refresh(self) -> None:
        self.status = status_of(self.config, self.pid)
        if self.status["state"] != "starting":  # until then it is the trace of an earlier process
            self.trace.read_new_rows()
        now = Moment(*(float(self.status.get(k) or 0) for k in Moment._fields))
        if self.seen and now.rounds < self.seen[-1].rounds:
            self.seen.clear()
        if not self.seen or now.time > self.seen[-1].time:
            self.seen.append(now)
        while len(self.seen) > 2 and now.time - self.seen[0].time > SPAN:
            self.seen.popleft()

    @property
    def under_way(self) -> bool:
        return self.status["state"] in UNDER_WAY

    def per_second(self, what: str) -> float:
        """Lately; of the whole run where it was looked at but once, or has ended."""
        first, last = self.seen[0], self.seen[-1]
        if self.under_way and last.time > first.time:
            return float(getattr(last, what) - getattr(first, what)) / (last.time - first.time)
        seconds = float(self.status.get("seconds") or 0)
        return float(getattr(last, what)) / seconds if seconds else 0.0


class Moment(NamedTuple):
    time: float
    rounds: float
    bytes_sent: float


class TraceTail:
    """Rounds and residuals of a trace that grows; a peer that was killed may write rows again."""

    def __init__(self, path: "Path") -> None:
        self.path, self.read_to = path, 0
        self.columns: list[str] = []
        self.points: list[tuple[float, float]] = []

    def read_new_rows(self) -> None:
        try:
            with self.path.open("rb") as file:
                if file.seek(0, 2) < self.read_to:  # begun anew
                    self.read_to, self.columns, self.points = 0, [], []
                file.seek(self.read_to)
                text = file.read()
        except OSError:
            return
        whole = text[: text.rfind(b"\n") + 1]
        self.read_to += len(whole)
        for row in csv.reader(whole.decode(errors="replace").splitlines()):
            if not self.columns:
                self.columns = row
            else:
                self.add(dict(zip(self.columns, row, strict=False)))

    def add(self, row: dict[str, str]) -> None:
        try:
            rounds, residual = float(row["rounds"]), float(row["residual"])
        except (KeyError, ValueError):
            return
        while self.points and self.points[-1][0] >= rounds:
            self.points.pop()
        self.points.append((rounds, residual))
        if len(self.points) > ENOUGH:
            del self.points[1:-1:2]


def curve(points: list[tuple[float, float]], width: int) -> str:
    """log10 of the residual over the rounds, low where it is small."""
    usable = [(at, math.log10(r)) for at, r in points if r > 0 and math.isfinite(r)]
    if not usable:
        return ""
    first, last = usable[0][0], usable[-1][0]
    low, high = (pick(value for _, value in usable) for pick in (min, max))
    heights: list[float | None] = [None] * width
    for at, value in usable:
        place = (at - first) / (last - first) if last > first else 0.0
        heights[min(int(place * width), width - 1)] = value
    text, height = "", usable[0][1]
    for found in heights:
        height = height if found is None else found
        step = (height - low) / (high - low) if high > low else 0.0
        text += BLOCKS[min(int(step * len(BLOCKS)), len(BLOCKS) - 1)]
    return text
