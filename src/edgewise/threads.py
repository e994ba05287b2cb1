"""Work on large arrays, a core for each part."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import jax
from threadpoolctl import ThreadpoolController

S = TypeVar("S")
T = TypeVar("T")

FEW = 8  # parts that threads are not worth it for
BLAS = ThreadpoolController()


def over(parts: Sequence[S], do: Callable[[S], T]) -> list[T]:
    """What each part comes to, in order. BLAS's own threads would wait for each other at every
    product, so each of ours does its products alone."""
    if len(parts) < FEW:
        return [do(part) for part in parts]

    def here(part: S) -> T:
        with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):  # known per thread
            return do(part)

    with BLAS.limit(limits=1, user_api="blas"), ThreadPoolExecutor(os.cpu_count()) as threads:
        return list(threads.map(here, parts))
