"""Answers of HTTP that come whole within a time, or not at all.

A time-out of a socket is for each byte anew: who sends one every second would hold whoever waits.
"""

import http.client
import io
import socket
import time
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from edgewise.errors import InputError

PATIENCE = 3.0  # seconds to connect, and for an answer
MOST_BYTES = 1 << 20  # of one


class TimelyReads(io.RawIOBase):
    """Of a socket, until a time."""

    def __init__(self, end: socket.socket, reads: Any, until: float) -> None:
        """reads: the socket's file; the socket stays open until this is closed."""
        self.end, self.reads, self.until = end, reads, until

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int | None:
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"no whole answer within {PATIENCE:.0f} s")
        self.end.settimeout(left)
        count: int | None = self.reads.readinto(into)
        return count

    def close(self) -> None:
        self.reads.close()
        super().close()


class TimelyResponse(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *more: Any, **named: Any) -> None:
        super().__init__(sock, *more, **named)
        until = time.monotonic() + PATIENCE
        self.fp = io.BufferedReader(TimelyReads(sock, self.fp.detach(), until))


class Plain(http.client.HTTPConnection):
    response_class = TimelyResponse


class Encrypted(http.client.HTTPSConnection):
    response_class = TimelyResponse


class OverPlain(urllib.request.HTTPHandler):
    def http_open(self, asked: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(Plain, asked)


class OverEncrypted(urllib.request.HTTPSHandler):
    def https_open(self, asked: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(Encrypted, asked)


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Metrics are where they were said to be."""

    def redirect_request(self, *_: Any) -> None:
        return None


class TimelyFetch:
    """Of paths at an address."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"{url} is no address of metrics: give one as http://host:9464")
        self.where, self.host = f"{parts.scheme}://{parts.netloc}", parts.netloc
        self.opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), NoRedirect, OverPlain, OverEncrypted
        )

    def __call__(self, path: str) -> str:
        try:
            with self.opener.open(self.where + path, timeout=PATIENCE) as answer:
                return str(answer.read(MOST_BYTES).decode(errors="replace"))
        except urllib.error.HTTPError as refused:
            if refused.code != 503:  # which is /readyz's answer too
                raise
            with refused:
                return refused.read(MOST_BYTES).decode(errors="replace")
