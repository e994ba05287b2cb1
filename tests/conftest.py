"""How tests compile, and what they hold in memory.

Compiling is most of the time, so programs are compiled without optimisations, and kept in
.pytest_cache/programs for other tests, workers and processes, and for the next run: JAX finds one
again by all that went into it (the program, the versions, the flags). `make test-all` sets
EDGEWISE_TESTS=optimised: everything is compiled as users' runs are, and nothing is kept.
"""

import ctypes
import gc
import os
import signal
import sys
from pathlib import Path

QUICK = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
if os.environ.get("EDGEWISE_TESTS") == "optimised":
    os.environ.setdefault("JAX_ENABLE_COMPILATION_CACHE", "0")
else:
    from edgewise.backend.cache import processor

    os.environ.setdefault("XLA_FLAGS", QUICK)
    kept = Path(__file__).parents[1] / ".pytest_cache" / "programs" / processor()
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(kept))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

import jax
import pytest

from edgewise.backend import programs

signal.signal(signal.SIGINT, signal.default_int_handler)  # pytest-xdist's workers ignore Ctrl-C


@pytest.fixture(scope="module", autouse=True)
def _forget_programs():
    yield
    programs.COMPILED.clear()
    jax.clear_caches()
