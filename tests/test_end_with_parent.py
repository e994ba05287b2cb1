"""Whatever ends a test run, the processes that its tests started end with it."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mpi_launch import missing
from paths import HELPERS

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux can do it")

PATIENCE = 120  # seconds: the machine may be busy
LAUNCHERS = {
    "a process": "from end_with_parent import ending_with_us\n"
    "subprocess.run(ending_with_us(sys.executable, 'sleeping_rank.py', folder))",
    "ranks": "from mpi_launch import launch\nlaunch(2, 'sleeping_rank.py', folder)",
}


def until(holds, what):
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"{what}: not in {PATIENCE} s"
        time.sleep(0.02)


def lives(process):
    """One that has ended, and that nobody has asked about yet, does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(("kind", "count"), [("a process", 1), ("ranks", 2)])
def test_a_killed_launcher_takes_its_children_along(tmp_path, kind, count):
    if kind == "ranks" and missing():
        pytest.skip(missing())
    code = f"import subprocess, sys\nfolder = {str(tmp_path)!r}\n{LAUNCHERS[kind]}"
    environment = os.environ | {"PYTHONPATH": str(HELPERS)}
    launcher = subprocess.Popen([sys.executable, "-c", code], cwd=HELPERS, env=environment)
    try:
        until(lambda: len(list(tmp_path.iterdir())) == count, "children")
        children = [int(p.name) for p in tmp_path.iterdir()]
        assert all(map(lives, children))
    finally:
        launcher.kill()
        launcher.wait()
    until(lambda: not any(map(lives, children)), "their end")
