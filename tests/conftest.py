"""Compiled programs are dropped after every file: each keeps memory maps, and a process may only
have so many (Linux: 65,530), after which XLA crashes."""

import os
import signal

os.environ.setdefault("JAX_ENABLE_COMPILATION_CACHE", "0")  # every test compiles what it runs

import jax
import pytest

from edgewise.backend import programs

signal.signal(signal.SIGINT, signal.default_int_handler)  # pytest-xdist's workers ignore Ctrl-C


@pytest.fixture(scope="module", autouse=True)
def _forget_programs():
    yield
    programs.COMPILED.clear()
    jax.clear_caches()
