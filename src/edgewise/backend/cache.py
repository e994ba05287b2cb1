"""What is kept in the user's cache folder between runs: data sets and compiled programs."""

import hashlib
import os
import platform
from functools import cache
from pathlib import Path
from typing import Any

import jax

WORTH_KEEPING = 0.1  # seconds that a program took to compile


def folder() -> Path:
    """$EDGEWISE_CACHE, else ~/.cache/edgewise."""
    return Path(os.environ.get("EDGEWISE_CACHE") or Path.home() / ".cache" / "edgewise")


@cache
def keep_programs() -> None:
    """Let JAX find compiled programs again in later processes, unless the user has set a folder for
    that. JAX_ENABLE_COMPILATION_CACHE=0 turns it off."""
    settings: Any = jax.config
    if settings.jax_compilation_cache_dir is not None:
        return
    settings.update("jax_compilation_cache_dir", str(folder() / "programs" / processor()))
    settings.update("jax_persistent_cache_min_compile_time_secs", WORTH_KEEPING)


def processor() -> str:
    """A name for the machine's instructions: a folder may be shared by machines that differ."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        abilities = next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        abilities = platform.processor()
    return f"{platform.machine()}-{hashlib.sha256(abilities.encode()).hexdigest()[:12]}"
