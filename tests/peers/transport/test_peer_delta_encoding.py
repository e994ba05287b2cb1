"""Messages as changes of few bits: both ends hold the same, and rounding leaves nothing behind."""

import numpy as np
import pytest

from edgewise.peers.transport.delta_encoding import DeltaCodec, decode_delta
from edgewise.peers.transport.frames import (
    DELTA,
    EXPONENT,
    HEADER,
    VECTORS,
    Frame,
    MessageFormat,
    ProtocolError,
    decode,
    encode,
    max_frame_bytes,
)
from edgewise.peers.transport.links import Link
from edgewise.peers.transport.wakeup import Wakeup

FORMAT = MessageFormat(2, 33, "float64", bits=5)


def ends(format):
    return DeltaCodec(format), DeltaCodec(format)


def begun(format, vectors):
    sender, receiver = ends(format)
    for end in (sender, receiver):
        end.whole(vectors)
    return sender, receiver


@pytest.mark.parametrize("bits", [2, 3, 8, 16, 31, 32])
def test_what_rounding_leaves_out_comes_later(bits):
    """Two values in turn, as messages of the edge form end up."""
    rng, format = np.random.default_rng(bits), FORMAT._replace(bits=bits)
    to_and_fro = rng.standard_normal((2, *format.shape))
    sender, receiver = begun(format, np.zeros(format.shape))
    worst = []
    for t in range(160):
        body = sender.encode(to_and_fro[t % 2])
        got = receiver.decode(body)
        assert all(map(np.array_equal, sender.held, receiver.held))
        assert len(body) == format.delta_bytes
        worst.append(np.abs(got - to_and_fro[t % 2]).max())
    assert worst[0] > 2.0**-bits / 10
    assert worst[-1] < 1e-14


def test_one_left_out_does_no_harm():
    """The sender skips a message when there is a newer: the change is of the nearer one then."""
    to_and_fro = np.random.default_rng(0).standard_normal((2, *FORMAT.shape))
    sender, receiver = begun(FORMAT, np.zeros(FORMAT.shape))
    for t in [*range(40), 41, 42, 44, 45]:
        got = receiver.decode(sender.encode(to_and_fro[t % 2]))
    assert np.abs(got - to_and_fro[45 % 2]).max() < 1e-14


def test_no_change_at_all():
    sender, receiver = begun(FORMAT, np.ones(FORMAT.shape))
    assert np.array_equal(receiver.decode(sender.encode(np.ones(FORMAT.shape))), np.ones((2, 33)))


def link_of(format):
    return Link(1, 3, False, format, 11, Wakeup())


def test_a_stream_begins_with_a_whole_message_and_goes_on_with_changes():
    format = FORMAT._replace(wire="float32")
    link, (sender, receiver) = link_of(format), ends(format)
    rng = np.random.default_rng(1)
    sizes, kinds = [], []
    for round in range(4):
        vectors = rng.standard_normal(format.shape)
        link.post(Frame(VECTORS, round, sender=1, receiver=3, payload=vectors))
        data = link.next_message(sender)
        frame = decode(data, 1, 3, format)
        got = decode_delta(frame, receiver)
        assert (got.kind, got.round) == (VECTORS, round)
        assert np.array_equal(got.payload, sender.held.recent)
        assert np.abs(got.payload - vectors).max() < 0.5
        sizes.append(len(data) - HEADER.size)
        kinds.append(frame.kind)
    assert kinds == [VECTORS, DELTA, DELTA, DELTA]
    assert sizes == [4 * 66, *3 * [2 * (1 + 2) + 42]]  # 66 numbers of 5 bits are 42 bytes
    assert max_frame_bytes(format) >= max(sizes) + HEADER.size


def test_a_change_of_nothing_or_beyond_all_bounds_breaks_the_protocol():
    sender, receiver = ends(FORMAT)
    sender.whole(np.zeros(FORMAT.shape))
    body = sender.encode(np.ones(FORMAT.shape))
    with pytest.raises(ProtocolError, match="a message that never came"):
        receiver.decode(body)
    receiver.whole(np.zeros(FORMAT.shape))
    with pytest.raises(ProtocolError, match="a message that never came"):
        receiver.decode(bytes([9]) + body[1:])
    for exponent in (1000, 1030, 32767):
        huge = body[:2] + np.full(2, exponent, EXPONENT).tobytes() + body[6:]
        with pytest.raises(ProtocolError, match="not finite"):
            receiver.decode(huge)


def test_changes_only_where_they_were_agreed_on_and_of_the_right_length():
    sender, _ = begun(FORMAT, np.zeros(FORMAT.shape))
    change = Frame(DELTA, 1, payload=sender.encode(np.ones(FORMAT.shape)))
    data = encode(change, delta=FORMAT)
    assert decode(data, 0, 0, FORMAT) == change
    for other in (FORMAT._replace(bits=None), FORMAT._replace(bits=6), FORMAT._replace(size=34)):
        with pytest.raises(ProtocolError, match="numbers in precision 5"):
            decode(data, 0, 0, other)
    for wrong in (data[:-1], data + b"x"):
        with pytest.raises(ProtocolError, match="bytes for 2 x 33"):
            decode(wrong, 0, 0, FORMAT)


@pytest.mark.parametrize("apart", [0.01, 0.3, 1.5])
def test_two_values_that_are_near_each_other_and_far_from_the_first_message(apart):
    """All changes are of the last message until both values have a place of their own."""
    rng = np.random.default_rng(0)
    middle, half = rng.standard_normal((2, *FORMAT.shape))
    sender, receiver = begun(FORMAT, np.zeros(FORMAT.shape))
    for t in range(60):
        message = (1 - 0.5**t) * (middle + (-1) ** t * apart * half)
        got = receiver.decode(sender.encode(message))
    assert np.abs(got - message).max() < 1e-14
