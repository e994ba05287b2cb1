"""The notebooks run, and say what they are kept with."""

import importlib.util
import json
import re

import pytest
from paths import ROOT

pytest.importorskip("nbclient")
FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MOST_BYTES = 200_000
# numbers, which depend on the machine in their last digits; and how wide they make a column
NUMBER = re.compile(r"\s*[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")


@pytest.fixture(scope="module")
def notebooks():
    """tools/notebooks.py"""
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "tools" / "notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def said(notebook):
    """For each code cell what it printed, numbers apart, and what kinds of things it showed."""
    texts, kinds = [], []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        outputs = cell["outputs"]
        text = "".join("".join(o["text"]) for o in outputs if o["output_type"] == "stream")
        texts.append(NUMBER.sub(" #", text))
        kinds.append([sorted(o["data"]) for o in outputs if "data" in o])
    return texts, kinds


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_runs_and_says_what_it_is_kept_with(notebooks, path, tmp_path, monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    today = notebooks.executed(path, tmp_path)  # raises if a cell does: they assert a good deal
    assert said(today) == said(json.loads(path.read_text())), "run tools/notebooks.py"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_is_kept_whole_and_small(path):
    assert path.stat().st_size < MOST_BYTES
    code = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    assert [c["execution_count"] for c in code] == list(range(1, len(code) + 1))
    assert not [o for c in code for o in c["outputs"] if o["output_type"] == "error"]
    assert not [o for c in code for o in c["outputs"] if o.get("name") == "stderr"]


def test_a_picture_without_words_and_an_error_are_refused(notebooks):
    from mkdocs.exceptions import PluginError

    picture = {"output_type": "display_data", "data": {"image/png": "AAAA"}}
    with pytest.raises(PluginError, match="needs alt"):
        notebooks.output_html(picture, {"metadata": {}}, "a.ipynb")
    shown = notebooks.output_html(picture, {"metadata": {"alt": 'a "b"'}}, "a.ipynb")
    assert shown == '<img alt="a &quot;b&quot;" src="data:image/png;base64,AAAA">'
    error = {"output_type": "error", "ename": "ValueError"}
    with pytest.raises(PluginError, match="kept with an error, ValueError"):
        notebooks.output_html(error, {"metadata": {}}, "a.ipynb")
    text = {"output_type": "stream", "text": ["<b>1</b>\n", "2\n"]}
    assert "&lt;b&gt;1&lt;/b&gt;\n2<" in notebooks.output_html(text, {}, "a.ipynb")
