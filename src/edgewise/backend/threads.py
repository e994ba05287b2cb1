"""Work on large arrays, a core for each part."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any, TypeVar

import jax
from threadpoolctl import ThreadpoolController

S = TypeVar("S")
T = TypeVar("T")

FEW = 8  # parts that threads are not worth it for


@cache
def controller() -> ThreadpoolController:
    import scipy.linalg.cython_lapack  # noqa: F401  it may bring a BLAS of its own, which JAX uses

    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """BLAS's own threads wait for each other at every product, by spinning: with a hundred small
    matrices on a busy machine that took 200 times as long as one thread does."""
    made: AbstractContextManager[Any] = controller().limit(limits=1, user_api="blas")
    return made


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
    """What each part comes to, in order; each thread does its products alone."""
    if len(parts) < FEW:
        return [do(part) for part in parts]

    def here(part: S) -> T:
        with on_host():  # each thread has a setting of its own
            return do(part)

    with one_blas_thread(), ThreadPoolExecutor(os.cpu_count()) as threads:
        return list(threads.map(here, parts))
