"""Peers on hosts of their own: 20 ms from any to any other, and one packet in 20 is lost."""

import socket
import time
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from four_peers import FIT, GRAPH, PENALTIES, penalised, simulated
from peer_process import Peers
from tun_network import TunNetwork, why_not

import edgewise as ew

MISSING = why_not()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"no emulated network: {MISSING}")

DELAY, LOSS = 0.02, 0.05
PORT = 24700


class PeersOnHosts(Peers):
    """Each peer at the host of its number."""

    def __init__(self, network, folder, fit):
        super().__init__(folder, penalised(), GRAPH, fit, PENALTIES)
        self.network = network
        self.addresses = [f"{network.address(i)}:{PORT}" for i in range(GRAPH.nodes)]
        for i, config in self.configs.items():
            around = [replace(n, address=self.addresses[n.id]) for n in config.neighbours]
            self.change(replace(config, listen=self.addresses[i], neighbours=tuple(around)))

    def start(self, *ids):
        for i in ids:
            self.network.inside(i, super().start, i)


def models_after(folder, **fit):
    with (
        TunNetwork(GRAPH.nodes, DELAY, LOSS, seed=5) as network,
        PeersOnHosts(network, folder, replace(FIT, **fit)) as peers,
    ):
        peers.start(0, 1, 2, 3)
        assert peers.ended() == [0] * 4
        assert network.carried > 1000
        assert network.lost > 0.03 * network.carried
        return peers.models()


def test_the_emulated_network_delays_and_loses_as_it_says():
    with TunNetwork(2, DELAY, LOSS, seed=1) as network:
        ends = [
            network.inside(host, socket.socket, socket.AF_INET, socket.SOCK_DGRAM)
            for host in range(2)
        ]
        with ends[0] as sender, ends[1] as receiver:
            receiver.bind((network.address(1), PORT))
            receiver.settimeout(10)
            for batch in range(20):  # one at a time, or the receiver's system drops some too
                begun, lost = time.monotonic(), network.lost
                for _ in range(50):
                    sender.sendto(b"packet", receiver.getsockname())
                while network.carried < 50 * (batch + 1):
                    time.sleep(0.001)
                receiver.recv(100)
                assert time.monotonic() - begun >= DELAY
                for _ in range(49 - (network.lost - lost)):
                    receiver.recv(100)
    assert 0.04 < network.lost / network.carried < 0.06


def test_strict_peers_come_to_the_simulators_models(tmp_path):
    rounds = 100
    models, ended = models_after(tmp_path / "mesh", mode="strict", rounds=rounds)
    assert ended == [rounds] * 4
    np.testing.assert_allclose(models, simulated(penalised(), GRAPH, rounds), rtol=0, atol=1e-10)


@pytest.mark.exhaustive  # strict ones show that messages come through
def test_tolerant_peers_come_to_the_optimum(tmp_path):
    fit = {"mode": "tolerant", "patience": 0.05, "tol": 1e-6, "rounds": 10**6}
    models, rounds = models_after(tmp_path / "mesh", **fit)
    assert max(rounds) < 10**6
    assert np.abs(models - ew.reference(penalised()).x).max() < 1e-5


@pytest.mark.soak
def test_strict_peers_notice_a_network_that_is_dead_and_go_on_when_it_is_back(tmp_path):
    rounds = 300
    with (
        TunNetwork(GRAPH.nodes, DELAY, 0.0, seed=5) as network,
        PeersOnHosts(
            network, tmp_path / "mesh", replace(FIT, mode="strict", rounds=rounds)
        ) as peers,
    ):
        peers.start(0, 1, 2, 3)
        for i in range(4):
            peers.until_round(i, 50)
        network.loss = 1.0
        time.sleep(15)  # twice what docs/peers.md says, for a machine that is busy
        assert [peers.said(i).count("is away") for i in range(4)] == GRAPH.degrees.tolist()
        network.loss = 0.0
        assert peers.ended() == [0] * 4
        models, ended = peers.models()
    assert ended == [rounds] * 4
    np.testing.assert_allclose(models, simulated(penalised(), GRAPH, rounds), rtol=0, atol=1e-10)
