"""Programs compiled ahead, or run by NumPy, and kept for whoever runs the same again."""

import functools
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import jax
import numpy as np

from edgewise.backend.numpy_program import NumpyProgram
from edgewise.backend.numpy_rules import Unknown

COMPILED: dict[Any, Future[Any]] = {}
INTERPRETED: dict[Any, NumpyProgram | None] = {}
MOST_KEPT = 64
SMALL = 1 << 22  # bytes of all that a program is given, for NumPy to run it
LOCK = threading.Lock()


def forget() -> None:
    COMPILED.clear()
    INTERPRETED.clear()


def signature(args: Any) -> tuple[Any, ...]:
    leaves, tree = jax.tree.flatten(args)
    return tree, tuple((a.shape, a.dtype) for a in leaves)


def compiled(
    f: Any, args: tuple[Any, ...], options: dict[str, Any], donated: Any = (), **static: Any
) -> Any:
    """f compiled ahead for these arguments, so that compiling is never timed.

    Threads compile different programs at once, and wait for the same one.
    """
    key = (f, tuple(static.items()), tuple(options.items()), signature(args))
    with LOCK:
        program = COMPILED.get(key)
        first = program is None
        if program is None:
            if len(COMPILED) >= MOST_KEPT:
                COMPILED.pop(next(iter(COMPILED)))  # the oldest
            program = COMPILED[key] = Future()
    if first:
        jitted = jax.jit(
            f, static_argnames=tuple(static), donate_argnums=donated, compiler_options=options
        )
        try:
            program.set_result(jitted.lower(*args, **static).compile())
        except BaseException as error:
            COMPILED.pop(key, None)
            program.set_exception(error)
    return program.result()


def interpreted(f: Any, args: tuple[Any, ...], **static: Any) -> NumpyProgram | None:
    """f for these arguments, run by NumPy: None where they are large, or NumPy cannot."""
    if not numpy_serves() or sum(a.nbytes for a in jax.tree.leaves(args)) > SMALL:
        return None
    key = (f, tuple(static.items()), signature(args))
    if key not in INTERPRETED:
        try:
            made = NumpyProgram(f, args, **static)
        except Unknown:
            made = None
        with LOCK:
            if len(INTERPRETED) >= 4 * MOST_KEPT:
                INTERPRETED.pop(next(iter(INTERPRETED)))
            INTERPRETED[key] = made
    return INTERPRETED.get(key)


def numpy_serves() -> bool:
    """On a CPU, but where EDGEWISE_NUMPY=0 has all programs compiled."""
    return jax.default_backend() == "cpu" and os.environ.get("EDGEWISE_NUMPY", "1") != "0"


def light(f: Callable[..., Any]) -> Callable[..., Any]:
    """f compiled, or for small arrays run by NumPy, which takes as long and compiles nothing."""
    jitted = jax.jit(f)

    @functools.wraps(f)
    def call(*args: Any) -> Any:
        if not numpy_serves():
            return jitted(*args)
        known = jax.tree.map(np.asarray, args)
        program = interpreted(jitted, known)
        return jitted(*args) if program is None else program(*known)

    return call
