"""Options from files: `--config run.toml`, and what a run's folder says it was given."""

import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer

from edgewise.cli import completion as names
from edgewise.cli.shell import reporting_errors
from edgewise.errors import InputError, UnknownName
from edgewise.fileio import read_toml

ABOUT = ("command", "version")  # what a saved configuration says of itself
ABOUT_THIS_CALL = ("config", "json", "debug", "out", "save", "progress", "resume")
MAY_CHANGE = (
    "rounds",
    "tol",
    "record_every",
    "oracle_budget",
    "reference",
    "devices",
    "tensorboard",
)
PATHS = ("data", "shards", "sample_weight", "graph", "x0", "duals", "checkpoint")


def read_config(context: typer.Context, path: str | None) -> str | None:
    """Have the file's values stand in for options that are not given."""
    if path is not None:
        with reporting_errors(debug=False):
            use_as_defaults(context, read_toml(path), path)
    return path


def read_run(context: typer.Context, folder: str | None) -> str | None:
    """The same with the configuration that a run's folder holds."""
    if folder is not None:
        from edgewise.running import run_folders

        with reporting_errors(debug=False):
            given = run_folders.read_config(folder)
            if given["command"] != "solve":
                raise InputError(f"{folder} is of `{given['command']}`: only solves are resumed")
            use_as_defaults(context, given, folder)
    return folder


def use_as_defaults(context: typer.Context, given: dict[str, Any], source: str) -> None:
    if context.default_map:
        raise InputError("give --config or --resume, not both: a run has its own configuration")
    here = {p.name: p for p in context.command.params}
    known = sorted(known_options(context.find_root().command))
    values: dict[str, Any] = {}
    for key, value in given.items():
        name = key.replace("-", "_")
        if name in ABOUT:
            continue
        if name not in known:
            raise UnknownName(f"option in {source}:", key, known)
        if isinstance(value, dict):
            raise InputError(f"{source}: [{key}] is a table: give options on lines of their own")
        if name in here:
            values[name] = as_option_text(value, here[name].multiple or here[name].nargs == -1)
    context.default_map = values


def known_options(command: Any) -> set[str]:
    """Of any command of the program: one file may serve several."""
    if hasattr(command, "commands"):
        return {name for one in command.commands.values() for name in known_options(one)}
    return {p.name for p in command.params} - {"config"}


def as_option_text(value: Any, several: bool) -> Any:
    """The value as somebody would have typed it."""
    if several:
        return [str(v) for v in value] if isinstance(value, list) else [str(value)]
    if isinstance(value, list):
        return ",".join(map(str, value))
    return value if isinstance(value, bool) else str(value)


def effective_config(command: str, options: Any) -> dict[str, Any]:
    """The configuration that gives this run again; files by their whole path."""
    from edgewise import __version__

    chosen: dict[str, Any] = {"command": command, "version": __version__}
    for field in fields(options):
        value = getattr(options, field.name)
        if value is None or field.name in ABOUT_THIS_CALL:
            continue
        if field.name in PATHS and value not in names.graphs() and Path(value).exists():
            value = str(Path(value).resolve())
        chosen[field.name] = value
    return chosen


def changes(before: str, now: dict[str, Any]) -> list[str]:
    """What is given otherwise than in a saved configuration, of what decides how a run goes on."""
    old = tomllib.loads(before)

    def text(value: Any) -> str:
        if value is None:
            return "not given"
        return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)

    return [
        f"--{name.replace('_', '-')} was {text(old.get(name))} and is {text(now.get(name))}"
        for name in (*old, *(name for name in now if name not in old))
        if name not in (*ABOUT, *MAY_CHANGE) and text(old.get(name)) != text(now.get(name))
    ]
