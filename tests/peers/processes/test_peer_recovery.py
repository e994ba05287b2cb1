"""More of what peers live through as processes: other methods, lost disks, new keys, few bits."""

import json
import shutil
import socket
import ssl
import time
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from peer_process import Peers
from uneven import problem_of

import edgewise as ew
from edgewise.methods.catalogue import make
from edgewise.methods.curvature import HEAD, body_size
from edgewise.peers.config.certificates import name_of
from edgewise.peers.config.peer_config import Fit
from edgewise.peers.operations import keys
from edgewise.peers.transport.frames import HEADER
from edgewise.running.trace import COLUMNS

RING = ew.Graph.ring(3)
STRICT = Fit("saga-pd", weights="node", ridge=1e-2, rounds=300, mode="strict", classes=(-1.0, 1.0))


def simulated(problem, name, rounds):
    method = make(name).healing()
    return ew.solve(problem, RING, method, rounds=rounds, reference=False).X


def three(folder, penalty=None, **fit):
    told = [] if penalty is None else [(penalty,)] * 3
    each = None if penalty is None else [ew.L1(1e-2)] * 3
    problem = problem_of(7, 3, penalty=each, loss=ew.Logistic(ridge=STRICT.ridge))
    return Peers(folder, problem, RING, replace(STRICT, **fit), told or None), problem


@pytest.mark.parametrize(
    "method",
    [
        "newton-pd",  # with news
        pytest.param("lsvr-pd", marks=pytest.mark.exhaustive),  # with snapshots
        pytest.param("svr-pd", marks=pytest.mark.exhaustive),
    ],
)
def test_other_methods_come_to_the_simulators_models(tmp_path, method):
    peers, problem = three(tmp_path / "mesh", "l1:1e-2", method=method)
    with peers:
        peers.start(0, 1, 2)
        assert peers.ended() == [0, 0, 0]
        models, _ = peers.models()
        np.testing.assert_allclose(models, simulated(problem, method, 300), rtol=0, atol=1e-10)

        # once more after all have gone: there is nothing left to do, and nobody to wait for
        peers.start(0)
        assert peers.ended() == [0, 0, 0]
        assert "goes on from round 300" in peers.said(0)
        again, _ = peers.models()
    assert np.array_equal(models, again)


def test_a_lost_checkpoint_is_named_by_all_in_strict_mode(tmp_path):
    peers, _ = three(tmp_path / "mesh", rounds=10**6)
    with peers:
        peers.start(0, 1, 2)
        peers.until_round(1, 50)
        peers.kill(1)
        shutil.rmtree(peers.configs[1].out)
        peers.start(1)
        assert all(code > 0 for code in peers.ended())
        for i, word in enumerate(("peer 0 has no more", "peer 0 has no more", "peer 2 has no")):
            assert "peer 1 is at round 0 and needs messages that" in peers.said(i), peers.said(i)
            assert word in peers.said(i) or i == 1
            assert "its checkpoint was lost" in peers.said(i)


def test_keys_are_renewed_while_peers_run(tmp_path):
    peers, problem = three(tmp_path / "mesh", rounds=1500)
    with peers:
        peers.start(0, 1, 2)
        peers.until_round(1, 20)
        old = peers.configs[1].certificate.read_text()
        keys.renew(peers.folder, 1, 2)
        assert served(peers, 1, by=0) == peers.configs[1].certificate.read_text() != old
        peers.kill(0)  # it dials 1 anew, which has its new key
        keys.renew(peers.folder, 0, 2)
        peers.start(0)
        assert peers.ended() == [0, 0, 0]
        assert not any("handshake" in peers.said(i) for i in range(3))
        models, rounds = peers.models()
    assert rounds == [1500] * 3
    np.testing.assert_allclose(models, simulated(problem, "saga-pd", 1500), rtol=0, atol=1e-10)


def served(peers, id, by):
    """The certificate that a peer shows one of its neighbours."""
    config, caller = peers.configs[id], peers.configs[by]
    context = ssl.create_default_context(cafile=config.authority)
    context.load_cert_chain(caller.certificate, caller.key)
    host, _, port = config.listen.rpartition(":")
    with (
        socket.create_connection((host, int(port)), 60) as plain,
        context.wrap_socket(plain, server_hostname=name_of(config.mesh, id)) as wrapped,
    ):
        return ssl.DER_cert_to_PEM_cert(wrapped.getpeercert(binary_form=True))


def test_changes_of_few_bits_lead_to_the_optimum_with_a_part_of_the_bytes(tmp_path):
    fit = {"mode": "tolerant", "bits": 8, "tol": 1e-9, "rounds": 10**8, "patience": 5.0}
    peers, problem = three(tmp_path / "mesh", "l1:1e-2", **fit)
    with peers:
        peers.start(0, 1, 2)
        peers.until_round(1, 30)
        peers.kill(1)
        peers.start(1)
        assert peers.ended() == [0, 0, 0]
        models, rounds = peers.models()
        sent = peers.status(0)["neighbours"]["2"]
        heard = peers.status(2)["neighbours"]["0"]
    assert np.abs(models - ew.reference(problem).x).max() < 1e-7
    change, greeting = HEADER.size + 1 + 2 + 7, 1000
    assert sent["streams"] == 1
    assert sent["bytes_sent"] == heard["bytes_heard"]
    assert 0.5 * change * rounds[0] < sent["bytes_sent"] < change * rounds[0] + greeting


@pytest.mark.exhaustive
def test_newton_steps_with_few_bits_and_random_first_duals(tmp_path):
    fit = {"mode": "tolerant", "bits": 8, "dual_noise": 0.5, "tol": 1e-9, "rounds": 1000}
    peers, problem = three(tmp_path / "mesh", "l1:1e-2", method="newton-pd", patience=5.0, **fit)
    with peers:
        peers.start(0, 1, 2)
        assert peers.ended() == [0, 0, 0]
        models, rounds = peers.models()
        sent = peers.status(0)["neighbours"]["2"]["bytes_sent"]
    assert np.abs(models - ew.reference(problem).x).max() < 1e-7
    assert max(rounds) < 200
    head, body, greeting = 4 * HEAD, 4 * body_size(7), 1000  # of news, which are never rounded
    change = HEADER.size + 2 * (1 + 2 + 7) + head
    assert change * rounds[0] / 2 < sent < change * rounds[0] + 30 * body + greeting


def test_random_first_messages_change_the_way_and_not_the_end(tmp_path):
    peers, problem = three(tmp_path / "mesh", "l1:1e-2", rounds=20_000, tol=1e-9, dual_noise=0.5)
    with peers:
        peers.start(0, 1, 2)
        peers.until_round(2, 20)
        peers.kill(2)
        peers.start(2)
        assert peers.ended() == [0, 0, 0]
        models, rounds = peers.models()
        rows = (peers.configs[0].out / "trace.csv").read_text().splitlines()
    assert np.abs(models - ew.reference(problem).x).max() < 1e-7
    assert len(set(rounds)) == 1
    way = simulated(problem, "saga-pd", rounds[0])
    assert not np.array_equal(models, way)
    assert rows[0] == ",".join(COLUMNS)
    assert [float(row.split(",")[0]) for row in rows[1:4]] == [10, 20, 30]


def test_what_a_peer_tells_while_it_waits_and_when_it_is_asked_to_stop(tmp_path):
    peers, _ = three(tmp_path / "mesh")
    with peers:
        peers.start(0)
        peers.until(lambda: peers.status(0).get("state") == "waiting", "a waiting peer")
        there = peers.status(0)["neighbours"]
        assert {j: link["connected"] for j, link in there.items()} == {"1": False, "2": False}
        assert peers.configs[0].out.stat().st_mode & 0o777 == 0o700
        before = time.time()
        peers.running[0].terminate()
        assert peers.ended() == [0]
        assert peers.status(0)["state"] == "stopped"
        assert json.loads((peers.configs[0].out / "status.json").read_text())["time"] >= before
