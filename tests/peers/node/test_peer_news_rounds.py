"""Methods that tell news, at peers that hear each other's frames: the simulator's numbers."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from telling import HEAD, Telling
from uneven import problem_of

import edgewise as ew
from edgewise.errors import MethodError
from edgewise.methods.catalogue import make
from edgewise.methods.newton_pd import NewtonPD
from edgewise.peers.config.peer_config import Fit
from edgewise.peers.node import checkpoint
from edgewise.peers.node.state import PeerState, message_format
from edgewise.peers.node.stepper import Stepper, facts_of
from edgewise.peers.node.supported_methods import require_local
from edgewise.peers.transport.edge_facts import EdgeFacts
from edgewise.peers.transport.frames import HEADER, VECTORS, Frame, MessageFormat, decode
from edgewise.peers.transport.links import Link
from edgewise.peers.transport.wakeup import Wakeup
from edgewise.running.checkpoint_file import read, write

NEW = {
    "identity": {},
    "config": SimpleNamespace(fit=Fit()),
    "newest_saved": 0,
    "converged_hops": 0,
    "stop_at": 0,
    "stop_reason": "rounds",
    "below_tol_at": -1,
    "residual": 0.0,
    "pairs": {},
    "coupled": {},
}


class OnePeer(SimpleNamespace):
    """What a peer has of a run, with no process and no stream."""

    def seconds(self):
        return 0.0

    def sent_so_far(self):
        return {}

    def carries_as_grouped(self, other):
        return True

    def connect(self, id, around, format, strict):
        self.members, self.round = around, getattr(self, "round", 0)
        self.links = {j: Link(id, j, strict, format, 11, Wakeup()) for j in around}

    def post(self, id, sent):
        for place, (j, link) in enumerate(self.links.items()):
            vectors, news = self.stepper.outgoing(sent, place), self.stepper.outgoing_news(sent)
            link.post(
                Frame(VECTORS, self.round, 0, sender=id, receiver=j, payload=vectors, news=news)
            )

    def step(self, id):
        vectors = [link.take_message(self.round) for link in self.links.values()]
        heard = self.stepper.gathered(vectors, [link.news for link in self.links.values()])
        self.carry, sent = self.stepper.step(self.carry, self.round, heard)
        self.round += 1
        self.post(id, sent)


def deliver(peers):
    """All that waits to be sent; how many bytes each message had."""
    sizes = []
    for i, peer in enumerate(peers):
        for j, link in peer.links.items():
            while (data := link.next_message(None)) is not None:
                sizes.append(len(data))
                peers[j].links[i].receive(decode(data, i, j, link.format))
    return sizes


def restored(peer, id, tmp_path):
    """The peer as a new process makes it of its checkpoint."""
    path = tmp_path / "checkpoint.bin"
    write(path, *checkpoint.contents(peer))
    head, arrays = read(path)
    new = OnePeer(**vars(peer) | {"round": head["round"], "carry": None})
    new.connect(id, peer.members, peer.links[peer.members[0]].format, peer.strict)
    checkpoint.restore_messages(new, arrays)
    new.carry = checkpoint.restore_carry(peer.carry, arrays)
    for j, link in new.links.items():
        link.awaited_round, link.next_round = new.round, peer.links[j].next_round
    return new


GRAPH = ew.Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3), (3, 0)])
PENALTIES = [ew.L1(1e-2), ew.Box(-0.1, 0.1), ew.NoPenalty(), ew.L2Ball(0.3)]
ROUNDS, RESTART = 13, 9
CASES = [  # and the rounds whose messages have bodies
    (Telling(), {0, 3, 6, 9, 12}),
    (NewtonPD(), {0, 1, 2, 3, 5, 6, 7, 8, 12}),
]


def steppers_of(problem, method):
    own = [problem.only([i]) for i in range(4)]
    facts = [facts_of(part, int(GRAPH.degrees[i])) for i, part in enumerate(own)]
    return [
        Stepper(own[i], i, method, 0, np.dtype(float), facts[i]).among(
            [EdgeFacts(facts[i], facts[j]) for j in GRAPH.neighbours(i)]
        )
        for i in range(4)
    ]


def run(steppers, format, told_in, strict, restart):
    """The models after some rounds, of peers that hear each other's frames."""
    peers = []
    for i, stepper in enumerate(steppers):
        peer = OnePeer(stepper=stepper, carry=stepper.start(), strict=strict, **NEW)
        peer.connect(i, GRAPH.neighbours(i).tolist(), format, strict)
        peer.post(i, peer.carry[1])
        peers.append(peer)
    for round in range(ROUNDS):
        sizes = deliver(peers)
        head = HEADER.size + format.whole_bytes + 4 * format.head
        again = restart is not None and round == RESTART + 1 and not strict
        assert set(sizes) <= {head, head + 4 * format.body}
        assert (max(sizes) > head) == (round in told_in or again)
        for i, peer in enumerate(peers):
            peer.step(i)
        if round == RESTART and restart is not None:
            peers[1] = restored(peers[1], 1, restart)
            peers[1].post(1, peers[1].carry[1])
    return np.stack([np.asarray(peer.carry[0].X)[0] for peer in peers])


@pytest.mark.parametrize(("method", "told_in"), CASES)
def test_rounds_over_frames_and_from_a_checkpoint_are_the_simulators(method, told_in, tmp_path):
    problem = problem_of(7, 4, penalty=PENALTIES if method.takes_penalty else None)
    with jax.enable_x64(True):
        format = message_format(method, problem, Fit())
        given = steppers_of(problem, method), format, told_in
        undisturbed = run(*given, True, None)
        for strict in (True, False):
            assert np.array_equal(run(*given, strict, tmp_path), undisturbed)
    expected = ew.solve(problem, GRAPH, method, rounds=ROUNDS, reference=False).X
    np.testing.assert_allclose(undisturbed, expected, rtol=1e-10)


def test_when_neighbours_change_news_stay():
    with jax.enable_x64(True):
        one = steppers_of(problem_of(7, 4), Telling())[1]
        state, (x, y, news) = one.start()
        pair = EdgeFacts(one.own, one.own)
        before = state, (x, y + np.array([[1.0], [2.0]]), news + 5)
        _, (_, duals, told_on) = one.among([pair, pair]).regrouped(before, [1, None], 0.0)
    assert np.array_equal(told_on, news + 5)
    assert np.array_equal(duals - y, [7 * [2.0], 7 * [0.0]])


def test_the_sizes_of_news_are_the_methods():
    assert message_format(Telling(), problem_of(7, 4), Fit()) == MessageFormat(
        2, 7, "float64", None, HEAD, 7
    )
    assert message_format(ew.PDMM(), problem_of(7, 4), Fit()) == MessageFormat(1, 7, "float64")


def test_news_without_a_flag_are_refused():
    class Flagless(Telling):
        news_head = 0

    require_local(Telling(), "tolerant")
    with pytest.raises(MethodError, match="Flagless tells 1 rows of news: peers send one at most"):
        require_local(Flagless(), "tolerant")


@pytest.mark.parametrize(
    ("method", "samples", "warned"),
    [("newton-pd", 5, True), ("newton-pd", 6, False), ("pdmm", 5, False)],
)
def test_who_tells_a_hessian_of_few_samples_is_warned(method, samples, warned, caplog):
    problem = SimpleNamespace(counts=np.array([samples]), size=5)
    PeerState.warn_of_hessians(SimpleNamespace(problem=problem, method=make(method)))
    assert ("neighbours learn its Hessian, of 5 samples for 5 unknowns" in caplog.text) == warned
