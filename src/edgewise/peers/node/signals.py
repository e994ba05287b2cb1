"""SIGTERM and Ctrl-C, for a run that ends in order, with a checkpoint."""

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def run_anywhere(work: Coroutine[Any, Any, T], halt: Callable[[], object]) -> T:
    """asyncio.run, also where a loop runs already, as in a notebook: then in a thread, which no
    signal reaches, so that Ctrl-C asks it to halt."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as beside:
        result = beside.submit(asyncio.run, work)
        try:
            return result.result()
        except KeyboardInterrupt:
            halt()
            return result.result()


def stop_on_signals(wakeup: asyncio.Event) -> tuple[asyncio.Event, Callable[[], object]]:
    """An event that is set when somebody wants the peer to stop, and what sets it from another
    thread; `wakeup` wakes whoever waits."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def ask() -> None:
        stop.set()
        wakeup.set()

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, ask)
    return stop, lambda: loop.call_soon_threadsafe(ask)
