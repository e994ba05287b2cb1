"""How tests compile, what they hold in memory, and that they end with the run.

`make test` compiles quickly: see quick_compiles.py. `make test-all` sets EDGEWISE_TESTS=optimised:
everything is compiled as users' runs are, and nothing is kept.
"""

import ctypes
import gc
import os
import signal
from pathlib import Path

if os.environ.get("EDGEWISE_TESTS") == "optimised":
    os.environ.setdefault("JAX_ENABLE_COMPILATION_CACHE", "0")
else:
    from quick_compiles import SETTINGS

    os.environ.update(SETTINGS | os.environ)  # JAX reads them when it is imported

# Engines are compared with each other as they are compiled; folders whose conftest.py says so, and
# backend/test_numpy_program.py, have early rounds run by NumPy, as users' are.
os.environ.setdefault("EDGEWISE_NUMPY", "0")

import jax
import pytest
from drawings import keep_figures
from end_with_parent import end_with_parent

from edgewise.backend import programs

C = ctypes.CDLL(None)
MOST_MEMORY = 700 * 2**20  # bytes of a worker before it forgets what it has compiled
MOST_MAPS = 20_000  # each program has memory maps; a process may have 65,530, then XLA crashes
SLOW_FILES = (
    "peers/processes",
    "engines/test_mpi",
    "docs/test_examples",
    "docs/test_notebooks",
    "experiments/",
)
GROWTH = 1.4  # since it last forgot: that takes seconds, and not all comes back

signal.signal(signal.SIGINT, signal.default_int_handler)  # pytest-xdist's workers ignore Ctrl-C
if "PYTEST_XDIST_WORKER" in os.environ:
    end_with_parent()


left = (0, 0)  # bytes and maps when programs were last forgotten


def forget_programs():
    global left
    programs.forget()
    jax.clear_caches()
    gc.collect()
    if hasattr(C, "malloc_trim"):
        C.malloc_trim(0)  # or the memory stays this process's own
    left = memory_held()


def memory_held():
    """Bytes, and memory maps."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        with open("/proc/self/maps") as maps:
            return pages * os.sysconf("SC_PAGESIZE"), sum(1 for _ in maps)
    except OSError:  # not Linux
        return 0, 0


def holds_much():
    return any(
        now > max(most, GROWTH * before)
        for now, most, before in zip(memory_held(), (MOST_MEMORY, MOST_MAPS), left, strict=True)
    )


@pytest.hookimpl(tryfirst=True)  # before those that are not asked for are left out
def pytest_collection_modifyitems(items):
    # Few tests that take long come first (xdist, told not to sort files, hands them out in this
    # order), or one worker is left with them at the end.
    items.sort(key=lambda item: not any(slow in item.nodeid for slow in SLOW_FILES))
    for item in items:
        for mark in item.iter_markers("quick_if"):
            if not mark.args[0](**item.callspec.params):
                item.add_marker("exhaustive")


@pytest.fixture
def drawn(monkeypatch):
    """{file name: figure} of the pictures that the test saves."""
    return keep_figures(monkeypatch)


@pytest.fixture(scope="module", autouse=True)
def _forget_programs_of_the_file():
    yield
    forget_programs()


@pytest.fixture(autouse=True)
def _forget_programs_if_many():
    yield
    if holds_much():
        forget_programs()
