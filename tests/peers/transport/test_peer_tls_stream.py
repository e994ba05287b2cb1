"""Streams that go dead, are slow, or end: what is found out, and what gets through."""

import asyncio
import logging
import time
from contextlib import asynccontextmanager

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from line import Line
from peer_ends import configs_of, elsewhere, opened, until

from edgewise.peers.transport import heartbeat, tls_stream
from edgewise.peers.transport.frames import FAREWELL, Frame, encode

pytestmark = pytest.mark.filterwarnings("ignore:.*has one neighbour")


@pytest.fixture
def quick(monkeypatch):
    """Heartbeats and the patience with silence, ten times as quick."""
    for name in ("LOOK", "BEAT", "DEAD"):
        monkeypatch.setattr(heartbeat, name, getattr(heartbeat, name) / 10)


@asynccontextmanager
async def over_a_line(folder, **options):
    """Two ends that have met, and the line between them."""
    configs = configs_of(folder)
    with Line(configs[1].listen) as line:
        there = elsewhere(configs[0], 1, line.address)
        async with opened(there, configs[1], **options) as (a, b):
            await until(lambda: a.links[1].connected and b.links[0].connected)
            yield a.links[1], b.links[0], line, (a, b)


def test_a_dead_line_is_found_in_five_to_eight_seconds():
    """Of whole looks, the last byte having come just after one or just before the next."""
    assert heartbeat.DEAD >= 5
    assert heartbeat.DEAD + heartbeat.LOOK <= 8
    assert heartbeat.BEAT + 2 * heartbeat.LOOK < heartbeat.DEAD  # one that is late is borne


def test_both_ends_find_out_that_a_line_takes_bytes_and_passes_none(tmp_path, quick, caplog):
    async def talk():
        async with over_a_line(tmp_path) as (there, back, line, _):
            with line.held():
                since = time.monotonic()
                await until(lambda: not (there.connected or back.connected))
                assert 0.4 < time.monotonic() - since < 5
            await until(lambda: there.connected and back.connected)
        warned = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
        for id in (0, 1):
            assert f"peer {id} is away: nothing was heard of it for 1 s" in warned

    asyncio.run(talk())


def test_idle_streams_live_on_and_their_heartbeats_are_no_messages(tmp_path, quick):
    async def talk():
        async with over_a_line(tmp_path) as (there, back, line, (a, _)):
            counted, passed = (there.bytes_sent, back.bytes_heard), line.passed
            await asyncio.sleep(1.5)  # more than twice what a silence may last
            assert (there.streams, back.streams) == (1, 1)
            assert (there.bytes_sent, back.bytes_heard) == counted
            assert 2 * 56 < line.passed - passed < 3000
            assert time.monotonic() - back.last_heard < 0.7
            a.post(1, 0, np.ones(5))
            await until(lambda: back.has_message(0))

    asyncio.run(talk())


def test_a_frame_that_comes_slowly_is_no_silence(tmp_path, quick):
    async def talk():
        async with over_a_line(tmp_path, size=50_000) as (_, back, line, (a, _)):
            line.pace = 2e5
            begun = time.monotonic()
            a.post(1, 0, np.arange(50_000))
            await until(lambda: back.has_message(0))
            assert time.monotonic() - begun > 2 * heartbeat.DEAD
            assert back.streams == 1
            assert (back.take_message(0) == np.arange(50_000)).all()

    asyncio.run(talk())


def test_the_time_that_this_process_itself_was_stopped_is_no_silence(tmp_path, quick):
    async def talk():
        async with over_a_line(tmp_path) as (there, back, _, _):
            for _ in range(2):
                time.sleep(2 * heartbeat.DEAD)  # neither end can do anything
                await asyncio.sleep(0.3)
            assert (there.streams, back.streams) == (1, 1)

    asyncio.run(talk())


def test_who_writes_waits_for_who_does_not_read_and_holds_little(tmp_path):
    """A process that is stopped, for the system takes bytes for it until its buffers are full."""
    size = 20_000

    async def talk():
        async with over_a_line(tmp_path, size=size) as (there, back, line, (a, _)):
            sent = there.bytes_sent
            with line.held():
                for round in range(200):
                    a.post(1, round, np.full(size, round))
                await asyncio.sleep(0.5)
                gone = there.bytes_sent - sent
                assert gone < 100 * 8 * size  # the rest waits as frames, which strict peers keep
            await until(lambda: len(back.inbox) == 200)
            assert all((back.take_message(r) == r).all() for r in (0, 77, 199))

    asyncio.run(talk())


def test_what_was_written_before_the_end_gets_through(tmp_path, caplog):
    """And a normal goodbye is told from a neighbour that is away."""
    caplog.set_level(logging.INFO)

    async def talk():
        async with over_a_line(tmp_path, size=20_000) as (there, back, _, (a, b)):
            for round in range(20):
                a.post(1, round, np.full(20_000, round))
                b.post(0, round, np.full(20_000, round))
            there.post_farewell(encode(Frame(FAREWELL, 20, 0, 20, sender=0, receiver=1)))
            await until(lambda: there.farewell_sent)
            await a.connections.close()
            await until(lambda: not back.connected)
            assert len(back.inbox) == 20
            assert back.gone
        assert "peer 0 has finished, and hung up" in caplog.messages
        assert not any("is away" in message for message in caplog.messages)

    asyncio.run(talk())


def test_one_that_hangs_up_without_a_farewell_is_away(tmp_path, caplog):
    async def talk():
        async with over_a_line(tmp_path) as (_, back, _, (a, _)):
            await a.connections.close()
            await until(lambda: not back.connected)
        assert "peer 0 is away: it hung up" in caplog.messages

    asyncio.run(talk())


def test_who_does_not_hang_up_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(tls_stream, "PARTING", 0.1)

    async def talk():
        async with over_a_line(tmp_path) as (_, _, line, (a, _)):
            with line.held():
                since = time.monotonic()
                await a.connections.close()
                assert time.monotonic() - since < 5

    asyncio.run(talk())
