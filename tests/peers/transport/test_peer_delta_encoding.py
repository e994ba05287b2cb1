"""Messages as changes of few bits: both ends hold the same, and rounding leaves nothing behind."""

import numpy as np
import pytest

pytest.importorskip("grpc", reason="peers need grpcio: pip install 'edgewise[peers]'")

from edgewise.peers.transport.delta_encoding import Changes
from edgewise.peers.transport.frames import (
    CHANGE,
    HEAD,
    VECTORS,
    Format,
    Frame,
    Garbage,
    decode,
    encode,
    largest,
)
from edgewise.peers.transport.links import Link, whole
from edgewise.peers.transport.wakeup import News

FORMAT = Format(2, 33, "float64", bits=5)


def ends(format):
    return Changes(format), Changes(format)


def begun(format, vectors):
    sender, receiver = ends(format)
    for end in (sender, receiver):
        end.keep(vectors)
    return sender, receiver


@pytest.mark.parametrize("bits", [2, 3, 8, 16, 31, 32])
def test_what_rounding_leaves_out_comes_later(bits):
    """Two values in turn, as messages of the edge form end up."""
    rng, format = np.random.default_rng(bits), FORMAT._replace(bits=bits)
    to_and_fro = rng.standard_normal((2, *format.shape))
    sender, receiver = begun(format, np.zeros(format.shape))
    worst = []
    for t in range(80):
        body = sender.shrink(to_and_fro[t % 2])
        got = receiver.grow(body)
        assert all(map(np.array_equal, sender.held, receiver.held))
        assert len(body) == format.change_bytes
        worst.append(np.abs(got - to_and_fro[t % 2]).max())
    assert worst[0] > 2.0**-bits / 10
    assert worst[-1] < 1e-14


def test_one_left_out_does_no_harm():
    """The sender skips a message when there is a newer: the change is of the nearer one then."""
    to_and_fro = np.random.default_rng(0).standard_normal((2, *FORMAT.shape))
    sender, receiver = begun(FORMAT, np.zeros(FORMAT.shape))
    for t in [*range(40), 41, 42, 44, 45]:
        got = receiver.grow(sender.shrink(to_and_fro[t % 2]))
    assert np.abs(got - to_and_fro[45 % 2]).max() < 1e-14


def test_no_change_at_all():
    sender, receiver = begun(FORMAT, np.ones(FORMAT.shape))
    assert np.array_equal(receiver.grow(sender.shrink(np.ones(FORMAT.shape))), np.ones((2, 33)))


def link_of(format):
    return Link(1, 3, False, format, 11, News())


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
        got = whole(frame, receiver)
        assert (got.kind, got.round) == (VECTORS, round)
        assert any(np.array_equal(got.payload, held) for held in sender.held)
        assert np.abs(got.payload - vectors).max() < 0.5
        sizes.append(len(data) - HEAD.size)
        kinds.append(frame.kind)
    assert kinds == [VECTORS, CHANGE, CHANGE, CHANGE]
    assert sizes == [4 * 66, *3 * [1 + 2 * 8 + 42]]  # 66 numbers of 5 bits are 42 bytes
    assert largest(format) >= max(sizes) + HEAD.size


def test_a_change_of_nothing_or_beyond_all_bounds_is_garbage():
    sender, receiver = ends(FORMAT)
    sender.keep(np.zeros(FORMAT.shape))
    body = sender.shrink(np.ones(FORMAT.shape))
    with pytest.raises(Garbage, match="message 0, where 0 came"):
        receiver.grow(body)
    receiver.keep(np.zeros(FORMAT.shape))
    with pytest.raises(Garbage, match="message 9"):
        receiver.grow(bytes([9]) + body[1:])
    for unit in (np.nan, np.inf, 1e308):
        huge = body[:1] + np.full(2, unit).tobytes() + body[17:]
        with pytest.raises(Garbage, match="not finite"):
            receiver.grow(huge)


def test_changes_only_where_they_were_agreed_on_and_of_the_right_length():
    sender, _ = begun(FORMAT, np.zeros(FORMAT.shape))
    change = Frame(CHANGE, 1, payload=sender.shrink(np.ones(FORMAT.shape)))
    data = encode(change, change=FORMAT)
    assert decode(data, 0, 0, FORMAT) == change
    for other in (FORMAT._replace(bits=None), FORMAT._replace(bits=6), FORMAT._replace(size=34)):
        with pytest.raises(Garbage, match="numbers in precision 5"):
            decode(data, 0, 0, other)
    for wrong in (data[:-1], data + b"x"):
        with pytest.raises(Garbage, match="bytes for 2 x 33"):
            decode(wrong, 0, 0, FORMAT)
