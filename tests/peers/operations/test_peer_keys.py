"""Keys that stay on their hosts: `network request`, `sign`, `revoke`."""

import json
import os
import shutil
import stat
from pathlib import Path

import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID
from network_calls import MESH, call, refused, said

from edgewise.peers.config import certificates, revocation
from edgewise.peers.config.peer_config import load
from edgewise.peers.config.requests import certified_key, key_fingerprint


@pytest.fixture(autouse=True)
def hosts(tmp_path, monkeypatch):
    """mesh/ of who keeps the authority's key, and host1/ with what peer 1 was given."""
    monkeypatch.chdir(tmp_path)
    call("init", "--nodes", 3, "--keys-on-hosts", "--out", "mesh")
    (tmp_path / "host1").mkdir()
    for name in ("authority.pem", "peer1.toml"):
        shutil.copy(MESH / name, "host1")


def signed():
    made = said("request", "host1/peer1.toml")
    shutil.copy("host1/peer1.csr", "mesh")
    done = said("sign", "mesh", "mesh/peer1.csr", "--days", 30)
    shutil.copy(MESH / "peer1.pem", "host1")
    return made, done["peers"][0]


def test_a_key_never_leaves_its_host():
    assert not list(MESH.glob("peer*.key"))
    made, done = signed()
    assert made["key_made"]
    assert stat.S_IMODE(os.stat("host1/peer1.key").st_mode) == 0o600
    assert not list(MESH.glob("peer*.key"))
    assert made["fingerprint"] == done["fingerprint"]
    config = load("host1/peer1.toml")  # as `edgewise node` does, which refuses what does not fit
    pem = config.certificate.read_bytes()
    assert key_fingerprint(certified_key(pem)) == made["fingerprint"]
    assert certificates.is_signed_by(pem, config.authority.read_bytes())


def test_a_certificate_is_made_anew_for_the_same_key():
    first, _ = signed()
    again, _ = signed()
    assert not again["key_made"]
    assert again["fingerprint"] == first["fingerprint"]
    assert "its own host" in call("request", "--help").stdout
    assert "peer1.toml`, and sign it here" in refused("renew", "mesh", 1)


def request(name, key=None, signer=None):
    key = key or ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = x509.CertificateSigningRequestBuilder().subject_name(subject)
    authority = x509.BasicConstraints(ca=True, path_length=None)
    made = made.add_extension(authority, critical=True).sign(signer or key, hashes.SHA256())
    return made.public_bytes(serialization.Encoding.PEM)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (lambda mesh: request(f"peer-7.{mesh}.edgewise"), "has no peer 7: there are 0, 1, 2"),
        (lambda mesh: request("peer-1.mesh-ffffffff.edgewise"), "peers of this network are peer-0"),
        (
            lambda mesh: request(f"peer-1.{mesh}.edgewise", rsa.generate_private_key(65537, 2048)),
            "its key is no P-256 key",
        ),
        (lambda mesh: b"hello", "there is no request in it"),
    ],
)
def test_what_is_not_signed(asked, why):
    Path("x.csr").write_bytes(asked(peer_mesh()))
    assert why in refused("sign", "mesh", "x.csr")
    assert not list(MESH.glob("peer*.pem"))


def peer_mesh():
    from edgewise.peers.operations.mesh import read_mesh

    return read_mesh(MESH).peers[0].mesh


def test_a_request_whose_signature_is_broken_is_not_signed():
    made = x509.load_pem_x509_csr(request(f"peer-1.{peer_mesh()}.edgewise"))
    broken = bytearray(made.public_bytes(serialization.Encoding.DER))
    broken[-1] ^= 1
    pem = x509.load_der_x509_csr(bytes(broken)).public_bytes(serialization.Encoding.PEM)
    Path("x.csr").write_bytes(pem)
    assert "is not signed by its own key" in refused("sign", "mesh", "x.csr")


def test_what_a_request_asks_for_beside_its_name_is_not_granted():
    Path("x.csr").write_bytes(request(f"peer-1.{peer_mesh()}.edgewise"))
    call("sign", "mesh", "x.csr")
    made = certificates.certificate_in((MESH / "peer1.pem").read_bytes())
    assert not made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_all_certificates_that_a_peer_has_had_are_revoked():
    assert "no certificate yet" in refused("revoke", "mesh", 1)
    signed()
    signed()
    assert said("revoke", "mesh", 1)["revoked"] == 2
    signed()
    serial = certificates.certificate_in((MESH / "peer1.pem").read_bytes()).serial_number
    listed = revocation.revoked_in(MESH / revocation.LIST)
    assert len(listed) == 2
    assert serial not in listed
    assert said("revoke", "mesh", 1)["revoked"] == 1
    lines = [json.loads(line) for line in (MESH / revocation.ISSUED).read_text().splitlines()]
    assert [line["peer"] for line in lines] == [1, 1, 1]
    assert revocation.number_of(revocation.read_list(MESH / revocation.LIST)) == 2


def test_a_new_peer_gets_no_key_where_the_others_have_none():
    call("add", "mesh", "--neighbours", "0,1")
    assert not (MESH / "peer3.key").exists()
    assert not (MESH / "peer3.pem").exists()
