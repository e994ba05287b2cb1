"""How a peer's run ended: why, whether tol was met, and whose data its model speaks of."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

MET, NOT_MET, UNUSABLE, NEIGHBOURS_AWAY = 0, 1, 2, 3  # exit codes
REASONS = {
    "converged": "finished",
    "rounds": "ended with the last of its rounds",
    "seconds": "ended as its time was up",
    "stopped": "stopped",
    "deserted": "cannot go on",
}


@dataclass(frozen=True)
class Absence:
    """A neighbour that was not there at the end."""

    since: int  # round of the last message that was taken from it; 0: none was
    dropped: bool  # its data are in the model no more, else its last message stands for them


@dataclass(frozen=True)
class Ending:
    """Why a run ended, and what its model is worth."""

    reason: str  # a key of REASONS
    rounds: int
    residual: float
    tol: float | None
    nodes: int
    met: bool  # all peers that take part were below tol, and agreed on it
    absent: dict[int, Absence] = field(default_factory=dict)
    lost_hops: int | None = None  # how far the nearest peer is that lost a neighbour, if one did
    deserter: int | None = None  # who left while its messages were still needed
    alarms: tuple[str, ...] = ()  # that held at the end
    unsaved: str = ""  # what could not be written, and where the model is instead
    convex: bool = True  # the loss: else it ends at a stationary point

    @property
    def exit_code(self) -> int:
        """0: tol was met by all, or there was none to meet, or somebody asked it to stop; and all
        was written."""
        return self.of_the_run or (UNUSABLE if self.unsaved else MET)

    @property
    def of_the_run(self) -> int:
        if self.reason == "stopped":
            return MET
        if not self.complete:
            return NEIGHBOURS_AWAY
        return MET if self.met or self.tol is None else NOT_MET

    @property
    def complete(self) -> bool:
        """Nobody is missing: the model is of everybody's data."""
        return not self.absent and self.lost_hops is None and self.deserter is None

    @property
    def message(self) -> str:
        first = f"{REASONS[self.reason]} after {self.rounds} rounds, residual {self.residual:.2e}"
        alarms = [f"ALARM: {text}" for text in self.alarms]
        parts = [first, *self.goal(), *self.people(), *alarms, self.unsaved]
        return "; ".join(filter(None, parts))

    def goal(self) -> list[str]:
        if self.deserter is not None:
            return [f"peer {self.deserter} has left, and its messages are needed: start both again"]
        if self.tol is None:
            return ["no tol was given, so that nothing says whether that is enough"]
        if self.met:
            where = "" if self.convex else ": a stationary point, as the loss is not convex"
            return [f"tol {self.tol:.0e} met by {self.who()}{where}"]
        small = self.residual <= self.tol / np.sqrt(self.nodes)
        if small:
            return [f"tol {self.tol:.0e} met here, and not known to be met by all {self.nodes}"]
        more = ": give more rounds" if self.reason == "rounds" else ""
        return [f"tol {self.tol:.0e} NOT met{more}"]

    def who(self) -> str:
        gone = any(a.dropped for a in self.absent.values()) or self.lost_hops is not None
        return "those that are left" if gone else f"all {self.nodes} peers"

    def people(self) -> list[str]:
        said = []
        for other, absence in sorted(self.absent.items()):
            heard = f"last heard in round {absence.since}" if absence.since else "never heard"
            part = (
                "the model is without its data"
                if absence.dropped or not absence.since
                else "its last message stands for its data, so that this is nobody's optimum"
            )
            said.append(f"neighbour {other} is away, {heard}: {part}")
        if self.lost_hops is not None and not self.absent:
            far = "a neighbour" if self.lost_hops == 1 else f"a peer {self.lost_hops} hops away"
            said.append(f"{far} has lost one of its own: not all data are in the model")
        return said

    def table(self) -> dict[str, Any]:
        """As status.json, log.jsonl and the model have it."""
        return {
            "reason": self.reason,
            "rounds": self.rounds,
            "residual": float(self.residual) if np.isfinite(self.residual) else None,
            "tol": self.tol,
            "met": self.met,
            "exit_code": self.exit_code,
            "absent": {
                str(j): {"since_round": a.since, "dropped": a.dropped}
                for j, a in self.absent.items()
            },
            "lost_hops": self.lost_hops,
            "alarms": list(self.alarms),
            "unsaved": self.unsaved,
            "message": self.message,
        }
