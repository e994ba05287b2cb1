"""docs/protocol.md says what the code does: sizes, numbers, kinds, keys."""

import re
import struct
from dataclasses import fields
from types import SimpleNamespace

import numpy as np
from paths import ROOT

from edgewise.backend.quantiser import IDLE
from edgewise.peers.config.certificates import name_of
from edgewise.peers.config.peer_config import Fit
from edgewise.peers.config.rules import FIT
from edgewise.peers.node.handshake import greeting_of
from edgewise.peers.transport import doubles, frames, heartbeat
from edgewise.peers.transport.bounds import MORE, MOST_TOLD, PART_SENT
from edgewise.peers.transport.callers import MOST_UNKNOWN
from edgewise.peers.transport.connections import HANDSHAKE_TIMEOUT
from edgewise.peers.transport.delta_encoding import DeltaCodec
from edgewise.peers.transport.edge_facts import (
    COUNTS_APART,
    MOST_APART,
    MOST_SAMPLES,
    NodeFacts,
)
from edgewise.peers.transport.frames import MessageFormat
from edgewise.peers.transport.greeting import GREETING_TIMEOUT
from edgewise.peers.transport.links import MAX_SKIPPED

FACTS = "intercept smoothness, reach"
PAGE = (ROOT / "docs" / "protocol.md").read_text()


def section(title):
    return re.split(r"^## ", PAGE.split(f"\n## {title}\n")[1], flags=re.M)[0]


def table(text):
    rows = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return [row for row in cells if not set("".join(row)) <= set("-")]


def test_the_header_is_as_the_page_says():
    rows = [row for row in table(section("A frame")) if row[0].isdigit()]
    sizes = [
        struct.calcsize("<" + kind) for kind in re.findall(r"\d*[a-zA-Z]", frames.HEADER.format)
    ]
    assert [int(row[1]) for row in rows] == sizes
    assert [int(row[0]) for row in rows] == [sum(sizes[:k]) for k in range(len(sizes))]
    assert f"A header of {frames.HEADER.size} bytes" in PAGE
    said = {row[2]: row[3] for row in rows}
    assert said["magic"] == f"`{frames.MAGIC.decode()}`"
    assert int(said["version"]) == frames.VERSION
    kinds = dict(re.findall(r"(\d) (\w+)", said["kind"]))
    names = {str(getattr(frames, name.upper())): name for name in kinds.values()}
    assert kinds == names
    precisions = {name: code for name, (code, _) in frames.PRECISIONS.items()}
    assert {n: int(c) for c, n in re.findall(r"(\d) (float\d\d)", said["precision"])} == precisions


def test_every_field_is_where_the_page_says():
    sent = frames.Frame(frames.FAREWELL, 11, 12, 13, 14, 15, 16, turn=17)
    data = frames.encode(sent)
    rows = {row[2]: row for row in table(section("A frame")) if row[0].isdigit()}

    def field(name):
        at, size = int(rows[name][0]), int(rows[name][1])
        return int.from_bytes(data[at : at + size], "little")

    names = ("kind", "round", "saved", "stop", "converged hops", "sender", "receiver")
    assert [field(name) for name in names] == list(sent[:7])
    known = field("lost hops"), field("turn"), field("count"), field("length")
    assert known == (frames.NO_LOSS, 17, 0, 0)
    text = frames.encode(frames.Frame(frames.GREETING, payload=b"x" * 300))
    assert text[48:56] == 2 * (300).to_bytes(4, "little")
    vectors = frames.encode(frames.Frame(frames.VECTORS, payload=np.ones((2, 5)), news=[0, 1]))
    assert vectors[48:56] == (5).to_bytes(4, "little") + (80 + 8).to_bytes(4, "little")


def test_bodies_and_limits_are_as_the_page_says():
    assert f"up to {frames.MAX_TEXT:,}" in PAGE
    largest = frames.LARGEST_NUMBER
    said = f"no number beyond {largest[8]:g} (float32: {largest[4]:g})".replace("e+", "e")
    assert said in PAGE
    for k, n, bits in ((1, 7, 8), (2, 33, 5), (1, 1, 32)):
        assert MessageFormat(k, n, "float32").whole_bytes == 4 * k * n
        assert MessageFormat(k, n, "float64").whole_bytes == 8 * k * n
        expected = 3 * k + int(np.ceil(bits * k * n / 8))
        assert MessageFormat(k, n, "float64", bits).delta_bytes == expected
    assert "3k + bits kn / 8, rounded up" in PAGE
    assert f"within {GREETING_TIMEOUT:.0f} seconds" in PAGE
    assert f"{MAX_SKIPPED:,} rounds is refused" in PAGE
    assert f"unless {IDLE} deltas" in section("Deltas").replace("\n", " ")
    assert FIT["bits"].give == "a whole number from 2 to 32"
    assert "`bits` in the fit (2 to 32;" in PAGE
    stream = section("The stream").replace("\n", " ").replace("  ", " ")
    assert f"sent nothing for {heartbeat.BEAT:g} seconds" in stream
    assert f"heard no byte for {heartbeat.DEAD:g} seconds" in stream
    assert f"{HANDSHAKE_TIMEOUT:.0f} seconds for the TLS handshake. {MOST_UNKNOWN} conn" in stream
    assert f"`{name_of('MESH', 3)}`" in PAGE
    assert f"still heard {doubles.ALIVE:g} seconds later" in stream
    rounds = section("Rounds").replace("\n", " ").replace("  ", " ")
    wide, narrow = (f"{MORE[np.dtype(dtype)]:,.0f}" for dtype in ("float64", "float32"))
    assert f"beyond {wide} times (where the fit has float32: {narrow}) the larger" in rounds
    assert f"counts up to {MOST_TOLD:,.0f} times the former" in rounds
    assert PART_SENT == 0.5
    assert "beyond half of that" in rounds
    apart = "further apart than {:g} times as much as that ({:g}, where the fit has float32 {:g})"
    most = [PART_SENT * MOST_TOLD, *(PART_SENT * MOST_TOLD * more for more in MORE.values())]
    assert apart.format(*most).replace("e+0", "e") in PAGE.replace("\n", " ")
    said = f"within {MOST_APART:g} times".replace("e+", "e"), f"more than {MOST_SAMPLES:g} samples"
    assert all(words.replace("e+", "e") in PAGE.replace("\n", " ") for words in said)
    assert f"more than {COUNTS_APART / 1e4:g}e4 times" in PAGE.replace("\n", " ")


def test_greetings_have_the_keys_of_the_page():
    facts = NodeFacts(2, 10, 1.0, 0.5)
    agreed = {"mesh": "m", **{f.name: 0 for f in fields(Fit)}}
    peer = SimpleNamespace(
        config=SimpleNamespace(agreed=lambda: agreed, schema=None),
        settled_fit=Fit(),
        problem=SimpleNamespace(size=3, classes=[0, 1], columns=None),
        facts=facts,
        facts_towards=lambda other: facts,
        own_size=None,
        edges={},
        agreeing=False,
        incarnation="x",
        round=4,
    )
    greeting = greeting_of(peer, SimpleNamespace(other=2, pair=None, saved=2))
    keys = {row[0].strip("`"): row[1] for row in table(section("The greeting")) if row[0] != "key"}
    assert set(greeting) == set(keys)
    named = set(re.findall(r"`(\w+)`", keys["agreed"])) - {"checkpoint_every"}
    assert f"mean smoothness, {FACTS}]" in keys["facts"]
    assert len(facts) == 2 + 2 + len(FACTS.split(","))
    assert named == set(greeting["agreed"]) - {f.name for f in fields(Fit)} | {"classes"}
    assert greeting["agreed"]["protocol"] == frames.VERSION
    assert f"`protocol` ({frames.VERSION})" in keys["agreed"]
    assert table(section("Versions"))[-1][0] == str(frames.VERSION)


def test_a_delta_is_read_by_the_words_of_the_page():
    """k flags, k exponents, then numbers of so many bits; the held message plus (c - most) 2^e."""
    rng, (k, n, bits) = np.random.default_rng(0), (2, 5, 6)
    codec = DeltaCodec(MessageFormat(k, n, "float64", bits))
    codec.whole(rng.standard_normal((k, n)))
    for _ in range(8):  # by then both held messages have been used
        held = codec.held
        body = codec.encode(rng.standard_normal((k, n)))
        flags, exponents = body[:k], struct.unpack(f"<{k}h", body[k : 3 * k])
        digits = "".join(f"{byte:08b}" for byte in body[3 * k :])
        numbers = [int(digits[at : at + bits], 2) for at in range(0, k * n * bits, bits)]
        for row in range(k):
            base = (held.recent, held.other)[flags[row]][row]
            change = np.array(numbers[row * n : (row + 1) * n]) - (2 ** (bits - 1) - 1)
            assert np.array_equal(base + change * 2.0 ** exponents[row], codec.held.recent[row])
