"""Private fits at peers: what they tell, whose noise it is, and what has been spent when one was
killed."""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")
pytest.importorskip("dp_accounting", reason="needs dp-accounting: pip install 'edgewise[privacy]'")

import jax
from memory_peers import MemoryPeers, run

import edgewise as ew
from edgewise.backend.random_bits import draw_by_numpy
from edgewise.errors import CheckpointError, InputError
from edgewise.peers.config.peer_config import Fit, read, save
from edgewise.peers.node.fit_identity import identity_of, require_same
from edgewise.peers.node.handshake import greeting_of
from edgewise.peers.node.private_fit import LEDGER, Ledger
from edgewise.peers.operations import mesh

PRIVATE = {"dp_epsilon": 4.0, "dp_delta": 1e-5, "dp_clip": 1.0, "dp_rounds": 30}
SIZES = (40, 25, 30)
NODE = np.repeat(range(3), SIZES)


def data(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(len(NODE), 3)) * 10.0 ** rng.integers(-1, 2, 3)
    return X, np.sign(X @ rng.normal(size=3))


def mesh_of(folder, seed=0, **more):
    fit = Fit(**{"classes": (-1.0, 1.0), "ridge": 0.1, **PRIVATE, **more})
    made = mesh.create(folder, ew.Graph.ring(3), fit, [()] * 3, lambda i: "127.0.0.1", 40000, 2)
    (folder / "data").mkdir()
    X, y = data(seed)
    for i in range(3):
        np.savez(folder / "data" / f"peer{i}.npz", X=X[i == NODE], y=y[i == NODE])
    return made


def fitted(made, monkeypatch):
    peers = MemoryPeers(made, monkeypatch)

    async def work():
        peers.start(0, 1, 2)
        return await peers.results()

    return run(work()), peers


def test_greetings_tell_counts_and_nothing_of_the_data(tmp_path, monkeypatch):
    said = []
    for seed in (0, 1):
        results, peers = fitted(mesh_of(tmp_path / str(seed), seed), monkeypatch)
        greeting = greeting_of(peers.peers[1], peers.peers[1].links[0])
        greeting["agreed"].pop("mesh")
        greeting.pop("incarnation")
        said.append(json.dumps(greeting))
        assert all(r.privacy.epsilon == pytest.approx(4, abs=1e-6) for r in results.values())
        assert all(r.privacy.by_distance() == {1: r.privacy.epsilon} for r in results.values())
    assert said[0] == said[1]
    assert '"size": null' in said[0]
    told = (peers.configs[1].out / "model.json").read_text()
    assert peers.peers[1].data_digest not in told or not peers.peers[1].data_digest
    assert json.loads(told)["provenance"]["residual"] is None
    with np.load(peers.configs[1].out / "model.npz") as kept:
        ending = json.loads(str(kept["ending"]))
    assert ending["residual"] is None
    assert "residual" not in ending["message"]


def test_noise_is_of_the_system_and_not_of_the_seed(tmp_path, monkeypatch):
    models = []
    for name in ("first", "second"):
        results, peers = fitted(mesh_of(tmp_path / name, seed=3), monkeypatch)
        models.append(np.array([r.x for r in results.values()]))
        stepper = peers.peers[0].stepper
        once, again = stepper.random_bits(7), stepper.random_bits(7)
        assert once.shape == (1, stepper.method.random_draws)
        assert (once != again).mean() > 0.5
        seed = jax.random.key(peers.configs[0].fit.seed)
        known = draw_by_numpy(seed, [0], np.arange(40), once.shape[1])
        assert not (known == once).all(-1).any()
    assert np.abs(models[0] - models[1]).min() > 0


def test_much_noise_or_little_is_what_epsilon_says(tmp_path, monkeypatch):
    """With an epsilon that hides nothing the model is that of the bounded rows; and not so else."""
    X, y = data(5)
    X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1)
    shards = [(X[i == NODE], y[i == NODE]) for i in range(3)]
    star = ew.reference(ew.Problem(shards, ew.Logistic(ridge=0.1), weights="sample")).x
    far = []
    for epsilon in (50.0, 0.5):
        made = mesh_of(tmp_path / str(epsilon), 5, dp_epsilon=epsilon, dp_rounds=200)
        results, _ = fitted(made, monkeypatch)
        far.append(max(np.linalg.norm(r.x - star) for r in results.values()))
    assert far[0] < 0.3 * np.linalg.norm(star)
    assert far[1] > far[0]


def noting(kept, f):
    def noted(ledger, rounds):
        kept.append(rounds)
        return f(ledger, rounds)

    return noted


def test_rounds_that_are_taken_twice_are_counted_twice(tmp_path, monkeypatch):
    rounds, resumed = 90, []
    made = mesh_of(tmp_path / "m", dp_rounds=rounds)
    peers = MemoryPeers(made, monkeypatch, checkpoint_every=30)
    monkeypatch.setattr(Ledger, "at_least", noting(resumed, Ledger.at_least))

    def reserved():
        return list(json.loads((peers.configs[1].out / LEDGER).read_text()).values())

    async def work():
        peers.start(0, 1, 2)
        await peers.until_round(1, 35)
        await peers.kill(1)
        known = reserved()[0]
        peers.start(1)
        return known, await peers.results()

    known, results = run(work())
    assert results[1].privacy.rounds == results[0].privacy.rounds == rounds
    assert known >= 60  # of which some had not been made yet
    assert results[1].rounds == resumed[-1] + rounds - known
    assert results[0].rounds == rounds
    assert reserved() == [rounds]


def test_a_restart_with_other_rounds_is_of_another_noise_and_refused():
    fit = {"protocol": 1, "method": "pd", "rounds": 30, "tol": None, "seconds": None, **PRIVATE}
    first = identity_of(fit)
    assert identity_of({**fit, "seconds": 5.0}) == first
    assert identity_of({**fit, "rounds": 50}) == first  # dp_rounds are 30
    with pytest.raises(CheckpointError, match="private_rounds = 30, and here 20"):
        require_same(first, identity_of({**fit, "rounds": 20}), "it")


def test_settings_of_the_method_stay(tmp_path, monkeypatch):
    _, peers = fitted(mesh_of(tmp_path / "m", method="pd", set=("radius=0.5",)), monkeypatch)
    assert peers.peers[0].method.radius == 0.5


def test_a_ledger_reserves_before_it_releases(tmp_path):
    ledger = Ledger(tmp_path, "fit", most=25, ahead=10)
    for released in range(25):
        assert not ledger.spent
        ledger.release()
        assert json.loads(ledger.path.read_text())["fit"] >= released + 1
    assert ledger.spent
    again = Ledger(tmp_path, "another", most=25, ahead=10)
    again.release()
    assert json.loads(again.path.read_text()) == {"fit": 25, "another": 10}
    assert Ledger(tmp_path, "another", most=25, ahead=10).used == 10  # killed: all of it counts
    ledger.path.write_text("{")
    with pytest.raises(CheckpointError, match="says what has been spent of the privacy budget"):
        Ledger(tmp_path, "fit", most=25, ahead=10)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"tol": 1e-6}, "fit.tol does not go with fit.dp_epsilon: peers would stop"),
        ({"standardize": True}, "fit.standardize does not go with"),
        ({"holdout": 0.2}, "fit.holdout does not go with"),
        ({"summary": "auto"}, "fit.summary does not go with"),
        ({"mode": "strict"}, "goes with mode tolerant"),
        ({"dp_delta": None}, r"fit.dp_epsilon goes with fit.dp_delta"),
        ({"dp_epsilon": None}, r"fit.dp_delta goes with fit.dp_epsilon"),
    ],
)
def test_what_a_private_fit_cannot_go_with(tmp_path, more, message):
    config = mesh_of(tmp_path / "m").peers[0]
    save(replace(config, fit=replace(config.fit, **more)))
    with pytest.raises(InputError, match=message):
        read(config.path)


def test_methods_and_sums_that_are_refused(tmp_path):
    config = mesh_of(tmp_path / "m").peers[0]
    shard = tmp_path / "m" / "data" / "peer0.npz"
    with pytest.raises(InputError, match="a sum over the peers' data is not covered"):
        ew.Peer(config.path).sum_over([1.0])
    for more, message in (
        ({"method": "saga-pd"}, "keep what they have seen"),
        ({"method": "newton-pd"}, "more of the data than one gradient a round"),
        ({"loss": "squared"}, r"DP\(row_norm=\)"),
    ):
        made = replace(config, fit=replace(config.fit, weights="node", classes=None, **more))
        with pytest.raises(InputError, match=message):
            ew.Peer(made).fit(shard)
