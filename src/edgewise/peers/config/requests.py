"""Keys that never leave their host: a request for a certificate goes to the authority instead."""

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from edgewise.errors import InputError
from edgewise.peers.config.certificates import certificate_in, key_bytes, private_key


def new_key() -> bytes:
    return key_bytes(ec.generate_private_key(ec.SECP256R1()))


def request_for(key_pem: bytes, name: str) -> bytes:
    """PEM (PKCS #10), signed with the key: whoever sends it has that key."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    made = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    request = made.sign(private_key(key_pem), hashes.SHA256())
    return request.public_bytes(serialization.Encoding.PEM)


def key_and_name(request_pem: bytes) -> tuple[ec.EllipticCurvePublicKey, str]:
    """Of a request; nothing else that it may ask for is granted."""
    try:
        request = x509.load_pem_x509_csr(request_pem)
        names = request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        sound = request.is_signature_valid
    except (ValueError, TypeError, InvalidSignature):
        raise InputError(
            "there is no request in it: make one with `edgewise network request`"
        ) from None
    key = request.public_key()
    if not sound or len(names) != 1:
        raise InputError("the request is not signed by its own key, or has no name: make it anew")
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise InputError("its key is no P-256 key: make one with `edgewise network request`")
    return key, str(names[0].value)


def key_fingerprint(key: ec.EllipticCurvePublicKey) -> str:
    """What both sides compare by telephone: sixteen groups of four letters."""
    spki = key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    digest = hashes.Hash(hashes.SHA256())
    digest.update(spki)
    told = digest.finalize().hex()
    return " ".join(told[k : k + 4] for k in range(0, len(told), 4))


def own_fingerprint(key_pem: bytes) -> str:
    return key_fingerprint(private_key(key_pem).public_key())


def certified_key(cert_pem: bytes) -> ec.EllipticCurvePublicKey:
    key = certificate_in(cert_pem).public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    return key
