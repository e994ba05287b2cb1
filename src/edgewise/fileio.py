"""Files: written whole or not at all, and TOML."""

import json
import os
import secrets
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from edgewise.errors import InputError


def make_folder(folder: Path, otherwise: str, exist_ok: bool = False, mode: int = 0o777) -> None:
    """A folder that can be written into, made with this mode; raises InputError where it cannot be,
    saying `otherwise`, and FileExistsError where it is there and should not."""
    try:
        folder.mkdir(mode, parents=True, exist_ok=exist_ok)
        trial = folder / f".{secrets.token_hex(8)}"
        trial.touch()
        trial.unlink()
    except FileExistsError:
        raise
    except OSError as problem:
        raise InputError(
            f"{folder} cannot be written to ({problem.strerror}): {otherwise}"
        ) from None


@contextmanager
def replacing(
    path: Path,
    *,
    secret: bool = False,
    durable: bool = True,
    alone: bool = True,
    keep: Path | None = None,
) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the path's place when it is whole: readers see the old one
    or the new. Where the block raises, the old one stays.

    secret   nobody else can read it, not even while it is written
    durable  it and its name are on the disk before this returns; a status file needs no such wait
    alone    nobody else writes the same path meanwhile. Then the unfinished file has one fixed
             name, and a process that is killed again and again leaves one of it, not many
    keep     where the old one goes; at no moment is there none at `path`
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if alone:
        part = path.with_name(path.name + ".part")
        part.unlink(missing_ok=True)  # of a write that was cut short
    else:
        part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags, 0o600 if secret else 0o666)

    try:
        with open(part, "xb", 1 << 17, opener=opener) as file:  # few calls for many arrays
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        if keep is not None and path.exists():
            second_name(path, keep)
        part.replace(path)
    except BaseException as problem:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        if isinstance(problem, OSError) and problem.errno and problem.filename is None:
            raise OSError(problem.errno, problem.strerror, str(path)) from problem  # disk full
        raise
    if durable and os.name == "posix":  # the name too must be on the disk before anybody is told
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def written(path: str | Path) -> Iterator[None]:
    """What goes wrong while a path is written to, as an InputError that says what to do."""
    try:
        yield
    except OSError as problem:
        raise InputError(
            f"{path} cannot be written ({problem.strerror}): give a path where you may write"
        ) from None


def second_name(path: Path, name: Path) -> None:
    """The file, by another name too; a copy of it where the file system has no such thing."""
    part = name.with_name(name.name + ".part")
    part.unlink(missing_ok=True)
    try:
        os.link(path, part)
    except OSError:
        shutil.copyfile(path, part)
    part.replace(name)


def write_text(path: Path, text: str) -> None:
    with replacing(path) as file:
        file.write(text.encode())


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=1, allow_nan=False) + "\n")


# --- TOML -----------------------------------------------------------------------------------------


def read_toml(path: str | Path) -> dict[str, Any]:
    try:
        with Path(path).open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise InputError(f"there is no file {path}: give a TOML file with options") from None
    except (OSError, ValueError) as problem:
        raise InputError(f"{path} is no TOML file ({problem})") from None


def write_toml(path: Path, values: Mapping[str, Any]) -> None:
    """Texts, numbers, truths, and lists of them."""
    write_text(path, "".join(f"{key} = {toml(value)}\n" for key, value in values.items()))


def toml(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):  # JSON's escapes are TOML's, but for this one
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
