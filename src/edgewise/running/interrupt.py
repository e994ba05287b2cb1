"""Ctrl-C that lets a run end in order."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def deferred_interrupt() -> Iterator[threading.Event]:
    """Ctrl-C asks the loop to stop after the stretch under way; a second one stops at once."""
    asked = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    ignored = before is signal.SIG_IGN
    if ignored or threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def ask(number: int, frame: Any) -> None:
        if asked.is_set() or not callable(before):
            raise KeyboardInterrupt
        asked.set()

    signal.signal(signal.SIGINT, ask)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)
