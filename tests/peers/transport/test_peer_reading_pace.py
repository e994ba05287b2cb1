"""A neighbour that sends fast takes a part of a peer's time, and one that keeps pace waits for
nothing."""

import asyncio

import pytest

from edgewise.peers.transport import reading_pace
from edgewise.peers.transport.reading_pace import FREE, PART, WHOLE_COST, ReadingPace

COST = 50e-6  # seconds that a frame takes once it is there


class Clock:
    """Time that goes on with what is read and waited for."""

    def __init__(self, monkeypatch):
        self.now = self.waited = 0.0
        monkeypatch.setattr(reading_pace.time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(reading_pace.asyncio, "sleep", self.sleep)

    async def sleep(self, seconds):
        self.now += seconds
        self.waited += seconds

    async def read(self, pace, round, cost=COST):
        begun = self.now
        self.now += cost
        await pace.spent(begun, round)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def test_a_flood_takes_a_part_of_the_time(clock):
    async def flood():
        pace = ReadingPace()
        for _ in range(20_000):
            await clock.read(pace, 0)
        return 20_000 * COST * WHOLE_COST / clock.waited

    assert asyncio.run(flood()) == pytest.approx(PART, rel=0.02)


def test_a_few_frames_a_round_wait_for_nothing(clock):
    async def keep_pace():
        pace = ReadingPace()
        for round in range(5000):
            for _ in range(FREE):
                await clock.read(pace, round)

    asyncio.run(keep_pace())
    assert clock.waited == 0


def test_a_neighbour_that_is_much_quicker_is_read_as_fast_as_it_sends(clock):
    """200 rounds a second, where this peer takes a second for one of its own."""

    async def slow():
        pace, behind = ReadingPace(), 0.0
        for n in range(2000):
            clock.now = max(clock.now, n / 200)
            await clock.read(pace, n // 200)
            behind = max(behind, clock.now - n / 200)
        return behind

    assert asyncio.run(slow()) < 0.05


def test_one_large_frame_holds_nobody_up_for_long(clock):
    async def large():
        pace = ReadingPace()
        for _ in range(FREE + 1):
            await clock.read(pace, 0, cost=1.0)

    asyncio.run(large())
    assert clock.waited <= reading_pace.LONGEST
