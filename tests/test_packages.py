"""Every module can be reached by its name, and what is heavy is imported when it is used."""

import ast
import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest
from paths import ROOT

import edgewise

MODULES = [
    module.name
    for module in pkgutil.walk_packages(edgewise.__path__, "edgewise.")
    if module.name != "edgewise.__main__"  # which runs
]
HEAVY = {"sklearn", "matplotlib", "pandas", "plotly", "optax", "networkx", "numba"}
HELP = """
import sys
from contextlib import suppress
from edgewise.cli import main
sys.argv = ["edgewise", *{words}]
with suppress(SystemExit):
    main()
pass"""
FIRST_USE = "import edgewise; edgewise.solve; edgewise.Problem; edgewise.Graph"


def test_no_function_hides_a_module():
    modules = {name: import_module(name) for name in MODULES}
    assert len(modules) > 150
    for name, module in modules.items():
        parent, _, own = name.rpartition(".")
        assert getattr(sys.modules[parent], own) is module, f"{name} is hidden by another thing"
    import edgewise.methods.admm

    assert edgewise.methods.admm is modules["edgewise.methods.admm"]
    assert callable(edgewise.solve)


SCRIPTS = [
    path for folder in ("benchmarks", "examples", "tools") for path in ROOT.glob(f"{folder}/*.py")
]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_what_scripts_import_is_there(script):
    """No test runs the benchmarks, so nobody would notice a name that has moved."""
    for node in ast.walk(ast.parse(script.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "edgewise":
            module = import_module(node.module)
            for name in (alias.name for alias in node.names):
                submodule = f"{node.module}.{name}" in MODULES
                assert submodule or hasattr(module, name), f"{node.module} has no {name}"


@pytest.mark.parametrize(
    ("program", "left_out"),
    [
        (FIRST_USE, HEAVY),
        ("import edgewise.cli.app", HEAVY | {"jax", "numpy", "scipy"}),
        (HELP.format(words=["--help"]), HEAVY | {"jax", "numpy", "scipy"}),
        (HELP.format(words=["solve", "--help"]), HEAVY | {"jax", "numpy", "scipy"}),
        ("import edgewise", HEAVY | {"jax", "numpy", "scipy", "typer", "rich"}),
    ],
)
def test_what_is_heavy_is_imported_when_it_is_used(program, left_out):
    tell = "; import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", program + tell], capture_output=True, text=True, check=True
    )
    imported = set(done.stdout.splitlines()[-1].split())
    assert "edgewise" in imported
    assert not imported & left_out
