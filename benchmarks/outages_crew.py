"""What benchmarks/outages.py does things to: peers, a relay and a line, as on their own hosts."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize, scale

import edgewise as ew
from edgewise.peers.config.peer_config import Fit, PeerConfig, read, save
from edgewise.peers.operations import mesh
from edgewise.peers.relay.identity import certify

GRAPH = ew.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
RELAYED = {2, 3}  # the ends of the edge that goes by the relay
PORT, RELAY, LINE = 28500, 28520, 28521
SPACE = 8 << 20  # bytes
QUIET_FOR = 11.0  # seconds
LIMIT = 240.0  # seconds for anything
EDGEWISE = [sys.executable, "-m", "edgewise"]
QUIET = dict(os.environ) | {"JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1"}
LONG = Fit(
    "saga-pd",
    ("batch=8",),
    weights="node",
    ridge=0.03,
    classes=(0, 1),
    eta=0.02,
    patience=0.3,
    rounds=10**7,
)


class Line:
    """Passes on bytes between who calls and a port, unless it is cut: then nothing, and no word."""

    def __init__(self, port: int, to: int) -> None:
        self.to, self.flows, self.door = (
            to,
            threading.Event(),
            socket.create_server(("127.0.0.1", port), reuse_port=True),
        )
        self.flows.set()
        threading.Thread(target=self.answer, daemon=True).start()

    def answer(self) -> None:
        while True:
            try:
                caller, _ = self.door.accept()
            except OSError:
                return
            with suppress(OSError):
                called = socket.create_connection(("127.0.0.1", self.to))
                for ends in ((caller, called), (called, caller)):
                    threading.Thread(target=self.pass_on, args=ends, daemon=True).start()
                continue
            caller.close()

    def pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 14):
                self.flows.wait()
                target.sendall(data)
        self.flows.wait()
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self) -> None:
        self.flows.set()
        self.door.close()


class Crew(ExitStack):
    """Four peers, one edge of them over a line, one by a relay; leaving the block ends them all."""

    def __init__(self, folder: Path, fit: Fit = LONG, **options: Any) -> None:
        super().__init__()
        self.folder, self.running = folder, dict[Any, subprocess.Popen[bytes]]()
        made = mesh.create(folder, GRAPH, fit, [()] * 4, lambda i: "127.0.0.1", PORT, 2).peers
        certify(folder, made[0].mesh, 2)
        for id, config in made.items():
            around = []
            for n in config.neighbours:
                relay = f"127.0.0.1:{RELAY}" if {id, n.id} == RELAYED else None
                at = f"127.0.0.1:{LINE}" if (id, n.id) == (0, 1) else n.address
                around.append(replace(n, relay=relay, address=at))
            save(replace(config, neighbours=tuple(around), metrics=None, **options))
        self.line = Line(LINE, PORT + 1)
        self.callback(self.line.close)
        self.callback(self.end)
        self.seen = dict[Path, int]()

    def end(self) -> None:
        for process in self.running.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # also whom faketime started
            process.wait()

    def config(self, id: int) -> PeerConfig:
        return read(self.folder / f"peer{id}.toml")

    def start(self, *ids: int, before: tuple[str, ...] = (), shard: str = "data{id}.npz") -> None:
        for id in ids:
            data = self.folder.parent / shard.format(id=id)
            words = ["node", str(self.folder / f"peer{id}.toml"), "--shard", str(data)]
            command = [*(before or EDGEWISE), *words]
            self.running[id] = self.process(command, f"said{id}.txt")

    def start_relay(self) -> None:
        at = ["network", "relay", str(self.folder), "--listen", f"127.0.0.1:{RELAY}"]
        self.running["relay"] = self.process([*EDGEWISE, *at], "said-relay.txt")

    def process(self, command: list[str], said: str) -> "subprocess.Popen[bytes]":
        with (self.folder / said).open("ab") as file:
            ways = {"stdout": file, "stderr": subprocess.STDOUT, "start_new_session": True}
            return subprocess.Popen(command, env=QUIET, **ways)

    def kill(self, who: Any, number: int = signal.SIGKILL) -> None:
        self.running[who].send_signal(number)
        if number == signal.SIGKILL:
            self.running[who].wait()

    def status(self, id: int) -> dict[str, Any]:
        path = self.folder / f"peer{id}" / "status.json"
        known: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return known if known.get("pid") == self.running[id].pid else {}

    def until(self, holds: Callable[[], Any], what: str) -> float:
        """Seconds until it is so."""
        began = time.monotonic()
        while not holds():
            if time.monotonic() - began > LIMIT:
                raise RuntimeError(f"not in {LIMIT:.0f} s: {what}")
            time.sleep(0.02)
        return time.monotonic() - began

    def whole(self, *ids: int) -> bool:
        for id in ids or (0, 1, 2, 3):
            links = self.status(id).get("neighbours", {})
            if len(links) != len(self.config(id).neighbours):
                return False
            if not all(link["connected"] and link["part"] for link in links.values()):
                return False
        return True

    def all_run(self) -> None:
        self.start_relay()
        self.start(0, 1, 2, 3)
        self.until(self.whole, "a whole network")
        self.until(lambda: self.status(0).get("rounds", 0) > 50, "rounds")

    # --- what is seen ---

    def pause(self) -> None:
        """A peer's log says the same of a neighbour once in ten seconds."""
        time.sleep(QUIET_FOR)
        self.mark()

    def back(self) -> float:
        """Seconds since the mark until all are connected, by status files that came since."""

        def told() -> bool:
            times = [self.status(id).get("time", 0) for id in range(4)]
            return min(times) > self.marked + 0.6 and self.whole()

        self.until(told, "all of them")
        return round(time.time() - self.marked, 1)

    def mark(self) -> None:
        """From here on lines are new."""
        for id in range(4):
            path = self.folder / f"peer{id}" / "log.jsonl"
            self.seen[path] = path.stat().st_size if path.exists() else 0
        self.marked = time.time()

    def line_of(self, id: int, *words: str) -> dict[str, Any]:
        """The first new line of a peer's log that has all these, and its seconds since the mark."""
        found: list[dict[str, Any]] = []

        def came() -> bool:
            path = self.folder / f"peer{id}" / "log.jsonl"
            if not path.exists():
                return False
            with path.open("rb") as file:
                file.seek(self.seen.get(path, 0))
                lines = [json.loads(each) for each in file.read().splitlines()]
            found.extend(each for each in lines if all(w in each["event"] for w in words))
            return bool(found)

        self.until(came, f"{words} in the log of peer {id}")
        when = time.mktime(time.strptime(found[0]["time"][:19], "%Y-%m-%dT%H:%M:%S"))
        when += float("0" + found[0]["time"][19:23]) - time.timezone
        return {"seen": found[0]["event"], "seconds": max(round(when - self.marked, 1), 0.0)}

    def code(self, id: int) -> int:
        self.until(lambda: self.running[id].poll() is not None, f"the end of peer {id}")
        return int(self.running[id].returncode)

    def said(self, id: int) -> str:
        """The last line, as people see it."""
        text = (self.folder / f"said{id}.txt").read_text().strip().replace("\n", " ")
        return text.rpartition("error: ")[2]


def write_data(folder: Path) -> None:
    X, y = ew.data.dataset("breast_cancer")
    for id, (rows, labels) in enumerate(ew.split(normalize(scale(X)), y, nodes=5, how="label")):
        np.savez(folder / f"data{id}.npz", X=np.asarray(rows), y=labels)


def space(folder: Path) -> bool:
    """A small file system there, where this user may make one."""
    folder.mkdir(parents=True, exist_ok=True)
    words = ["mount", "-t", "tmpfs", "-o", f"size={SPACE}", "none", str(folder)]
    done = shutil.which("mount") and subprocess.run(words, capture_output=True).returncode == 0
    return bool(done)
