"""One number on two hosts: the first is kept, the second is told why not, and one that was started
again is taken at once."""

import asyncio
import logging
from types import SimpleNamespace

import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from peer_ends import End, configs_of, until

from edgewise.peers.transport import connections, doubles
from edgewise.peers.transport.frames import REFUSAL, Frame, MessageFormat, decode, encode

FORMAT = MessageFormat(1, 5, "float64")
pytestmark = pytest.mark.filterwarnings("ignore:.*has one neighbour")


class Start(End):
    """One start of a peer."""

    def __init__(self, config, incarnation, strict=False):
        super().__init__(config, strict=strict)
        self.incarnation = incarnation

    def greet(self, link):
        return {"resume_at": 0, "incarnation": self.incarnation}


@pytest.fixture
def quick(monkeypatch):
    """Who is alive is known after half a second: heartbeats and all else as quick."""
    monkeypatch.setattr(doubles, "ALIVE", 0.5)
    monkeypatch.setattr("edgewise.peers.transport.heartbeat.LOOK", 0.05)
    monkeypatch.setattr("edgewise.peers.transport.heartbeat.BEAT", 0.1)


async def between(configs, work):
    """Peer 1 runs, and 0 twice, the second one once the first is connected."""
    target = Start(configs[1], "of 1")
    first, second = Start(configs[0], "first"), Start(configs[0], "second")
    second.config = second.connections.config = configs["elsewhere"]
    opened = []
    try:
        for one in (target, first):
            opened.append(one)
            await one.connections.open()
        await until(lambda: target.links[0].connected)
        await work(target, first, second, opened)
    finally:
        for one in opened:
            await one.connections.close()


@pytest.fixture
def configs(tmp_path):
    from dataclasses import replace

    from peer_process import free_ports

    made = configs_of(tmp_path)
    made["elsewhere"] = replace(made[0], listen=f"127.0.0.1:{free_ports(1)[0]}")
    return made


def test_the_second_of_two_is_refused_and_both_sides_say_so(configs, quick, caplog):
    async def work(target, first, second, opened):
        opened.append(second)
        await second.connections.open()
        await until(lambda: second.connections.failure is not None)
        assert target.links[0].incarnation == "first"
        assert target.links[0].streams == first.links[1].streams == 1
        why = str(second.connections.failure)
        assert why.startswith("peer 1 refuses this peer: another peer 0 is connected, from 127.0.")
        assert why.endswith("end one of the two")

    with caplog.at_level(logging.WARNING):
        asyncio.run(between(configs, work))
    assert "peer 0 runs twice: it is connected from 127.0.0.1:" in caplog.text
    assert "peer 1 refuses this peer: another peer 0" in caplog.text


def test_one_that_was_started_again_is_taken_as_soon_as_the_old_stream_ends(configs, monkeypatch):
    """It takes no longer than to find out that the old one is dead, however long that would be."""
    monkeypatch.setattr(doubles, "ALIVE", 60.0)

    async def work(target, first, second, opened):
        opened.append(second)
        await second.connections.open()
        await until(lambda: second.links[1].connected)  # it is held, and does not know
        await asyncio.sleep(0.3)
        assert target.links[0].incarnation == "first"
        opened.remove(first)
        await first.connections.close()
        await until(lambda: target.links[0].incarnation == "second")
        assert second.connections.failure is None
        assert target.links[0].connected

    asyncio.run(between(configs, work))


def test_the_same_start_takes_its_own_place_at_once(configs, monkeypatch):
    monkeypatch.setattr(doubles, "ALIVE", 60.0)

    async def work(target, first, second, opened):
        second.incarnation = "first"
        opened.append(second)
        await second.connections.open()
        await until(lambda: target.links[0].streams >= 2)

    asyncio.run(between(configs, work))


# --- who ends -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strict", "spoken", "ends"), [(False, False, True), (False, True, False), (True, True, True)]
)
def test_one_neighbours_word_ends_no_tolerant_run_that_is_under_way(strict, spoken, ends):
    woken = []
    link = SimpleNamespace(
        other=2, strict=strict, wakeup=SimpleNamespace(set=lambda: woken.append(1))
    )
    links = {2: SimpleNamespace(was_spoken_to=False), 3: SimpleNamespace(was_spoken_to=spoken)}
    own = SimpleNamespace(links=links, failure=None)
    connections.Connections.refused_by(own, link, doubles.Refused("another peer 0"))
    assert (own.failure is not None) == bool(woken) == ends


@pytest.mark.parametrize("text", ["a\nb", "x" * 500, "\x1b[31m"])
def test_what_somebody_else_says_is_shown_as_it_can_be(text):
    frame = Frame(REFUSAL, sender=2, receiver=1, payload=text.encode())
    shown = str(doubles.refusal_in(decode(encode(frame), 2, 1, FORMAT)))
    assert shown.isprintable()
    assert len(shown) <= 2 * doubles.MAX_SHOWN
