"""Who has no right to talk to a peer is refused, and who talks nonsense is cut off; the run that
they wanted to disturb comes to the same answer."""

import json
import re
import signal
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from peer_process import Peers
from uneven import problem_of

import edgewise as ew
from edgewise.peers.config import certificates
from edgewise.peers.config.certificates import issue, make_authority, name_of
from edgewise.peers.config.peer_config import Fit
from edgewise.peers.node.own_problem import one_node
from edgewise.peers.node.stepper import facts_of
from edgewise.peers.node.table_form import told
from edgewise.peers.operations.authority import CERTIFICATE, KEY
from edgewise.peers.transport.frames import (
    GREETING,
    HEADER,
    HEARTBEAT,
    VECTORS,
    VERSION,
    Frame,
    encode,
    frame_bytes,
)

ROUNDS, EACH, TARGET = 1500, 40, 1
NOBODY = 7
CROWD, AT_ONCE = 1500, 8
SILENT = "peer 2 is away: nothing was heard of it for 6 s"


class ThreeDaysAgo(datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.now(tz) - timedelta(days=3)


class Strangers:
    """Callers of one peer, with certificates good and bad."""

    def __init__(self, peers):
        self.peers, self.config = peers, peers.configs[TARGET]
        self.signer = [(peers.folder / name).read_bytes() for name in (KEY, CERTIFICATE)]
        self.name = name_of(self.config.mesh, TARGET)

    def of_peer(self, id):
        config = self.peers.configs[id]
        return config.key.read_bytes(), config.certificate.read_bytes()

    def speaking(self, pair, version=ssl.TLSVersion.TLSv1_3):
        """TLS of this version and no other."""
        context = ssl.create_default_context(cafile=self.peers.folder / CERTIFICATE)
        context.minimum_version = context.maximum_version = version
        if pair:
            files = [self.peers.folder / name for name in ("caller.pem", "caller.key")]
            for file, content in zip(files, reversed(pair), strict=True):
                file.write_bytes(content)
            context.load_cert_chain(*files)
        return context

    def connection(self):
        host, _, port = self.config.listen.rpartition(":")
        return socket.create_connection((host, int(port)), 120)

    def call(self, pair, *messages):
        """What one hears who says this: whole frames, and at last why it is over."""
        heard = b""
        with self.connection() as plain:
            try:
                with self.speaking(pair).wrap_socket(plain, server_hostname=self.name) as wrapped:
                    for message in messages:
                        wrapped.sendall(message)
                    while data := wrapped.recv(1 << 16):
                        heard += data
                why = "it hung up"
            except ssl.SSLError as ended:
                why = ended.reason
            except ConnectionError:
                why = "it hung up"  # with words of ours on their way
        frames = []
        while len(heard) > HEADER.size:
            size = frame_bytes(heard[: HEADER.size], 1 << 20)
            frames.append(heard[3])  # its kind
            heard = heard[size:]
        return frames, why

    def shake_hands(self, context, to_the_end=True):
        with (
            self.connection() as plain,
            context.wrap_socket(plain, server_hostname=self.name) as wrapped,
        ):
            if to_the_end:
                assert wrapped.recv(9)  # of its greeting: it took our certificate
            return wrapped.version()

    def shout(self, words):
        """Without TLS; what is heard is an alert at most."""
        with self.connection() as plain:
            plain.sendall(words)
            heard = b""
            with suppress(ConnectionError):
                while data := plain.recv(100):
                    heard += data
        return heard

    def greeting(self, id, **changes):
        """As a peer would say it."""
        config = self.peers.configs[id]
        problem = one_node(config, self.peers.folder / f"data{id}.npz")
        agreed = config.agreed() | {"unknowns": problem.size, "classes": [-1.0, 1.0]}
        agreed["protocol"] = VERSION
        facts = list(facts_of(problem, len(config.neighbours)))
        # one that needs older messages would stop the run
        resume_at = self.peers.status(TARGET)["rounds"]
        said = {"agreed": agreed, "facts": facts, "incarnation": "stranger", "resume_at": resume_at}
        said |= {"edge": None, "oldest_kept": 0, "table": told(config.schema, problem.columns)}
        text = json.dumps(said | changes).encode()
        return encode(Frame(GREETING, sender=id, receiver=TARGET, payload=text))


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    """A run that is disturbed in the middle, when it can neither end nor go on by itself."""
    problem, graph = problem_of(7, 3), ew.Graph.ring(3)
    fit = Fit(
        "saga-pd", weights="node", ridge=1e-3, rounds=ROUNDS, mode="strict", classes=(-1.0, 1.0)
    )
    seen = {}
    with Peers(tmp_path_factory.mktemp("peers"), problem, graph, fit) as peers:
        peers.start(0, 1, 2)
        peers.until_round(TARGET, 20)
        for other in (0, 2):
            peers.running[other].send_signal(signal.SIGSTOP)
        stopped_at = time.time()
        (seen["round"],) = peers.until_still(TARGET)  # the last of what they sent is taken
        strangers = Strangers(peers)
        seen |= refusals(strangers)
        seen["nonsense"] = nonsense(strangers)
        peers.until(lambda: SILENT in peers.said(TARGET), "a frozen neighbour that is found out")
        lines = (peers.configs[TARGET].out / "log.jsonl").read_text().splitlines()
        said_at = next(json.loads(line)["time"] for line in lines if SILENT in line)
        seen["found out"] = datetime.fromisoformat(said_at).timestamp() - stopped_at
        for other in (0, 2):
            peers.running[other].send_signal(signal.SIGCONT)
        seen["codes"] = peers.ended()
        seen["models"], seen["rounds"] = peers.models()
        seen["status"], seen["said"] = peers.status(TARGET), peers.said(TARGET)
    seen["simulated"] = ew.solve(
        problem, graph, ew.PrimalDual(ew.SAGA(), form="edge"), rounds=ROUNDS, reference=False
    ).X
    return seen


def refusals(strangers):
    mesh, signer = strangers.config.mesh, strangers.signer
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificates, "datetime", ThreeDaysAgo)
        expired = issue(*signer, mesh, 0, 1)
    pairs = {
        "no certificate": (),
        "another authority": issue(*make_authority(), mesh, 0, 1),
        "expired": expired,
        "no neighbour": issue(*signer, mesh, NOBODY, 1),
        "another mesh": issue(*signer, "other", 0, 1),
        "never dials": strangers.of_peer(2),
    }
    seen = {name: [strangers.call(pair) for _ in range(EACH)] for name, pair in pairs.items()}
    seen["plain"] = [strangers.shout(words) for words in (b"GET / HTTP/1.1\r\n\r\n", bytes(500))]
    own = strangers.of_peer(0)
    with pytest.raises((ssl.SSLError, OSError)) as seen["1.2"]:
        strangers.shake_hands(strangers.speaking(own, ssl.TLSVersion.TLSv1_2))
    now = strangers.speaking(own)
    with ThreadPoolExecutor(AT_ONCE) as crowd:
        hasty = crowd.map(lambda _: strangers.shake_hands(now, to_the_end=False), range(CROWD))
        seen["crowd"] = list(hasty)
    seen["1.3"] = strangers.shake_hands(now)
    return seen


def nonsense(strangers):
    """What the streams of a neighbour end with that sends no, or wrong, or broken frames."""
    own, rng = strangers.of_peer(0), np.random.default_rng(3)
    hello, numbers = strangers.greeting(0), np.ones((1, 7))
    vectors = Frame(VECTORS, round=0, sender=0, receiver=TARGET, payload=numbers)
    endless = encode(vectors)[: HEADER.size - 4] + b"\xff" * 4
    after = [
        endless,
        encode(vectors._replace(payload=np.full((1, 7), np.nan))),
        encode(vectors._replace(sender=2)),
        encode(vectors._replace(payload=np.ones((1, 8)))),
        encode(vectors, "float32"),
        encode(vectors._replace(round=10**6)),
        encode(vectors._replace(saved=10**6)),
        shorter(encode(vectors)),
        hello,
        rng.bytes(60_000),
    ]
    instead = [
        b"GET / HTTP/1.1" + bytes(HEADER.size),
        endless,
        encode(vectors),
        shorter(hello),
        strangers.greeting(0, resume_at="x"),
    ]
    instead.append(encode(Frame(GREETING, sender=0, receiver=TARGET, payload=b"[1]")))
    return [strangers.call(own, hello, data) for data in after] + [
        strangers.call(own, data) for data in instead
    ]


def shorter(frame):
    """By its last byte, as its header says."""
    length = len(frame) - HEADER.size - 1
    return frame[: HEADER.size - 4] + length.to_bytes(4, "little") + frame[HEADER.size : -1]


@pytest.mark.parametrize(
    ("who", "why"),
    [
        ("no certificate", "TLSV13_ALERT_CERTIFICATE_REQUIRED"),
        ("another authority", "TLSV1_ALERT_UNKNOWN_CA"),
        ("expired", "SSLV3_ALERT_CERTIFICATE_EXPIRED"),
    ],
)
def test_no_connection_without_a_certificate_of_the_mesh(attacked, who, why):
    """TLS tells the caller why, and nobody else anything."""
    assert attacked[who] == [([], why)] * EACH


@pytest.mark.parametrize("who", ["no neighbour", "another mesh", "never dials"])
def test_no_stream_for_anybody_but_neighbours_that_dial(attacked, who):
    assert attacked[who] == [([], "it hung up")] * EACH


def test_whoever_speaks_no_tls_hears_an_alert_at_most(attacked):
    assert all(len(heard) <= 7 for heard in attacked["plain"])


def test_a_frozen_neighbour_is_found_out_in_seconds(attacked):
    """5 to 8 of them, and some more where the machine is busy."""
    assert 4 < attacked["found out"] < 14


def test_they_are_counted_and_logged(attacked):
    assert attacked["status"]["refused"] == 3 * EACH
    assert attacked["status"]["handshakes"] == 3 * EACH + 3  # TLS 1.2, and two without TLS
    for why in (
        "the other side has no certificate",
        "a certificate of another authority",
        "a certificate that has expired",
        "TLS older than 1.3",
        "plain HTTP",
        "no TLS: another service, or a proxy in the way",
    ):
        lines = [line for line in attacked["said"].splitlines() if f"failed: {why}" in line]
        assert 1 <= len(lines) < 5  # it says how many it stands for
        assert re.search(r" WARNING a TLS handshake with 127\.0\.0\.1:\d+ failed: ", lines[0])
    assert f"refused: ['peer-{NOBODY}." in attacked["said"]


def test_many_may_connect_at_once(attacked):
    assert attacked["crowd"] == ["TLSv1.3"] * CROWD


def test_nothing_older_than_tls_1_3(attacked):
    assert attacked["1.3"] == "TLSv1.3"
    assert isinstance(attacked["1.2"].value, OSError)  # ssl.SSLError is one


def test_a_neighbour_that_breaks_the_protocol_is_cut_off_and_counted(attacked):
    for frames, why in attacked["nonsense"]:
        assert set(frames) <= {GREETING, VECTORS, HEARTBEAT}  # the last where it took its time
        assert why == "it hung up"
    errors = attacked["status"]["neighbours"]["0"]["protocol_errors"]
    assert errors == len(attacked["nonsense"]) == 16
    lines = [line for line in attacked["said"].splitlines() if "peer 0 cut off" in line]
    assert 1 <= len(lines) < 16


def test_the_answer_is_what_it_would_have_been(attacked):
    assert attacked["round"] < ROUNDS
    assert attacked["codes"] == [0, 0, 0]
    assert attacked["rounds"] == [ROUNDS] * 3
    np.testing.assert_allclose(attacked["models"], attacked["simulated"], atol=1e-10)
