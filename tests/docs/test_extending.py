"""The worked examples of docs/extending.md: short, not in the library, held to an answer."""

import ast
import re

import pytest
from pages import FENCE, MOST_LINES
from paths import ROOT

import edgewise as ew
from edgewise import gradients
from edgewise.problem import losses, penalties

PAGE = (ROOT / "docs" / "extending.md").read_text()
INDEPENDENT = {
    "A loss of a linear score": "LinearSVC(",
    "Any other loss": "Weiszfeld",
    "A penalty": "cp.Problem(",
    "A gradient estimator": "np.linalg.solve(",
}


def blocks(title: str) -> list[str]:
    section = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert section, f"no section {title!r}"
    return [m["code"] for m in FENCE.finditer(section[1]) if m["kind"].strip() == "python"]


def asserts(code: str) -> list[ast.Assert]:
    return [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Assert)]


@pytest.mark.parametrize("title", INDEPENDENT)
def test_an_example_is_one_short_block_with_its_answer(title: str) -> None:
    example = blocks(title)[0]
    assert len(example.splitlines()) < MOST_LINES
    assert "ew.solve(" in example
    assert INDEPENDENT[title] in example
    assert any("result.X" in ast.unparse(node) for node in asserts(example))


@pytest.mark.parametrize("title", INDEPENDENT)
def test_every_block_of_an_example_can_fail(title: str) -> None:
    for block in blocks(title):
        assert asserts(block) or "assert_allclose" in block


def test_what_is_added_is_not_in_the_library() -> None:
    added = {
        node.name
        for title in INDEPENDENT
        for block in blocks(title)
        for node in ast.walk(ast.parse(block))
        if isinstance(node, ast.ClassDef)
    }
    assert {"SquaredHinge", "Near", "BSAGA"} <= added
    for module in (ew, losses, penalties, gradients):
        assert not added & set(dir(module)), f"already in {module.__name__}"


def test_every_kind_of_part_has_a_section() -> None:
    table = re.findall(r"\[here\]\(#([\w-]+)\)", PAGE)
    assert table == [title.lower().replace(" ", "-") for title in INDEPENDENT]
