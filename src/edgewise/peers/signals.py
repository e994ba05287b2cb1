"""SIGTERM and Ctrl-C, for a run that ends in order, with a checkpoint."""

import asyncio
import signal
import threading


def stop_on_signals(news: asyncio.Event) -> asyncio.Event:
    """An event that is set when somebody wants the peer to stop; `news` wakes whoever waits."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def ask() -> None:
        stop.set()
        news.set()

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, ask)
    return stop
