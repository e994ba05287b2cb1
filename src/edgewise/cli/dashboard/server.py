"""The page and its numbers, over HTTP on the loopback interface.

Whoever opens a page of somebody else in the same browser must learn nothing here, and whatever a
peer is called, or says, must stay text:

- it listens at 127.0.0.1, and answers nobody who calls it by another name (DNS rebinding)
- it lets no other page read what it says: no CORS, and it refuses what another site asks for
- one page, whose own script and style alone may run, named by their hashes; it fetches from here
- it can be read, and nothing else
"""

import base64
import hashlib
import re
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import NamedTuple

from edgewise.cli.dashboard.overview import Overview
from edgewise.errors import InputError

LOOPBACK = "127.0.0.1"
NAMES = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?", re.ASCII)
READS = ("GET", "HEAD")
SILENCE = 20.0  # seconds that a caller may take


class Page(NamedTuple):
    text: bytes
    policy: str


def page() -> Page:
    folder = files(__package__)
    pieces = {name: folder.joinpath(f"page.{name}").read_text("utf-8") for name in ("css", "js")}
    whole = folder.joinpath("page.html").read_text("utf-8")
    text = re.sub(r"\{\{(\w+)\}\}", lambda gap: pieces[gap[1]], whole)
    style, script = (hash_of(pieces[name]) for name in ("css", "js"))
    policy = (
        f"default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return Page(text.encode(), policy)


def hash_of(piece: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(piece.encode()).digest()).decode()}'"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = SILENCE
    server: "PageServer"

    def answer(self) -> None:
        if not NAMES.fullmatch(self.headers.get("Host", "")):
            self.tell(HTTPStatus.MISDIRECTED_REQUEST, b"open it by 127.0.0.1 or localhost\n")
        elif self.command not in READS:
            self.tell(HTTPStatus.METHOD_NOT_ALLOWED, b"it can be read, and nothing else\n")
        elif self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            self.tell(HTTPStatus.FORBIDDEN, b"not for other sites\n")
        elif self.path == "/":
            self.tell(HTTPStatus.OK, self.server.page.text, "text/html; charset=utf-8")
        elif self.path == "/state.json":
            self.tell(HTTPStatus.OK, self.server.overview.text, "application/json")
        else:
            self.tell(HTTPStatus.NOT_FOUND, b"there are / and /state.json\n")

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = do_PATCH = answer

    def tell(self, status: HTTPStatus, text: bytes, kind: str = "text/plain") -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(text)),
            "Content-Security-Policy": self.server.page.policy,
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cache-Control": "no-store",
        }.items():
            self.send_header(name, value)
        if self.command not in READS:  # what it sent is not read
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def version_string(self) -> str:
        return "edgewise"

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


class PageServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, overview: Overview) -> None:
        self.page, self.overview = page(), overview
        try:
            super().__init__((LOOPBACK, port), Handler)
        except OSError as problem:
            raise InputError(
                f"nothing can listen at port {port} ({problem.strerror}): give another --port, or "
                "0 for any that is free"
            ) from None

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.server_port}/"
