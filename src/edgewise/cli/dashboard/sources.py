"""Where the page learns of a peer: the files that one on this machine writes, or the metrics of one
elsewhere. What these say is somebody else's: texts are cut, numbers are numbers or nothing."""

import http.client
import json
import math
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from edgewise.cli.peer_status import absent
from edgewise.cli.peer_view import PeerView
from edgewise.errors import EdgewiseError, InputError

if TYPE_CHECKING:
    from edgewise.peers.config.peer_config import PeerConfig

Facts = dict[str, Any]
PATIENCE = 3.0  # seconds for an answer
MOST_BYTES = 1 << 20  # of one
MOST_LETTERS = 300
MOST_POINTS = 4000
MOST_NEIGHBOURS = 200
DAY = 86400.0
ODD = (
    AttributeError,
    KeyError,
    TypeError,
    ValueError,
)  # of files and answers that are not a peer's


class Source(Protocol):
    where: str

    def look(self, now: float) -> Facts:
        """What the page is told of the peer now."""


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
    """JSON of browsers has no infinity."""
    fits = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if fits else None


# --- on this machine ------------------------------------------------------------------------------


class OnThisMachine:
    def __init__(self, config: "PeerConfig") -> None:
        self.config, self.where = config, str(config.out)
        self.view: PeerView | None = None

    def look(self, now: float) -> Facts:
        config = self.config
        known = {
            "id": str(config.id),
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
        except (EdgewiseError, *ODD) as problem:
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
                reconnects=max(link.get("streams", 0) - 1, 0),
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


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Metrics are where they were said to be."""

    def redirect_request(self, *_: Any) -> None:
        return None


class AtAddress:
    """The metrics of a peer, as Prometheus reads them, and its /readyz."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"{url} is no address of metrics: give one as http://host:9464")
        self.where = f"{parts.scheme}://{parts.netloc}"
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), NoRedirect)
        self.points: list[tuple[float, float]] = []
        self.id = parts.netloc

    def look(self, now: float) -> Facts:
        known: Facts = {"id": self.id, "where": self.where, "neighbours": []}
        try:
            state = self.state()
            facts = of_metrics(samples_in(self.asked("/metrics")))
        except (OSError, http.client.HTTPException, *ODD) as problem:
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

    def asked(self, path: str) -> str:
        try:
            with self.opener.open(self.where + path, timeout=PATIENCE) as answer:
                return str(answer.read(MOST_BYTES).decode(errors="replace"))
        except urllib.error.HTTPError as refused:
            if refused.code != 503:  # which is /readyz's answer too
                raise
            return refused.read(MOST_BYTES).decode(errors="replace")


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
    alarms = int(facts.get("alarms") or 0)
    facts["alarms"] = [f"{alarms} alarms, which its own log names"] if alarms else []
    facts["neighbours"] = list(around.values())[:MOST_NEIGHBOURS]
    if around:
        facts["bytes_sent"] = sum(link.get("sent") or 0 for link in around.values())
    return facts
