"""What operators see when something fails: the table of docs/operations.md, measured.

    python benchmarks/outages.py                  all of it: a quarter of an hour; writes
                                                  docs/data/outages.json
    python benchmarks/outages.py --only relay     the cases that have this in their name
    python benchmarks/outages.py --page           the table, from the numbers that are kept

4 peers as processes on this machine, on a ring with a chord, bundled data split by label; one edge
goes over a line that can be cut, one by a relay. Clocks are set by faketime, a full disk is a file
system of 8 MB (root); where these are missing, the case is left out, and the table says so.

seconds    from the event to the line in the log, or to the end of the process
exit code  of the peer that it happens to, or of the others where it stays away
"""

import argparse
import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import outages_page
from outages_crew import EDGEWISE, LONG, PORT, SPACE, Crew, space, write_data

from edgewise.peers.config import certificates
from edgewise.peers.config.peer_config import save
from edgewise.peers.operations import keys

ROOT = Path(__file__).parents[1]
DATA, PAGE = ROOT / "docs/data/outages.json", ROOT / "docs/operations.md"
CUT = 8.0  # seconds
Rows = dict[str, dict[str, Any]]


# --- to a run that is under way -------------------------------------------------------------------


def under_way(folder: Path) -> Rows:
    """One network, to which things happen one after the other."""
    rows: Rows = {}
    with Crew(folder / "long") as crew:
        crew.all_run()

        crew.pause()
        crew.kill(1)
        rows["killed"] = crew.line_of(2, "peer 1 is away")
        words = [*EDGEWISE, "node", str(crew.folder / "peer1.toml"), "--status"]
        crew.until(lambda: not crew.whole(2), "that it is away")
        rows["killed"]["status code"] = subprocess.run(words, capture_output=True).returncode
        crew.mark()
        crew.start(1)
        rows["started again"] = crew.line_of(2, "peer 1 is connected")
        rows["started again"]["back"] = crew.back()

        crew.pause()
        crew.line.flows.clear()
        rows["an edge cut"] = crew.line_of(0, "peer 1 is away")
        time.sleep(CUT)
        crew.mark()
        crew.line.flows.set()
        rows["an edge cut"]["back"] = crew.back()

        crew.pause()
        crew.kill(1, signal.SIGSTOP)
        rows["frozen"] = crew.line_of(2, "peer 1 is away")
        crew.mark()
        crew.kill(1, signal.SIGCONT)
        rows["frozen"]["back"] = crew.back()

        crew.pause()
        crew.kill("relay")
        rows["relay down"] = crew.line_of(2, "the relay")
        crew.mark()
        crew.start_relay()
        rows["relay down"]["back"] = crew.back()

        crew.pause()
        keys.revoke(crew.folder, 1)
        rows["revoked"] = crew.line_of(2, "is revoked: it is hung up on")
        crew.mark()
        keys.renew(crew.folder, 1, 2)
        rows["revoked"]["back"] = crew.back()

        crew.pause()
        expiring(crew, 1, 3.0)
        time.sleep(4.0)
        crew.kill(0)
        crew.start(0)
        rows["certificate expired"] = crew.line_of(0, "certificate that has expired")
        rows["certificate expired"]["seconds"] = None  # when it next connects
        crew.kill(1, signal.SIGTERM)
        crew.code(1)
        crew.start(1)
        rows["certificate expired, at the start"] = refused(crew, 1)
        keys.renew(crew.folder, 1, 2)
        crew.mark()
        crew.start(1)
        rows["certificate expired"]["back"] = crew.back()

        crew.kill(1)
        crew.start(1, before=later_release(folder))
        rows["another version, under way"] = refused(crew, 1)

        crew.start(1, shard="data4.npz")
        rows["other data"] = refused(crew, 1)
    return rows


def gone_for_good(folder: Path) -> Rows:
    fit = replace(LONG, eta=0.25, tol=1e-8)
    with Crew(folder / "gone", fit, drop_after=5.0) as crew:
        crew.all_run()
        crew.mark()
        crew.kill(1)
        row = crew.line_of(2, "peer 1 is dropped")
        row["exit code"] = crew.code(0)
        row["model"] = crew.said(0).rpartition("INFO ")[2].rpartition("WARNING ")[2]
    return {"gone for good": row}


# --- to a start -----------------------------------------------------------------------------------


def refused(crew: Crew, id: int) -> dict[str, Any]:
    began = time.monotonic()
    code = crew.code(id)
    return {
        "seen": crew.said(id),
        "seconds": round(time.monotonic() - began, 1),
        "exit code": code,
    }


def starts(folder: Path) -> Rows:
    rows: Rows = {}
    with Crew(folder / "starts") as crew:
        crew.start(0)
        crew.until(lambda: crew.status(0), "peer 0")
        config = crew.config(1)
        save(replace(config, listen=f"127.0.0.1:{PORT}"))
        crew.start(1)
        rows["port taken"] = refused(crew, 1)
        save(replace(config, fit=replace(config.fit, ridge=0.5)))
        crew.start(1)
        rows["other settings"] = refused(crew, 1)
        rows["other settings"]["exit code of the other"] = crew.code(0)
        save(config)
        crew.start(0)
        crew.until(lambda: crew.status(0), "peer 0")
        crew.start(1, before=later_release(folder))
        rows["another version"] = refused(crew, 1)
        rows["another version"]["exit code of the other"] = crew.code(0)
        if shutil.which("faketime"):
            crew.start(1, before=("faketime", "+3 years", *EDGEWISE))
            rows["clock ahead"] = refused(crew, 1)
            crew.start(1, 2)
            crew.until(lambda: crew.status(2) and crew.status(1), "two")
            crew.mark()
            crew.start(0, before=("faketime", "-2 days", *EDGEWISE))
            rows["clock behind"] = crew.line_of(0, "peer 2", "not good yet")
            rows["clock behind"]["seconds"] = None  # when it is started
        if space(config.out):
            try:
                (config.out / "filled").write_bytes(bytes(SPACE - 4096))
                crew.kill(1)
                crew.start(1)
                rows["disk full, at the start"] = refused(crew, 1)
            finally:
                subprocess.run(["umount", str(config.out)], check=True)
    return rows


def full_disk(folder: Path) -> Rows:
    fit = replace(LONG, eta=0.25, tol=1e-8)
    with Crew(folder / "full", fit) as crew:
        out = crew.config(1).out
        if not space(out):
            return {}
        try:
            crew.all_run()
            crew.mark()
            try:
                with (out / "filled").open("wb", buffering=0) as file:
                    while file.write(bytes(4096)):
                        pass
            except OSError:  # as it should be
                pass
            told = crew.folder / "said1.txt"
            took = crew.until(lambda: "No space left" in told.read_text(), "a word of it")
            lines = [line for line in told.read_text().splitlines() if "No space left" in line]
            row = {"seen": re.sub(r"^[\d\- :,]+ \w+ ", "", lines[0]), "seconds": round(took, 1)}
            row["exit code"] = crew.code(1)
            return {"disk full": row}
        finally:
            crew.end()
            subprocess.run(["umount", str(out)], check=True)


def expiring(crew: Crew, id: int, seconds: float) -> None:
    """A certificate that ends then, in the place of the peer's."""
    config, now = crew.config(id), datetime.now(UTC)
    real = certificates.started

    def soon(*args: Any) -> Any:
        made = real(*args)
        made._not_valid_after = (now + timedelta(seconds=seconds)).replace(tzinfo=None)
        return made

    certificates.started = soon
    try:
        keys.renew(crew.folder, config.id, 2)
    finally:
        certificates.started = real


def later_release(folder: Path) -> tuple[str, ...]:
    """Edgewise, but for the number of its protocol."""
    path = folder / "later.py"
    path.write_text(
        "import edgewise.peers.transport.frames as frames\n"
        "frames.VERSION += 1\n"
        "from edgewise.cli import main\n"
        "main()\n"
    )
    return sys.executable, str(path)


CASES: dict[str, Callable[[Path], Rows]] = {
    "under way, relay": under_way,
    "gone for good": gone_for_good,
    "starts": starts,
    "full disk": full_disk,
}


def plain(text: str, folder: Path) -> str:
    """Without what differs from run to run."""
    text = re.sub(r"[^\s']*" + re.escape(folder.name) + r"/\w+/", "", text)
    text = re.sub(r"mesh-[0-9a-f]{8}", "MESH", text)
    text = re.sub(r"127\.0\.0\.1:\d+", "HOST:PORT", text)
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "...", text)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="PART", help="some of the cases")
    parser.add_argument("--page", action="store_true", help="write the table alone")
    options = parser.parse_args()
    kept: Rows = json.loads(DATA.read_text()) if DATA.exists() else {}
    if not options.page:
        with tempfile.TemporaryDirectory() as passing:
            folder = Path(passing)
            write_data(folder)
            for name, case in CASES.items():
                if options.only in name:
                    for what, row in case(folder).items():
                        row["seen"] = plain(row["seen"], folder)
                        kept[what] = row
                        print(f"{what}: {row}", flush=True)
        DATA.write_text(json.dumps(kept, indent=1) + "\n")
    outages_page.write(PAGE, kept)


if __name__ == "__main__":
    main()
