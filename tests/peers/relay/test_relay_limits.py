"""What a relay does for whom, and no more."""

import asyncio
import logging
import os

import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from peer_ends import configs_of, opened, until
from relay_ends import asks, by_relay, relaying

from edgewise.peers.relay import server
from edgewise.peers.relay.limits import Allowances, Limits
from edgewise.peers.transport.connections import connected as to_address
from edgewise.peers.transport.relayed_stream import RelayedStream
from edgewise.peers.transport.tls_contexts import TlsContexts

pytestmark = pytest.mark.filterwarnings("ignore:.*has one neighbour")


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


def test_many_behind_one_address_that_call_again_are_all_let_in(monkeypatch):
    """200 at once where 100 may come, and 20 a second then; the others call each second."""
    clock = [0.0]
    monkeypatch.setattr("edgewise.peers.relay.limits.time.monotonic", lambda: clock[0])
    allowed = Allowances(20.0, 100.0)
    outside = 200
    for second in range(10):
        clock[0] = float(second)
        outside -= sum(allowed.admits("address") for _ in range(outside))
    assert not outside
    assert not any([allowed.admits("other") for _ in range(300)][100:])


def test_a_look_at_who_is_revoked_that_fails_is_not_the_last(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(server, "LOOK", 0.01)
    _, at = by_relay(configs_of(tmp_path))

    async def talk():
        async with relaying(tmp_path, at) as relay:
            looks = []

            async def fails():
                looks.append(1)
                raise RuntimeError("odd")

            relay.drop_revoked = fails
            await until(lambda: len(looks) > 2)
            assert not relay.looking.done()
            assert "who is revoked cannot be looked up: RuntimeError('odd')" in caplog.text

    asyncio.run(talk())
