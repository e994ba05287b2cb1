"""What the page shows: all peers as they are now, how they came there, and where to draw them."""

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import networkx as nx
import numpy as np

from edgewise.cli.dashboard.sources import DAY, Facts, Source, number, text
from edgewise.graph.graph import Graph
from edgewise.plotting.graphs import positions

log = logging.getLogger(__name__)

EVERY = 1.0  # seconds
SPAN = 300.0  # seconds of speeds that are shown
POINTS = 150  # of a curve
SMOOTH = 5.0  # seconds over which a speed is taken
MOST_AT_ONCE = 16  # peers that are asked at the same time
DIGITS = 4


class Speeds:
    """Of rounds and bytes, from how these grew."""

    def __init__(self) -> None:
        self.seen: deque[tuple[float, float, float]] = deque()
        self.told: deque[tuple[float, float, float]] = deque()

    def add(self, at: float, rounds: float, sent: float) -> None:
        if self.seen and (rounds < self.seen[-1][1] or sent < self.seen[-1][2]):
            self.seen.clear()  # started anew
        if self.seen and at <= self.seen[-1][0]:
            return
        self.seen.append((at, rounds, sent))
        while len(self.seen) > 2 and at - self.seen[1][0] >= SMOOTH:
            self.seen.popleft()
        first = self.seen[0]
        if at > first[0]:
            took = at - first[0]
            speeds = (rounds - first[1]) / took, (sent - first[2]) / took
            if np.isfinite(speeds).all():
                self.told.append((at, *speeds))
        while self.told and at - self.told[0][0] > SPAN:
            self.told.popleft()


class Overview:
    """Looked at again and again by a thread of its own, for whoever asks."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = sources
        self.speeds = [Speeds() for _ in sources]
        self.layout: tuple[Any, dict[str, list[float]]] = (None, {})
        self.text = b"{}"
        self.over = threading.Event()
        self.pool = ThreadPoolExecutor(min(len(sources), MOST_AT_ONCE))

    def __enter__(self) -> "Overview":
        self.refresh()
        self.thread = threading.Thread(target=self.keep_looking, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.pool.shutdown(wait=False, cancel_futures=True)  # who is being asked may take seconds

    def keep_looking(self) -> None:
        while not self.over.wait(EVERY):
            try:
                self.refresh()
            except Exception:  # whatever it is: nobody would know that this has ended
                if not self.over.is_set():
                    log.exception("the page stays as it was")

    def refresh(self) -> None:
        told = as_json_has_it(self.as_told(time.time()))
        self.text = json.dumps(told, allow_nan=False).encode()

    def as_told(self, now: float) -> Facts:
        look = partial(self.look, now)
        peers = list(self.pool.map(look, self.sources, self.speeds))
        edges = edges_of(peers)
        return {
            "time": now,
            "meshes": sorted({peer["mesh"] for peer in peers if "mesh" in peer}),
            "peers": peers,
            "edges": [{"ends": list(ends), **known} for ends, known in edges.items()],
            "places": self.places([peer["id"] for peer in peers], edges),
        }

    def look(self, now: float, source: Source, speeds: Speeds) -> Facts:
        """At one; what it answers must not take the others off the page."""
        try:
            facts = source.look(now)
            self.add_history(facts, speeds, now)
        except Exception as odd:
            known = {"id": source.id, "where": source.where, "neighbours": []}
            facts = {**known, "state": "unreadable", "said": text(repr(odd))}
            self.add_history(facts, Speeds(), now)
        return facts

    def add_history(self, facts: Facts, speeds: Speeds, now: float) -> None:
        at = facts.get("time") or 0.0
        if facts.get("round") is not None and at and now - at < SPAN:
            speeds.add(at, facts["round"], facts.get("bytes_sent") or 0.0)
        lately = now - at < 2 * SMOOTH and bool(speeds.told)
        facts["rounds_per_second"] = rounded(speeds.told[-1][1]) if lately else None
        facts["bytes_per_second"] = rounded(speeds.told[-1][2]) if lately else None
        facts["speeds"] = [
            [round(when - now, 1), rounded(rounds), rounded(sent)]
            for when, rounds, sent in thinned(list(speeds.told))
        ]
        curve = [(at, r) for at, r in facts.get("curve") or [] if r > 0 and np.isfinite(r)]
        facts["curve"] = [[at, rounded(residual)] for at, residual in thinned(curve)]
        ends = facts.pop("certificate_ends", None)
        facts["certificate_days"] = None if ends is None else round((ends - now) / DAY, 1)

    def places(self, watched: list[str], edges: dict[tuple[str, str], Facts]) -> dict[str, Any]:
        """Of every peer, from 0 to 1 either way; those that are named by others alone too."""
        names = list(dict.fromkeys([*watched, *(id for ends in edges for id in ends)]))
        drawn = names, sorted(edges)
        if self.layout[0] != drawn:
            row = {name: k for k, name in enumerate(names)}
            at = spread_out([(row[a], row[b]) for a, b in edges], len(names))
            self.layout = drawn, {name: [round(x, 3) for x in at[k]] for name, k in row.items()}
        return self.layout[1]


def spread_out(edges: list[tuple[int, int]], nodes: int) -> np.ndarray:
    """(nodes, 2), from 0 to 1. What hangs together is drawn so; parts lie beside each other."""
    if nodes < 3:
        return np.array([[0.5, 0.5]] if nodes == 1 else [[0.2, 0.5], [0.8, 0.5]])
    network: Any = Graph.from_edges(edges, nodes).to_networkx()
    firsts = [min(part) for part in nx.connected_components(network)]
    at = positions(Graph.from_edges(edges + [(firsts[0], k) for k in firsts[1:]], nodes))
    low, high = at.min(0), at.max(0)
    return (at - low) / np.where(high - low > 1e-9, high - low, 1.0)


def edges_of(peers: Sequence[Facts]) -> dict[tuple[str, str], Facts]:
    """{ends: what is known}, connected where one who looks says so and none who looks denies it;
    nobody asks of one that has ended, or was never started."""
    edges: dict[tuple[str, str], Facts] = {}
    here = {"running", "waiting", "agreeing", "scoring", "lingering", "summing up"}
    ended = {p["id"] for p in peers if p["state"] in ("finished", "stopped", "not started")}
    for peer in peers:
        for link in peer["neighbours"]:
            if link["id"] == peer["id"]:
                continue
            ends = min(peer["id"], link["id"]), max(peer["id"], link["id"])
            edge = edges.setdefault(ends, {"connected": None, "relay": None})
            edge["relay"] = edge["relay"] or link.get("relay")
            if link["connected"] is None or edge["connected"] is False or ended & {*ends}:
                continue
            edge["connected"] = bool(link["connected"]) and peer["state"] in here
    return edges


def thinned(points: list[Any]) -> list[Any]:
    if len(points) <= POINTS:
        return points
    picked = np.unique(np.linspace(0, len(points) - 1, POINTS).astype(int))
    return [points[k] for k in picked]


def as_json_has_it(told: Any) -> Any:
    """Nothing where a number is none of JSON's."""
    match told:
        case bool() | str() | None:
            return told
        case dict():
            return {name: as_json_has_it(each) for name, each in told.items()}
        case list() | tuple():
            return [as_json_has_it(each) for each in told]
    return number(told)


def rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
