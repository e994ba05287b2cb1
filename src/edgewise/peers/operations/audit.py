"""What a peer did, with whom, and what left its host: `audit.jsonl`, a chain of hashes.

Every line holds the SHA-256 of the line before. Whoever changes, drops or puts in a line breaks the
chain from there on, unless all later lines are made anew: so the hash of the last one, which
`--status` tells, belongs into somebody else's hands as well. Lines hold counts and hashes, and
nothing of data or models.
"""

import getpass
import hashlib
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from edgewise.errors import InputError

FILE = "audit.jsonl"
BEGINNING = "0" * 64  # before the first line


def hash_of(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


class Audit:
    """Appends to a peer's own file. A line that a crash cut short stays, and the next says so."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        before = self.path.read_bytes() if self.path.exists() else b""
        lines = before.splitlines()
        self.number = len(lines)
        self.head = hash_of(lines[-1]) if lines else BEGINNING
        self.torn = bool(before) and not before.endswith(b"\n")

    def note(self, event: str, **facts: Any) -> None:
        """A line, on the disk before this returns."""
        told: dict[str, Any] = {
            "n": self.number,
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "event": event,
            **facts,
        }
        if self.torn:
            told["cut_short"] = True
        line = json.dumps(told | {"before": self.head}).encode()
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        with os.fdopen(os.open(self.path, flags, 0o600), "ab") as file:
            file.write((b"\n" if self.torn else b"") + line + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.number, self.head, self.torn = self.number + 1, hash_of(line), False


def who() -> str:
    """The user whose process it is."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid()) if hasattr(os, "getuid") else "unknown"


# --- to read it -----------------------------------------------------------------------------------


class Verdict(NamedTuple):
    lines: int
    head: str
    wrong: str  # where the chain breaks, or nothing
    left: Mapping[str, int]  # bytes by kind, over all starts


def verified(folder: str | Path, head: str | None = None) -> Verdict:
    """head: what the last line's hash was, or one before it, as somebody else has it."""
    path = Path(folder) / FILE
    try:
        lines = path.read_bytes().splitlines()
    except OSError as problem:
        raise InputError(
            f"{path} cannot be read ({problem.strerror}): give a peer's folder"
        ) from None
    before, wrong, heads, left = BEGINNING, "", [], dict[str, int]()
    for number, line in enumerate(lines):
        follows = json_in(lines[number + 1]) if number + 1 < len(lines) else {}
        told = json_in(line)
        if not told and (number + 1 == len(lines) or follows.get("cut_short")):
            pass  # a crash, which the next line tells of
        elif not told:
            wrong = f"line {number + 1} is no entry"
        elif told.get("before") != before:
            wrong = f"line {number + 1} does not follow the one before it"
        elif told.get("n") != number:
            wrong = f"line {number + 1} says that it is the {told.get('n')}th"
        if wrong:
            break
        for kind, count in told.get("left", {}).items():
            left[kind] = left.get(kind, 0) + int(count)
        before = hash_of(line)
        heads.append(before)
    if not wrong and head is not None and head not in heads:
        wrong = "no line has the hash that was given: lines were cut off, or all are made anew"
    return Verdict(len(lines), before, wrong, left)


def json_in(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
