"""Work on large arrays, a core for each part."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import jax
from threadpoolctl import ThreadpoolController

S = TypeVar("S")
T = TypeVar("T")

FEW = 8  # parts that threads are not worth it for
BLAS = ThreadpoolController()


@contextmanager
def on_host() -> Iterator[None]:
    """In float64, on the CPU where JAX has been left one (JAX_PLATFORMS may leave it out)."""
    try:
        host = jax.devices("cpu")[0]
    except RuntimeError:
        host = jax.devices()[0]
    with jax.enable_x64(True), jax.default_device(host):
        yield


def over(parts: Sequence[S], do: Callable[[S], T]) -> list[T]:
    """What each part comes to, in order. BLAS's own threads would wait for each other at every
    product, so each of ours does its products alone."""
    if len(parts) < FEW:
        return [do(part) for part in parts]

    def here(part: S) -> T:
        with on_host():  # each thread has a setting of its own
            return do(part)

    with BLAS.limit(limits=1, user_api="blas"), ThreadPoolExecutor(os.cpu_count()) as threads:
        return list(threads.map(here, parts))
