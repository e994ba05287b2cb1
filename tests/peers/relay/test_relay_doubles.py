"""One number on two hosts that call a relay, and what its word about that can do."""

import asyncio
from dataclasses import replace
from itertools import pairwise

import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from peer_ends import configs_of, opened, until
from relay_ends import by_relay, relaying

from edgewise.peers.relay import server
from edgewise.peers.relay.identity import identity_in
from edgewise.peers.transport import relay_words
from edgewise.peers.transport.failure_reasons import text_of, words_of
from edgewise.peers.transport.relay_words import NoRelay
from edgewise.peers.transport.relayed_stream import RelayRefusal

pytestmark = pytest.mark.filterwarnings("ignore:.*has one neighbour")


def test_a_peer_that_was_started_again_is_joined_and_a_second_one_is_told(
    tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(server, "ALIVE", 0.2)
    monkeypatch.setattr("edgewise.peers.transport.heartbeat.BEAT", 0.3)
    monkeypatch.setattr("edgewise.peers.transport.heartbeat.LOOK", 0.1)
    configs, at = by_relay(configs_of(tmp_path))

    async def talk():
        async with relaying(tmp_path, at), opened(configs[1]) as (b,):
            async with opened(configs[0]):
                await until(lambda: b.links[0].streams == 1)
            async with opened(configs[0]) as (again,):
                await until(lambda: b.links[0].streams == 2)
                async with opened(configs[0]) as (second,):
                    told = "the relay says that another peer 0 is joined to it, from 127.0.0.1"
                    await until(lambda: told in caplog.text)
                    assert second.connections.failure is None
                    assert not second.links[1].streams
                assert again.links[1].connected
                assert b.links[0].streams == 2

    asyncio.run(talk())


@pytest.mark.parametrize("strict", [True, False])
def test_no_word_of_a_relay_ends_a_run_and_it_is_asked_again_later(
    tmp_path, monkeypatch, caplog, strict
):
    """A peer that nobody has spoken to, and a strict one: both would end at a neighbour's word."""
    monkeypatch.setattr("edgewise.peers.transport.connections.REFUSED_PAUSE", 0.5)
    monkeypatch.setattr("edgewise.peers.transport.connections.LONGEST_PAUSE", 0.01)
    configs, at = by_relay(configs_of(tmp_path))
    heard_at = []

    class Lying(server.Relay):
        async def serve(self, call):
            heard_at.append(asyncio.get_running_loop().time())
            await relay_words.say(call.stream, refused=f"lie {len(heard_at)} %s", twice=True)

    async def talk():
        relay = Lying(identity_in(tmp_path), at)
        await relay.open()
        async with opened(configs[0], strict=strict) as (a,):
            await until(lambda: len(heard_at) == 3)
            assert a.connections.failure is None
        await relay.close()

    asyncio.run(talk())
    assert min(b - a for a, b in pairwise(heard_at)) >= 0.5
    lies = [r for r in caplog.records if "the relay says that lie" in r.getMessage()]
    assert len(lies) >= 2
    assert len({record.msg for record in lies}) == 1  # one kind of line, whatever it says


def test_words_of_the_other_side_are_no_part_of_a_format():
    failures = [RelayRefusal("it % is so", twice=False), NoRelay("it says %d bytes", 7)]
    for failure in failures:
        assert text_of(failure) % words_of(failure) == str(failure)
    assert "so" not in text_of(failures[0])


class Silent:
    """A stream of which nothing more is heard."""

    hung_up = resting = False
    address = "192.0.2.7:1"

    def __init__(self, ago=0.0):
        self.heard_at = server.time.monotonic() - ago
        self.over = asyncio.get_running_loop().create_future()
        self.written = b""

    async def write(self, data):
        self.written += data

    def drop(self, why):
        self.over.set_result(None)


@pytest.mark.parametrize(
    ("ago", "waits", "ends"),
    [(7.0, 60.0, "dropped"), (2.0, 0.3, "has not called"), (-9.0, 60.0, "another peer 0")],
    ids=["dead", "not known", "alive"],
)
def test_a_joined_twin_counts_while_it_is_heard_and_is_dropped_when_dead(
    tmp_path, monkeypatch, ago, waits, ends
):
    """ago: seconds since it was heard last; negative where it is being heard still."""
    monkeypatch.setattr(server, "LOOK", 0.02)
    _, at = by_relay(configs_of(tmp_path))
    limits = server.Limits(waits=waits)

    async def talk():
        relay = server.Relay(identity_in(tmp_path), at, limits)
        twin, call = (server.Call(Silent(ago), 0, 1), server.Call(Silent(), 0, 1))
        relay.joined[call.ends] = twin
        waiting = asyncio.ensure_future(relay.wait(call))
        if ends == "dropped":
            await asyncio.wait_for(twin.stream.over, 30)
            del relay.joined[call.ends]
            call.partner.set_result(None)
            assert await waiting
        else:
            assert not await waiting
            assert ends in call.stream.written.decode(errors="replace")
            assert not twin.stream.over.done()

    asyncio.run(talk())


def test_a_relays_alert_is_told_by_its_sentence(tmp_path, caplog):
    """Its verdict on this peer's certificate comes once the peer takes the handshake for done."""
    configs, at = by_relay(configs_of(tmp_path / "three"))
    others = configs_of(tmp_path / "others")
    stranger = replace(configs[0], key=others[0].key, certificate=others[0].certificate)

    async def talk():
        async with relaying(tmp_path / "three", at), opened(stranger):
            told = "it takes this peer's certificate for one of another authority"
            await until(lambda: told in caplog.text)

    asyncio.run(talk())
