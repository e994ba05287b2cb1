"""A peer is who its certificate says, to everybody that trusts its authority and to nobody else."""

import os
import ssl
import stat
import subprocess
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import verification
from cryptography.x509.oid import ExtendedKeyUsageOID

from edgewise.errors import InputError
from edgewise.peers.config import certificates

NAME = "mesh-0a1b"
AUTHORITY, OTHER = certificates.make_authority(), certificates.make_authority()


def issued(id=3, days=30, authority=AUTHORITY):
    return certificates.issue(*authority, NAME, id, days)


def verifier(authority, now=None):
    store = verification.Store([x509.load_pem_x509_certificate(authority[1])])
    return verification.PolicyBuilder().store(store).time(now or datetime.now(UTC))


def test_certificates_verify_both_ways_against_their_own_authority_only():
    leaf = x509.load_pem_x509_certificate(issued()[1])
    name = certificates.name_of(NAME, 3)
    verifier(AUTHORITY).build_server_verifier(x509.DNSName(name)).verify(leaf, [])
    found = verifier(AUTHORITY).build_client_verifier().verify(leaf, [])
    assert [n.value for n in found.subjects] == [name]
    late = datetime.now(UTC) + timedelta(days=31)
    other = x509.DNSName(certificates.name_of(NAME, 4))
    for refusing in (
        verifier(OTHER).build_client_verifier(),
        verifier(AUTHORITY, late).build_client_verifier(),
        verifier(AUTHORITY).build_server_verifier(other),
    ):
        with pytest.raises(verification.VerificationError):
            refusing.verify(leaf, [])


def test_openssl_is_of_the_same_opinion(tmp_path):
    for name, pem in (("a", AUTHORITY[1]), ("b", OTHER[1]), ("leaf", issued()[1])):
        (tmp_path / name).write_bytes(pem)

    def verified(authority, purpose):
        words = ["openssl", "verify", "-x509_strict", "-purpose", purpose, "-CAfile", authority]
        return subprocess.run([*words, "leaf"], cwd=tmp_path, capture_output=True).returncode == 0

    try:
        assert verified("a", "sslclient")
    except FileNotFoundError:
        pytest.skip("there is no openssl command here")
    assert verified("a", "sslserver")
    assert not verified("b", "sslclient")


def test_what_is_in_a_certificate():
    leaf = x509.load_pem_x509_certificate(issued()[1])
    authority = x509.load_pem_x509_certificate(AUTHORITY[1])
    for certificate in (leaf, authority):
        key = certificate.public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey)
        assert isinstance(key.curve, ec.SECP256R1)
    constraints = authority.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (constraints.critical, constraints.value.ca, constraints.value.path_length) == (
        True,
        True,
        0,
    )
    usage = authority.extensions.get_extension_for_class(x509.KeyUsage).value
    assert (usage.key_cert_sign, usage.digital_signature) == (True, False)
    usage = leaf.extensions.get_extension_for_class(x509.KeyUsage).value
    assert (usage.key_cert_sign, usage.digital_signature) == (False, True)
    assert not leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    purposes = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert set(purposes) == {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}
    assert leaf.subject.rfc4514_string() == f"CN=peer-3.{NAME}.edgewise"
    before = datetime.now(UTC) - leaf.not_valid_before_utc
    assert timedelta(minutes=1) < before < timedelta(minutes=10)


def shaken(tmp_path, server, client, name):
    """The version of a TLS session between these two, each verifying the other."""
    contexts = []
    for side, (authority, pair) in (("server", server), ("client", client)):
        pem, key = tmp_path / f"{side}.pem", tmp_path / f"{side}.key"
        pem.write_bytes(pair[1])
        key.write_bytes(pair[0])
        kind = ssl.PROTOCOL_TLS_SERVER if side == "server" else ssl.PROTOCOL_TLS_CLIENT
        context = ssl.SSLContext(kind)
        context.load_verify_locations(cadata=authority[1].decode())
        context.load_cert_chain(pem, key)
        context.verify_mode = ssl.CERT_REQUIRED
        contexts.append(context)
    one, two = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        contexts[0].wrap_bio(one, two, server_side=True),
        contexts[1].wrap_bio(two, one, server_hostname=name),
    ]
    for _ in range(6):
        for end in ends:
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    return {end.version() for end in ends}


def test_two_peers_shake_hands_and_strangers_do_not(tmp_path):
    three, four = (AUTHORITY, issued(3)), (AUTHORITY, issued(4))
    name = certificates.name_of(NAME, 3)
    assert shaken(tmp_path, three, four, name) == {"TLSv1.3"}
    for server, client in (
        (three, (AUTHORITY, issued(4, authority=OTHER))),
        ((AUTHORITY, issued(3, authority=OTHER)), four),
        ((AUTHORITY, issued(5)), four),  # a peer, but another one than was dialled
    ):
        with pytest.raises(ssl.SSLError):
            shaken(tmp_path, server, client, name)


@pytest.mark.parametrize(
    ("names", "id"),
    [
        ([b"peer-3.mesh-0a1b.edgewise"], 3),
        (["peer-0.mesh-0a1b.edgewise"], 0),
        (["peer-12.mesh-0a1b.edgewise", "host.example.org"], 12),
        (["peer-3.mesh-0a1c.edgewise"], None),
        (["peer-3.mesh-0a1b.edgewise", "peer-4.mesh-0a1b.edgewise"], None),
        (["peer-03.mesh-0a1b.edgewise"], None),
        (["xpeer-3.mesh-0a1b.edgewise"], None),
        (["peer-3.mesh-0a1b.edgewise.example.org"], None),
        (["peer-3.mesh-0a1b.edgewise\n"], None),
        (["peer-٣.mesh-0a1b.edgewise"], None),
        ([b"\xff"], None),
        ([], None),
    ],
)
def test_who_names_name(names, id):
    assert certificates.id_of(names, NAME) == id


def test_a_dot_in_a_mesh_is_a_dot():
    assert certificates.id_of(["peer-3.axb.edgewise"], "a.b") is None


def test_certificates_end_with_their_authority():
    ends = certificates.expiry(AUTHORITY[1])
    assert certificates.expiry(issued(days=10**5)[1]) <= ends
    with pytest.raises(InputError, match="not of one pair"):
        certificates.issue(AUTHORITY[0], OTHER[1], NAME, 3, 30)


def test_a_key_is_never_readable_by_others(tmp_path, monkeypatch):
    seen = []
    opened = os.open

    def watching(path, flags, mode=0o777, **more):
        if flags & os.O_CREAT:
            seen.append((flags & os.O_EXCL, mode))
        return opened(path, flags, mode, **more)

    old = os.umask(0)
    try:
        monkeypatch.setattr(os, "open", watching)
        certificates.write_secret(tmp_path / "a.key", b"secret")
        certificates.replace_secret(tmp_path / "a.key", b"other")
    finally:
        os.umask(old)
    assert seen == [(os.O_EXCL, 0o600)] * 2
    assert stat.S_IMODE((tmp_path / "a.key").stat().st_mode) == 0o600
    assert (tmp_path / "a.key").read_bytes() == b"other"
    assert [p.name for p in tmp_path.iterdir()] == ["a.key"]
    with pytest.raises(FileExistsError):
        certificates.write_secret(tmp_path / "a.key", b"third")
