"""Sums over a network: exact to what was asked for, whatever graph, numbers and faults."""

import numpy as np
import pytest

import edgewise as ew
from edgewise.errors import AccuracyWarning, EdgewiseError

GRAPHS = {
    "ring": ew.Graph.ring(20),
    "path": ew.Graph.path(12),
    "random": ew.Graph.random(20, 50, seed=1),
    "star": ew.Graph.star(15),
    "pair": ew.Graph.path(2),
}
MOST_ROUNDS = {"ring": 160, "path": 200, "random": 120, "star": 160, "pair": 40}


def values(nodes, seed=0):
    """Counts, tiny and huge numbers, some that all but cancel, a column of zeros."""
    rng = np.random.default_rng(seed)
    return [
        np.array([[i + 1, 1e-9 * rng.random(), 1e15 * rng.random()], [1.0, (-1.0) ** i * 1e6, 0]])
        for i in range(nodes)
    ]


@pytest.mark.parametrize("name", GRAPHS)
def test_every_node_has_the_sum(name):
    graph = GRAPHS[name]
    parts = values(graph.nodes)
    found = ew.sum_over(graph, parts)
    exact, size = np.sum(parts, 0), np.abs(parts).sum(0)
    assert found.reached
    assert found.value.shape == (2, 3)
    assert found.at_nodes.shape == (graph.nodes, 2, 3)
    off = np.abs(found.at_nodes - exact).max(0)
    assert (off <= 1e-12 * size).all()
    assert found.accuracy == pytest.approx((off / np.where(size > 0, size, 1)).max(), rel=0.5)
    assert found.value[1, 2] == 0
    assert found.rounds <= MOST_ROUNDS[name]
    assert found.bytes_sent == found.rounds * 2 * graph.edge_count * 6 * 8


def test_faults_leave_the_sum_as_it_is():
    graph, parts = GRAPHS["ring"], values(20)
    storm = ew.Faults(drop=0.2, burst=3, delay=2, awake=0.7)
    found = ew.sum_over(graph, parts, faults=storm)
    assert found.reached
    assert np.allclose(found.at_nodes, np.sum(parts, 0), rtol=1e-10, atol=1e-3)


def test_one_node_has_its_own():
    assert ew.sum_over(ew.Graph(1, []), [3.0]).value == 3.0


def test_a_graph_may_be_a_text():
    assert ew.sum_over("ring", [1.0, 2.0, 4.0]).value == pytest.approx(7.0)


def test_too_few_rounds_are_said():
    with pytest.warns(AccuracyWarning, match=r"error of .* after 40 rounds"):
        found = ew.sum_over(GRAPHS["ring"], np.ones(20) * np.arange(20), rounds=40)
    assert not found.reached
    assert found.accuracy > 1e-12


@pytest.mark.parametrize(
    ("graph", "given", "options", "words"),
    [
        (None, [1.0], {}, "no Graph"),
        ("rign", [1.0], {}, "unknown graph 'rign'"),
        (GRAPHS["pair"], [1.0], {}, "1 values for 2 nodes"),
        (GRAPHS["pair"], 7, {}, "no values for 2 nodes"),
        (GRAPHS["pair"], [1.0, "x"], {}, "node 1 has 'x'"),
        (GRAPHS["pair"], [1.0, np.nan], {}, "node 1 has numbers that are not finite"),
        (GRAPHS["pair"], [1.0, [1.0, 2.0]], {}, "shape"),
        (GRAPHS["pair"], [1.0, 2.0], {"accuracy": 1e-20}, "accuracy"),
        (GRAPHS["pair"], [1.0, 2.0], {"rounds": 0}, "rounds"),
        (GRAPHS["pair"], [1.0, 2.0], {"faults": ew.Faults(leave=(1, 5))}, "over all nodes"),
        (ew.Graph(3, [(0, 1)]), [1.0, 2.0, 3.0], {}, "in 2 parts"),
    ],
)
def test_what_does_not_fit_is_refused(graph, given, options, words):
    with pytest.raises(EdgewiseError, match=words):
        ew.sum_over(graph, given, **options)
