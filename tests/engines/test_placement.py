"""What ranks, or devices, have and tell each other, worked out for all of them at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edgewise as ew
from edgewise.engines.placement import GraphPart, Placement, partition
from edgewise.errors import MethodError


@st.composite
def spread(draw):
    """A connected graph, and a rank for each node."""
    V = draw(st.integers(2, 14))
    edges = draw(st.integers(V - 1, V * (V - 1) // 2))
    graph = ew.Graph.random(V, edges, seed=draw(st.integers(0, 99)))
    ranks = draw(st.integers(1, V))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    home = rng.permutation(np.r_[np.arange(ranks), rng.integers(0, ranks, V - ranks)])
    return graph, home, [GraphPart(graph, home, rank) for rank in range(ranks)]


def what_it_has(part, kind):
    return part.nodes if kind == "vectors" else part.edges


def sent(part, kind):
    """{rank: the numbers, of nodes or edges, that this one sends it, in order}"""
    crossing, own = getattr(part, kind), what_it_has(part, kind)
    np.testing.assert_array_equal(crossing.leaving, [r for c in crossing.send.values() for r in c])
    return {rank: own[rows] for rank, rows in crossing.send.items()}


@settings(max_examples=60, deadline=None)
@given(spread())
@pytest.mark.parametrize("kind", ["vectors", "messages"])
def test_an_edge_finds_its_far_end_in_what_came(kind, given):
    graph, _, parts = given
    d = graph.directed
    mail = [sent(part, kind) for part in parts]
    for rank, part in enumerate(parts):
        crossing, own = getattr(part, kind), what_it_has(part, kind)
        arrived = {sender: mail[sender][rank] for sender in crossing.receive}
        far = (d.other if kind == "vectors" else d.reverse)[part.edges]
        pool = np.concatenate([own, *arrived.values()])
        np.testing.assert_array_equal(pool[crossing.places(crossing.in_turn())], far)
        apart, begin = [*own, -1, -1], {}  # with gaps, and the last first
        for sender in reversed(list(arrived)):
            begin[sender] = len(apart)
            apart += [*arrived[sender], -1]
        np.testing.assert_array_equal(np.array(apart)[crossing.places(begin)], far)


@settings(max_examples=60, deadline=None)
@given(spread())
def test_what_is_sent_is_expected_and_nothing_goes_twice(given):
    graph, home, parts = given
    d = graph.directed
    crosses = home[d.owner] != home[d.other]
    for rank, part in enumerate(parts):
        for kind, numbers in (("vectors", d.owner), ("messages", np.arange(len(d.owner)))):
            crossing = getattr(part, kind)
            expecting = {r for r, other in enumerate(parts) if rank in getattr(other, kind).receive}
            assert set(crossing.send) == expecting
            for other, items in sent(part, kind).items():
                over = crosses & (home[d.owner] == rank) & (home[d.other] == other)
                np.testing.assert_array_equal(items, np.unique(numbers[over]))
            assert crossing.received == sum(len(sent(parts[r], kind)[rank]) for r in expecting)


@settings(max_examples=30, deadline=None)
@given(spread())
def test_parts_make_up_the_graph(given):
    graph, home, parts = given
    d = graph.directed
    for name, whole in (("nodes", graph.nodes), ("edges", len(d.owner))):
        together = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(np.sort(together), np.arange(whole))
    for rank, part in enumerate(parts):
        assert (home[part.nodes] == rank).all()
        np.testing.assert_array_equal(part.nodes[part.owner], d.owner[part.edges])
    every = Placement(graph, home).nodes
    np.testing.assert_array_equal(np.concatenate(every), np.argsort(home, stable=True))


def shuffled_grid():
    order = np.random.default_rng(0).permutation(120)
    return ew.Graph.from_edges(order[ew.Graph.grid(12, 10).edges])


def cut(graph, home):
    return int((home[graph.edges[:, 0]] != home[graph.edges[:, 1]]).sum())


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_metis_cuts_few_edges_and_balances_samples(ranks):
    pytest.importorskip("pymetis")
    graph = shuffled_grid()
    counts = np.random.default_rng(1).integers(1, 30, 120)
    metis, plain = (partition(how, graph, counts, ranks) for how in ("metis", "contiguous"))
    assert cut(graph, metis) < cut(graph, plain) / 3
    samples = np.bincount(metis, counts, ranks)
    assert samples.max() < 1.1 * samples.mean()


@pytest.mark.parametrize("how", ["metis", "contiguous"])
@pytest.mark.parametrize("most", [1, 1000], ids=["equal", "one node has most samples"])
def test_every_rank_has_a_node(how, most):
    """Metis leaves ranks empty where one node outweighs all others."""
    if how == "metis":
        pytest.importorskip("pymetis")
    for V in (2, 3, 5, 8):
        star = ew.Graph.from_edges([(0, i) for i in range(1, V)])
        for ranks in range(1, V + 1):
            home = partition(how, star, np.r_[most, np.ones(V - 1, int)], ranks)
            assert home.shape == (V,)
            assert set(home.tolist()) == set(range(ranks))


def test_stretches_are_equal_and_in_order():
    home = partition("contiguous", ew.Graph.ring(10), np.ones(10, int), 4)
    np.testing.assert_array_equal(home, [0, 0, 1, 1, 1, 2, 2, 3, 3, 3])


def test_a_rank_per_node_is_taken_as_it_is():
    given = [1, 0, 0, 2, 1]
    np.testing.assert_array_equal(partition(given, ew.Graph.ring(5), np.ones(5, int), 3), given)


@pytest.mark.parametrize(
    ("how", "ranks", "says"),
    [
        ("metis", 6, "6 ranks for 5 nodes: start at most 5"),
        ([0, 1, 0, 1], 2, "each of the 5 nodes"),
        ([0, 0, 0, 0, 0], 2, "every rank a node"),
        ([0, 1, 2, 1, 0], 2, "ranks 0 to 1"),
        ([0.5, 1, 0, 1, 0], 2, "ranks 0 to 1"),
        ("spectral", 2, '"metis", "contiguous", or a rank per node'),
    ],
)
def test_what_cannot_be_is_said(how, ranks, says):
    with pytest.raises(MethodError, match=says):
        partition(how, ew.Graph.ring(5), np.ones(5, int), ranks)
