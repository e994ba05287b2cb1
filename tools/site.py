"""What `mkdocs.yml` needs beyond its plugins: how the pages that people read on the repository's
site, and docstrings in the style of this code, become a website.

As a hook of MkDocs: the README, the pages that lie beside it and the examples become pages;
formulas become MathML, which browsers show without a script. As an extension of Griffe: aligned
lists of arguments become tables, and so do the comments beside fields.
"""

import ast
import html
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import griffe
from latex2mathml.converter import convert
from latex2mathml.symbols_parser import convert_symbol
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<tex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)
BESIDE = ("CONTRIBUTING", "CHANGELOG", "SECURITY", "CODE_OF_CONDUCT")  # the README
MATHML = "{http://www.w3.org/1998/Math/MathML}"
BELOW = ("min", "max", "arg\u2009min")  # what has its variable below it, in a line of its own
ENTRY = re.compile(r"(?P<name>\S+(?:, \S+)*) {2,}(?P<said>\S.*)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    pages = {"index.md": from_above((ROOT / "README.md").read_text())}
    for name in BESIDE:
        pages[f"{name.lower()}.md"] = from_above((ROOT / f"{name}.md").read_text())
    for example in sorted((ROOT / "examples").glob("*.py")):
        source = f"# {example.name}\n\n```python\n{example.read_text()}```\n"
        pages[f"examples/{example.stem}.md"] = source
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def from_above(text: str) -> str:
    """The links of a page that lies above docs/, as from within."""
    text = re.sub(r"\]\(docs/", "](", text)
    return lowered("", text)


def lowered(folder: str, text: str) -> str:
    """Links to the pages beside the README, which are pages of the site in lower case."""
    names = "|".join(BESIDE)
    return re.sub(rf"\]\({folder}({names})\.md", lambda m: f"]({m[1].lower()}.md", text)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    markdown = re.sub(r"\]\(\.\./examples/(\w+)\.py\)", r"](examples/\1.md)", markdown)
    markdown = lowered(r"\.\./", markdown)
    return re.sub(r"\]\(\.\./README\.md\)", "](index.md)", markdown)


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    def shown(found: re.Match[str]) -> str:
        tex = html.unescape(found["tex"]).strip()
        display = "block" if found["tag"] == "div" else "inline"
        formula = mathml(tex, display)
        if "\\" in formula:
            raise PluginError(f"{page.file.src_path}: a browser would show TeX in {tex}")
        return f'<div class="formula">{formula}</div>' if display == "block" else formula

    return FORMULA.sub(shown, content)


def mathml(tex: str, display: str) -> str:
    """Of latex2mathml, with what it leaves as TeX or sets apart put right."""
    tex = tex.replace(r"\arg\min", r"\argmin")  # it knows the latter, and GitHub the former
    ET.register_namespace("", MATHML[1:-1])
    tree = ET.fromstring(convert(tex, display=display))
    for part in tree.iter():
        if (part.text or "").startswith("\\"):  # as in \big\langle
            code = convert_symbol(part.text)
            part.text = chr(int(code, 16)) if code else part.text
        if display == "block" and part.tag == f"{MATHML}msub" and (part[0].text or "") in BELOW:
            part.tag = f"{MATHML}munder"
        if part.tag == f"{MATHML}mo" and part.text in ("|", "\u2016"):  # a norm, not "or"
            part.attrib |= {"lspace": "0", "rspace": "0"}
        upright(part)
    return ET.tostring(tree, encoding="unicode")


def upright(row: ET.Element) -> None:
    """Neighbouring upright letters are one word, or each has space around it."""
    word = None
    for part in list(row):
        if part.tag == f"{MATHML}mi" and part.attrib == {"mathvariant": "normal"}:
            if word is not None:
                word.text = (word.text or "") + (part.text or "")
                row.remove(part)
                continue
            word = part
        else:
            word = None


class House(griffe.Extension):
    """Docstrings and fields as they are written here."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = tabulated(obj.docstring.value)

    def on_class_members(
        self, *, node: ast.AST | griffe.ObjectNode, cls: griffe.Class, **_: Any
    ) -> None:
        if not isinstance(node, ast.ClassDef) or not isinstance(cls.filepath, Path):
            return
        lines = cls.filepath.read_text().splitlines()
        fields = [
            (part.target.id, lines[part.lineno - 1].partition("  # ")[2])
            for part in node.body
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
        ]
        said = [(name, text) for name, text in fields if text and not text.startswith("type:")]
        if said and cls.docstring is not None:
            cls.docstring.value += f"\n\n{markdown_table(said)}"


def tabulated(text: str) -> str:
    """Every paragraph that is an aligned list, as a Markdown table."""
    paragraphs = re.split(r"\n\s*\n", text)
    return "\n\n".join(session(p) or table(p.splitlines()) or p for p in paragraphs)


def session(paragraph: str) -> str | None:
    return f"```pycon\n{paragraph}\n```" if paragraph.startswith(">>> ") else None


def table(lines: list[str]) -> str | None:
    rows: list[tuple[str, str]] = []
    for line in lines:
        entry = ENTRY.fullmatch(line)
        if entry:
            rows.append((entry["name"], entry["said"]))
        elif rows and line.startswith("  "):
            name, said = rows[-1]
            rows[-1] = (name, f"{said} {line.strip()}")
        else:
            return None
    return markdown_table(rows)


def markdown_table(rows: list[tuple[str, str]]) -> str:
    cells = ((f"`{name}`", said.replace("|", "\\|")) for name, said in rows)
    return "\n".join(["| | |", "|---|---|", *(f"| {a} | {b} |" for a, b in cells)])
