"""Neighbours that lie: what is refused, what heals, and what is said."""

import logging
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

import edgewise as ew
from edgewise.methods.catalogue import make
from edgewise.peers.config.peer_config import Fit
from edgewise.peers.node.alarms import LOOKS, watch
from edgewise.peers.node.edge_watch import WINDOW, EdgeWatch, at_bound
from edgewise.peers.node.ending import Ending
from edgewise.peers.node.own_problem import as_one_of_equals, refitted
from edgewise.peers.node.own_size import OwnSize, own_size, sizes
from edgewise.peers.node.state import message_format
from edgewise.peers.node.stepper import Stepper, facts_of
from edgewise.peers.node.termination import count_converged_hops
from edgewise.peers.transport.bounds import MORE, MOST_TOLD, PART_SENT, Bounds, sizes_in
from edgewise.peers.transport.edge_facts import EdgeFacts, NodeFacts, unlikely
from edgewise.peers.transport.frames import VECTORS, Frame, MessageFormat, ProtocolError
from edgewise.peers.transport.links import Link
from edgewise.peers.transport.wakeup import Wakeup

V, N, RIDGE = 4, 5, 0.1
GRAPH = ew.Graph.ring(V)
LIAR, LIES = 0, range(40, 80)  # rounds
OWN_SIZE = OwnSize(np.ones(1), 1.0, pull=0.2, of_zeros=0.7, of_own_fit=0.1)


def problem_of(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((V * 15, N))
    y = np.sign(X @ rng.standard_normal(N) + 0.5 * rng.standard_normal(len(X)))
    return ew.Problem([(X[i::V], y[i::V]) for i in range(V)], ew.Logistic(ridge=RIDGE))


def watched(problem, own_size, members):
    """What alarms ask of a peer."""
    known = {"problem": problem, "own_size": own_size, "members": members}
    return SimpleNamespace(
        **known, cut=set(), pulls={}, alarms={}, alarm_looks={}, edge_watch=EdgeWatch()
    )


class Network:
    """All peers in one process, in lockstep, with their bounds and their alarms."""

    def __init__(self, method, bounded=True, problem=None, graph=GRAPH, look_every=1):
        self.problem, self.look_every = problem or problem_of(), look_every
        made = make(method) if isinstance(method, str) else method
        V = self.problem.nodes
        own = [self.problem.only([i]) for i in range(V)]
        self.around = [graph.neighbours(i).tolist() for i in range(V)]
        facts = [facts_of(own[i], len(self.around[i])) for i in range(V)]
        alone = [Stepper(own[i], i, made, 0, np.dtype(float), facts[i]) for i in range(V)]
        self.sizes = [own_size(alone[i], len(self.around[i]), 0.0) for i in range(V)]
        self.steppers = [
            alone[i].among([EdgeFacts(facts[i], facts[j]) for j in self.around[i]])
            for i in range(V)
        ]
        self.carries = [stepper.start() for stepper in self.steppers]
        self.sent = [carry[1] for carry in self.carries]
        self.refused = self.cut = self.round = 0
        self.told = set()  # round, peer and kind of every alarm
        format = message_format(made.healing(), own[0], SimpleNamespace(wire="float64", bits=None))
        self.links = [
            {j: Link(i, j, False, format, 1, Wakeup()) for j in self.around[i]} for i in range(V)
        ]
        for i, links in enumerate(self.links):
            for j, link in links.items():
                link.bounds = Bounds()
                if bounded:
                    link.bounds.known(self.sizes[i].vectors, self.sizes[i].body)
                link.told_sizes = self.sizes[j].vectors
        self.peers = [
            watched(problem, size, members)
            for problem, size, members in zip(own, self.sizes, self.around, strict=True)
        ]

    def go_on(self, rounds, lie=None):
        for _ in range(rounds):
            for i, links in enumerate(self.links):
                for j, link in links.items():
                    vectors = self.steppers[j].outgoing(self.sent[j], self.around[j].index(i))
                    back = self.links[j][i]
                    bounded = back.bounds.clipped(vectors, back.told_sizes)
                    self.cut += bounded is not vectors
                    vectors = bounded
                    if lie is not None and j == LIAR:
                        own = self.steppers[i].outgoing(self.sent[i], self.around[i].index(j))
                        vectors = lie(own, link)
                    news = self.steppers[j].outgoing_news(self.sent[j])
                    try:
                        link.receive(Frame(VECTORS, self.round, payload=vectors.copy(), news=news))
                    except ProtocolError:
                        self.refused += 1
            for i, links in enumerate(self.links):
                if lie is None or i != LIAR:  # whose own process stands still
                    self.step(i, links)
            self.round += 1

    def step(self, i, links):
        stepper = self.steppers[i]
        heard = [link.take_message(self.round) for link in links.values()]
        for place, vectors in enumerate(heard):
            if vectors is None:
                heard[place] = stepper.outgoing(self.carries[i][1], place)
        gathered = stepper.gathered(heard, [link.news for link in links.values()])
        self.carries[i], self.sent[i] = stepper.step(self.carries[i], self.round, gathered)
        if (self.round + 1) % self.look_every == 0:
            peer = self.peers[i]
            watch(peer, stepper.look(self.carries[i], gathered))
            self.told.update((self.round, i, kind) for kind in peer.alarms)

    def models(self):
        pairs = zip(self.steppers, self.carries, strict=True)
        return np.stack([np.asarray(s.method.answer(c[0]))[0] for s, c in pairs])


def after_lies(method, lie, rounds, **options):
    """A network that was lied to for a while, and has gone on since."""
    with jax.enable_x64(True):
        network = Network(method, **options)
        network.go_on(LIES.start)
        network.go_on(len(LIES), lie)
        network.go_on(rounds)
        optimum = ew.reference(network.problem).x
    return network, np.abs(network.models() - optimum).max()


# --- numbers beyond all measure -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "rounds"), [("pdmm", 100), ("saga-pd", 1000), ("newton-pd", 100)]
)
@pytest.mark.parametrize("size", [1e12, 1e99])
def test_huge_numbers_leave_nothing_once_the_liar_is_honest(method, rounds, size):
    network, off = after_lies(method, lambda own, _: np.full_like(own, size), rounds)
    assert network.refused == 2 * len(LIES)
    assert off < 1e-8


def test_without_bounds_they_would_stay():
    """In parts of the messages that never die down."""
    _, off = after_lies("pdmm", lambda own, _: np.full_like(own, 1e12), 400, bounded=False)
    assert off > 1e-6


@pytest.mark.parametrize(
    ("method", "rounds"), [("pdmm", 250), ("saga-pd", 4000), ("newton-pd", 200)]
)
def test_the_largest_numbers_that_are_taken_heal(method, rounds):
    def most(own, link):
        return np.repeat(0.99 * link.bounds.most(link.told_sizes)[:, None], N, 1)

    network, off = after_lies(method, most, rounds)
    assert network.refused == 0
    assert off < 1e-7


def link_with(sizes, told):
    link = Link(1, 2, False, message_format_of(len(sizes)), 1, Wakeup())
    link.bounds, link.told_sizes = Bounds(), told
    link.bounds.known(np.array(sizes), 0.0)
    return link


def message_format_of(vectors):
    return MessageFormat(vectors, 3, "float64")


def frame(*largest):
    return Frame(VECTORS, 1, payload=np.outer(largest, [0.0, -1.0, 0.5]))


def test_what_a_neighbour_says_of_its_size_counts_up_to_a_bound():
    own, most_times = 2.0, MORE[np.dtype(float)]
    more = most_times * (1 - 1e-9)
    link_with([own], None).receive(frame(own * more))
    for told, most in ((10.0, 10.0), (1e30, own * MOST_TOLD), (0.1, own)):
        link_with([own], np.array([told])).receive(frame(most * more))
        with pytest.raises(ProtocolError, match=r"numbers up to .*e\+\d+, where this peer's own"):
            link_with([own], np.array([told])).receive(frame(1.01 * most * most_times))


def test_each_vector_of_a_message_has_its_own_bound_and_zero_bounds_nothing():
    link_with([1.0, 0.0], None).receive(frame(1.0, 1e50))
    with pytest.raises(ProtocolError):
        link_with([1.0, 1e9], None).receive(frame(1e7, 1e7))


@pytest.mark.parametrize("said", [None, 3, "much", [[1]], [None], [float("nan")], [-1.0], [1e999]])
def test_a_size_that_cannot_be_used_is_none(said):
    assert sizes_in(said) is None


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("own", "other"), [(2.0, 2.0), (1e-3, 5.0), (5.0, 1e-3), (1e9, 2.0)])
def test_who_was_lied_to_sends_a_neighbour_what_that_one_takes(own, other, dtype):
    """And no less: a silo with large data is not cut to its neighbours' measure."""
    sender, receiver = Bounds(dtype), Bounds(dtype)
    huge = np.array([[1e40, -3.0]])
    assert sender.clipped(huge, np.array([other])) is huge, "its own size is not known yet"
    sender.known(np.array([own]), 0.0)
    receiver.known(np.array([other]), 0.0)
    cut = sender.clipped(huge, np.array([other]))
    assert cut[0, 0] == PART_SENT * receiver.most(np.array([own]))[0]
    assert cut[0, 1] == -3.0
    assert sender.clipped(cut, np.array([other])) is not huge
    usual = np.array([[min(own, other) * 1e3, -3.0]])
    assert sender.clipped(usual, np.array([other])) is usual
    assert sender.clipped(huge, None) is huge


def test_bounds_grow_with_the_own_messages():
    link = link_with([1.0], None)
    link.bounds.grown(np.array([50.0]))
    link.receive(frame(40.0 * MORE[np.dtype(float)]))


def test_peers_that_would_never_take_each_others_messages_are_named_before_they_begin():
    bounds = Bounds()
    assert bounds.too_far_apart(np.array([1e30])) == 0
    bounds.known(np.array([1.0, 0.0]), 0.0)
    assert bounds.too_far_apart(None) == 0
    for told in (1.0, 1e8, 1e-8, 0.0):
        assert bounds.too_far_apart(np.array([told, 1e30])) == 0
    for told in (1e10, 1e-10):
        assert bounds.too_far_apart(np.array([told, 1e30])) == pytest.approx(1e10)


# --- honest peers that differ by much ------------------------------------------------------------


@pytest.mark.parametrize(("method", "rounds"), [("pdmm", 400), ("newton-pd", 200)])
def test_labels_in_other_units_at_one_peer_pass_its_neighbours(method, rounds):
    """Along a path, so that peers of small numbers pass on large ones."""
    rng = np.random.default_rng(2)
    parts = [(X, X.sum(1) + rng.standard_normal(15)) for X in rng.standard_normal((V, 15, N))]
    parts[0] = parts[0][0], 1e5 * parts[0][1]
    problem = ew.Problem(parts, ew.Squared(ridge=RIDGE))
    with jax.enable_x64(True):
        network = Network(method, problem=problem, graph=ew.Graph.path(V))
        network.go_on(rounds)
        optimum = ew.reference(problem).x
    assert network.refused == network.cut == 0
    assert np.abs(network.models() - optimum).max() < 1e-6 * np.abs(optimum).max()


def test_a_peer_of_few_samples_is_as_large_as_others():
    """By its messages before they are weighed: else it would cut what it passes on."""
    config = SimpleNamespace(
        fit=Fit(ridge=RIDGE, classes=(-1, 1)), own_penalty={}, penalty=(), path=Path()
    )
    problem = problem_of().only([0])
    few = refitted(config, problem, None, 1e-6)
    made = as_one_of_equals(config, few)
    assert np.allclose(made.smoothness.sample, problem.smoothness.sample)
    assert as_one_of_equals(config, problem) is problem
    assert few.scale[0] == pytest.approx(15e-6)
    assert made.scale[0] == 1


# --- what a peer finds out alone ------------------------------------------------------------------


@pytest.mark.parametrize("method", ["pdmm", "saga-pd", "newton-pd"])
def test_a_peer_knows_its_size_and_its_own_fit(method):
    with jax.enable_x64(True):
        network = Network(method)
        network.go_on(200)
        for i, known in enumerate(network.sizes):
            part = network.problem.only([i])
            best = ew.reference(part)
            loss = best.objective - RIDGE / 2 * best.x @ best.x
            assert known.of_zeros == pytest.approx(np.log(2))
            assert known.of_own_fit == pytest.approx(loss, abs=2e-2)
            ratio = sizes(network.steppers[i], network.carries[i])[0] / known.vectors
            assert (ratio > 1e-2).all()
            assert (ratio < 30).all()


# --- facts ----------------------------------------------------------------------------------------

OWN = NodeFacts(2, 100, 0.25, 0.1)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({}, ""),
        ({"sample_smoothness": 1e6}, ""),
        ({"sample_smoothness": 1e29}, "curvature 1e+29, where this peer's have 2e-01"),
        ({"sample_smoothness": 1e-29}, "curvature 1e-29"),
        ({"samples": 10**29}, "1e+29 samples"),
        ({"degree": 10**29}, "1e+29 neighbours in a network of 5"),
    ],
)
def test_facts_that_cannot_be_are_named(change, named):
    said = unlikely(OWN._replace(**change), OWN, 5)
    assert named in said
    assert bool(said) == bool(named)


def test_a_curvature_beyond_all_others_hardly_counts_and_both_ends_agree_on_that():
    def weight(own, other):
        problem = problem_of().only([1])
        stepper = Stepper(problem, 1, make("saga-pd"), 0, np.dtype(float), own)
        return float(stepper.among([EdgeFacts(own, other)]).block.links.rho[0])

    huge = OWN._replace(sample_smoothness=1e11, mean_smoothness=1e11)
    with jax.enable_x64(True):
        usual, lied = weight(OWN, OWN), weight(OWN, huge)
        assert lied == pytest.approx(weight(huge, OWN), rel=1e-6)
    assert usual < lied < 300 * usual


# --- alarms ---------------------------------------------------------------------------------------


def as_if_data_wanted(target):
    """A lie that no bound can tell from data: of a peer that wants this model and no other."""

    def lie(own, link):
        if len(own) == 1:  # m_ij = 2 rho x_i - m_ji
            return 2 * 0.25 * target[None] - own
        return np.stack([target, -own[1]])

    return lie


@pytest.mark.parametrize("method", ["pdmm", "saga-pd", "newton-pd"])
def test_a_peer_says_when_the_joint_model_fits_its_data_far_worse_than_its_own(method, caplog):
    with jax.enable_x64(True), caplog.at_level(logging.WARNING):
        network = Network(method)
        optimum = ew.reference(network.problem).x
        network.go_on(100)
        assert not any(peer.alarms for peer in network.peers)
        network.go_on(200, as_if_data_wanted(-4 * optimum))
        honest = network.peers[1:]
        assert all("far worse" in peer.alarms["fit"] for peer in honest)
        assert "peer 0 pulls hardest" in network.peers[1].alarms["fit"]
        assert caplog.text.count("ALARM") >= len(honest)
        network.go_on(600 if method == "saga-pd" else 100)
        assert not any(peer.alarms for peer in network.peers), "it heals"


def test_an_edge_that_pulls_alone_is_named_after_some_looks():
    peer = watched(problem_of().only([0]), OWN_SIZE, [3, 5])
    seen = {"loss": 0.2, "data_pull": 0.1, "pulls": [40.0, 0.3]}
    for _ in range(LOOKS - 1):
        assert not watch(peer, seen)
    assert not peer.alarms
    watch(peer, seen)
    assert "peer 3 pulls alone, 80 times as hard" in peer.alarms["pull"]
    assert watch(peer, seen | {"pulls": [0.4, 0.3]})
    assert not peer.alarms


BARBELL = ew.Graph.from_edges(
    [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (3, 5), (4, 5)]
)  # a bridge bears all that two crowds have against each other
TRAINED = ew.PrimalDual(ew.SAGA(batch=8), local="auto")
ROBUST = replace(TRAINED, radius="auto")


def unlike_data(nodes, mixed):
    """Two crowds with labels of different laws, but for a part of the samples."""
    rng = np.random.default_rng(3)
    laws = rng.standard_normal((2, N))
    parts = []
    for i in range(nodes):
        X = rng.standard_normal((40, N)) + 0.5 * (2 * i >= nodes)
        law = np.where(rng.random(40) < mixed, 0, int(2 * i >= nodes))
        noise = 0.5 * rng.standard_normal(40)
        parts.append((X, np.sign((X * laws[law]).sum(1) + noise)))
    return ew.Problem(parts, ew.Logistic(ridge=0.05))


@pytest.mark.parametrize(
    ("method", "every", "rounds", "mixed"),
    [
        (TRAINED, 10, 500, 0.0),
        (TRAINED, 2, 200, 0.5),
        (ROBUST, 10, 500, 1.0),
        ("pdmm", 10, 500, 0.0),
        ("saga-pd", 10, 1500, 0.0),
        ("newton-pd", 2, 100, 0.0),
    ],
)
def test_no_edge_of_honest_peers_is_said_to_pull_on(method, every, rounds, mixed):
    """However unlike their data are."""
    with jax.enable_x64(True):
        network = Network(method, problem=unlike_data(6, mixed), graph=BARBELL, look_every=every)
        network.go_on(rounds)
    kinds = {kind for _, _, kind in network.told}
    assert kinds <= {"fit"}  # which is about data, and may be so
    assert all(max(peer.edge_watch.moved.values()) < 1e-3 for peer in network.peers)


def test_a_bridge_between_crowds_of_other_laws_is_at_its_radius_and_says_so():
    """The rule for radii knows of no bridge: consensus gives way there, and at no other edge."""
    with jax.enable_x64(True):
        problem = unlike_data(6, 0.0)
        network = Network(ROBUST, problem=problem, graph=BARBELL, look_every=10)
        network.go_on(500)
        X = network.models()
    alarmed = {i: peer.alarms["bound"] for i, peer in enumerate(network.peers) if peer.alarms}
    assert set(alarmed) == {2, 3}
    assert "the edges to peers 3 pull with all" in alarmed[2]
    assert np.ptp(X[:3], axis=0).max() < 1e-3 < 0.1 < np.abs(X[2] - X[3]).max()


def one_that_leads_on(by):
    """It always says that its model is a little further than the one it hears from."""
    last = {}

    def lie(own, link):
        there = (own + last.get(link.me, own)) / 2  # rho x, as own = 2 rho x - last
        last[link.me] = 2 * (there + by) - own
        return last[link.me]

    return lie


@pytest.mark.parametrize("method", [TRAINED, "pdmm"])
def test_an_edge_that_pulls_on_and_on_is_said_to(method):
    with jax.enable_x64(True):
        network = Network(method, look_every=10)
        network.go_on(300)
        assert not network.told
        network.go_on(600, one_that_leads_on(0.02))
    for i in network.around[LIAR]:
        assert f"the edge to peer {LIAR} pulls harder" in network.peers[i].alarms["on"]


def test_an_edge_is_said_to_be_at_its_radius():
    """With it a liar that wants one model and no other leaves others where they were, nearly."""
    away = np.full(N, 30.0)
    with jax.enable_x64(True):
        network = Network(ROBUST, look_every=10)
        network.go_on(200)
        assert not network.told
        network.go_on(400, as_if_data_wanted(away))
        off = np.abs(network.models()[1:] - ew.reference(network.problem).x).max()
    for i in network.around[LIAR]:
        assert f"the edges to peers {LIAR} pull with all" in network.peers[i].alarms["bound"]
    assert off < 3


def test_an_edge_that_slows_down_or_turns_or_gains_little_does_not_pull_on():
    def watched_edge(steps, own_pull=1.0):
        seen, at = EdgeWatch(), np.zeros(2)
        seen.see({3: at, 5: at})
        for step in steps:
            at = at + step
            seen.see({3: at, 5: 0 * at})
        return seen.pulls_on(own_pull)

    ahead = np.tile([0.1, 0.0], (WINDOW, 1))
    assert "peer 3" in watched_edge(ahead)
    assert not watched_edge(ahead[1:])
    assert not watched_edge(ahead * 0.95 ** np.arange(WINDOW)[:, None])
    assert not watched_edge(ahead * np.where(np.arange(WINDOW) % 3 == 0, -1, 1)[:, None])
    assert not watched_edge(ahead, own_pull=10.0)
    assert not at_bound({3: 0.1, 5: 0.2}, [0.11, 0.3])
    assert "peers 5 pull" in at_bound({3: 0.1, 5: 0.3}, [0.11, 0.3])
    assert not at_bound({3: 0.1}, [])


def test_an_edge_that_pulls_against_the_own_data_alone_is_no_reason():
    """At rest, where one neighbour has the other class."""
    assert watch(
        watched(problem_of().only([0]), OWN_SIZE, [3, 5]),
        {"loss": 0.2, "data_pull": 39.0, "pulls": [40.0, 1.0]},
    )


@pytest.mark.parametrize(("samples", "alarmed"), [(1, False), (4, False), (400, True)])
def test_a_few_samples_may_fit_badly_by_chance(samples, alarmed):
    """Own fits gain 0.6 here; the joint model loses 2.5 times that."""
    rng = np.random.default_rng(0)
    data = rng.standard_normal((samples, N)), np.sign(rng.standard_normal(samples))
    problem = ew.Problem([data], ew.Logistic(), classes=(-1, 1))
    seen = {"loss": 0.1 + 2.5 * 0.6, "data_pull": 0.1, "pulls": [0.1, 0.1]}
    assert watch(watched(problem, OWN_SIZE, [3, 5]), seen) != alarmed


def test_a_message_that_is_cut_is_an_alarm_and_no_end():
    peer = watched(problem_of().only([0]), OWN_SIZE, [3, 5])
    peer.cut.add(5)
    seen = {"loss": 0.2, "data_pull": 0.1, "pulls": [0.1, 0.1]}
    for _ in range(LOOKS):
        assert not watch(peer, seen)
    assert "what it sends to peers [5] is beyond what they take" in peer.alarms["cut"]
    fit = SimpleNamespace(tol=1e-3)
    state = {"links": {}, "residual": 1e-9, "converged_hops": 2, "round": 10, "below_tol_at": -1}
    own = SimpleNamespace(config=SimpleNamespace(fit=fit, nodes=4), cut={5}, **state)
    count_converged_hops(own)
    assert own.converged_hops == 0
    own.cut.clear()
    count_converged_hops(own)
    assert own.converged_hops == 1


def test_an_alarm_is_part_of_the_end():
    end = Ending("converged", 70, 1e-8, 1e-6, 5, True, alarms=("peer 3 pulls alone",))
    assert "ALARM: peer 3 pulls alone" in end.message
    assert end.table()["alarms"] == ["peer 3 pulls alone"]
