"""Commands, called in this process."""

import json

from typer.testing import CliRunner

from edgewise.cli.app import app


def call(*words, code=0, **more):
    done = CliRunner().invoke(app, [str(w) for w in words], prog_name="edgewise", **more)
    assert done.exit_code == code, (done.exit_code, done.output, done.exception)
    return done


def said(*words, code=0):
    """The object that was printed, which is all that was printed."""
    return json.loads(call(*words, "--json", code=code).stdout)
