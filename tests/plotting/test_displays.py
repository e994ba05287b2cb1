"""What things look like in a notebook: read as XML, so that what is not escaped would not parse."""

import time
import xml.etree.ElementTree as ET
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

import edgewise as ew
from edgewise.peers.node.result import PeerResult
from edgewise.plotting.svg import MOST_NODES, Line, curves, path_lengths, quick_positions
from edgewise.running.trace import COLUMNS, Trace

HOSTILE = "<script>alert(1)</script> & co"
GRAPH = ew.Graph.random(6, 9, seed=0)


@cache
def problem():
    X, y = ew.data.epsilon_like(rows=60, features=4)
    return ew.Problem(ew.split(X, y, nodes=6), loss=ew.Logistic(ridge=0.1), penalty=ew.L1(0.01))


@cache
def result():
    return ew.solve(problem(), GRAPH, "pd", rounds=60, record_every=10)


@cache
def coupled():
    return ew.solve(problem(), GRAPH, rounds=20, between=ew.NetworkLasso(0.3))


@cache
def comparison():
    options = {"tune": False, "accuracies": (0.5, 1e-2), "seeds": 1, "show": False}
    return ew.compare(problem(), GRAPH, ["pd", "extra"], 300, "rounds", **options)


def trace(**columns):
    nothing = dict.fromkeys(COLUMNS, np.full(5, np.nan))
    given = {"rounds": np.arange(5.0), "residual": 0.1 ** np.arange(5)}
    return Trace(nothing | given | columns, {"method": HOSTILE})


def read(thing):
    """The parsed HTML; fails where it is not well-formed, or asks for anything from elsewhere."""
    html = thing._repr_html_()
    assert not html.startswith("<pre>"), html
    for outside in ("src=", "href=", "url(", "<script", "<link", "@import"):
        assert outside not in html
    for colour in ("color:#fff", "color:black", "color:white", "background:#"):
        assert colour not in html  # which some pages cannot take
    return ET.fromstring(html.replace(' xmlns="http://www.w3.org/2000/svg"', ""))


def facts(parsed):
    """{name: value} of the first table."""
    rows = parsed.find(".//table").iter("tr")
    return {row[0].text: row[1].text for row in rows}


def nodes_of(parsed):
    return [c for c in parsed.iter("circle") if c.find("title").text.startswith("node ")]


@pytest.mark.parametrize("of", [result, coupled])
def test_a_result_says_what_it_came_to_and_shows_how(of):
    parsed, last = read(of()), {c: of().trace[c][-1] for c in COLUMNS}
    assert of().message in "".join(parsed.itertext())
    told = facts(parsed)
    assert told["converged"] == ("yes" if of().converged else "no")
    assert told["communication rounds"] == f"{last['rounds']:.0f}"
    assert float(told["optimality residual"]) == pytest.approx(last["residual"], rel=0.01)
    if of is coupled:
        assert float(told["objective"]) == pytest.approx(last["objective"], rel=0.01)
    else:
        assert float(told["Bregman divergence"]) == pytest.approx(last["bregman"], rel=0.01)
    drawn = parsed.find(".//polyline")
    points = np.array([p.split(",") for p in drawn.get("points").split()], float)
    rows = of().trace
    assert len(points) == len(rows)
    heights, rounds = np.log10(rows["residual"]), rows["rounds"]
    assert_allclose(np.polyfit(rounds, points[:, 0], 1, full=True)[1], 0, atol=0.1)
    assert_allclose(np.polyfit(heights, points[:, 1], 1, full=True)[1], 0, atol=0.1)
    assert len(nodes_of(parsed)) == 6
    spread = f"{of().apart[-1][2]:.1e}"
    assert spread in nodes_of(parsed)[2].find("title").text


def test_a_graph_is_drawn_where_it_is_small():
    parsed = read(GRAPH)
    assert (facts(parsed)["nodes"], facts(parsed)["edges"]) == ("6", "9")
    assert len(nodes_of(parsed)) == 6
    assert parsed.find(".//path").get("d").count("L") == 9
    large = read(ew.Graph.ring(MOST_NODES + 1))
    assert large.find(".//svg") is None
    assert facts(large)["neighbours of a node"] == "2"
    assert facts(read(ew.Graph.from_edges([(0, 1)], 3)))["connected"] == "no"
    assert len(nodes_of(read(ew.Graph.from_edges([], 1)))) == 1


def test_a_layout_keeps_path_lengths():
    import networkx as nx

    graph = ew.Graph.random(20, 30, seed=1)
    expected = nx.floyd_warshall_numpy(graph.to_networkx(), weight=None)
    np.testing.assert_array_equal(path_lengths(20, graph.edges), expected)
    line = quick_positions(5, ew.Graph.path(5).edges)  # fits the plane without stress
    apart = np.linalg.norm(line[:, None] - line[None], axis=2)
    assert_allclose(apart, np.abs(np.subtract.outer(np.arange(5), np.arange(5))), atol=0.1)


def test_a_problem_says_what_is_to_be_fitted():
    parsed = read(problem())
    told = facts(parsed)
    assert told["samples"] == "60, 10 a node"
    assert (told["loss"], told["penalty"]) == ("Logistic(ridge=0.1)", "L1(lam=0.01)")
    assert len(list(parsed.iter("rect"))) == 6

    class Odd(ew.L1):
        def __repr__(self):
            return HOSTILE

    odd = ew.Problem(problem().shards, ew.Logistic(), penalty=Odd(0.1))
    assert facts(read(odd))["penalty"] == HOSTILE
    assert read(ew.Problem(cost=[ew.Quadratic(np.eye(2), np.ones(2))] * 3)) is not None


def test_traces_and_what_peers_came_to():
    told = facts(read(trace()))
    assert (told["method"], told["rows"]) == (HOSTILE, "5")
    peer = PeerResult(np.zeros(2), 4, 1e-4, HOSTILE, trace())
    assert HOSTILE in "".join(read(peer).itertext())
    for odd in (
        trace(residual=np.zeros(5)),
        trace(residual=np.full(5, np.inf)),
        Trace({"rounds": []}),
    ):
        assert read(odd) is not None
    assert read(trace(residual=[1, np.inf, 1e300, 1e-3, np.nan])).find(".//polyline") is not None


def test_a_comparison_is_its_table():
    parsed = read(comparison())
    head, row = list(parsed.find(".//table").iter("tr"))
    assert [cell.text for cell in head] == ["method", "5e-01", "1e-02"]
    cells = ["".join(cell.itertext()) for cell in row]
    assert cells[0].endswith("pd")
    cost, seconds = (comparison().cost("pd", 1e-2, u)[1] for u in ("rounds", "seconds"))
    assert cells[2] == f"{cost:.0f}{seconds:.2g} s"
    assert "cannot handle a penalty" in "".join(parsed.itertext())
    assert len(list(parsed.iter("polyline"))) == 1


def test_they_take_no_time_and_never_fail(monkeypatch):
    large = ew.Graph.random(MOST_NODES, 150)
    for thing in (result(), coupled(), comparison(), large, problem(), trace()):
        began = time.process_time()
        thing._repr_html_()
        assert time.process_time() - began < 0.2, type(thing)
    monkeypatch.setattr("edgewise.plotting.displays.card", lambda *_, **__: 1 / 0)
    assert trace()._repr_html_().startswith("<pre>&lt;edgewise.running.trace.Trace object")


def test_a_goal_is_a_line_and_within_the_picture():
    picture = curves([Line("a", np.arange(3.0), np.array([1, 0.1, 0.01]))], goal=1e-6)
    parsed = ET.fromstring(picture.replace(' xmlns="http://www.w3.org/2000/svg"', ""))
    assert [t.text for t in parsed.iter("text")][:2] == ["1e+00", "1e-06"]
    assert [p.get("stroke-dasharray") for p in parsed.iter("path")] == [None, "4 3"]
