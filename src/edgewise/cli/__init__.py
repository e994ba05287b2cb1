"""The command line: `edgewise solve`, `compare`, `tune`, `split`, `report`, `methods`, `doctor`."""


def main() -> None:
    from edgewise.cli.app import app  # typer is not needed by `import edgewise`

    app(prog_name="edgewise")
