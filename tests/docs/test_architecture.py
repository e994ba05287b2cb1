"""The map of the code is of the code as it is, and pages name files and modules that are there."""

import importlib.util
import re
import xml.etree.ElementTree as ElementTree

import pytest
from paths import ROOT

PACKAGE = ROOT / "src" / "edgewise"
PAGE = ROOT / "docs" / "architecture.md"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_every_package_is_on_the_map_and_nothing_else():
    drawn = ElementTree.parse(ROOT / "docs" / "images" / "packages.svg")
    texts = {"".join(t.itertext()) for t in drawn.iter("{http://www.w3.org/2000/svg}text")}
    on_the_map = {text[:-1] for text in texts if re.fullmatch(r"\w+/", text)}
    assert on_the_map == {init.parent.name for init in PACKAGE.glob("*/__init__.py")}


def test_modules_that_the_page_names_are_there():
    named = re.findall(r"`([a-z_]+/(?:[a-z_]+/)*(?:[a-z_]+\.py)?)`", PAGE.read_text())
    assert len(named) > 10
    missing = [name for name in named if not (PACKAGE / name).exists()]
    assert not missing, f"docs/architecture.md names {missing}, which are not in src/edgewise"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_and_modules_that_a_page_names_are_there(page):
    text = page.read_text()
    files = re.findall(r"\b(?:tests|src|benchmarks|examples|tools)/[\w/]+\.py\b", text)
    assert not [f for f in files if not (ROOT / f).exists()]
    modules = re.findall(r"(?:from|import) (edgewise(?:\.\w+)+)", text)
    assert not [m for m in modules if importlib.util.find_spec(m) is None]
