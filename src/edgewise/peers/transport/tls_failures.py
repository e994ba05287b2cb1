"""Failed TLS handshakes, which gRPC tells nobody of but stderr.

Its C core writes a line for each. Everything that is written to file descriptor 2 is sifted for
those, by a process of its own: a thread in this one would need Python's lock to read on, so that
C code which holds it and writes much would wait for ever, and would not get to pass on what is
written in the moment before a crash. This file is both: the watcher, and the sieve as a script.
"""

import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

log = logging.getLogger("edgewise.peers")

STDERR = 2
DRAINED = 5.0  # seconds to wait for the sieve's end: a child of ours may hold its input open
QUIETER = {"ERROR", "NONE"}  # levels at which gRPC keeps the lines to itself

FROM_TLS = rb"^[IWEF]\d{4} [^\]]*ssl_transport_security\.cc:\d+\] "
FAILED = re.compile(FROM_TLS + rb"Handshake failed with error (.*)")
# Anybody can have this line written, with words of their own; it decides nothing.
OTHER_NAME = re.compile(FROM_TLS + rb"No match found for server name")
MAY_GO_ON = re.compile(rb"[IWEF](\d{0,4}|\d{4} [^\n]{0,4000})\Z")  # until there is all of a line

REASONS = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the other side has no certificate",
    "unable to get local issuer certificate": "a certificate of another authority",
    "certificate has expired": "a certificate that has expired",
    "HTTP_REQUEST": "plain HTTP",
    "WRONG_VERSION_NUMBER": "no TLS",
    "NO_SHARED_CIPHER": "TLS older than 1.3",
    "UNSUPPORTED_PROTOCOL": "TLS older than 1.3",
}


class TlsFailures:
    """How many have failed, of those who called and of those who were dialled."""

    def __init__(self) -> None:
        self.count = 0

    def take(self, detail: str) -> None:
        self.count += 1
        log.warning("a TLS handshake failed: %s", reason_of(detail))


def reason_of(detail: str) -> str:
    known = (why for sign, why in REASONS.items() if sign in detail)
    named = re.search(r"OPENSSL_internal:(\w+)", detail)
    return next(known, named[1].lower().replace("_", " ") if named else detail[:100])


@contextmanager
def counting_tls_failures() -> Iterator[TlsFailures]:
    """To be entered before gRPC is imported, which reads how much it is to say only then."""
    if os.environ.get("GRPC_VERBOSITY", "").upper() in QUIETER:
        del os.environ["GRPC_VERBOSITY"]
    require_stderr()
    seen, kept, over = TlsFailures(), os.dup(STDERR), threading.Event()
    sieve = subprocess.Popen(
        [sys.executable, "-I", "-S", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    assert sieve.stdin is not None

    def count() -> None:
        assert sieve.stdout is not None
        with sieve.stdout:
            for line in sieve.stdout:
                seen.take(line)
        if not over.is_set():  # the sieve was killed: stderr goes on without it
            os.dup2(kept, STDERR)
        sieve.wait()

    reader = threading.Thread(target=count, daemon=True)
    os.dup2(sieve.stdin.fileno(), STDERR)
    sieve.stdin.close()
    reader.start()
    try:
        yield seen
    finally:
        flush_stderr()
        over.set()
        os.dup2(kept, STDERR)
        os.close(kept)
        reader.join(DRAINED)


def require_stderr() -> None:
    """Where descriptor 2 is closed, any file that is opened next would get what C code writes."""
    try:
        os.fstat(STDERR)
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        if null != STDERR:
            os.dup2(null, STDERR)
            os.close(null)


def flush_stderr() -> None:
    with suppress(AttributeError, ValueError, OSError):  # None, or closed, or nobody reads it
        sys.stderr.flush()


# --- the sieve ------------------------------------------------------------------------------------


def sift() -> None:
    """From stdin to stderr, but the lines on handshakes, whose detail goes to stdout."""
    held = b""
    while data := os.read(0, 1 << 16):
        *lines, rest = (held + data).split(b"\n")
        held = rest if MAY_GO_ON.match(rest) else b""
        passed = [line + b"\n" for line in lines if not caught(line)]
        write(STDERR, b"".join(passed) + (b"" if held else rest))
    if not caught(held):
        write(STDERR, held)


def caught(line: bytes) -> bool:
    failed = FAILED.match(line)
    if failed is not None:
        write(1, failed[1].strip() + b"\n")
    return failed is not None or OTHER_NAME.match(line) is not None


def write(where: int, data: bytes) -> None:
    """Whether or not anybody reads it: the writers at the other end must not wait or fail."""
    with suppress(OSError):
        while data:
            data = data[os.write(where, data) :]


if __name__ == "__main__":
    import signal

    for number in (signal.SIGINT, signal.SIGTERM):  # those are for the peer, which ends this
        signal.signal(number, signal.SIG_IGN)
    sift()
