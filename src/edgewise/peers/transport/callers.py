"""Connections that have not said yet who they are: so many, and no more."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from edgewise.peers.transport.failure_reasons import ConnectionFailure
from edgewise.peers.transport.tls_stream import TlsStream

log = logging.getLogger("edgewise.peers")

MOST_UNKNOWN = 128  # connections that have not said who they are; a further one ends the oldest


class Callers:
    """answer: what is done with each; it says `known` when it knows who that is."""

    def __init__(self, answer: Callable[[TlsStream], Coroutine[Any, Any, None]]) -> None:
        self.answer = answer
        self.calls: set[asyncio.Task[None]] = set()
        self.unknown: dict[TlsStream, None] = {}  # in the order in which they came

    def called(self, stream: TlsStream) -> None:
        """Somebody has connected, who may be anybody."""
        while len(self.unknown) >= MOST_UNKNOWN:
            oldest = next(iter(self.unknown))
            del self.unknown[oldest]
            oldest.drop(ConnectionFailure("too many connections that say nothing"))
        self.unknown[stream] = None
        call = asyncio.ensure_future(self.answer(stream))
        self.calls.add(call)
        call.add_done_callback(self.calls.discard)

    def known(self, stream: TlsStream) -> None:
        self.unknown.pop(stream, None)
