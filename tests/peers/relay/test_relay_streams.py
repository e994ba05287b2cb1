"""Who is joined to whom by a relay, who is not, and what is done for nobody."""

import asyncio
import logging
import os
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from peer_ends import configs_of, opened, until
from relay_ends import by_relay, relaying

from edgewise.errors import InputError
from edgewise.peers.config import certificates
from edgewise.peers.config.identity import Identity
from edgewise.peers.operations import authority, keys
from edgewise.peers.relay import server
from edgewise.peers.relay.identity import KEY, PEM, certify, identity_in
from edgewise.peers.relay.limits import Allowances, Limits
from edgewise.peers.transport import relay_words
from edgewise.peers.transport.connections import connected as to_address
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


def test_a_peer_that_was_started_again_is_joined_and_a_second_one_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "TWICE_AFTER", 1.0)
    configs, at = by_relay(configs_of(tmp_path))

    async def talk():
        async with relaying(tmp_path, at), opened(configs[1]) as (b,):
            async with opened(configs[0]):
                await until(lambda: b.links[0].streams == 1)
            async with opened(configs[0]) as (again,):
                await until(lambda: b.links[0].streams == 2)
                async with opened(configs[0]) as (second,):
                    await until(lambda: second.connections.failure)
                assert "another peer 0 is joined to it" in str(second.connections.failure)
                assert connected(again, b)

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


# --- limits ---------------------------------------------------------------------------------------


def test_the_silent_the_many_and_the_talkative_are_bounded(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(server, "WORDS_WITHIN", 0.3)
    configs, at = by_relay(configs_of(tmp_path, nodes=3))
    most = Limits(connections=3, of_a_peer=2, waits=5.0)

    async def talk():
        async with relaying(tmp_path, at, most) as relay:
            with pytest.raises((OSError, EOFError)):
                await asks(configs[0], at)  # it says nothing
            assert "it said nothing within" in caplog.text
            monkeypatch.setattr(server, "WORDS_WITHIN", 20.0)
            stream = await to_address(at, lambda: RelayedStream(1000, True), None)
            contexts = await TlsContexts(lambda: configs[0]).now()
            await stream.reach_relay(contexts, configs[0].mesh)
            await stream.write(b"\xff\xff" + os.urandom(100))
            await until(lambda: "says 65535 bytes where 1000 are the most" in caplog.text)
            await stream.close()
            waiting = [asyncio.ensure_future(asks(configs[0], at, k)) for k in (1, 2)]
            await until(lambda: len(relay.calls) == 2)
            assert "peer 0 has 2 connections already" in (await asks(configs[0], at, 7))["refused"]
            waiting.append(asyncio.ensure_future(asks(configs[1], at, 2)))
            await until(lambda: len(relay.calls) == 3)
            assert "can take no more" in (await asks(configs[2], at, 0))["refused"]
            for each in waiting:
                each.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(talk())


def test_an_edge_that_says_nothing_is_parted(tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr("edgewise.peers.transport.heartbeat.BEAT", 100.0)
    configs, at = by_relay(configs_of(tmp_path))

    async def talk():
        async with relaying(tmp_path, at, Limits(idle=0.4)), opened(*configs.values()):
            await until(lambda: "(idle)" in caplog.text)

    asyncio.run(talk())


def test_calls_from_one_address_and_bytes_of_one_peer_have_a_rate(tmp_path, monkeypatch, caplog):
    clock = [0.0]
    monkeypatch.setattr("edgewise.peers.relay.limits.time.monotonic", lambda: clock[0])
    allowed = Allowances(10.0, 20.0, most=2)
    assert [allowed.taken("a", 10) for _ in range(3)] == [0, 0, 1]
    assert allowed.taken("b", 10) == 0
    clock[0] += 2.0
    assert [allowed.taken("a", 10) for _ in range(2)] == [0, 1]
    allowed.taken("c", 1)
    allowed.taken("d", 1)
    assert set(allowed.left) == {"c", "d"}
    monkeypatch.undo()
    _, at = by_relay(configs_of(tmp_path))

    async def talk():
        async with relaying(tmp_path, at, Limits(calls_per_second=0.2)) as relay:
            for _ in range(3):
                _, writer = await asyncio.open_connection(*at.split(":"))
                writer.close()
            await until(lambda: "too many calls from 127.0.0.1" in caplog.text)
            assert len(relay.callers.calls) <= 1

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
