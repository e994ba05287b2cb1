"""A peer's configuration is right, or refused by file and key; peers agree on what they must."""

import json
import os
import threading
import time
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

import edgewise as ew

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from cryptography import x509
from cryptography.hazmat.primitives import hashes

from edgewise.errors import InputError, MethodError
from edgewise.methods.catalogue import CATALOGUE, make
from edgewise.peers.config import certificates
from edgewise.peers.config.peer_config import (
    Fit,
    Neighbour,
    PeerConfig,
    load,
    save,
)
from edgewise.peers.node.supported_methods import require_local

NAME = "mesh-0a1b"
AUTHORITY, OTHER = certificates.make_authority(), certificates.make_authority()


def issued(id=3, days=30, authority=AUTHORITY):
    return certificates.issue(*authority, NAME, id, days)


@pytest.fixture
def peer(tmp_path):
    """Peer 3 of a mesh, with files that it can run with."""
    key, certificate = issued()
    certificates.write_secret(tmp_path / "peer3.key", key)
    (tmp_path / "peer3.pem").write_bytes(certificate)
    (tmp_path / "authority.pem").write_bytes(AUTHORITY[1])
    config = PeerConfig(
        tmp_path / "peer3.toml",
        NAME,
        3,
        8,
        "0.0.0.0:24703",
        (Neighbour(2, "a.example.org:24702", False), Neighbour(5, "[::1]:24705", True)),
        tmp_path / "authority.pem",
        tmp_path / "peer3.pem",
        tmp_path / "peer3.key",
        tmp_path / "peer3",
    )
    save(config)
    return config


def test_what_is_saved_is_loaded(peer, tmp_path):
    assert load(peer.path) == peer
    told = Fit(
        method="svr-pd",
        set=("batch=4", 'odd="\\\x7f'),
        loss="huber:2",
        weights="node",
        standardize=True,
        holdout=0.2,
        summary="HC1",
        offset="log_days",
        exposure="days",
        case_weight="times",
        trials="n",
        ridge=0.1,
        intercept=True,
        classes=("sick", "well"),
        features=30,
        masked=True,
        rounds=7,
        seconds=2.5,
        tol=1e-9,
        seed=3,
        eta=0.25,
        rho="theory",
        dtype="float32",
        wire="float32",
        bits=8,
        dual_noise=0.5,
        mode="strict",
        patience=0.5,
    )
    usual = {f.name for f in fields(Fit) if getattr(told, f.name) == f.default}
    noise = {"dp_epsilon": 1.0, "dp_delta": 1e-5, "dp_clip": 2.0, "dp_row_norm": 3.0}
    noise["dp_rounds"] = 40
    assert usual == noise.keys()  # which not all others go with
    private = replace(peer, fit=Fit(**noise))
    save(private)
    assert load(private.path) == private
    full = replace(
        peer,
        fit=told,
        penalty=("box:-1,1",),
        checkpoint_every=1,
        record_every=2,
        drop_after=5.0,
        metrics=None,
        out=Path("/elsewhere/run"),
    )
    save(full)
    assert load(full.path) == full
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("peer3.toml", "peer3.pem", "peer3.key", "authority.pem"):
        (tmp_path / name).rename(moved / name)
    assert load(moved / "peer3.toml").key == moved / "peer3.key"


def test_the_lower_number_dials_unless_it_is_said(peer):
    text = peer.path.read_text()
    peer.path.write_text(text.replace("dial = true\n", "").replace("dial = false\n", ""))
    assert [n.dial for n in load(peer.path).neighbours] == [False, True]
    peer.path.write_text(text.replace("dial = true", "dial = false"))
    assert [n.dial for n in load(peer.path).neighbours] == [False, False]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("id = 3", "", "peer.id is missing: give a whole number"),
        ("id = 3", "id = true", "peer.id is True"),
        ("id = 3", "id = 4", "is of peer-3.mesh-0a1b.edgewise: give that of peer-4"),
        ('mesh = "mesh-0a1b"', 'mesh = "mesh-0a1c"', "give that of peer-3.mesh-0a1c"),
        ('mesh = "mesh-0a1b"', 'mesh = "Mesh 1"', "peer.mesh is 'Mesh 1'"),
        ("nodes = 8", "nodes = 2", "peer.nodes is 2 and there are 2 neighbours"),
        ("nodes = 8", "nodes = 0", "peer.nodes is 0"),
        ('"0.0.0.0:24703"', '"0.0.0.0"', "peer.listen is '0.0.0.0': give HOST:PORT"),
        ('"0.0.0.0:24703"', '"0.0.0.0:0"', "peer.listen is '0.0.0.0:0'"),
        ('"[::1]:24705"', '"::1:24705"', "neighbour.address is '::1:24705'"),
        ('"[::1]:24705"', '"[::1]:99999"', "neighbour.address"),
        ('address = "[::1]:24705"', "", "neighbour.address is missing"),
        ("id = 5", "id = 3", "neighbour.id is 3, which is this peer"),
        ("id = 5", "id = 2", "neighbour.id 2 is there 2 times"),
        ("dial = true", 'dial = "yes"', "neighbour.dial is 'yes': give true or false"),
        ("dial = true", "port = 3", "unknown key in .*peer3.toml: 'neighbour.port'"),
        ("[fit]", "[fit]\nronds = 3", "did you mean 'fit.rounds'"),
        ("[fit]", "[fits]", "fits is unknown"),
        ("[[neighbour]]", "[other]\n[[neighbour]]", "other is unknown"),
        ("metrics = ", "drop_after = -1\nmetrics = ", "peer.drop_after is -1: give a positive"),
        ('metrics = "127.0.0.1:0"', "metrics = true", "peer.metrics is True"),
        ("penalty = []", 'penalty = "l1:1"', "peer.penalty is 'l1:1': give a list of texts"),
        ('"tolerant"', '"patient"', "fit.mode is 'patient': give tolerant or strict"),
        ('wire = "float64"', 'wire = "int8"', "fit.wire is 'int8': give float32 or float64"),
        ('dtype = "float64"', "dtype = 64", "fit.dtype is 64"),
        ("patience = 1.0", "patience = 0", "fit.patience is 0: give a positive number"),
        ("patience = 1.0", "patience = nan", "fit.patience is nan"),
        ("rounds = 100000", "rounds = 0", "fit.rounds is 0: give a whole number from 1 up"),
        ("rounds = 100000", "rounds = 1e5", "fit.rounds is 100000.0"),
        ("ridge = 0.0", "ridge = -1.0", "fit.ridge is -1.0"),
        ("[fit]", '[fit]\neta = "0.1"', "fit.eta is '0.1': give auto, theory, or one positive"),
        ("[fit]", "[fit]\nrho = [0.1, 0.2]", "fit.rho is"),
        ("[fit]", "[fit]\nbits = 1", "fit.bits is 1: give a whole number from 2 to 32"),
        ("[fit]", "[fit]\nclasses = [0, 0]", "fit.classes is"),
        ("[fit]", '[fit]\nclasses = [0, "1"]', "fit.classes is"),
        ("[fit]", "[fit]\nclasses = [1]", "fit.classes is"),
        ("set = []", "set = [1]", "fit.set is"),
        ("set = []", "set = ", "is no TOML file"),
        ('key = "peer3.key"', 'key = "gone.key"', "peer.key, .*gone.key, cannot be read"),
        ('"authority.pem"', '"gone.pem"', "peer.authority, .*gone.pem, cannot be read"),
    ],
)
def test_mistakes_are_named_by_file_and_key(peer, old, new, message, monkeypatch):
    monkeypatch.setattr("edgewise.peers.config.identity.PATIENCE_WITH_FILES", 0.0)
    text = peer.path.read_text()
    assert old in text
    peer.path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=message) as raised:
        load(peer.path)
    assert str(peer.path) in str(raised.value)


def test_one_table_is_no_list_of_neighbours(peer):
    text = peer.path.read_text()
    start, end = text.index("[[neighbour]]\nid = 5"), text.index("[fit]")
    peer.path.write_text((text[:start] + text[end:]).replace("[[neighbour]]", "[neighbour]"))
    with pytest.raises(InputError, match=r"write \[\[neighbour\]\]"):
        load(peer.path)
    with pytest.raises(InputError, match="there is no file"):
        load(peer.path.with_name("gone.toml"))
    peer.path.write_text("peer = 3\n")
    with pytest.raises(InputError, match="peer is no table"):
        load(peer.path)


@pytest.mark.skipif(
    os.name != "posix" or os.getuid() != 0, reason="only root can make a file that is root's"
)
@pytest.mark.parametrize(("mode", "taken"), [(0o440, True), (0o640, True), (0o660, False)])
def test_the_group_may_read_a_key_that_is_roots_if_the_peer_is_not(peer, monkeypatch, mode, taken):
    monkeypatch.setattr(os, "geteuid", lambda: 10001)
    peer.key.chmod(mode)
    if taken:
        assert load(peer.path).key == peer.key
        return
    with pytest.raises(InputError, match="can be read by others"):
        load(peer.path)


@pytest.mark.skipif(os.name != "posix", reason="others are told by permission bits")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_that_others_may_read_is_refused(peer, mode):
    peer.key.chmod(mode)
    with pytest.raises(InputError, match=r"peer\.key, .*can be read by others: chmod 600"):
        load(peer.path)


def test_certificates_of_others_are_refused(peer, monkeypatch):
    monkeypatch.setattr("edgewise.peers.config.identity.PATIENCE_WITH_FILES", 0.0)
    peer.authority.write_bytes(OTHER[1])
    with pytest.raises(InputError, match=r"is not signed by peer\.authority"):
        load(peer.path)
    peer.authority.write_bytes(AUTHORITY[1])
    for part in ("authority", "certificate", "key"):
        path = getattr(peer, part)
        kept = path.read_bytes()
        path.write_bytes(b"-----BEGIN NOTHING-----\n")
        with pytest.raises(InputError, match=rf"peer\.{part}, .*there is no"):
            load(peer.path)
        path.write_bytes(kept)
    assert load(peer.path) == peer
    peer.certificate.write_bytes(issued()[1])
    with pytest.raises(InputError, match=r"is not the key of peer\.certificate"):
        load(peer.path)


def test_certificates_that_expired_are_refused(peer):
    signer = certificates.private_key(AUTHORITY[0])
    old = x509.load_pem_x509_certificate(peer.certificate.read_bytes())
    now = datetime.now(UTC)
    expired = (
        x509.CertificateBuilder(old.issuer, old.subject, old.public_key(), old.serial_number)
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(now - timedelta(seconds=1))
        .add_extension(
            old.extensions.get_extension_for_class(x509.SubjectAlternativeName).value, False
        )
        .sign(signer, hashes.SHA256())
    )
    peer.certificate.write_bytes(expired.public_bytes(certificates.serialization.Encoding.PEM))
    with pytest.raises(InputError, match=r"expired at .* UTC: `edgewise network renew`"):
        load(peer.path)


def test_a_renewal_that_is_half_done_is_waited_for(peer):
    before = peer.credentials()
    key, certificate = issued()
    certificates.replace_secret(peer.key, key)

    def finish():
        time.sleep(0.2)
        certificates.replace_public(peer.certificate, certificate)

    thread = threading.Thread(target=finish)
    thread.start()
    after = peer.credentials()
    thread.join()
    assert after == (AUTHORITY[1], key, certificate) != before


def test_what_is_agreed_on(peer):
    agreed = peer.agreed()
    assert set(agreed) == {"mesh", *(f.name for f in fields(Fit))}
    assert agreed["mesh"] == NAME
    assert json.loads(json.dumps(agreed)) == agreed  # so that what a neighbour sends compares equal
    elsewhere = replace(peer, id=9, nodes=4, listen="h:1", penalty=("l1:1",), neighbours=())
    assert elsewhere.agreed() == agreed
    other = replace(peer, fit=replace(peer.fit, seed=1)).agreed()
    assert [k for k in agreed if agreed[k] != other[k]] == ["seed"]
    text = peer.path.read_text()
    peer.path.write_text(text.replace("patience = 1.0", "patience = 1"))
    assert load(peer.path).agreed() == agreed
    strict = replace(peer, fit=replace(peer.fit, mode="strict"), checkpoint_every=7)
    assert strict.agreed()["checkpoint_every"] == 7


# --- methods that peers can run -------------------------------------------------------------------


@pytest.mark.parametrize("name", CATALOGUE)
def test_which_methods_are_local(name):
    method = make(name)
    alone = isinstance(method, ew.PrimalDual | ew.PDMM | ew.DADMM | ew.NewtonPD)
    never = isinstance(method, ew.DCS | ew.PMGT | ew.APAPC | ew.AccVRExtra | ew.PushTracking)
    if alone:
        require_local(method)
        told = "no step" if isinstance(method, ew.NewtonPD) else "eta has several numbers"
        with pytest.raises(MethodError, match=told):
            require_local(make(name, eta=np.ones(3)))
    else:
        with pytest.raises(MethodError, match="which no peer knows"):
            require_local(method)
    heals = isinstance(method, ew.PrimalDual | ew.PDMM | ew.NewtonPD)
    if not alone and not never:
        stepped = make(name, eta=0.1)
        if isinstance(method, ew.NetworkDane):
            with pytest.raises(MethodError, match="mu 'auto'"):
                require_local(stepped)
            stepped = replace(stepped, mu=1.0)
        require_local(stepped)
        with pytest.raises(MethodError, match="mixing 'best-constant'"):
            require_local(replace(stepped, mixing="best-constant"))
        with pytest.raises(MethodError, match="mixing"):
            require_local(replace(stepped, mixing=np.eye(3)))
    if heals:
        require_local(method, "tolerant")
    elif not never:
        with pytest.raises(MethodError, match=r"never forgets .* mode strict"):
            require_local(make(name, eta=0.1), "tolerant")
