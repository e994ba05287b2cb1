"""Every page of the website as a reader sees it: no raw TeX or Markdown, nothing broken or cut."""

import functools
import http.server
import re
import threading
from urllib.parse import unquote, urldefrag

import pytest
from browser import browser, complaints, resize
from pages import RAW

WIDE, NARROW = (1200, 900), (400, 800)  # a laptop, a phone
# what a reader sees of a page but for its code
PROSE = """
const copy = document.querySelector('article').cloneNode(true);
copy.querySelectorAll('code, pre, script, style, .md-source-file').forEach(e => e.remove());
return copy.textContent;
"""
# formulas by their number and kind, links, images that did not load, and names to link to
PARTS = """
const all = (query, of) => [...document.querySelectorAll(query)].map(of);
return {
    title: document.title,
    heads: all('article h1', e => e.innerText),
    formulas: all('math', e => [e.namespaceURI, e.textContent, e.getBoundingClientRect().height]),
    links: all('a[href]', e => e.href),
    ids: all('[id]', e => e.id),
    broken: all('article img', e => e).filter(e => !e.complete || !e.naturalWidth).map(e => e.src),
    unnamed: all('article img', e => e).filter(e => !e.alt).map(e => e.src),
};
"""
# what is wider than the window: the page itself, and what has no scrolling box of its own around it
WIDER = """
const most = document.documentElement.clientWidth;
const scrolls = e => e && (['auto', 'scroll', 'hidden'].includes(getComputedStyle(e).overflowX)
                           || scrolls(e.parentElement));
const out = [...document.querySelectorAll('article *')].filter(
    e => e.getBoundingClientRect().right > most + 1 && !scrolls(e.parentElement)
         && !scrolls(e)).map(e => e.tagName + ': ' + e.textContent.slice(0, 60));
if (document.documentElement.scrollWidth > most) out.push('the page');
return out;
"""
NO_INDEX = b"""{"docs": [], "config": {"lang": ["en"], "separator": " ", "pipeline": [],
"fields": {"title": {"boost": 1}, "text": {"boost": 1}, "tags": {"boost": 1}}}}"""


class Served(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # one connection for all
    search = True  # if not, its index is empty: reading that is half of what a page takes

    def do_GET(self):
        if self.search or not self.path.endswith("search_index.json"):
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Length", str(len(NO_INDEX)))
        self.end_headers()
        self.wfile.write(NO_INDEX)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address(site):
    """Of the site, served as it would be."""
    handler = functools.partial(Served, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def seen(site, address, tmp_path_factory):
    """{address of a page: what a reader finds there}, each loaded once."""
    found = {}
    with browser(tmp_path_factory.mktemp("browser")) as window:
        for page in sorted(site.rglob("*.html")):
            url = address + page.relative_to(site).as_posix()
            resize(window, *WIDE)
            window.get(url)
            Served.search = False
            facts = window.execute_script(PARTS)
            facts["prose"] = window.execute_script(PROSE)
            facts["wider"] = window.execute_script(WIDER)
            resize(window, *NARROW)
            facts["wider_narrow"] = window.execute_script(WIDER)
            facts["complaints"] = complaints(window)
            found[url] = facts
    return found


def of_all(seen, fact):
    """{page: what is wrong there}, of the pages where something is."""
    return {url.split("/", 3)[3]: facts[fact] for url, facts in seen.items() if facts[fact]}


def test_no_tex_and_no_markdown_is_shown(seen):
    for url, facts in seen.items():
        raw = RAW.search(facts["prose"])
        assert not raw, f"{url} shows {facts['prose'][raw.start() - 40 : raw.end() + 40]!r}"


def test_formulas_are_elements_that_the_browser_lays_out(seen):
    formulas = [f for facts in seen.values() for f in facts["formulas"]]
    assert len(formulas) > 500
    for namespace, text, height in formulas:
        assert namespace == "http://www.w3.org/1998/Math/MathML"
        assert height > 5, text


def test_every_page_has_a_title_and_one_heading(seen):
    titles = [facts["title"] for url, facts in seen.items() if not url.endswith("/404.html")]
    assert len(set(titles)) == len(titles)
    for url, facts in seen.items():
        assert len(facts["heads"]) == 1, url


def test_links_within_the_site_lead_somewhere(seen, site, address):
    for url, facts in seen.items():
        for link in facts["links"]:
            target, anchor = urldefrag(link)
            if target.startswith(address):
                path = unquote(target.removeprefix(address))
                assert (site / path).exists(), f"{url} links to {link}"
                if anchor:
                    assert unquote(anchor) in seen[target]["ids"], f"{url} links to {link}"


def test_images_load_and_say_what_they_show(seen):
    assert of_all(seen, "broken") == {}
    assert of_all(seen, "unnamed") == {}


def test_nothing_is_wider_than_a_laptop_or_a_phone(seen):
    assert of_all(seen, "wider") == {}
    assert of_all(seen, "wider_narrow") == {}


def test_the_console_is_empty(seen):
    assert of_all(seen, "complaints") == {}


@pytest.fixture
def teacher(address, tmp_path):
    with browser(tmp_path) as window:
        window.get(address + "notebooks/teacher.html")
        yield window


def test_the_sliders_of_the_teachers_notebook_draw_the_run_they_are_set_to(teacher):
    ends = "(e => e.textContent)(document.getElementById('ends'))"

    def moved(name, value):
        teacher.execute_script(
            f"const s = document.getElementById('{name}'); s.value = {value};"
            "s.dispatchEvent(new Event('input'))"
        )
        return [
            float(n) for n in re.findall(r"-?\d+\.\d+", teacher.execute_script(f"return {ends}"))
        ]

    tracking, edges, gap = moved("lost", 3)  # 20 %
    assert edges == 0 < 0.1 < tracking
    assert abs(tracking - abs(gap) / 5) < 2e-3
    assert moved("lost", 0) == [0, 0, 0]
    assert moved("round", 0)[:2] == [4, 4]  # all begin at zero, the mean is 4
    points = "return document.querySelector('#whispers polyline').getAttribute('points').trim()"
    assert len(teacher.execute_script(points).split()) == 1
    moved("round", 60)
    assert len(teacher.execute_script(points).split()) == 61
