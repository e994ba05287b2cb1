"""What happens to peers when one of them fails: the table of docs/peers.md, measured.

    python benchmarks/failures.py                  all of it: a quarter of an hour
    python benchmarks/failures.py --only kill      the rows that have this in their name, and "none"
    python benchmarks/failures.py --keep runs      folders and logs stay there

4 peers as processes on this machine, bundled data split by label, with steps so small that they are
half way when something happens to peer 1, after 200 rounds and 2 seconds. Then all are left alone
until they rest, and stopped; in strict mode until their last round.

pace         rounds/s of the others while it is away, relative to before; of "none", the noise.
             Where all share a few cores, others may be faster without it
rounds       of the slowest until residuals stay below 1e-8: since all were back and took part, the
             word was given (leave), it began (slow), or the start, where nothing happens; inf never
from x*      largest entry of a final model's distance from the optimum of those who are there
from "none"  largest entry of the distance from the undisturbed run's models, in strict mode
"""

import argparse
import json
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.preprocessing import normalize, scale

import edgewise as ew
from edgewise.cli.network_local import last_line, started
from edgewise.peers.config.peer_config import Fit, read, save
from edgewise.peers.operations import mesh
from edgewise.running.trace import read_csv

GRAPH = ew.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
VICTIM, OTHERS, NEW = 1, (0, 2, 3), 4
FIT = Fit(
    "saga-pd",
    ("batch=8",),
    weights="node",
    ridge=0.03,
    classes=(0, 1),
    eta=0.25,
    patience=0.3,
)
FEW = 3500  # rounds, of runs that are not to rest
PORT = 29500  # and the next ones: below those that systems give to whoever asks for any
EVENT_AT, LATER = 200, 100  # rounds
NEWS, AWAY, FROZEN, GIVE_UP = 0.6, 2.0, 6.0, 10.0  # seconds
PULSE, RUNS = 0.3, 0.1  # seconds, and the part of them that a slow peer runs
SMALL, REST, RESTS_FOR = 1e-8, 1e-10, 1.5  # residuals, and seconds
LIMIT = 300.0  # seconds for a run, whatever happens


class Crew(ExitStack):
    """The peers' processes; leaving the block ends them all."""

    def __init__(self, folder: Path, fit: Fit, drop_after: float) -> None:
        super().__init__()
        self.folder, self.strict = folder, fit.mode == "strict"
        made = mesh.create(folder, GRAPH, fit, [()] * 4, lambda i: "127.0.0.1", PORT, 2)
        for config in made.peers.values():
            save(replace(config, drop_after=drop_after))
        self.present = set(made.peers)
        self.running: dict[int, subprocess.Popen[bytes]] = {}
        self.heard: dict[int, IO[bytes]] = {}
        self.before: dict[int, float] = {}  # rounds/s of each
        self.since: dict[int, float] = {}  # the round that each was at when it was over
        self.end = time.monotonic() + LIMIT

    def start(self, *ids: int) -> None:
        files = {id: self.folder.parent / f"data{id}.npz" for id in ids}
        configs = {id: read(self.folder / f"peer{id}.toml") for id in ids}
        running, heard = self.enter_context(started(configs, files))
        self.running |= running
        self.heard |= heard

    def codes(self) -> list[int | None]:
        return [self.running[id].poll() for id in sorted(self.present)]

    def last_words(self) -> str:
        runs = [id for id, process in self.running.items() if process.poll() is None]
        said = {id: last_line(file) for id, file in self.heard.items() if id not in runs}
        return f"these run: {sorted(runs)}; others said last: {said}"

    def until(self, holds: Callable[[], bool], what: str) -> None:
        while not holds():
            if any(self.codes()) or time.monotonic() > self.end:
                raise RuntimeError(f"no {what}; {self.last_words()}")
            time.sleep(0.05)

    def status(self, id: int) -> dict[str, Any]:
        """Of the process that runs now; empty before its first, which comes twice a second."""
        path = self.folder / f"peer{id}" / "status.json"
        seen: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return seen if seen.get("pid") == self.running[id].pid else {}

    def rates(self, ids: Collection[int], seconds: float) -> dict[int, float]:
        """Rounds/s of each."""
        time.sleep(NEWS)
        first = {id: self.status(id) for id in ids}
        time.sleep(seconds)
        last = {id: self.status(id) for id in ids}
        took = {id: [last[id][k] - first[id][k] for k in ("rounds", "time")] for id in ids}
        return {id: rounds / seconds for id, (rounds, seconds) in took.items()}

    def pace(self, ids: Collection[int] = OTHERS, seconds: float = AWAY) -> float:
        now = self.rates(ids, seconds)
        return float(np.mean([now[id] / self.before[id] for id in ids]))

    def whole(self) -> bool:
        """Whether all who should be there are connected and take part, and nobody else does."""
        for id in self.present:
            config = read(self.folder / f"peer{id}.toml")
            links = self.status(id).get("neighbours", {})
            part = {int(other): link["connected"] for other, link in links.items() if link["part"]}
            if part != {n.id: True for n in config.neighbours if n.id in self.present}:
                return False
        return True

    def rounds(self) -> dict[int, float]:
        return {id: self.status(id).get("rounds", 0) for id in self.present}

    def run_on(self, rounds: int) -> None:
        goal = {id: now + rounds for id, now in self.rounds().items()}
        self.until(lambda: all(self.rounds()[id] >= goal[id] for id in goal), f"{rounds} rounds")

    def settle(self) -> None:
        """Until all rest, or have come to their last round."""
        self.until(self.whole, "whole network")
        self.since = self.since or self.rounds()
        self.run_on(LATER)
        moved = time.monotonic()

        def over() -> bool:
            nonlocal moved
            residuals = [self.status(id).get("residual", 1.0) for id in self.present]
            if self.strict or not self.whole() or max(residuals) >= REST:
                moved = time.monotonic()
            return None not in self.codes() or time.monotonic() - moved > RESTS_FOR

        self.until(over, "rest")
        for id in self.present:
            self.running[id].terminate()
        self.until(lambda: None not in self.codes(), "end")

    def rounds_to_small(self, id: int) -> float:
        rows = read_csv(self.folder / f"peer{id}" / "trace.csv")
        last = max(row["rounds"] for row in rows if row["residual"] >= SMALL)
        return np.inf if last == rows[-1]["rounds"] else max(last - self.since[id], 0.0)


# --- what happens, and the pace of the others meanwhile -------------------------------------------


def nothing(crew: Crew) -> float:
    crew.since = dict.fromkeys(crew.present, 0.0)
    return crew.pace()


def killed(crew: Crew, *ids: int, folder_too: bool = False, back: bool = True) -> float:
    paces = []
    for id in ids:
        crew.until(crew.whole, "whole network")
        crew.running[id].kill()
        if crew.running[id].wait() != -signal.SIGKILL:
            raise RuntimeError(f"peer {id} had ended before it was killed")
        if folder_too:
            shutil.rmtree(crew.folder / f"peer{id}")
        crew.present.remove(id)
        paces.append(crew.pace(crew.present))
        if back:
            crew.start(id)
            crew.present.add(id)
    return float(np.mean(paces))


def frozen(crew: Crew) -> float:
    crew.running[VICTIM].send_signal(signal.SIGSTOP)
    pace = crew.pace(seconds=FROZEN - NEWS)
    crew.running[VICTIM].send_signal(signal.SIGCONT)
    return pace


def leaves(crew: Crew) -> float:
    mesh.leave(crew.folder, VICTIM)
    crew.present.remove(VICTIM)
    crew.since = crew.rounds()
    crew.until(crew.whole, "network without it")
    crew.run_on(LATER)  # steps among other neighbours are compiled anew
    return crew.pace()


def joins(crew: Crew) -> float:
    mesh.add(crew.folder, [1, 3], None, None, 2)
    crew.start(NEW)
    pace = crew.pace()
    crew.present.add(NEW)
    return pace


def slowed(crew: Crew) -> float:
    over = threading.Event()

    def pulses() -> None:
        while not over.wait(RUNS * PULSE):
            crew.running[VICTIM].send_signal(signal.SIGSTOP)
            over.wait((1 - RUNS) * PULSE)
            crew.running[VICTIM].send_signal(signal.SIGCONT)

    crew.since = crew.rounds()
    crew.callback(over.set)
    threading.Thread(target=pulses).start()
    return crew.pace(seconds=FROZEN)


class Case(NamedTuple):
    name: str
    happens: Callable[[Crew], float]
    modes: str = "tolerant strict"
    fit: Any = ()
    drop_after: float = 3600.0
    strict_ends: bool = False  # a strict run cannot go on


CASES = [
    Case("none", nothing),
    Case("killed, back after 2 s", lambda c: killed(c, VICTIM)),
    Case("three kills", lambda c: killed(c, VICTIM, 3, 2)),
    Case("killed, folder lost", lambda c: killed(c, VICTIM, folder_too=True), strict_ends=True),
    Case("frozen for 6 s", frozen),
    Case("never back", lambda c: killed(c, VICTIM, back=False), drop_after=3.0, strict_ends=True),
    Case("network leave", leaves, "tolerant"),
    Case("network add", joins, "tolerant"),
    Case("8 bits", nothing, "tolerant", {"bits": 8}),
    Case("float32 wire", nothing, "tolerant", {"wire": "float32", "rounds": FEW}),
    Case("dual noise 1", nothing, "tolerant", {"dual_noise": 1.0}),
    Case("10 times slower", slowed),
]


def measure(case: Case, mode: str, folder: Path, problem: ew.Problem, same: list[Any]) -> list[str]:
    """The cells of a row, and a remark; same: the models of the undisturbed strict run."""
    rounds = FEW if mode == "strict" else FIT.rounds
    fit = replace(FIT, **{"mode": mode, "rounds": rounds, **dict(case.fit)})
    with Crew(folder, fit, case.drop_after) as crew:
        crew.start(*sorted(crew.present))
        crew.run_on(EVENT_AT)
        crew.before = crew.rates(crew.present, AWAY)
        pace = case.happens(crew)
        if crew.strict and case.strict_ends:
            time.sleep(GIVE_UP)
            return [f"{pace:.2f}", "", "", "", f"after {GIVE_UP:.0f} s, {crew.last_words()}"]
        crew.settle()
        took = max(map(crew.rounds_to_small, crew.present))
    ids = sorted(crew.present)
    models = np.stack([np.load(folder / f"peer{id}" / "model.npz")["x"] for id in ids])
    far = np.abs(models - ew.reference(problem.only(ids)).x).max()
    same += [models] if crew.strict else []
    apart = f"{np.abs(models - same[0]).max():.0e}" if crew.strict else ""
    return [f"{pace:.2f}", f"{took:.0f}", f"{far:.0e}", apart, ""]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="PART", help="some of the rows")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where the runs stay")
    options = parser.parse_args()
    X, y = ew.data.dataset("breast_cancer")
    shards = ew.split(normalize(scale(X)), y, nodes=NEW + 1, how="label", seed=0)
    problem = ew.Problem(shards, loss=ew.Logistic(ridge=FIT.ridge))
    console, begun = Console(width=110, highlight=False), time.perf_counter()
    table = Table("what happens", "mode", "pace", "rounds", "from x*", 'from "none"')
    picked = [c for c in CASES if options.only in c.name or c.name == "none"]
    same: list[Any] = []
    with tempfile.TemporaryDirectory() as passing:
        folder = options.keep or Path(passing)
        folder.mkdir(exist_ok=True)
        for id in range(NEW + 1):
            np.savez(folder / f"data{id}.npz", X=np.asarray(shards[id][0]), y=shards[id][1])
        for case, mode in [(c, mode) for c in picked for mode in c.modes.split()]:
            at = folder / f"{case.name} {mode}".replace(" ", "-")
            try:
                *cells, remark = measure(case, mode, at, problem, same)
            except RuntimeError as wrong:
                if case.name == "none":
                    raise
                *cells, remark = "failed", str(wrong)
            table.add_row(case.name, mode, *cells)
            console.print(f"{time.perf_counter() - begun:5.0f} s", case.name, mode, *cells, remark)
    console.print(table)


if __name__ == "__main__":
    main()
