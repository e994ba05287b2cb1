"""`edgewise network` called in this process, and what it leaves in mesh/."""

import json
from pathlib import Path

from typer.testing import CliRunner

from edgewise.cli.app import app
from edgewise.peers.config.peer_config import load

MESH = Path("mesh")
RING = ["--graph", "ring", "--nodes", "5"]


def call(*words, code=0):
    done = CliRunner().invoke(app, ["network", *map(str, words)], prog_name="edgewise")
    assert done.exit_code == code, (done.exit_code, done.output, done.exception)
    return done


def said(*words):
    return json.loads(call(*words, "--json").stdout)


def refused(*words):
    error = call(*words, code=2).stderr
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    return error


def peer(id):
    return load(MESH / f"peer{id}.toml")


def around(id):
    return [n.id for n in peer(id).neighbours]


def contents():
    """But for the authority's book, which gets a line with every certificate."""
    return {p.name: p.read_bytes() for p in MESH.iterdir() if p.name != "issued.jsonl"}
