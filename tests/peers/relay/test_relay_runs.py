"""A fit of peers that meet by a relay alone is the fit of those that reach each other."""

import asyncio
from dataclasses import replace

import jax
import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from memory_peers import run
from peer_ends import until
from peer_process import free_ports
from relay_ends import by_relay, relaying
from uneven import problem_of

import edgewise as ew
from edgewise.peers.config.peer_config import Fit
from edgewise.peers.node import peer as peer_module
from edgewise.peers.node.own_problem import one_node
from edgewise.peers.operations import mesh

pytestmark = pytest.mark.filterwarnings("ignore:.*has one neighbour")
ROUNDS = 120
GRAPH = ew.Graph.from_edges([(0, 1), (1, 2), (2, 0)])
FIT = Fit("saga-pd", weights="node", classes=(-1.0, 1.0), mode="strict", rounds=ROUNDS)


@pytest.fixture
def made(tmp_path):
    """Configurations by the folder of the run, and every peer's own problem."""
    shards = problem_of(4, 3).shards

    def make(name):
        folder = tmp_path / name
        there = mesh.create(folder, GRAPH, FIT, [()] * 3, lambda i: "127.0.0.1", 40000, 2).peers
        ports = free_ports(3)
        for i, config in there.items():
            around = [replace(n, address=f"127.0.0.1:{ports[n.id]}") for n in config.neighbours]
            there[i] = replace(config, listen=f"127.0.0.1:{ports[i]}", neighbours=tuple(around))
        return there

    def problem(config):
        with jax.enable_x64(True):
            return one_node(config, shards[config.id])

    return make, problem


class Run:
    """Peers as tasks, over TLS; one that is killed goes on from its checkpoint."""

    def __init__(self, configs, problem, monkeypatch):
        monkeypatch.setattr(peer_module, "stop_on_signals", lambda _: (asyncio.Event(), None))
        self.configs, self.problem, self.tasks, self.peers = configs, problem, {}, {}

    def start(self, *ids):
        for id in ids:
            config = self.configs[id]
            config.out.mkdir(exist_ok=True)
            self.peers[id] = peer_module.Peer(config)
            self.tasks[id] = asyncio.ensure_future(self.peers[id].run(self.problem(config)))

    async def until_round(self, round):
        def there():
            for task in self.tasks.values():
                assert not task.done(), task
            return min(getattr(peer, "round", 0) for peer in self.peers.values()) >= round

        await until(there)

    async def kill(self, id):
        self.tasks[id].cancel()
        await asyncio.gather(self.tasks[id], return_exceptions=True)

    async def models(self):
        results = await asyncio.gather(*(self.tasks[id] for id in sorted(self.tasks)))
        assert {result.rounds for result in results} == {ROUNDS}
        return np.stack([result.x for result in results])


def test_the_models_are_those_without_a_relay_bit_by_bit_also_if_it_and_a_peer_are_restarted(
    made, monkeypatch
):
    make, problem = made

    async def directly():
        peers = Run(make("direct"), problem, monkeypatch)
        peers.start(0, 1, 2)
        return await peers.models()

    async def relayed():
        configs, at = by_relay(make("relayed"))
        # one edge is direct: only two of the three are hidden from each other
        configs[0], configs[1] = (
            replace(
                c,
                listen=own.listen,
                neighbours=tuple(
                    own.neighbours[k] if n.id == 1 - c.id else n for k, n in enumerate(c.neighbours)
                ),
            )
            for c, own in ((configs[i], make_direct[i]) for i in (0, 1))
        )
        peers = Run(configs, problem, monkeypatch)
        folder = configs[0].path.parent
        async with relaying(folder, at):
            peers.start(0, 1, 2)
            await peers.until_round(15)
        async with relaying(folder, at) as relay:
            await peers.until_round(30)
            await peers.kill(2)
            peers.start(2)
            models = await peers.models()
            assert set(relay.passed) | set(relay.joined) == {(0, 2), (2, 0), (1, 2), (2, 1)}
        return models

    make_direct = make("both")
    assert (run(directly()) == run(relayed())).all()
