"""Who a peer is: a certificate from its mesh's own authority, and nothing else.

Keys are ECDSA P-256 throughout. The name in a certificate is all the identity there is, so it holds
the mesh too: a certificate from another mesh that shares the authority by mistake is no neighbour.
"""

import os
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from edgewise.errors import InputError
from edgewise.fileio import replacing

try:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError as missing:
    raise InputError(
        f"certificates need cryptography ({missing}): pip install 'edgewise[peers]'"
    ) from missing

KeyPair = tuple[bytes, bytes]  # a key and its certificate, PEM

SLACK = timedelta(minutes=5)  # clocks differ: a certificate is good from a little before it is made
AUTHORITY_DAYS = 20 * 365
PEER_NAME = r"peer-(0|[1-9][0-9]{{0,8}})\.{mesh}\.edgewise"


def name_of(mesh: str, id: int) -> str:
    return f"peer-{id}.{mesh}.edgewise"


def relay_name(mesh: str) -> str:
    """Of what passes on what peers say to each other; it can be taken for no peer."""
    return f"relay.{mesh}.edgewise"


def id_of(names: Iterable[str | bytes], mesh: str) -> int | None:
    """The one peer of this mesh that a verified certificate's names name, if they do."""
    form = re.compile(PEER_NAME.format(mesh=re.escape(mesh)))
    texts = [n.decode("ascii", "replace") if isinstance(n, bytes) else n for n in names]
    ids = {int(found[1]) for found in map(form.fullmatch, texts) if found}
    return ids.pop() if len(ids) == 1 else None


# --- making them ----------------------------------------------------------------------------------


def make_authority() -> KeyPair:
    """A key that signs the mesh's certificates and does nothing else, and its own certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "edgewise authority")])
    certificate = (
        started(name, name, key.public_key(), AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage(signs_certificates=True), critical=True)
        .add_extension(identifier(key.public_key()), critical=False)
        .add_extension(authority_identifier(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return key_bytes(key), certificate.public_bytes(serialization.Encoding.PEM)


def issue(authority_key: bytes, authority_cert: bytes, mesh: str, id: int, days: int) -> KeyPair:
    """A new key for a peer, and its certificate, which never outlives the authority's."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = certify(authority_key, authority_cert, key.public_key(), name_of(mesh, id), days)
    return key_bytes(key), certificate


def certify(
    authority_key: bytes,
    authority_cert: bytes,
    key: ec.EllipticCurvePublicKey,
    name: str,
    days: int,
) -> bytes:
    """The certificate of a public key and a name."""
    signer = private_key(authority_key)
    authority = certificate_in(authority_cert)
    if signer.public_key() != authority.public_key():
        raise InputError("the authority's key and certificate are not of one pair")
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    both_ways = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    days = min(days, (authority.not_valid_after_utc - datetime.now(UTC)).days)
    if days < 1:
        raise InputError("the authority's certificate ends within a day: make a new network")
    certificate = (
        started(subject, authority.subject, key, days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(both_ways), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(identifier(key), critical=False)
        .add_extension(authority_identifier(signer.public_key()), critical=False)
        .sign(signer, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM)


def started(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SLACK)
        .not_valid_after(now + timedelta(days=days))
    )


def usage(signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def identifier(key: ec.EllipticCurvePublicKey) -> x509.SubjectKeyIdentifier:
    return x509.SubjectKeyIdentifier.from_public_key(key)


def authority_identifier(key: ec.EllipticCurvePublicKey) -> x509.AuthorityKeyIdentifier:
    return x509.AuthorityKeyIdentifier.from_issuer_public_key(key)


def key_bytes(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


# --- reading them ---------------------------------------------------------------------------------


def private_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise InputError("there is no private key in it: give an unencrypted PEM file") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise InputError("its key is no ECDSA key: make one with `edgewise network renew`")
    return key


def certificate_in(pem: bytes) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError:
        raise InputError("there is no certificate in it: give a PEM file") from None


def expiry(cert_pem: bytes) -> datetime:
    """The moment, in UTC, from which on a certificate is refused."""
    return certificate_in(cert_pem).not_valid_after_utc


def names_in(cert_pem: bytes) -> list[str]:
    extensions = certificate_in(cert_pem).extensions
    try:
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return names.get_values_for_type(x509.DNSName)


def is_pair(key_pem: bytes, cert_pem: bytes) -> bool:
    return private_key(key_pem).public_key() == certificate_in(cert_pem).public_key()


def is_signed_by(cert_pem: bytes, authority_cert: bytes) -> bool:
    try:
        certificate_in(cert_pem).verify_directly_issued_by(certificate_in(authority_cert))
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


# --- on disk --------------------------------------------------------------------------------------


def write_secret(path: Path, key_pem: bytes) -> None:
    """A new file that nobody else can read, not even while it is written."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(key_pem)
        file.flush()
        os.fsync(file.fileno())


def replace_secret(path: Path, key_pem: bytes) -> None:
    """The same in the place of a file that may be there: readers see the old one or the new."""
    with replacing(path, secret=True) as file:
        file.write(key_pem)


def replace_public(path: Path, content: bytes) -> None:
    with replacing(path) as file:
        file.write(content)
