"""The documentation runs, its links lead somewhere, and every method is in it."""

import ast
import re
import sys
from types import ModuleType
from typing import NamedTuple

import pytest
from pages import FENCE, MOST_LINES
from paths import ROOT

import edgewise as ew

PAGES = [p for p in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if p.exists()]
ADDING = ROOT / "docs" / "adding-a-method.md"

CODE_OR_MATH = re.compile(r"`[^`\n]+`|\$\$.+?\$\$|\$[^$\n]+\$")
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)|<(?:img|a)\s[^>]*?(?:src|href)=[\"']([^\"']+)")


class Snippet(NamedTuple):
    line: int  # of the page, where its code begins
    code: str


def name(page):
    return page.relative_to(ROOT).as_posix()


def snippets(page):
    """The page's Python, but for what it says is not to be run."""
    text = page.read_text()
    for fence in FENCE.finditer(text):
        if fence["kind"].strip() == "python" and not fence["code"].startswith("# not run"):
            yield Snippet(text.count("\n", 0, fence.start("code")) + 1, fence["code"])


def run(page, monkeypatch, folder):
    """All of a page in order, in one namespace; tracebacks name its lines."""
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)  # for classes that look their module up
    monkeypatch.chdir(folder)
    for snippet in snippets(page):
        source = "\n" * (snippet.line - 1) + snippet.code
        exec(compile(source, str(page), "exec"), module.__dict__)


@pytest.fixture(autouse=True)
def no_windows():
    import matplotlib

    matplotlib.use("Agg", force=True)
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


@pytest.mark.quick_if(lambda page: page.parent.name != "methods" or page.stem == "saga-pd")
@pytest.mark.parametrize("page", [p for p in PAGES if any(snippets(p))], ids=name)
def test_the_code_of_a_page_runs(page, monkeypatch, tmp_path):
    run(page, monkeypatch, tmp_path)


def test_code_is_labelled_so_that_it_is_run():
    kinds = {(name(p), fence["kind"]) for p in PAGES for fence in FENCE.finditer(p.read_text())}
    assert not {k for k in kinds if k[1].strip() in ("py", "python3", "Python", "pycon")}


# --- links ----------------------------------------------------------------------------------------


def prose(page):
    return CODE_OR_MATH.sub("", FENCE.sub("", page.read_text()))


def anchors(page):
    """Of the page's headings, as GitHub makes them."""
    text = FENCE.sub("", page.read_text())
    headings = re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def links(page):
    return {a or b for a, b in LINK.findall(prose(page))}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_relative_links_lead_somewhere(page):
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_relative_to(ROOT), f"{link} leads out of the repository"
        assert target.exists(), f"{link} leads nowhere"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{link}: no such heading"


# --- methods --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ew.list_methods())
def test_every_method_is_in_the_index_and_on_a_page(method):
    folder = ROOT / "docs" / "methods"
    index = (folder / "README.md").read_text()
    assert f"| `{method}` |" in index
    said = "\n".join(p.read_text() for p in folder.glob("*.md") if p.name != "README.md")
    assert re.search(rf"(^# |`){method}(`|:)", said, re.MULTILINE)


def test_pages_of_methods_are_short_and_in_the_index():
    folder = ROOT / "docs" / "methods"
    for page in folder.glob("*.md"):
        if page.name != "README.md":
            assert page.name in links(folder / "README.md")
            assert len(page.read_text().splitlines()) < 60, page.name


# --- adding a method ------------------------------------------------------------------------------


def trees():
    return [(snippet, ast.parse(snippet.code)) for snippet in snippets(ADDING)]


def test_the_added_method_is_whole_and_short():
    found = 0
    for snippet, tree in trees():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                parts = {f.name for f in node.body if isinstance(f, ast.FunctionDef)}
                found += parts >= {"prepare", "init", "step"}
                assert len(snippet.code.splitlines()) < MOST_LINES
    assert found == 1
    classes = [c for _, tree in trees() for c in tree.body if isinstance(c, ast.ClassDef)]
    assert not {c.name for c in classes} & set(dir(ew)), "it is in the library"


def test_the_added_method_is_solved_with_and_held_to_an_optimum():
    everything = "\n".join(snippet.code for snippet, _ in trees())
    asserted = [n for n in ast.walk(ast.parse(everything)) if isinstance(n, ast.Assert)]
    assert len(asserted) >= 3
    for needed in ("ew.solve(", "ew.reference(", "np.linalg.solve("):
        assert needed in everything
