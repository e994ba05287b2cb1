"""The examples in docstrings give what they say."""

import doctest
import importlib
import pkgutil

import pytest

import edgewise

MODULES = [m.name for m in pkgutil.walk_packages(edgewise.__path__, "edgewise.")]


def found(module):
    loaded = importlib.import_module(module)
    return doctest.DocTestFinder().find(loaded, extraglobs={"edgewise": edgewise})


EXAMPLES = [t for m in MODULES if m != "edgewise.__main__" for t in found(m) if t.examples]


@pytest.mark.parametrize("test", EXAMPLES, ids=lambda test: test.name)
def test_docstrings(test, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    assert doctest.DocTestRunner(verbose=False).run(test).failed == 0


@pytest.mark.parametrize("part", ["solve", "tune", "compare", "reference", "split", "Problem"])
def test_what_users_call_first_has_an_example(part):
    assert ">>> " in getattr(edgewise, part).__doc__
