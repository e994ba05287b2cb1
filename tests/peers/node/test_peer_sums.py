"""Sums over all peers, before they fit: exact, whoever is killed, and what weights make of them."""

import asyncio
from math import fsum
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

import jax
from memory_peers import MemoryPeers, run
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler, normalize

import edgewise as ew
from edgewise.peers.config.peer_config import Fit, read, save
from edgewise.peers.node.own_data import own_data
from edgewise.peers.node.own_problem import problem_of
from edgewise.peers.node.scores import own_sums
from edgewise.peers.node.tree_sum import report_of, told_to
from edgewise.peers.operations import mesh
from edgewise.peers.transport.frames import MessageFormat, ProtocolError, decode, max_frame_bytes
from edgewise.peers.transport.reports import UNIT, Reports, encoded, exact, report_in, rounded

# --- up a tree and down again ---------------------------------------------------------------------


class Told:
    """Peers that report over wires on which reports are lost, come late, and come twice."""

    def __init__(self, graph, numbers, seed):
        self.ids = range(graph.nodes)
        self.around = {i: graph.neighbours(i).tolist() for i in self.ids}
        self.numbers = [exact(row) for row in numbers]
        self.heard = {i: dict.fromkeys(self.around[i]) for i in self.ids}
        self.rng = np.random.default_rng(seed)

    def now(self, i):
        return report_of("x", i, len(self.ids), self.numbers[i], self.heard[i])

    def tell(self, i, j):
        self.heard[j][i] = told_to(j, self.now(i))

    def run(self, steps, lost=0.3, restarts=0):
        """Peers in any order; each tells one of its neighbours."""
        until = steps // 2
        for step in range(steps):
            i = self.rng.choice(self.ids)
            if self.rng.random() > lost:
                self.tell(i, self.rng.choice(self.around[i]))
            if step < until and self.rng.random() < restarts / until:
                self.heard[i] = dict.fromkeys(self.around[i])


@pytest.mark.parametrize("seed", range(6))
def test_all_come_to_the_same_bits_in_whatever_order_they_tell(seed):
    graph = [ew.Graph.ring(7), ew.Graph.star(6), ew.Graph.random(9, 12, seed=seed)][seed % 3]
    values = np.random.default_rng(seed).standard_normal((graph.nodes, 3)) * [1, 1e-9, 1e12]
    told = Told(graph, values, seed)
    told.run(4000, restarts=3)
    reports = [told.now(i) for i in told.ids]
    assert all(report.total for report in reports)
    assert {report.ids for report in reports} == {tuple(told.ids)}
    expected = [fsum(column) for column in values.T]
    for report in reports:
        assert rounded(report.sums).tolist() == expected


def test_nobody_tells_a_sum_before_all_are_there():
    told = Told(ew.Graph.ring(5), np.ones((5, 1)), 0)
    told.ids = [0, 1, 2, 3]  # 4 does not come
    told.around = {i: [j for j in told.around[i] if j != 4] for i in told.ids}
    steps = 2000
    for _ in range(steps):
        i = told.rng.choice(told.ids)
        told.heard[told.rng.choice(told.around[i])][i] = told_to(
            1, report_of("x", i, 5, told.numbers[i], told.heard[i])
        )
    assert not any(report_of("x", i, 5, told.numbers[i], told.heard[i]).total for i in told.ids)


def test_numbers_are_for_the_parent_and_totals_for_all():
    told = Told(ew.Graph.path(3), np.ones((3, 1)), 0)
    for i, j in ((0, 1), (1, 2), (2, 1)):
        told.tell(i, j)
    own = told.now(2)
    assert own.parent == 1
    assert own.sums == (UNIT,)
    assert told_to(0, own).sums == ()
    assert told_to(1, own) == own
    total = own._replace(total=True)
    assert told_to(0, total) == total


def test_a_report_is_the_same_when_it_has_been_sent():
    sums = exact([0.1, 1e100, -7.0, 0.0])
    sums = tuple(a + b for a, b in zip(sums, exact([0.2, 1e-60, 1 / 3, 0.0]), strict=True))
    report = report_of("samples", 4, 1, sums, {})
    format = MessageFormat(1, 3, "float64", sums=4)
    data = encoded(report, 4, 5)
    assert len(data) <= max_frame_bytes(format)
    heard = Reports(4)
    heard.hear(decode(data, 4, 5, format).payload)
    got = heard.heard["samples"]
    assert got._replace(sums=()) == report._replace(sums=())
    assert np.array_equal(rounded(got.sums), rounded(sums))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"stage":"x","root":0,"hops":0,"parent":null,"ids":[1],"sums":[[NaN]],"total":true}',
        '{"stage":"x","root":0,"hops":0,"parent":null,"ids":[1],"sums":[[1e200]],"total":true}',
        '{"stage":"x","root":0,"hops":0,"parent":null,"ids":[1],"sums":[[1],[2],[3]],"total":true}',
        '{"stage":"x","root":-1,"hops":0,"parent":null,"ids":[1],"sums":[[1]],"total":true}',
        '{"stage":"x","root":0,"hops":0,"parent":null,"ids":[1,1],"sums":[[1]],"total":true}',
        '{"stage":"x","root":0,"hops":0,"parent":null,"ids":[],"sums":[[1]],"total":true}',
    ],
)
def test_what_is_no_report_is_refused(text):
    with pytest.raises(ProtocolError):
        report_in(text.encode(), 2)


# --- what a fit makes of them ---------------------------------------------------------------------

NODES, RIDGE = 5, 0.03
X, y = ew.data.dataset("breast_cancer")


def peers_of(tmp_path, monkeypatch, X, **more):
    """Five peers whose samples are sorted by label: 20 at one, 264 at another."""
    shards = ew.split(X, y, NODES, "label")
    usual = {"tol": 1e-9, "intercept": True, "classes": (0, 1)}
    fit = Fit(ridge=RIDGE, **usual | more)
    made = mesh.create(
        tmp_path / "m", ew.Graph.ring(NODES), fit, [()] * NODES, lambda i: "127.0.0.1", 40000, 2
    )
    (tmp_path / "m" / "data").mkdir()
    for i, (D, labels) in enumerate(shards):
        np.savez(tmp_path / "m" / "data" / f"peer{i}.npz", X=D, y=labels)
    return MemoryPeers(made, monkeypatch)


def pooled(X):
    """scikit-learn's model of all data, none of them weighed."""
    made = LogisticRegression(C=1 / (RIDGE * len(y)), solver="newton-cholesky", tol=1e-12)
    made.fit(X, y)
    return np.append(made.coef_[0], made.intercept_)


def test_peers_count_by_their_samples_also_one_that_is_killed_while_they_are_counted(
    tmp_path, monkeypatch
):
    """Peer 3 is killed once it has told its own count, before all are there, and peer 1 after
    it has the total: it takes it from its folder, and a folder that was lost from neighbours."""
    D = normalize(StandardScaler().fit_transform(X))
    peers = peers_of(tmp_path, monkeypatch, D)

    async def work():
        peers.start(0, 1, 2, 3)
        await asyncio.sleep(0)
        while not peers.peers[2].links[3].reports.heard:
            await asyncio.sleep(0.01)
        assert not peers.peers[0].totals
        await peers.kill(3)
        peers.start(4, 3)
        while peers.peers[1].agreeing or peers.peers[4].agreeing:
            await asyncio.sleep(0.005)
        await peers.kill(1)
        await peers.kill(4)
        (peers.configs[4].out / "agreement.json").unlink()
        peers.start(1, 4)
        assert (peers.configs[1].out / "agreement.json").exists()
        return await peers.results()

    expected = pooled(D)
    for i, result in run(work()).items():
        assert result.converged, result.message
        np.testing.assert_allclose(result.x, expected, rtol=0, atol=1e-6)
        told = {"samples": len(y), "peers": list(range(NODES)), "held_out": 0}
        assert peers.peers[i].agreed_on == told


def test_columns_are_standardised_by_the_means_and_spreads_of_all(tmp_path, monkeypatch):
    peers = peers_of(tmp_path, monkeypatch, X, standardize=True, mode="strict")

    async def work():
        peers.start(*range(NODES))
        return await peers.results()

    results = run(work())
    scaler = StandardScaler().fit(X)
    expected = pooled(scaler.transform(X))
    assert len({peer.problem.scaling.centre.tobytes() for peer in peers.peers.values()}) == 1
    for i, result in results.items():
        np.testing.assert_allclose(result.x, expected, rtol=0, atol=1e-6)
        model = ew.load_model(peers.configs[i].out)
        np.testing.assert_allclose(model.scaling.centre, scaler.mean_, rtol=1e-14)
        np.testing.assert_allclose(model.scaling.scale, scaler.scale_, rtol=1e-13)
        assert model.converged
        margins = scaler.transform(X) @ expected[:-1] + expected[-1]
        np.testing.assert_allclose(model.decision_function(X), margins, rtol=1e-5, atol=1e-5)


def test_a_peer_that_is_away_is_left_out_of_sums_that_do_not_need_it():
    told = Told(ew.Graph.star(4), np.eye(4)[:, :1] + 1, 0)  # 0 in the middle, 3 away
    for i in (1, 2):
        told.tell(i, 0)
        told.tell(0, i)
        told.tell(i, 0)
    now = report_of("x", 0, 4, told.numbers[0], told.heard[0], waived=[3])
    assert not now.total
    now = report_of("x", 0, 4, told.numbers[0], told.heard[0], waived=[3], all_needed=False)
    assert now.total
    assert (now.ids, rounded(now.sums).tolist()) == ((0, 1, 2), [4.0])


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_models_are_tried_on_what_all_peers_hold_out(tmp_path, monkeypatch, loss):
    more = {} if loss == "logistic" else {"loss": "squared", "classes": None}
    more |= {"standardize": True, "holdout": 0.3, "mode": "strict"}
    peers = peers_of(tmp_path, monkeypatch, X[:, :4], **more)

    def start(i):
        data = own_data(peers.configs[i], peers.folder / "data" / f"peer{i}.npz")
        with jax.enable_x64(True):
            problem = problem_of(peers.configs[i], data.shards)
        peers.start_with(i, problem, data.held)

    async def work():
        for i in range(NODES):
            start(i)
        results = await peers.results()
        start(1)  # when all have gone: it keeps what all had come to
        again = await peers.tasks[1]
        assert again.scores == results[1].scores
        return results

    results = run(work())
    held = [peers.peers[i].held for i in range(NODES)]
    D, labels = np.concatenate([h.X for h in held]), np.concatenate([h.y for h in held])
    rows = sum(round(0.3 * len(part)) for _, part in ew.split(X, y, NODES, "label"))
    for i, result in results.items():
        model = ew.load_model(peers.configs[i].out)
        scores = result.scores
        assert (scores["rows"], scores["peers"], scores["missing"]) == (rows, [*range(NODES)], [])
        assert f"on {rows} held-out samples of 5 peers: " in result.message
        assert model.provenance["held_out"] == scores
        score = scores["accuracy" if loss == "logistic" else "r2"]
        np.testing.assert_allclose(score, model.score(D, labels), rtol=1e-7)
        if loss == "logistic":
            expected = log_loss(labels, model.predict_proba(D))
            np.testing.assert_allclose(scores["log_loss"], expected, rtol=1e-6)


def test_few_held_out_samples_are_in_no_scores(caplog):
    """As the sums of few tell of each."""
    held, problem = ew.split(X[:5], y[:5] * 1.0, 1), ew.Problem([(X[:9], y[:9])], ew.Squared())
    config = SimpleNamespace(least_count=5, fit=Fit())
    peer = SimpleNamespace(held=held, config=config, problem=problem)
    assert rounded(own_sums(peer, np.zeros(30)))[[0, 5]].tolist() == [5, np.sum(y[:5] ** 2)]
    config.least_count = 6
    assert own_sums(peer, np.zeros(30)) == (0,) * 6
    assert "5 held-out samples are in no scores: it tells no sums of fewer than 6" in caplog.text


def test_peers_whose_columns_are_in_another_order_stop_and_say_so(tmp_path, monkeypatch):
    peers = peers_of(tmp_path, monkeypatch, X[:, :3])
    for i in range(NODES):
        path = peers.folder / "data" / f"peer{i}.npz"
        D = np.load(path)
        names = ["a", "b", "c"] if i != 1 else ["c", "b", "a"]
        np.savez(path, X=D["X"], y=D["y"], columns=names)

    async def work():
        peers.start(*range(NODES))
        await asyncio.wait([peers.tasks[i] for i in (0, 1, 2)])
        for i in (3, 4):
            await peers.kill(i)
        return [str(peers.tasks[i].exception()) for i in (0, 1, 2)]

    first, second, _ = run(work())
    assert 'the table of peer 1 differs: column 1 is "c", and here "a": the order' in first
    assert 'differs: column 1 is "a", and here "c"' in second


def test_with_couplings_every_peer_counts_alike_and_nothing_is_added_up(tmp_path):
    made = mesh.create(
        tmp_path / "m",
        ew.Graph.ring(3),
        Fit(weights="sample"),
        [()] * 3,
        lambda i: "127.0.0.1",
        40000,
        2,
    )
    config = made.peers[0]
    save(config)
    text = config.path.read_text() + '\n[between]\nall = "lasso:0.1"\n'
    config.path.write_text(text)
    with pytest.raises(ew.errors.InputError, match='weights = "sample" goes with models that are'):
        read(config.path)
    config.path.write_text(text.replace('weights = "sample"\n', ""))
    coupled = read(config.path)
    assert coupled.agreed()["weights"] == "node"
    assert not coupled.sums_first
