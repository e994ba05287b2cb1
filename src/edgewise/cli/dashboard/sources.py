"""Where the page learns of a peer: the files that one on this machine writes, or the metrics of one
elsewhere. What these say is somebody else's: texts are cut, numbers are numbers or nothing."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from edgewise.cli.dashboard.timely_fetch import TimelyFetch
from edgewise.cli.peer_status import absent
from edgewise.cli.peer_view import PeerView

if TYPE_CHECKING:
    from edgewise.peers.config.peer_config import PeerConfig

Facts = dict[str, Any]
MOST_LETTERS = 300
MOST_POINTS = 4000
MOST_NEIGHBOURS = 200
DAY = 86400.0


class Source(Protocol):
    id: str
    where: str

    def look(self, now: float) -> Facts:
        """What the page is told of the peer now. Raises whatever what is there provokes."""


def sources_of(named: Iterable[str]) -> list[Source]:
    """Of folders, TOML files and addresses."""
    found: list[Source] = []
    for each in named:
        if "://" in each:
            found.append(AtAddress(each))
        elif Path(each).suffix == ".toml":
            from edgewise.peers.config.peer_config import read

            found.append(OnThisMachine(read(each)))
        else:
            from edgewise.peers.operations.mesh import read_mesh

            found += map(OnThisMachine, read_mesh(each).peers.values())
    return found


def text(value: Any) -> str:
    said = str(value)
    return said if len(said) <= MOST_LETTERS else said[: MOST_LETTERS - 1] + "…"


def number(value: Any) -> float | None:
    """JSON of browsers has no infinity, and whole numbers may have more digits than a float."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        as_float = float(value)
    except OverflowError:
        return None
    return as_float if math.isfinite(as_float) else None


# --- on this machine ------------------------------------------------------------------------------


class OnThisMachine:
    def __init__(self, config: "PeerConfig") -> None:
        self.config, self.id, self.where = config, str(config.id), str(config.out)
        self.view: PeerView | None = None

    def look(self, now: float) -> Facts:
        config = self.config
        known = {
            "id": self.id,
            "mesh": config.mesh,
            "where": self.where,
            "rounds_wanted": config.fit.rounds,
            "goal": None if config.fit.tol is None else config.fit.tol / math.sqrt(config.nodes),
            "certificate_ends": self.certificate_ends(),
            "neighbours": [neighbour(str(n.id), relay=n.relay) for n in config.neighbours],
        }
        relays = {str(n.id): n.relay for n in config.neighbours}
        try:
            if self.view is None:
                self.view = PeerView(config)
            else:
                self.view.refresh()
            return {**known, **of_status(self.view.status, relays), "curve": self.view.trace.points}
        except Exception as problem:  # the files may hold anything
            return {**known, "state": "unreadable", "said": text(problem)}

    def certificate_ends(self) -> float | None:
        from edgewise.peers.operations.expiry import expires

        ends = expires(self.config)
        return None if ends is None else ends.timestamp()


def of_status(status: Mapping[str, Any], relays: Mapping[str, str | None]) -> Facts:
    ending = status.get("ending") or {}
    facts: Facts = {
        "state": text(status["state"]),
        "time": number(status.get("time")),
        "round": number(status.get("rounds")),
        "residual": number(status.get("residual")),
        "seconds": number(status.get("seconds")),
        "bytes_sent": number(status.get("bytes_sent")),
        "refused": number(status.get("refused")),
        "failed_handshakes": number(status.get("handshakes")),
        "alarms": [text(each) for each in status.get("alarms") or []],
        "method": text(status.get("method_note") or status.get("method") or ""),
        "said": text(ending.get("message") or absent(dict(status))),
        "exit_code": number(ending.get("exit_code")),
    }
    around = status.get("neighbours")
    if around:
        facts["neighbours"] = [
            neighbour(
                text(other),
                connected=bool(link.get("connected")),
                part=bool(link.get("part", True)),
                silent=number(link.get("silent_seconds")),
                behind=number(link.get("behind")),
                sent=number(link.get("bytes_sent")),
                heard=number(link.get("bytes_heard")),
                reconnects=max((number(link.get("streams")) or 0.0) - 1, 0),
                errors=number(link.get("protocol_errors")),
                relay=relays.get(other),
            )
            for other, link in around.items()
        ]
    return facts


def neighbour(id: str, **known: Any) -> Facts:
    return {"id": id, "connected": None, **known}


# --- elsewhere ------------------------------------------------------------------------------------

OF_A_PEER = {
    "edgewise_rounds_total": "round",
    "edgewise_residual": "residual",
    "edgewise_alarms": "alarms",
    "edgewise_refused_total": "refused",
    "edgewise_failed_handshakes_total": "failed_handshakes",
    "edgewise_certificate_expiry_timestamp_seconds": "certificate_ends",
}
OF_A_LINK = {
    "edgewise_neighbour_connected": "connected",
    "edgewise_neighbour_silent_seconds": "silent",
    "edgewise_neighbour_stale_rounds": "behind",
    "edgewise_neighbour_sent_bytes_total": "sent",
    "edgewise_neighbour_heard_bytes_total": "heard",
    "edgewise_neighbour_reconnects_total": "reconnects",
    "edgewise_neighbour_protocol_errors_total": "errors",
}


class AtAddress:
    """The metrics of a peer, as Prometheus reads them, and its /readyz."""

    def __init__(self, url: str) -> None:
        self.asked = TimelyFetch(url)
        self.where, self.id = self.asked.where, self.asked.host
        self.points: list[tuple[float, float]] = []

    def look(self, now: float) -> Facts:
        known: Facts = {"id": self.id, "where": self.where, "neighbours": []}
        try:
            state = self.state()
            facts = of_metrics(samples_in(self.asked("/metrics")))
        except Exception as problem:  # the answer may be anything
            why = getattr(problem, "reason", problem)
            said = text(getattr(why, "strerror", None) or why)
            return {**known, "state": "no answer", "said": said, "curve": self.points}
        self.id = facts.get("id", self.id)
        round, residual = facts.get("round"), facts.get("residual")
        if round is not None and residual is not None:
            self.add(round, residual)
        return {**known, **facts, "state": state, "time": now, "curve": self.points}

    def add(self, round: float, residual: float) -> None:
        while self.points and self.points[-1][0] >= round:
            self.points.pop()
        self.points.append((round, residual))
        if len(self.points) > MOST_POINTS:
            del self.points[1:-1:2]

    def state(self) -> str:
        """In one word or a few."""
        told = json.loads(self.asked("/readyz"))
        reason = text(told["reason"]) if isinstance(told, dict) and "reason" in told else "unknown"
        return "running" if reason == "takes part" else reason.removeprefix("it is ")


def samples_in(told: str) -> Iterator[tuple[str, Mapping[str, str], float]]:
    from prometheus_client.parser import text_string_to_metric_families

    for family in text_string_to_metric_families(told):
        for sample in family.samples:
            yield sample.name, sample.labels, float(sample.value)


def of_metrics(samples: Iterable[tuple[str, Mapping[str, str], float]]) -> Facts:
    facts: Facts = {}
    around: dict[str, Facts] = {}
    for name, labels, value in samples:
        if name in OF_A_PEER:
            facts[OF_A_PEER[name]] = number(value)
        elif name in OF_A_LINK and "neighbour" in labels:
            link = around.setdefault(other := text(labels["neighbour"]), neighbour(other))
            link[OF_A_LINK[name]] = number(value)
        if name in OF_A_PEER and "peer" in labels:
            facts["id"] = text(labels["peer"])
    for link in around.values():
        link["connected"] = bool(link["connected"])
    alarms = facts.get("alarms")
    facts["alarms"] = [f"{alarms:.10g} alarms, which its own log names"] if alarms else []
    facts["neighbours"] = list(around.values())[:MOST_NEIGHBOURS]
    if around:
        facts["bytes_sent"] = number(sum(link.get("sent") or 0 for link in around.values()))
    return facts
