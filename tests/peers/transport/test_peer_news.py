"""News: a head with every message, a body where it has changed, and none of it lost."""

import numpy as np
import pytest

from edgewise.peers.transport.delta_encoding import DeltaCodec, decode_delta
from edgewise.peers.transport.frames import (
    DELTA,
    HEADER,
    VECTORS,
    Frame,
    MessageFormat,
    ProtocolError,
    decode,
    encode,
    max_frame_bytes,
    vectors_in,
)
from edgewise.peers.transport.links import Link
from edgewise.peers.transport.news import told
from edgewise.peers.transport.wakeup import Wakeup

FORMAT = MessageFormat(2, 5, "float64", bits=8, head=3, body=4)
NUMBERS = np.random.default_rng(0).standard_normal((2, 5))
FRAME = Frame(VECTORS, 17, 10, 40, 2, 3, 1, NUMBERS)


def row(round, flag):
    """Whole, as a method gives it."""
    return np.array([flag, round, 0.5, *(100 + np.arange(4))], np.float32)


def decoded(data, format=FORMAT):
    return decode(data, 3, 1, format)


# --- frames ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [VECTORS, DELTA])
@pytest.mark.parametrize("whole", [False, True])
def test_news_come_out_as_they_went_in(kind, whole):
    sent = told(FRAME._replace(kind=kind, news=row(17, whole)), FORMAT, whole)
    delta = None
    if kind == DELTA:
        sent, delta = sent._replace(payload=bytes(FORMAT.delta_bytes)), FORMAT
    data = encode(sent, delta=delta)
    got = decoded(data)
    assert np.array_equal(got.payload, sent.payload)
    assert np.array_equal(got.news, row(17, whole)[: 7 if whole else 3])
    size = FORMAT.whole_bytes if kind == VECTORS else FORMAT.delta_bytes
    assert len(data) == HEADER.size + size + 4 * (7 if whole else 3)
    assert vectors_in(data, FORMAT) == 2 + whole


def test_the_largest_frame_has_a_body():
    n = 1000
    format = MessageFormat(2, n, "float64", head=4, body=n * (n + 1) // 2)
    expected = HEADER.size + 2 * n * 8 + 4 * (4 + n * (n + 1) // 2)
    assert max_frame_bytes(format) == expected
    assert 2_000_000 < expected < 2_100_000


@pytest.mark.parametrize(
    ("news", "reason"),
    [
        (row(1, 0), "bytes for 2 x 5"),  # a body where the flag says none
        (row(1, 1)[:3], "bytes for 2 x 5"),  # none where it says one
        ([*row(1, 1), 0], "bytes for 2 x 5"),
        (row(1, 1)[:-1], "bytes for 2 x 5"),
        ([0, 1], "bytes for 2 x 5"),
        ([0, 1, 2, 3], "bytes for 2 x 5"),
        ([], "no flag"),
        ([0.5, 1, 2], "no flag"),
        ([-0.0, 1, 2], "no flag"),
        ([2, *row(1, 1)[1:]], "no flag"),
        ([np.nan, *row(1, 1)[1:]], "no flag"),
        ([0, np.inf, 2], "not finite"),
        ([*row(1, 1)[:-1], np.nan], "not finite"),
        ([*row(1, 1)[:-1], -1e31], "not finite"),
    ],
)
def test_news_that_are_not_as_agreed(news, reason):
    delta = FRAME._replace(kind=DELTA, payload=bytes(FORMAT.delta_bytes))
    for frame, format in ((FRAME, None), (delta, FORMAT)):
        data = encode(frame._replace(news=np.array(news, np.float32)), delta=format)
        with pytest.raises(ProtocolError, match=reason):
            decoded(data)


def test_news_only_where_they_were_agreed_on():
    data = encode(FRAME._replace(news=row(1, 1)))
    with pytest.raises(ProtocolError, match="bytes for 2 x 5"):
        decoded(data, FORMAT._replace(head=0, body=0))
    for cut in (-1, -2, -4 * 7 - 1):
        with pytest.raises(ProtocolError, match=r"bytes for 2 x 5|no flag"):
            decoded(data[:cut])


# --- links ----------------------------------------------------------------------------------------


def link_of(strict, bits=None):
    return Link(1, 3, strict, FORMAT._replace(bits=bits), 11, Wakeup())


def came(round, flag, body=0.0):
    """As it comes in, with other numbers in the body."""
    whole = row(round, flag) + np.array([0, 0, 0, *4 * [body]], np.float32)
    return told(FRAME._replace(round=round, saved=0, news=whole), FORMAT, bool(flag))


def test_what_nobody_has_told_is_zeros_and_a_head_alone_leaves_the_body():
    link = link_of(strict=True)
    assert np.array_equal(link.news, np.zeros(7))
    for round, flag in enumerate((1, 0, 0)):
        link.receive(came(round, flag))
    assert np.array_equal(link.news, np.zeros(7))  # of rounds to come
    for round, flag in enumerate((1, 0, 0)):
        link.take_message(round)
        assert np.array_equal(link.news, row(round, flag))


def test_a_body_that_was_not_read_is_not_lost():
    link = link_of(strict=False)
    for round, flag, body in ((3, 1, 0), (4, 1, 7), (5, 0, 0), (6, 0, 0)):
        link.receive(came(round, flag, body))
    link.receive(came(2, 1, 9))  # older, thrown away
    link.take_message(0)
    assert np.array_equal(link.news, [1, 6, 0.5, 107, 108, 109, 110])
    link.receive(came(7, 0))
    link.take_message(0)
    assert np.array_equal(link.news, [0, 7, 0.5, 107, 108, 109, 110])


@pytest.mark.parametrize("bits", [None, 8])
def test_a_body_that_was_not_sent_goes_with_the_next_message_and_again_over_a_new_stream(bits):
    link, format = link_of(False, bits), FORMAT._replace(bits=bits)

    def next_news(codecs, *posted):
        for round, flag in posted:
            link.post(FRAME._replace(round=round, sender=1, receiver=3, news=row(round, flag)))
        frame = decode(link.next_message(codecs[0]), 1, 3, format)
        if bits is not None:
            frame = decode_delta(frame, codecs[1])
        assert np.allclose(frame.payload, NUMBERS, atol=0.1)
        return list(frame.news)

    def stream():
        return (None, None) if bits is None else (DeltaCodec(format), DeltaCodec(format))

    codecs = stream()
    assert next_news(codecs, (1, 0)) == [1, *row(1, 1)[1:]]  # the first over a stream
    assert next_news(codecs, (2, 0)) == list(row(2, 0)[:3])
    assert next_news(codecs, (3, 1), (4, 0)) == [1, *row(4, 1)[1:]]
    assert next_news(codecs, (5, 0)) == list(row(5, 0)[:3])
    link.unsent = link.body_due = True  # as a new stream begins
    assert next_news(stream()) == [1, *row(5, 1)[1:]]
