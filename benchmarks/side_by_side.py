"""Processes that share the work of a benchmark, each with a core of its own."""

import multiprocessing
import os
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any


@contextmanager
def processes(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Spawned, not forked: JAX has threads. What a process compiled it keeps, until told not to."""
    for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[threads] = "1"  # read when NumPy is imported, before `begin`
    context = multiprocessing.get_context("spawn")
    with context.Manager() as shared:
        cores = shared.Queue()
        for k in range(jobs):
            cores.put(core_of(k))
        with ProcessPoolExecutor(jobs, context, begin, (cores,)) as pool:
            yield pool


def begin(cores: Any) -> None:
    warnings.simplefilter("ignore")
    stay_on(cores.get())


def core_of(k: int) -> int:
    """That of the k-th process, in turn."""
    there = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    return there[k % len(there)]


def stay_on(core: int) -> None:
    """Where the system can; XLA then makes one thread, if it has not begun."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def forget_programs() -> None:
    """What was compiled for one setting serves no other."""
    import jax

    from edgewise.backend import programs

    programs.COMPILED.clear()
    jax.clear_caches()
