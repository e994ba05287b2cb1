"""Sums at peers: exact, under masks too, which hide what a peer has from all but all its
neighbours together."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import fsum

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from memory_peers import Streams
from peer_process import free_ports
from scipy.stats import chisquare

import edgewise as ew
from edgewise.errors import DataError, DisclosureError, InputError
from edgewise.peers.config.peer_config import Fit, read
from edgewise.peers.node import peer_sum
from edgewise.peers.node.masks import MODULUS, Masker, fixed_point, floating_point
from edgewise.peers.node.peer_sum import PeerSum
from edgewise.peers.node.result import PeerError
from edgewise.peers.node.sums import Sums
from edgewise.peers.operations import mesh
from edgewise.peers.transport.reports import UNIT

GRAPH = ew.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (1, 4)])


def neighbours(i):
    return [int(j) for j in GRAPH.neighbours(i)]


def masked_terms(values, name="x"):
    makers = [Masker(i, name) for i in range(GRAPH.nodes)]
    own = [fixed_point(row, GRAPH.nodes) for row in values]
    return own, [
        maker.masked(own[i], {j: makers[j].public for j in neighbours(i)})
        for i, maker in enumerate(makers)
    ]


def test_masks_cancel_to_the_last_bit():
    values = np.random.default_rng(0).normal(size=(6, 4)) * [1, 1e-9, 1e15, 0]
    own, told = masked_terms(values)
    plain = [sum(column) % MODULUS for column in zip(*own, strict=True)]
    assert [sum(column) % MODULUS for column in zip(*told, strict=True)] == plain
    found = floating_point(tuple(sum(column) for column in zip(*told, strict=True)))
    exact = [fsum(column) for column in values.T]
    np.testing.assert_allclose(found, exact, rtol=0, atol=6 * 2.0**-54 + 2)  # of 1e15: rounded once
    np.testing.assert_allclose(found[:2], exact[:2], rtol=0, atol=6 * 2.0**-54)
    whole = np.array([[3, -7, 2**53]] * 6)
    _, told = masked_terms(whole)
    sums = floating_point(tuple(sum(column) for column in zip(*told, strict=True)))
    assert sums.tolist() == [18.0, -42.0, 6.0 * 2**53]


def bytes_of(terms):
    """Counts of the values of all bytes of numbers of 128 bits, sixteen at a time."""
    raw = b"".join(n.to_bytes(16, "little") for term in terms for n in term)
    return np.bincount(np.frombuffer(raw, np.uint8) >> 4, minlength=16)


def test_a_masked_term_says_nothing_of_its_value():
    """With fresh keys it is as uniform for one value as for another, also to who takes the masks of
    all neighbours off but one; with all of them off it is the value."""
    others = {j: Masker(j, "x") for j in (1, 2, 4)}
    for value in (0.0, 1.0, 1e15):
        own, told, left = fixed_point(np.full(40, value), 5), [], []
        for _ in range(12):
            maker = Masker(3, "x")
            publics = {j: other.public for j, other in others.items()}
            told.append(maker.masked(own, publics))
            known = [others[j].stream(3, maker.public, 40) for j in (1, 2)]  # who lie below 3
            left.append([(n + a + b) % MODULUS for n, a, b in zip(told[-1], *known, strict=True)])
            last = others[4].stream(3, maker.public, 40)
            assert tuple((n - m) % MODULUS for n, m in zip(left[-1], last, strict=True)) == own
        assert chisquare(bytes_of(told)).pvalue > 1e-6
        assert chisquare(bytes_of(left)).pvalue > 1e-6
        assert len({n for term in told for n in term}) == 12 * 40  # no number comes twice


def test_streams_differ_by_sum_pair_and_key():
    a, b, c = Masker(0, "x"), Masker(1, "x"), Masker(2, "x")
    assert a.stream(1, b.public, 3) == b.stream(0, a.public, 3)
    assert a.stream(1, b.public, 3) != a.stream(2, c.public, 3)
    other = Masker(1, "y")
    other.key = b.key
    assert other.stream(0, a.public, 3) != b.stream(0, a.public, 3)
    assert Masker(0, "x").stream(1, b.public, 3) != a.stream(1, b.public, 3)


@pytest.mark.parametrize("value", [float("nan"), 1e21])
def test_numbers_without_room_are_refused(value):
    with pytest.raises(DataError, match="cannot be added up with masks"):
        fixed_point(np.array([value]), 10)


# --- peers ----------------------------------------------------------------------------------------


class QueuedPeers:
    """Peers whose streams are queues."""

    def __init__(self, tmp_path, monkeypatch, graph=GRAPH):
        monkeypatch.setattr(peer_sum, "Connections", Streams)
        monkeypatch.setattr(peer_sum, "stop_on_signals", lambda _: (asyncio.Event(), None))
        monkeypatch.setattr(peer_sum, "LINGER", 0.3)
        monkeypatch.setattr(peer_sum, "LAST_WORDS", 0.1)
        Streams.here.clear()
        made = mesh.create(
            tmp_path / "m", graph, Fit(), [()] * graph.nodes, lambda i: "127.0.0.1", 40000, 2
        )
        self.configs, self.sessions = made.peers, {}

    async def one(self, i, values, name="x", masked=True, patience=20.0):
        self.sessions[i] = PeerSum(self.configs[i], values, name, masked, patience)
        return await self.sessions[i].run()

    async def all(self, values, **options):
        tasks = [self.one(i, row, **options) for i, row in enumerate(values)]
        return await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("masked", [False, True])
def test_all_peers_have_the_exact_sum(tmp_path, monkeypatch, masked):
    peers = QueuedPeers(tmp_path, monkeypatch)
    values = np.random.default_rng(1).integers(-(10**6), 10**6, (6, 2, 3)) / 64
    first = asyncio.run(peers.all(values, masked=masked))
    for found in first:
        assert found.shape == (2, 3)
        assert (found == values.sum(0)).all()
    told = {  # of a peer, to its parent; a leaf's is its own
        (j, n // UNIT if masked else n)
        for session in peers.sessions.values()
        for j, report in session.heard("sum").items()
        if report is not None and not report.total
        for n in report.sums
    }
    plain = {(i, n) for i, session in peers.sessions.items() for n in session.plain}
    assert not masked or not told & plain
    own = {(i, n // UNIT) for i, s in peers.sessions.items() for n in s.own}
    assert not masked or not own & plain


def test_sums_one_after_the_other(tmp_path, monkeypatch):
    """Some are at the next while others are at this one."""
    peers = QueuedPeers(tmp_path, monkeypatch)

    async def work(i):
        got = []
        for k in range(3):
            await asyncio.sleep(0.03 * ((i + k) % 3))
            got.append(float((await peers.one(i, [i * 10.0**k], f"sum {k}"))[0]))
        return got

    async def everybody():
        return await asyncio.gather(*map(work, range(6)))

    assert asyncio.run(everybody()) == [[15.0, 150.0, 1500.0]] * 6


def test_a_peer_that_is_started_anew_ends_a_sum_with_masks_for_all(tmp_path, monkeypatch):
    peers = QueuedPeers(tmp_path, monkeypatch)

    async def work():
        tasks = [asyncio.ensure_future(peers.one(i, [1.0])) for i in range(5)]  # 5 is late
        while 3 not in peers.sessions or not peers.sessions[2].used:
            await asyncio.sleep(0.01)
        tasks[3].cancel()
        await asyncio.gather(tasks[3], return_exceptions=True)
        tasks[3] = asyncio.ensure_future(peers.one(3, [1.0]))
        tasks.append(asyncio.ensure_future(peers.one(5, [1.0], patience=3.0)))
        return await asyncio.gather(*tasks, return_exceptions=True)

    results = asyncio.run(work())
    assert all(isinstance(each, PeerError) for each in results)
    told = " ".join(map(str, results))
    assert "peer 3 was started anew in the midst of a sum with masks" in told
    assert "has given the sum up, so that nobody has it" in told


def test_without_masks_it_goes_on(tmp_path, monkeypatch):
    peers = QueuedPeers(tmp_path, monkeypatch)

    async def work():
        tasks = [asyncio.ensure_future(peers.one(i, [1.0], masked=False)) for i in range(5)]
        await asyncio.sleep(0.3)
        tasks[3].cancel()
        await asyncio.gather(tasks[3], return_exceptions=True)
        tasks[3] = asyncio.ensure_future(peers.one(3, [1.0], masked=False))
        tasks.append(asyncio.ensure_future(peers.one(5, [1.0], masked=False)))
        return await asyncio.gather(*tasks)

    assert [float(each[0]) for each in asyncio.run(work())] == [6.0] * 6


def test_one_that_does_not_come(tmp_path, monkeypatch):
    peers = QueuedPeers(tmp_path, monkeypatch)
    results = asyncio.run(peers.all(np.ones((5, 1)), patience=1.0))
    assert all(isinstance(each, PeerError) for each in results)
    told = " ".join(map(str, results))
    assert "no sum after 1 s: peers 5 have yet to tell theirs; with masks nobody can be" in told


def test_keys_that_make_no_secret(tmp_path, monkeypatch):
    """All zeros, say: who sends it would know the mask, whatever this peer's key is."""
    monkeypatch.setattr(Masker, "public", (0, 0))
    peers = QueuedPeers(tmp_path, monkeypatch)
    results = asyncio.run(peers.all(np.ones((6, 1)), patience=5.0))
    assert all(isinstance(each, PeerError) for each in results)
    assert "says no usable key" in " ".join(map(str, results))


def test_peers_that_do_not_agree(tmp_path, monkeypatch):
    peers = QueuedPeers(tmp_path, monkeypatch)
    given = [np.ones(2)] * 5 + [np.ones(3)]
    told = " ".join(map(str, asyncio.run(peers.all(given, patience=5.0))))
    assert "has shape = [2] of the sum 'x', this peer [3]: make them the same" in told


def over_tls(tmp_path, work, **options):
    """What three peers come to, each in a thread: work(peer, its number)."""
    made = mesh.create(
        tmp_path / "m", ew.Graph.ring(3), Fit(), [()] * 3, lambda i: "127.0.0.1", 40000, 2
    )
    at = [f"127.0.0.1:{port}" for port in free_ports(3)]
    with ThreadPoolExecutor(3) as beside:
        runs = []
        for i, config in made.peers.items():
            around = tuple(replace(n, address=at[n.id]) for n in config.neighbours)
            own = replace(config, listen=at[i], neighbours=around, **options)
            runs.append(beside.submit(work, ew.Peer(own), i))
        return [run.result() for run in runs]


def test_a_peers_own_rule_counts_beside_what_is_asked_for():
    sums = Sums(None, 7, "x")
    with pytest.raises(
        DisclosureError, match="node 0 has 6 in cell 0, and tells no count from 1 t"
    ):
        ew.sum_counts(sums, [[6, 9]], least_count=1)
    with pytest.raises(DisclosureError, match="node 0 has 6 samples"):
        ew.metrics.log_loss(sums, [[0, 1] * 3], [[0.5] * 6], least_count=1)
    with pytest.raises(DisclosureError, match="node 0 has 6 samples"):
        ew.metrics.r2(sums, [[0.0, 1.0] * 3], [[0.5] * 6], least_count=2)


def test_over_tls(tmp_path):
    def work(peer, i):
        return peer.sum_over([i + 0.5, -1.0], masked=True, patience=30.0).tolist()

    assert over_tls(tmp_path, work) == [[4.5, -3.0]] * 3


def test_curves_and_metrics_of_peers(tmp_path):
    """As with all nodes in one process; a peer's own rule of least counts is kept."""
    rng = np.random.default_rng(0)
    labels = [np.ceil(rng.exponential(5, 60)) * rng.choice([1, -1], 60) for _ in range(3)]
    seen, chances = [rng.integers(2, size=60) for _ in range(3)], [rng.random(60) for _ in range(3)]

    def work(peer, i):
        sums = peer.sums("study", masked=True, patience=30.0)
        curve = ew.kaplan_meier(sums, [labels[i]], range(1, 15), coarsen=True, least_count=1)
        roc = ew.metrics.roc_auc(sums, [seen[i]], [chances[i]], [0.3, 0.6])
        return curve, roc, ew.metrics.log_loss(sums, [seen[i]], [chances[i]])

    here = ew.kaplan_meier("ring", labels, range(1, 15), coarsen=True, least_count=4)
    roc = ew.metrics.roc_auc("ring", seen, chances, [0.3, 0.6])
    loss = ew.metrics.log_loss("ring", seen, chances)
    for i, (curve, own_roc, own_loss) in enumerate(over_tls(tmp_path, work, least_count=4)):
        assert (curve.times == here.times).all()
        assert (curve.survival == here.survival).all()
        assert (own_roc.auc, own_roc.interval) == (roc.auc, roc.interval)
        assert own_roc.nodes[0] == roc.nodes[i]
        np.testing.assert_allclose(own_loss.value, loss.value, rtol=1e-11)


@pytest.mark.filterwarnings("ignore:peer . has one neighbour")
def test_what_a_peer_refuses(tmp_path, monkeypatch):
    peers = QueuedPeers(tmp_path, monkeypatch, ew.Graph.path(3))
    with pytest.raises(InputError, match="peer 0 has one neighbour, whom no mask hides"):
        PeerSum(peers.configs[0], [1.0], "x", True, 1.0)
    one = ew.Peer(read(peers.configs[1].path))
    with pytest.raises(DisclosureError, match="node 1 has 4 in cell 1, and tells no count"):
        one.sum_counts([7, 4, 0])
    less = ew.Peer(replace(peers.configs[1], least_count=4))

    def taken(_, values, *__):
        raise LookupError(values.tolist())

    monkeypatch.setattr("edgewise.peers.node.peer.PeerSum", taken)
    with pytest.raises(LookupError, match=r"\[7.0, 4.0, 0.0\]"):
        less.sum_counts([7, 4, 0])
