"""CONTRIBUTING.md's table of rooms, from the layers in pyproject.toml and the rooms' docstrings.

python tools/layers.py --write   makes it anew
python tools/layers.py --check   fails where it is not what it should be
"""

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "edgewise"
PAGE = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- made by tools/layers.py -->\n", "<!-- end of what it made -->\n"
SCRIPT = "__main__"


def layers() -> list[str]:
    """The rooms, what is imported before who imports it."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    contract = next(c for c in config["contracts"] if c["type"] == "layers")
    rooms = [room.strip() for layer in contract["layers"] for room in layer.split("|")]
    return [room for room in reversed(rooms) if room != SCRIPT]


def table() -> str:
    lines = ["| room | what it holds | modules |", "|---|---|---|"]
    for room in layers():
        path = PACKAGE / room
        name, start = (f"`{room}/`", path / "__init__.py") if path.is_dir() else (f"`{room}`", None)
        what = first_line(start or path.with_suffix(".py"))
        lines.append(f"| {name} | {what} | {', '.join(modules(path)) if start else ''} |")
    return "\n".join(lines) + "\n"


def modules(room: Path) -> Iterator[str]:
    for path in sorted(room.iterdir()):
        if path.suffix == ".py" and path.stem != "__init__":
            yield path.stem
        elif (path / "__init__.py").exists():
            inside = ", ".join(modules(path))
            yield f"{path.name}/ ({inside})" if inside else f"{path.name}/"


def first_line(path: Path) -> str:
    doc = ast.get_docstring(ast.parse(path.read_text()))
    if not doc:
        sys.exit(f"{path.relative_to(ROOT)} has no docstring: say in one line what it holds")
    return doc.split("\n\n")[0].replace("\n", " ").replace("|", "\\|").rstrip(".")


def main() -> None:
    text = PAGE.read_text()
    if BEGIN not in text or END not in text:
        sys.exit(f"{PAGE.name} has no place for the table: put {BEGIN.strip()} and {END.strip()}")
    before, rest = text.split(BEGIN)
    wanted = before + BEGIN + table() + END + rest.split(END)[1]
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(wanted)
    elif sys.argv[1:] != ["--check"]:
        sys.exit(__doc__)
    elif text != wanted:
        sys.exit(f"{PAGE.name} has another table of rooms: python tools/layers.py --write")


if __name__ == "__main__":
    main()
