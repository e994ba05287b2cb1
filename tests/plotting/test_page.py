"""The page says what the traces say, does as it is clicked, and lets nothing in or out."""

import json
import re
import sys

import browser as a_browser
import numpy as np
import pytest

import edgewise as ew
from edgewise.errors import InputError, UnknownName
from edgewise.plotting.axes import LABELS
from edgewise.plotting.page import POINTS, X_AXES, PageRun, as_text, page_data, write_page
from edgewise.running.trace import COLUMNS, Trace

HOSTILE = "</script><script>window.entered = 1</script><b>%{x}</b> & {{plotly}}"


def trace(rows=30, rate=0.5, **columns):
    k = np.arange(rows)
    given = dict.fromkeys(COLUMNS, np.full(rows, np.nan))
    given |= {"rounds": 10 * k, "oracle_calls": 20 * k, "bytes_sent": 1e5 * k, "seconds": k / 7}
    given |= {"bregman": rate**k, "residual": 3 * rate**k, "consensus": np.zeros(rows)}
    return Trace(given | columns)


def data_of(*runs, graph=None, x="rounds", y="bregman", **about):
    return page_data(list(runs), "title", about, graph, x, y)


# --- what the script is given ---------------------------------------------------------------------


def test_curves_are_thinned_and_short_and_ends_are_kept():
    values = np.geomspace(1, 1e-9, 5001) / 3
    data = data_of(PageRun("a", trace(5001, bregman=values)))
    columns = data["runs"][0]["columns"]
    assert {len(c) for c in columns.values()} == {POINTS}
    assert (columns["rounds"][0], columns["rounds"][-1]) == (0, 50_000)
    assert (columns["bregman"][0], columns["bregman"][-1]) == (0.333333, 3.33333e-10)
    rows = np.array(columns["rounds"]) // 10
    np.testing.assert_allclose(columns["bregman"], values[rows], rtol=1e-5)
    assert len(json.dumps(data)) < 60_000
    short = data_of(PageRun("a", trace(3)))["runs"][0]
    assert short["columns"]["bytes_sent"] == [0, 100_000, 200_000]
    assert short["last"]["bytes_sent"] == 200_000


def test_what_is_no_number_is_left_out():
    odd = trace(4, objective_gap=[-2, 1, np.nan, 0], bregman=[1, 1e200, np.inf, np.nan])
    run = data_of(PageRun("a", odd))["runs"][0]
    assert run["columns"]["objective_gap"] == [2, 1, None, 0]
    assert run["columns"]["bregman"] == [1, None, None, None]
    assert run["last"]["objective_gap"] == 0
    assert run["last"]["bregman"] is None


def test_axes_are_those_that_were_measured():
    unmeasured = trace(bregman=np.full(30, np.nan))
    data = data_of(PageRun("a", unmeasured))
    assert data["ys"] == ["residual", "consensus"]
    assert data["y"] == "residual"
    assert data_of(PageRun("a", unmeasured), PageRun("b", trace()))["y"] == "bregman"
    nothing = dict.fromkeys(("bregman", "residual", "consensus"), np.full(30, np.nan))
    with pytest.raises(InputError, match="nothing to draw"):
        data_of(PageRun("a", trace(**nothing)))
    with pytest.raises(InputError, match="nothing to draw"):
        data_of()


def test_the_network_lies_the_same_every_time_and_large_ones_are_only_counted():
    graph = ew.Graph.random(20, 50)
    one, two = (data_of(PageRun("a", trace()), graph=graph)["network"] for _ in range(2))
    assert one == two
    assert one["degrees"] == graph.degrees.tolist()
    assert one["links"] == graph.edges.tolist()
    assert np.ptp(one["at"], 0).min() > 0.5
    large = data_of(PageRun("a", trace()), graph=ew.Graph.ring(501))["network"]
    assert large == {"nodes": 501, "edges": 501}
    middle = data_of(PageRun("a", trace()), graph=ew.Graph.ring(150))["network"]
    assert len(middle["at"]) == 150


def test_parameters_are_spelt_for_readers():
    steps = np.linspace(0.1, 1 / 3, 20)
    parameters = {"eta": steps, "rho": 1 / 3, "batch": 4, "seeds": [1, 2], "form": "edge"}
    run = data_of(PageRun("a", trace(), parameters=parameters), exact=True)["runs"][0]
    told = "eta 0.1 to 0.3333, rho 0.3333, batch 4, seeds 1, 2, form edge"
    assert run["parameters"] == told
    assert (as_text(True), as_text(np.full(9, 0.5)), as_text(None)) == ("yes", "0.5", "None")


# --- the file -------------------------------------------------------------------------------------


def test_names_cannot_leave_their_place(tmp_path):
    pytest.importorskip("plotly")
    run = PageRun(HOSTILE, trace(), HOSTILE, {HOSTILE: HOSTILE})
    path = write_page(tmp_path / "deep" / "page.html", [run], HOSTILE, about={HOSTILE: HOSTILE})
    page = path.read_text(encoding="utf-8")
    assert page.count("</script") == 3  # Plotly, the data, the page's own
    assert "<b>" not in page[: page.index("<body>")]
    blob = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1]
    data = json.loads(blob)
    assert data["methods"] == data["settings"] == [HOSTILE]
    assert data["about"] == [[HOSTILE, HOSTILE]]
    assert data["runs"][0]["parameters"] == f"{HOSTILE} {HOSTILE}"


def test_axes_that_there_are_not_and_a_missing_plotly(tmp_path, monkeypatch):
    runs, path = [PageRun("a", trace())], tmp_path / "page.html"
    with pytest.raises(UnknownName, match="did you mean 'oracle_calls'"):
        write_page(path, runs, "t", x="oracle")
    with pytest.raises(UnknownName, match="axis of a page 'rounds'"):
        write_page(path, runs, "t", y="rounds")
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(InputError, match=r"^the page needs plotly: pip install 'edgewise\[report"):
        write_page(path, runs, "t")
    assert not path.exists()


# --- in a browser ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    pytest.importorskip("plotly")
    with a_browser.browser(tmp_path_factory.mktemp("browser")) as window:
        yield window


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    pytest.importorskip("plotly")
    diverged = trace(bregman=np.geomspace(1, 1e300, 30), residual=np.full(30, np.nan))
    runs = [
        PageRun("saga-pd", trace(), "ring", {"eta": 0.1}),
        PageRun(HOSTILE, trace(rate=0.7), "ring"),
        PageRun("dgd", diverged, "ring"),
        PageRun("saga-pd", trace(rate=0.6), "star"),
        PageRun(HOSTILE, trace(1, oracle_calls=[7]), "star"),
    ]
    path = tmp_path_factory.mktemp("page") / "page.html"
    about = {"data": "breast_cancer", "machine": "x" * 200}
    return write_page(path, runs, "Ring and star", about=about, graph=ew.Graph.star(9))


@pytest.fixture
def page(browser, written):
    return Page(browser, written)


class Page:
    """What a reader would do, and see."""

    def __init__(self, browser, path, width=1280, height=900):
        from selenium.webdriver.support.ui import WebDriverWait

        self.browser = browser
        browser.get_log("browser")
        a_browser.resize(browser, width, height)
        browser.get(path.as_uri())
        WebDriverWait(browser, 60).until(lambda _: self.curves() and self.curves()[0])

    def js(self, code):
        return self.browser.execute_script(f"return {code}")

    def click(self, name):
        self.browser.find_element("id", name).click()

    def choose(self, name, value):
        from selenium.webdriver.support.ui import Select

        Select(self.browser.find_element("id", name)).select_by_value(value)

    def curves(self):
        """Drawn in each panel."""
        count = "p => p.querySelectorAll('.scatterlayer .trace').length"
        return self.js(f"[...document.querySelectorAll('.curves')].map({count})")

    def titles(self, axis):
        shown = f"[...document.querySelectorAll('.curves .{axis}title')]"
        return self.js(f"{shown}.map(t => t.textContent)")

    def values(self, axis, panel=0, curve=0):
        return self.js(f"document.getElementById('panel-{panel}').data[{curve}].{axis}")

    def column(self, head):
        """Of the table; None where there is none."""
        rows = "[...document.querySelectorAll('#runs tr')]"
        cells = self.js(f"{rows}.map(r => [...r.children].map(c => c.textContent))")
        return [row[cells[0].index(head)] for row in cells[1:]] if head in cells[0] else None

    def point_at(self, curve, point, start):
        """What is said where the mouse is at this point, once it starts so."""
        from selenium.webdriver import ActionChains
        from selenium.webdriver.support.ui import WebDriverWait

        spot = self.js(
            f"(p => (f => (d => [f.xaxis._offset + f.xaxis.d2p(d.x[{point}]),"
            f" f.yaxis._offset + f.yaxis.d2p(d.y[{point}])])(p.data[{curve}]))(p._fullLayout)"
            ".map((v, k) => v + p.getBoundingClientRect()[k ? 'top' : 'left'])"
            ")(document.getElementById('panel-0'))"
        )
        mouse = ActionChains(self.browser)
        mouse.w3c_actions.pointer_action.move_to_location(*map(round, spot))
        mouse.perform()
        text = "(document.querySelector('#panel-0 .hovertext') || {textContent: ''}).textContent"
        WebDriverWait(self.browser, 20).until(lambda _: self.js(text).startswith(start))
        return self.js(text)

    def complaints(self):
        return a_browser.complaints(self.browser)


def test_curves_are_there_and_nothing_is_fetched_or_let_in(page):
    assert page.curves() == [3, 2]
    assert page.titles("x") == ["oracle calls per node"] * 2
    assert page.titles("y") == ["Bregman divergence"] * 2
    lines = "document.querySelectorAll('.curves path.js-line').length"
    assert page.js(lines) == 4  # of one point a mark is drawn
    assert page.js("performance.getEntriesByType('resource').map(e => e.name)") == []
    assert page.js("window.entered === undefined")
    assert page.js("document.querySelectorAll('#network .point').length") == 9
    assert page.js("document.querySelector('#methods label:nth-child(2)').textContent") == HOSTILE
    buttons = "[...document.querySelectorAll('#panel-0 .modebar-btn')].map(b => b.dataset.title)"
    assert len(page.js(buttons)) == 6
    assert not [b for b in page.js(buttons) if "share" in b.lower() or "cloud" in b.lower()]
    assert page.complaints() == []


def test_a_method_goes_and_comes_in_all_panels(page):
    page.click("method-0")
    assert page.curves() == [2, 1]
    page.click("method-2")
    assert page.curves() == [1, 1]
    page.click("method-0")
    assert page.curves() == [2, 2]
    colours = [page.js(f"document.getElementById('panel-{p}').data[0].line.color") for p in (0, 1)]
    assert colours[0] == colours[1]
    page.click("none")
    assert page.curves() == [0, 0]
    assert page.js("document.querySelectorAll('#methods input:checked').length") == 0
    page.click("all")
    assert page.curves() == [3, 2]
    assert page.complaints() == []


@pytest.mark.parametrize("axis", X_AXES)
def test_the_x_axis_can_be_switched(page, axis):
    page.choose("x", axis)
    assert page.titles("x") == [LABELS[axis]] * 2
    expected = trace()[axis]
    np.testing.assert_allclose(page.values("x"), expected, rtol=1e-5)
    assert page.js("document.getElementById('panel-0')._fullLayout.xaxis.type") == "linear"
    page.click("log-x")
    np.testing.assert_allclose(page.values("x"), expected[1:], rtol=1e-5)  # zero has no logarithm
    assert page.js("document.getElementById('panel-0')._fullLayout.xaxis.type") == "log"
    assert page.complaints() == []


def test_the_y_axis_can_be_switched_and_the_table_follows(page):
    assert page.column("Bregman divergence")[0] == "1.86e-9"
    assert page.column("seconds to 1e-3")[:3] == ["1.43", "2.86", "\u2013"]  # 0.5^10, 0.7^20
    assert page.column("seconds to 1e-6")[:3] == ["2.86", "\u2013", "\u2013"]
    page.choose("y", "residual")
    assert page.titles("y") == ["optimality residual"] * 2
    np.testing.assert_allclose(page.values("y"), 3 * 0.5 ** np.arange(30), rtol=1e-5)
    assert page.column("Bregman divergence") is None
    assert page.column("optimality residual")[:3] == ["5.59e-9", "9.66e-5", "\u2013"]
    assert page.column("seconds to 1e-6")[:3] == ["3.14", "\u2013", "\u2013"]
    assert page.column("seconds to 1e-9") is None
    page.choose("y", "consensus")  # zero throughout
    assert page.values("y") == []
    page.click("log-y")
    assert page.values("y") == [0] * 30
    assert page.complaints() == []


def test_pointing_at_a_curve_gives_its_numbers(page):
    told = page.point_at(0, 10, "saga-pd")
    assert told == "saga-pdeta 0.1oracle calls per node: 200Bregman divergence: 9.77e-4"
    assert page.point_at(1, 21, HOSTILE).endswith("420Bregman divergence: 5.59e-4")
    page.choose("x", "bytes_sent")
    assert "bytes sent, all edges: 1.5 MB" in page.point_at(0, 15, "saga-pd")
    assert len(page.values("y", curve=2)) == 3  # of the one that diverged, what can be drawn


def test_it_fits_a_phone_and_panels_stand_side_by_side_where_there_is_room(browser, written):
    corners = (
        "[...document.querySelectorAll('.curves')].map(c => c.getBoundingClientRect())"
        ".map(r => [Math.round(r.left), Math.round(r.top), Math.round(r.width)])"
    )
    (left, top, _), (right, same, _) = Page(browser, written).js(corners)
    assert top == same
    assert right > left
    phone = Page(browser, written, 390, 844)
    assert (
        phone.js("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)") <= 390
    )
    assert phone.js("window.innerWidth") == 390
    (left, top, width), (right, below, _) = phone.js(corners)
    assert left == right
    assert below > top
    assert width > 340
    assert phone.js("document.querySelector('.box').scrollWidth") > 390  # the table has its own
    assert phone.complaints() == []
