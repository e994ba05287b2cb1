"""Who is joined to whom by a relay, who is not, and what is done for nobody."""

import asyncio
import logging
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from peer_ends import configs_of, opened, until
from relay_ends import asks, by_relay, relaying

from edgewise.errors import InputError
from edgewise.peers.config import certificates
from edgewise.peers.config.identity import Identity
from edgewise.peers.operations import authority, keys
from edgewise.peers.relay import server
from edgewise.peers.relay.identity import KEY, PEM, certify, identity_in
from edgewise.peers.relay.limits import Limits
from edgewise.peers.transport import relay_words
from edgewise.peers.transport.relayed_stream import RelayedStream
from edgewise.peers.transport.tls_contexts import TlsContexts

pytestmark = pytest.mark.filterwarnings("ignore:.*has one neighbour")


def connected(*ends):
    return all(link.connected for end in ends for link in end.links.values())


async def talk_a_while(a, b):
    for round in range(3):
        a.post(1, round, np.full(5, round + 1.0))
        b.post(0, round, np.full(5, round - 1.0))
    await until(lambda: a.links[1].has_message(2) and b.links[0].has_message(2))
    assert (b.links[0].take_message(0) == 1).all()
    assert (a.links[1].take_message(0) == -1).all()


def test_two_that_nobody_can_reach_hear_each_other_and_the_relay_hears_nothing(
    tmp_path, monkeypatch, caplog
):
    caplog.set_level(logging.INFO)
    configs, at = by_relay(configs_of(tmp_path))
    overheard = []
    real = server.TlsStream.read_some

    async def listen_in(stream, most):
        overheard.append(data := await real(stream, most))
        return data

    monkeypatch.setattr(server.TlsStream, "read_some", listen_in)

    async def talk():
        async with relaying(tmp_path, at) as relay, opened(*configs.values()) as (a, b):
            await until(lambda: connected(a, b))
            await talk_a_while(a, b)
            assert not a.connections.server
            assert {s.id for s in relay.joined.values()} == {0, 1}

    asyncio.run(talk())
    passed = b"".join(overheard)
    assert len(passed) > 2000
    for secret in (b"incarnation", b"resume_at", b"EW\x04\x01", np.full(5, 3.0).tobytes()):
        assert secret not in passed
    assert "peer 0 at 127.0.0.1" in caplog.text
    counts = [r.passed for r in caplog.records if "are parted" in r.getMessage()]
    assert sum(counts[-1].values()) == len(passed)


def test_a_relay_cannot_take_the_place_of_a_neighbour(tmp_path, caplog):
    """One that answers by itself, with the only certificate that it has."""
    configs, at = by_relay(configs_of(tmp_path))

    async def talk():
        contexts = await TlsContexts(lambda: identity_in(tmp_path)).now()

        class Lying(server.Relay):
            async def serve(self, call):
                await relay_words.say(call.stream, joined=True)
                inner = RelayedStream.begin_inner
                call.stream.__class__ = RelayedStream
                inner(call.stream, call.id == 1)
                await call.stream.handshake(contexts.caller if call.id else contexts.called)
                await asyncio.sleep(1)

        relay = Lying(identity_in(tmp_path), at)
        await relay.open()
        async with opened(*configs.values()) as (a, b):
            await until(lambda: caplog.text.count("peer-1") and caplog.text.count("peer-0"))
            assert "relay.mesh-" in caplog.text
            assert "is there: give the address of peer-1" in caplog.text
            assert not a.links[1].streams
            assert not b.links[0].streams
        await relay.close()

    asyncio.run(talk())


def test_nobody_else_is_joined(tmp_path, caplog):
    """A peer of another network, one of the same authority but another network's name, and a third
    peer that wants to be in the place of one of the two."""
    three, at = by_relay(configs_of(tmp_path / "three", nodes=3))
    others = configs_of(tmp_path / "others")
    signer = authority.authority_in(tmp_path / "three")
    key, certificate = certificates.issue(*signer, "mesh-elsewhere", 0, 2)
    paths = [tmp_path / name for name in ("elsewhere.key", "elsewhere.pem")]
    certificates.write_secret(paths[0], key)
    certificates.replace_public(paths[1], certificate)
    elsewhere = replace(three[0], key=paths[0], certificate=paths[1])
    quick = Limits(waits=0.5)

    async def talk():
        async with relaying(tmp_path / "three", at, quick) as relay:
            with pytest.raises((OSError, EOFError)):
                await asks(replace(others[0], authority=three[0].authority), at, 1)
            with pytest.raises((OSError, EOFError)):
                await asks(elsewhere, at, 1)
            assert "peer-0.mesh-elsewhere.edgewise is no peer of this network" in caplog.text
            first = asyncio.ensure_future(asks(three[0], at, 1))
            await until(lambda: relay.waiting)
            third = await asks(three[2], at, 1), await asks(three[2], at, 0)
            for answer in (*third, await first):
                assert "has not called it" in answer["refused"]
            assert "wants no peer" in (await asks(three[0], at, 0))["refused"]
            assert not relay.passed

    asyncio.run(talk())


def test_a_restart_of_the_relay_is_survived(tmp_path):
    configs, at = by_relay(configs_of(tmp_path))

    async def talk():
        async with opened(*configs.values()) as (a, b):
            for starts in (1, 2):
                async with relaying(tmp_path, at):
                    await until(lambda n=starts: a.links[1].streams == b.links[0].streams == n)
                await until(lambda: not a.links[1].connected and not b.links[0].connected)
            async with relaying(tmp_path, at):
                await until(lambda: connected(a, b))
                await talk_a_while(a, b)

    asyncio.run(talk())


def test_who_is_revoked_is_hung_up_on_and_not_joined_again(tmp_path, caplog):
    configs, at = by_relay(configs_of(tmp_path))

    async def talk():
        async with relaying(tmp_path, at), opened(*configs.values()) as (a, b):
            await until(lambda: connected(a, b))
            keys.revoke(tmp_path, 0)
            await until(lambda: not b.links[0].connected)
            await until(lambda: "the relay says that the certificate of peer-0" in caplog.text)
            assert b.links[0].streams == 1

    asyncio.run(talk())


def test_a_relay_whose_certificate_is_a_peers_is_none(tmp_path, caplog):
    configs, at = by_relay(configs_of(tmp_path, nodes=3))
    posing = identity_in(tmp_path)
    posing = replace(posing, certificate=configs[2].certificate, key=configs[2].key)
    assert isinstance(posing, Identity)

    async def talk():
        relay = server.Relay(posing, at)
        await relay.open()
        async with opened(configs[0]):
            await until(lambda: "peer-2" in caplog.text and "address of relay." in caplog.text)
        await relay.close()

    asyncio.run(talk())


# --- its files ------------------------------------------------------------------------------------


def test_a_relays_files_say_what_is_missing_and_no_peer_is_named_like_one(tmp_path):
    configs = configs_of(tmp_path)
    with pytest.raises(InputError, match=r"relay\.pem cannot be read .*--make"):
        identity_in(tmp_path)
    certify(tmp_path, configs[0].mesh, 2)
    assert identity_in(tmp_path).mesh == configs[0].mesh
    assert (tmp_path / KEY).stat().st_mode & 0o077 == 0
    names = certificates.names_in((tmp_path / PEM).read_bytes())
    assert certificates.id_of(names, configs[0].mesh) is None
    (tmp_path / PEM).write_bytes(configs[1].certificate.read_bytes())
    with pytest.raises(InputError, match="and of no relay"):
        identity_in(tmp_path)
