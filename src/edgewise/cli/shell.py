"""Between shell and commands: options as one object, errors as one paragraph, exit codes."""

import inspect
import json
import logging
import os
import signal
import socket
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_type_hints

import typer
from rich.console import Console

from edgewise.errors import DivergenceWarning, EdgewiseError

T = TypeVar("T")
log = logging.getLogger("edgewise")

FINE, NOT_CONVERGED, BAD_INPUT, NEIGHBOURS_AWAY, OUR_FAULT, INTERRUPTED = 0, 1, 2, 3, 70, 130
EXIT_CODES = (
    "[bold]Exit codes[/]: 0 fine; 1 not converged, or diverged (the message says which); 2 an "
    "option or input that cannot be used; 3 a peer whose neighbours were away at the end; 70 a "
    "fault of Edgewise; 130 interrupted."
)


def with_options(
    options: type[T], otherwise: Mapping[str, Any] | None = None
) -> Callable[[Callable[[T], None]], Callable[..., None]]:
    """Have a command's function take one object with its options.

    `otherwise` are the options of a call that names no data, unless they are given.
    """
    hints = get_type_hints(options, include_extras=True)
    named = inspect.Parameter.KEYWORD_ONLY
    context = inspect.Parameter("context", named, annotation=typer.Context)
    parameters = [
        inspect.Parameter(f.name, named, default=f.default, annotation=hints[f.name])
        for f in fields(options)  # type: ignore[arg-type]
    ]

    def decorate(command: Callable[[T], None]) -> Callable[..., None]:
        def call(context: typer.Context, **given: Any) -> None:
            if otherwise and given["data"] is None and given["shards"] is None:
                unsaid = [k for k in otherwise if by_default(context, k)]
                given |= {k: otherwise[k] for k in unsaid}
            with reporting_errors(given["debug"], speaks=launched_process().rank == 0):
                command(options(**given))

        call.__name__, call.__doc__, call.__annotations__ = command.__name__, command.__doc__, {}
        call.__signature__ = inspect.Signature([context, *parameters])  # type: ignore[attr-defined]
        return call

    return decorate


def by_default(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is None or source.name == "DEFAULT"


class LaunchedProcess(NamedTuple):
    rank: int
    ranks: int


def launched_process() -> LaunchedProcess:
    """What mpiexec or srun said to this process, if they started it."""

    def first(*names: str, otherwise: str) -> int:
        return int(next((os.environ[name] for name in names if name in os.environ), otherwise))

    return LaunchedProcess(
        first("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", otherwise="0"),
        first("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", otherwise="1"),
    )


@contextmanager
def reporting_errors(debug: bool, speaks: bool = True) -> Iterator[None]:
    """Errors as one paragraph on stderr, with an exit code; said once where all of a job's
    processes have the same."""
    code, message = BAD_INPUT, ""
    try:
        with logging_warnings(speaks):
            yield
        return
    except KeyboardInterrupt:
        code, message = INTERRUPTED, "interrupted"
    except typer.Exit:
        raise
    except EdgewiseError as error:
        message = f"error: {error}"
    except OSError as error:
        message = f"error: {error}"
        if error.filename is not None:  # a file of the user's, as far as we can tell
            message = (
                f"error: {error.filename} cannot be read or written ({error.strerror}): check the "
                "path, and that you may"
            )
    except Exception as error:
        code = OUR_FAULT
        message = f"error: {type(error).__name__}: {error}; this is a fault of Edgewise, not yours"
        message += "" if debug else ": --debug shows where"
    if debug:
        traceback.print_exc()
    if speaks:
        print(" ".join(message.split()), file=sys.stderr)
    raise typer.Exit(code)


@contextmanager
def logging_warnings(speaks: bool) -> Iterator[None]:
    """Warnings as a line in the log and on stderr; of divergence the result speaks itself."""

    def say(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if speaks and not issubclass(category, DivergenceWarning):
            log.warning(str(message))

    stderr = logging.StreamHandler(sys.stderr)
    stderr.setLevel(logging.WARNING)
    stderr.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    log.addHandler(stderr)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = say
            yield
    finally:
        log.removeHandler(stderr)


@contextmanager
def noticing_interrupts() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C was pressed in the block, for runs that end in order when it is."""
    seen: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        try:
            yield lambda: signal.SIGINT in seen
        finally:
            signal.set_wakeup_fd(before)
            with suppress(BlockingIOError):
                seen.extend(ours.recv(64))


def output(options: Any, speaks: bool = True) -> Console:
    """Where tables go: nowhere if the output is to be JSON, or another rank's."""
    return Console(quiet=options.json or not speaks)


def print_end(o: Any, console: Console, folder: Path | None, summary: Any) -> None:
    """Where the run is kept, and its summary where JSON was asked for."""
    if folder is not None:
        console.print(f"saved in {folder}", highlight=False, soft_wrap=True)
    if o.json:
        print_json(summary)


def exit_unless(converged: bool, interrupted: bool) -> None:
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    if not converged:
        raise typer.Exit(NOT_CONVERGED)


def print_json(value: Any) -> None:
    print(json.dumps(plain(value), allow_nan=False))


def plain(value: Any) -> Any:
    """What JSON can hold: null for what is no number."""
    import numpy as np

    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value
