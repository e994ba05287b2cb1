"""`make docs`: the website builds without a warning, formulas and API included."""

import re
from html.parser import HTMLParser

from pages import RAW
from paths import ROOT


def text(site, page):
    return (site / f"{page}.html").read_text()


def test_every_page_is_there(site):
    pages = [p.relative_to(ROOT / "docs") for p in (ROOT / "docs").rglob("*.md")]
    for page in pages:
        name = page.with_name("index.html") if page.stem == "README" else page.with_suffix(".html")
        assert (site / name).exists(), page
    for example in (ROOT / "examples").glob("*.py"):
        assert (site / "examples" / f"{example.stem}.html").exists(), example


class Prose(HTMLParser):
    """What a page says, but for its code."""

    LEFT_OUT = ("code", "pre", "script", "style", "head")

    def __init__(self, html):
        super().__init__()
        self.within, self.parts = [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        if tag in self.LEFT_OUT:
            self.within.append(tag)

    def handle_endtag(self, tag):
        if self.within and tag == self.within[-1]:
            self.within.pop()

    def handle_data(self, data):
        if not self.within:
            self.parts.append(data)


def test_no_tex_and_no_markdown_is_left(site):
    """Where there is no browser too; test_site_in_browser looks at what one makes of it."""
    for page in site.rglob("*.html"):
        prose = "".join(Prose(page.read_text()).parts)
        raw = RAW.search(prose)
        assert not raw, f"{page.name} shows {prose[raw.start() - 40 : raw.end() + 40]!r}"
        assert len(prose) > 100


def test_formulas_are_mathml_and_nothing_is_fetched(site):
    for page in site.rglob("*.html"):
        html = page.read_text()
        assert "arithmatex" not in html, page
        fetched = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="https?:[^"]+"', html)
        assert not [f for f in fetched if 'rel="canonical"' not in f], page
    assert text(site, "methods/extra").count("<math") > 10


def test_the_reference_has_arguments_fields_and_examples(site):
    api = text(site, "api")
    assert "<td><code>oracle_budget</code></td>" in api
    assert re.search(r"<td><code>duals</code></td>\s*<td>\(V, n\) each node", api)
    assert "gp" in api
    assert "DecentralizedLasso" in api
