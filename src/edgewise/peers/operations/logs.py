"""What a peer's command logs: JSON lines in its folder, lines for people elsewhere."""

import json
import logging
import math
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FILE = "log.jsonl"
QUIET = 10.0  # seconds between two warnings of one kind about one neighbour
FOR_PEOPLE = "%(asctime)s %(levelname)s %(message)s"

log = logging.getLogger("edgewise.peers")
OWN = {*vars(logging.makeLogRecord({})), "message", "asctime"}  # all else was given as `extra`


@contextmanager
def logging_to(
    folder: Path, peer: int | str, shown: logging.Handler, least: int = logging.INFO
) -> Iterator[None]:
    """While in the block, what peers log goes to the folder and to `shown`, and nowhere else.

    Python's warnings come the same way. A handler of the whole package would say warnings again.
    An error that ends the block is kept in the folder; who catches it shows it.
    """
    kept = KeptLines(folder / FILE)
    kept.setFormatter(JsonLines(peer))
    shown.setFormatter(logging.Formatter(FOR_PEOPLE))
    level = log.level

    def warn(message: Warning | str, *_: Any, **__: Any) -> None:
        log.warning(str(message))

    with warnings.catch_warnings():
        warnings.showwarning = warn
        log.setLevel(least)
        log.propagate = False
        for handler in (kept, shown):
            log.addHandler(handler)
        try:
            with rate_limited():
                yield
        except Exception as failed:
            about = (log.name, logging.ERROR, __file__, 0, "ended: %s", (failed,), None)
            kept.handle(log.makeRecord(*about))
            raise
        finally:
            for handler in (kept, shown):
                log.removeHandler(handler)
                with suppress(OSError):  # a full disk
                    handler.close()
            log.setLevel(level)
            log.propagate = True


@contextmanager
def rate_limited() -> Iterator[None]:
    """While in the block, whatever the handlers, no kind of warning comes too often."""
    if any(isinstance(f, RateLimit) for f in log.filters):
        yield
        return
    sparing = RateLimit()
    log.addFilter(sparing)
    try:
        yield
    finally:
        log.removeFilter(sparing)
        for record in sparing.left():
            log.handle(record)


class KeptLines(logging.FileHandler):
    """A file of lines. Where it cannot be written that is said once, on stderr: lines for people
    still come, and a run does not end for its log."""

    failed = False

    def handleError(self, record: logging.LogRecord) -> None:
        failure = sys.exception()
        if not isinstance(failure, OSError):
            super().handleError(record)
        elif not self.failed:
            self.failed = True
            why = failure.strerror or failure
            print(f"{self.baseFilename} cannot be written ({why})", file=sys.stderr)


class JsonLines(logging.Formatter):
    def __init__(self, peer: int | str) -> None:
        super().__init__()
        self.peer = peer

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "peer": self.peer,
            "event": record.getMessage(),
            **{k: plain(v) for k, v in vars(record).items() if k not in OWN},
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def plain(value: Any) -> Any:
    """JSON has no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


class RateLimit(logging.Filter):
    """Lines of one kind, about one neighbour, once in a while; each says how many it is for.

    Whoever is refused, sends garbage, or comes and goes decides how often: it must not fill a disk.
    Other news, which this peer makes by itself, is never held back.
    """

    def __init__(self, quiet: float = QUIET) -> None:
        super().__init__()
        self.quiet, self.lock = quiet, threading.Lock()
        self.said_at: dict[Any, float] = {}
        self.withheld: dict[Any, tuple[int, logging.LogRecord]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING and "neighbour" not in vars(record):
            return True
        kind, now = (record.msg, vars(record).get("neighbour")), time.monotonic()
        with self.lock:
            more, _ = self.withheld.pop(kind, (0, None))
            if now - self.said_at.get(kind, -math.inf) < self.quiet:
                self.withheld[kind] = more + 1, record
                return False
            self.said_at[kind] = now
        standing_for(record, more)
        return True

    def left(self) -> list[logging.LogRecord]:
        """The last of each kind that was withheld, standing for those before it too."""
        with self.lock:
            left, self.withheld = list(self.withheld.values()), {}
        for count, record in left:
            standing_for(record, count - 1)
        return [record for _, record in left]


def standing_for(record: logging.LogRecord, more: int) -> None:
    if more:
        record.msg, record.args = f"{record.getMessage()} (and {more} more)", ()
        record.more = more


class LastLines(logging.Handler):
    """Keeps the last lines, for a view that has no room for all."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.lines: deque[str] = deque(maxlen=count)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))
