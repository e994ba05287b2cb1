"""Programs compiled ahead, and kept for whoever runs the same again."""

import threading
from concurrent.futures import Future
from typing import Any

import jax

COMPILED: dict[Any, Future[Any]] = {}
MOST_COMPILED = 64
LOCK = threading.Lock()


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
            if len(COMPILED) >= MOST_COMPILED:
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
