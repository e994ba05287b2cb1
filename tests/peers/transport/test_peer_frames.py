"""Frames between peers: what goes in comes out, and nothing else comes in."""

import numpy as np
import pytest

from edgewise.peers.transport.frames import (
    FAREWELL,
    GREETING,
    HEADER,
    MAX_TEXT,
    NEVER,
    VECTORS,
    VERSION,
    Frame,
    MessageFormat,
    ProtocolError,
    decode,
    encode,
    max_frame_bytes,
)
from edgewise.peers.transport.links import MAX_SKIPPED, Link
from edgewise.peers.transport.turns import TURNS, ahead, next_turn
from edgewise.peers.transport.wakeup import Wakeup

NUMBERS = np.random.default_rng(0).standard_normal((2, 5))
FORMAT = MessageFormat(2, 5, "float64")
AGREED = {"sender": 3, "receiver": 1, "format": FORMAT}
FRAME = Frame(VECTORS, 17, 10, 40, 2, 3, 1, NUMBERS)
HEARD = HEADER.unpack(encode(FRAME)[: HEADER.size])


def with_head(place, value):
    fields = [*HEARD[:place], value, *HEARD[place + 1 :]]
    return HEADER.pack(*fields) + encode(FRAME)[HEADER.size :]


def assert_same(frame, other):
    assert frame._replace(payload=b"") == other._replace(payload=b"")
    assert np.array_equal(frame.payload, other.payload)


@pytest.mark.parametrize("wire", ["float32", "float64"])
def test_numbers_come_out_as_they_went_in(wire):
    numbers = NUMBERS.astype(wire)
    data = encode(FRAME._replace(payload=numbers), wire)
    got = decode(data, 3, 1, FORMAT._replace(wire=wire))
    assert_same(got, FRAME._replace(payload=numbers))
    assert got.payload.dtype == wire
    assert len(data) == HEADER.size + numbers.nbytes


@pytest.mark.parametrize("kind", [GREETING, FAREWELL])
def test_text_comes_out_as_it_went_in(kind):
    frame = Frame(kind, 4, 3, NEVER, 1, 3, 1, b'{"a": 1}')
    assert decode(encode(frame), **AGREED) == frame


def test_the_largest_frame_is_as_large_as_one_may_get():
    text = Frame(GREETING, sender=3, receiver=1, payload=b"x" * MAX_TEXT)
    assert len(encode(text)) == max_frame_bytes(FORMAT) == HEADER.size + MAX_TEXT
    assert decode(encode(text), **AGREED) == text
    assert max_frame_bytes(MessageFormat(2, 10**6, "float32")) == HEADER.size + 8 * 10**6
    with pytest.raises(ProtocolError, match="wrong length"):
        decode(encode(text._replace(payload=text.payload + b"x")), **AGREED)


def mutated(rng, data):
    """Bytes changed, cut off, put in or doubled."""
    data, at = bytearray(data), int(rng.integers(len(data)))
    match rng.integers(4):
        case 0:
            for place in rng.integers(len(data), size=rng.integers(1, 5)):
                data[place] ^= int(rng.integers(1, 256))
        case 1:
            del data[at:]
        case 2:
            data[at:at] = rng.bytes(int(rng.integers(1, 40)))
        case _:
            data += data[at:]
    return bytes(data)


def test_a_thousand_wrong_frames_are_refused_or_are_what_they_say():
    rng, refused = np.random.default_rng(9), 0
    hello = encode(Frame(GREETING, sender=3, receiver=1, payload=b'{"resume_at": 0}'))
    for trial in range(1000):
        if trial % 4 == 0:
            data = rng.bytes(int(rng.integers(0, 3 * HEADER.size)))
        elif trial % 4 == 1:
            data = encode(FRAME)[: HEADER.size] + rng.bytes(int(rng.integers(0, 120)))
        else:
            data = mutated(rng, encode(FRAME) if trial % 4 == 2 else hello)
        try:
            frame = decode(data, **AGREED)
        except ProtocolError:
            refused += 1
        else:
            assert encode(frame) == data  # other numbers, but a frame through and through
    assert refused > 700


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"sender": 2}, "from 3 to 1, not from 2 to 1"),
        ({"receiver": 0}, "from 3 to 1, not from 3 to 0"),
        ({"format": FORMAT._replace(vectors=1)}, "2 vectors of 5 numbers"),
        ({"format": FORMAT._replace(size=6)}, "2 vectors of 5 numbers"),
        ({"format": FORMAT._replace(wire="float32")}, "precision 2"),
    ],
)
def test_frames_that_were_not_agreed_on(other, reason):
    with pytest.raises(ProtocolError, match=reason):
        decode(encode(FRAME), **AGREED | other)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1.7e308, -1e101])
def test_numbers_that_are_not_finite(wrong):
    numbers = NUMBERS.copy()
    numbers[1, 3] = wrong
    with pytest.raises(ProtocolError, match="not finite"):
        decode(encode(FRAME._replace(payload=numbers)), **AGREED)


@pytest.mark.parametrize("change", [-8, -1, 1, 8])
def test_more_or_fewer_bytes_than_the_head_says(change):
    data = encode(FRAME) + bytes(max(change, 0))
    with pytest.raises(ProtocolError, match="bytes for 2 x 5 numbers"):
        decode(data[: len(data) + min(change, 0)], **AGREED)


@pytest.mark.parametrize(("place", "value"), [(0, b"EV"), (1, VERSION + 1), (2, 0), (2, 8)])
def test_another_protocol(place, value):
    with pytest.raises(ProtocolError, match=r"of (this|version 5 of the) protocol"):
        decode(with_head(place, value), **AGREED)


# --- what a link takes ----------------------------------------------------------------------------


def link_of(strict, ahead=11):
    return Link(1, 3, strict, FORMAT, ahead, Wakeup())


def at(round, saved=0, stop=NEVER, **more):
    return FRAME._replace(round=round, saved=saved, stop=stop, payload=NUMBERS + round, **more)


def test_strict_keeps_every_round_in_the_window_and_gives_each_once():
    link = link_of(strict=True)
    link.awaited_round = 20
    for round in (19, 20, 21, 31):
        link.receive(at(round, converged_hops=round))
    assert [link.has_message(r) for r in (19, 20, 21, 22, 31)] == [False, True, True, False, True]
    assert np.array_equal(link.take_message(20), NUMBERS + 20)
    assert link.converged_hops == 20  # not 31: what stops a run must not depend on who is quick
    assert not link.has_message(20)
    link.receive(at(20))
    assert not link.has_message(20)  # it was used
    link.receive(at(32))  # the window went on with the round


def test_strict_refuses_rounds_nobody_can_have_come_to_and_believes_nothing_in_them():
    link = link_of(strict=True)
    link.awaited_round = 20
    link.post(at(20))
    with pytest.raises(ProtocolError, match="round 32, 20 is awaited"):
        link.receive(at(32, saved=32, stop=1))
    assert (link.saved, link.stop, link.inbox) == (0, NEVER, {})
    assert link.sent == {20: encode(at(20))}


def test_what_is_saved_is_forgotten_and_no_more():
    link = link_of(strict=True)
    for round in range(6):
        link.post(at(round))
    link.receive(at(4, saved=3))
    assert sorted(link.sent) == [3, 4, 5]
    with pytest.raises(ProtocolError, match="saved round 6 before it came to 5"):
        link.receive(at(5, saved=6))
    assert sorted(link.sent) == [3, 4, 5]


def test_tolerant_keeps_the_newest_alone_both_ways():
    link = link_of(strict=False)
    for round in (5, 3, 9, 8):
        link.receive(at(round, converged_hops=round))
        link.post(at(round))
    assert np.array_equal(link.take_message(0), NUMBERS + 9)
    assert link.converged_hops == 9
    assert np.array_equal(link.take_message(0), NUMBERS + 9)  # again, while nothing newer comes
    assert (link.next_message(None), link.next_message(None)) == (encode(at(8)), None)
    with pytest.raises(ProtocolError, match="after 9"):
        link.receive(at(10 + MAX_SKIPPED))
    link.receive(at(9 + MAX_SKIPPED))


def test_a_neighbour_is_there_from_its_turn_on():
    link = link_of(strict=False)
    assert not link.has_message(0)
    link.receive(at(5, turn=7))
    assert [link.has_message(turn) for turn in (6, 7, 8)] == [True, True, False]
    link.take_message(7)
    assert link.has_message(7)  # one message may be for two turns
    link.receive(at(5, turn=8))  # known, but not that it is at turn 8 with it
    assert link.has_message(8)


def test_turns_begin_again_after_the_last():
    last = TURNS - 1
    assert (ahead(3, last), ahead(last, 3), ahead(9, 9)) == (4, -4, 0)
    assert (next_turn(7, []), next_turn(7, [None, 3, 8])) == (8, 8)
    assert (next_turn(7, [12, 3]), next_turn(last, [last, last - 1])) == (12, 0)


def test_tolerant_takes_up_a_neighbour_that_is_far_along():
    link = link_of(strict=False)
    link.other_round = 3 * MAX_SKIPPED  # as it said when it came back
    link.receive(at(3 * MAX_SKIPPED + 5))
    assert np.array_equal(link.take_message(0), NUMBERS + 3 * MAX_SKIPPED + 5)


def test_nobody_stops_at_a_round_that_is_over():
    link = link_of(strict=True)
    with pytest.raises(ProtocolError, match="to stop at 4, in round 5"):
        link.receive(at(5, stop=4))
    assert link.stop == NEVER


def test_a_farewell_is_no_message():
    link = link_of(strict=True)
    link.receive(Frame(FAREWELL, 3, 3, 3, 4, 3, 1))
    assert (link.gone, link.stop, link.has_message(3)) == (True, 3, False)


def test_protocol_errors_are_counted(caplog):
    link = link_of(strict=True)
    for _ in range(50):
        link.count_error("numbers that are not finite")
    assert link.protocol_errors == 50
    assert caplog.messages[0] == "peer 3 cut off: numbers that are not finite"
