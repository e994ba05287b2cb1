"""A relay in this process, and configurations of peers that reach each other by it alone."""

from contextlib import asynccontextmanager
from dataclasses import replace

from peer_process import free_ports

from edgewise.peers.relay.identity import certify, identity_in
from edgewise.peers.relay.server import Relay
from edgewise.peers.transport import relay_words
from edgewise.peers.transport.connections import connected as to_address
from edgewise.peers.transport.relayed_stream import RelayedStream
from edgewise.peers.transport.tls_contexts import TlsContexts


def by_relay(configs):
    """The same by a relay of their own, which is not there yet; and where it is to listen."""
    folder = next(iter(configs.values())).path.parent
    certify(folder, next(iter(configs.values())).mesh, 2)
    at = f"127.0.0.1:{free_ports(1)[0]}"
    relayed = {}
    for id, config in configs.items():
        around = [replace(n, address="127.0.0.1:9", relay=at) for n in config.neighbours]
        # nobody can listen there: who tries ends
        away = {"listen": "192.0.2.1:9", "neighbours": tuple(around), "relay": at}
        relayed[id] = replace(config, **away)
    return relayed, at


@asynccontextmanager
async def relaying(folder, at, limits=None):
    relay = Relay(identity_in(folder), at, limits)
    await relay.open()
    try:
        yield relay
    finally:
        await relay.close()


async def asks(config, at, wants=None):
    """What a relay answers this peer."""
    contexts = await TlsContexts(lambda: config).now()
    stream = await to_address(at, lambda: RelayedStream(1000, True), None)
    try:
        await stream.reach_relay(contexts, config.mesh)
        if wants is not None:
            await relay_words.say(stream, wants=wants)
        return await relay_words.heard(stream, 20)
    finally:
        await stream.close()
