import time

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewise.errors import GraphError
from edgewise.graph.graph import Graph


@st.composite
def sized(draw):
    nodes = draw(st.integers(1, 30))
    edges = draw(st.integers(nodes - 1, nodes * (nodes - 1) // 2))
    return nodes, edges, draw(st.integers(0, 1000))


@st.composite
def edge_lists(draw):
    nodes = draw(st.integers(2, 12))
    ids = st.integers(0, nodes - 1)
    pairs = st.tuples(ids, ids).filter(lambda pair: pair[0] != pair[1])
    return nodes, draw(st.lists(pairs, max_size=40))


@settings(max_examples=200, deadline=None)
@given(sized())
def test_random_is_connected_with_exactly_that_many_edges(drawn):
    nodes, edges, seed = drawn
    graph = Graph.random(nodes, edges, seed)
    assert (graph.nodes, graph.edge_count) == (nodes, edges)
    assert nx.is_connected(graph.to_networkx())
    assert len(set(map(tuple, graph.edges.tolist()))) == edges


@settings(max_examples=100, deadline=None)
@given(edge_lists())
def test_views_agree_with_networkx(drawn):
    nodes, pairs = drawn
    graph, reference = Graph.from_edges(pairs, nodes), nx.Graph()
    reference.add_nodes_from(range(nodes))
    reference.add_edges_from(pairs)
    assert graph.degrees.tolist() == [d for _, d in reference.degree()]
    assert graph.degrees.sum() == 2 * graph.edge_count
    assert graph.edges.tolist() == sorted(sorted(edge) for edge in reference.edges())
    assert graph.connected == nx.is_connected(reference)
    for node in range(nodes):
        assert graph.neighbours(node).tolist() == sorted(reference[node])


@settings(max_examples=100, deadline=None)
@given(edge_lists())
def test_directed_edges(drawn):
    nodes, pairs = drawn
    graph = Graph.from_edges(pairs, nodes)
    owner, other, edge, reverse = graph.directed
    both = {(i, j) for i, j in pairs} | {(j, i) for i, j in pairs}
    assert list(zip(owner.tolist(), other.tolist(), strict=True)) == sorted(both)
    assert (reverse[reverse] == np.arange(len(owner))).all()
    assert (owner[reverse] == other).all()
    assert (other[reverse] == owner).all()
    assert (np.sort(np.stack([owner, other], axis=1), axis=1) == graph.edges[edge]).all()


@pytest.mark.parametrize(
    ("graph", "reference"),
    [
        (Graph.ring(7), nx.cycle_graph(7)),
        (Graph.ring(3), nx.cycle_graph(3)),
        (Graph.path(6), nx.path_graph(6)),
        (Graph.star(6), nx.star_graph(5)),
        (Graph.complete(6), nx.complete_graph(6)),
        (Graph.grid(3, 4), nx.grid_2d_graph(3, 4)),
        (Graph.grid(1, 4), nx.path_graph(4)),
        (Graph.circulant(5), nx.complete_graph(5)),
        (Graph.circulant(10), nx.circulant_graph(10, [1, 3])),
        (Graph.torus(3, 4), nx.grid_2d_graph(3, 4, periodic=True)),
        (Graph.torus(2, 2), nx.cycle_graph(4)),
        (Graph.small_world(20, 6, 0.3, 5), nx.connected_watts_strogatz_graph(20, 6, 0.3, seed=5)),
        *[(make(1), nx.empty_graph(1)) for make in (Graph.ring, Graph.path, Graph.complete)],
        (Graph.ring(2), nx.path_graph(2)),
    ],
)
def test_generators(graph, reference):
    assert nx.is_isomorphic(graph.to_networkx(), reference)
    graph.require_connected()


def test_the_hub_is_node_0():
    assert Graph.star(5).degrees.tolist() == [4, 1, 1, 1, 1]


def test_chords_make_a_circulant_graph_well_connected():
    found = [
        nx.algebraic_connectivity(g.to_networkx()) for g in (Graph.circulant(20), Graph.ring(20))
    ]
    assert found == pytest.approx([1.764, 0.098], abs=1e-3)


def test_grid_numbering():
    assert Graph.grid(2, 3).neighbours(1).tolist() == [0, 2, 4]


def test_random_at_scale():
    start = time.process_time()  # others share the machine
    graph = Graph.random(100_000, 300_000, seed=1)
    assert graph.connected
    took = time.process_time() - start
    assert graph.edge_count == 300_000
    assert took < 5  # about 0.3 s


@pytest.mark.parametrize(("edges", "trees"), [(3, 16), (4, 15)])
def test_random_is_uniform_over_small_graphs(edges, trees):
    draws = 2000
    seen = {}
    for seed in range(draws):
        key = Graph.random(4, edges, seed).edges.tobytes()
        seen[key] = seen.get(key, 0) + 1
    assert len(seen) == trees
    share = np.array(list(seen.values())) / draws * trees
    assert 0.6 < share.min() <= share.max() < 1.4


def test_random_repeats_with_its_seed():
    same = [Graph.random(40, 60, seed=3).edges for _ in range(2)]
    assert (same[0] == same[1]).all()
    assert not np.array_equal(same[0], Graph.random(40, 60, seed=4).edges)


def test_a_tree_beyond_the_reach_of_uniform_draws():
    leaves = [(Graph.random(300, 299, seed).degrees == 1).mean() for seed in range(20)]
    assert abs(np.mean(leaves) - np.exp(-1)) < 0.03  # the known share in a uniform labelled tree


def test_an_edge_given_twice_is_one():
    graph = Graph.from_edges([(2, 0), (0, 2), (1, 2), (0, 2)], weights=[3, 3, 5, 3])
    assert graph.edges.tolist() == [[0, 2], [1, 2]]
    assert graph.weights.tolist() == [3, 5]
    assert graph.nodes == 3


def test_weights_follow_their_edges():
    graph = Graph.from_edges(iter([(3, 2), (1, 0), (1, 2)]), weights=[32, 10, 12])
    assert dict(zip(map(tuple, graph.edges.tolist()), graph.weights, strict=True)) == {
        (0, 1): 10,
        (1, 2): 12,
        (2, 3): 32,
    }
    assert Graph.from_edges([(0, 1)]).weights.tolist() == [1.0]


def test_networkx_round_trip():
    named = nx.Graph()
    named.add_edge("b", "a", cost=2.0)
    named.add_edge("a", "c", cost=4.0)
    graph = Graph.from_networkx(named, weight="cost")
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    back = Graph.from_networkx(graph.to_networkx(), weight="weight")
    assert (back.edges == graph.edges).all()
    assert back.weights.tolist() == [2.0, 4.0]
    assert Graph.from_networkx(named).weights.tolist() == [1.0, 1.0]


def test_repr():
    assert repr(Graph.star(5)) == "Graph(5 nodes, 4 edges, degrees 1-4)"
    assert repr(Graph.ring(5)) == "Graph(5 nodes, 5 edges, degree 2)"


def test_arrays_are_read_only_copies():
    edges = np.array([[0, 1]])
    graph = Graph(2, edges)
    edges[0, 1] = 7
    assert graph.edges.tolist() == [[0, 1]]
    with pytest.raises(ValueError, match="read-only"):
        graph.weights[0] = 2


def test_disconnected_graphs_may_be_built_but_not_required():
    graph = Graph.from_edges([(0, 1), (2, 3)], nodes=5)
    assert not graph.connected
    with pytest.raises(GraphError, match=r"3 parts.*node 0 to node 2.*add an edge"):
        graph.require_connected()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Graph.from_edges([(0, 0)]), "node 0 to itself"),
        (lambda: Graph.from_edges([(0, -1)]), "no node -1"),
        (lambda: Graph.from_edges([(0, 3)], nodes=3), "no node 3.*larger number"),
        (lambda: Graph.from_edges([(0.0, 1.5)]), "not integers: number"),
        (lambda: Graph.from_edges([("a", "b")]), "not integers"),
        (lambda: Graph.from_edges([(0, 1), (1, 2, 3)]), "not pairs: give"),
        (lambda: Graph.from_edges([(0, 1, 2)]), "not pairs"),
        (lambda: Graph.from_edges(7), "not pairs"),
        (lambda: Graph.from_edges([]), "give nodes="),
        (lambda: Graph.from_edges([(0, 1), (1, 0)], weights=[1, 2]), "two weights: give one"),
        (lambda: Graph.from_edges([(0, 1)], weights=[0]), "weight 0.0: give a positive"),
        (lambda: Graph.from_edges([(0, 1)], weights=[np.nan]), "weight nan"),
        (lambda: Graph.from_edges([(0, 1)], weights=[1, 2]), "give 1 numbers"),
        (lambda: Graph.from_edges([(0, 1)], weights=["x"]), "give 1 numbers"),
        (lambda: Graph(3, np.array([[1, 0]])), "from_edges"),
        (lambda: Graph(3, np.array([[1, 2], [0, 1]])), "from_edges"),
        (lambda: Graph(3, np.array([[0, 1], [0, 1]])), "from_edges"),
        (lambda: Graph(0, np.empty((0, 2), int)), "from 1 up"),
        (lambda: Graph.ring(2.5), "nodes is 2.5: give a whole number"),
        (lambda: Graph.grid(0, 3), "rows is 0"),
        (lambda: Graph.random(5, 3), "give 4 to 10"),
        (lambda: Graph.random(5, 11), "give 4 to 10"),
        (lambda: Graph.random(5, 4.5), "edges is 4.5"),
        (lambda: Graph.small_world(6, 3), "even number"),
        (lambda: Graph.small_world(4, 4), "below nodes"),
        (lambda: Graph.small_world(9, 4, 1.5), "rewire from 0 to 1"),
        (lambda: Graph.from_networkx(nx.DiGraph([(0, 1)])), "to_undirected"),
        (lambda: Graph.from_networkx(nx.path_graph(3), weight="w"), "no 'w': set it"),
        (lambda: Graph.ring(4).neighbours(4), "give one from 0 to 3"),
    ],
)
def test_errors_say_what_to_do(build, message):
    with pytest.raises(GraphError, match=message):
        build()


def test_a_small_world_that_never_connects(monkeypatch):
    def give_up(*_, **__):
        raise nx.NetworkXError("Maximum number of tries exceeded")

    monkeypatch.setattr(nx, "connected_watts_strogatz_graph", give_up)
    with pytest.raises(GraphError, match="more neighbours or a smaller rewire"):
        Graph.small_world(10)
