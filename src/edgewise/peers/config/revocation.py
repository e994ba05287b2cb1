"""Certificates that are taken back before they end: a list signed by the authority (an X.509 CRL).

It lies beside `authority.pem` on every host. A peer reads it whenever it changes, hangs up on all,
and lets nobody in again whose certificate is on it.
"""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from edgewise.errors import InputError
from edgewise.fileio import replacing
from edgewise.peers.config.certificates import KeyPair, certificate_in, private_key, replace_public

LIST = "revoked.pem"
ISSUED = "issued.jsonl"  # beside the authority's key: which certificates there are


class Issued(NamedTuple):
    id: int
    serial: int
    expires: datetime


# --- what was issued ------------------------------------------------------------------------------


def note(folder: Path, id: int, cert_pem: bytes) -> None:
    """A line in the authority's book."""
    certificate = certificate_in(cert_pem)
    line = {
        "peer": id,
        "serial": f"{certificate.serial_number:x}",
        "expires": certificate.not_valid_after_utc.isoformat(),
    }
    path = folder / ISSUED
    before = path.read_bytes() if path.exists() else b""
    with replacing(path) as file:
        file.write(before + json.dumps(line).encode() + b"\n")


def issued(folder: Path) -> list[Issued]:
    path = folder / ISSUED
    try:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        return [
            Issued(at["peer"], int(at["serial"], 16), datetime.fromisoformat(at["expires"]))
            for at in lines
        ]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise InputError(f"{path} cannot be read ({problem}): put back a copy") from None


# --- the list -------------------------------------------------------------------------------------


def read_list(path: Path) -> x509.CertificateRevocationList | None:
    """None where there is no list: nobody is on it."""
    try:
        return x509.load_pem_x509_crl(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as problem:
        raise InputError(
            f"{path} is no list of revoked certificates ({problem}): copy it again from where "
            "`edgewise network revoke` wrote it"
        ) from None


def revoked_in(path: Path) -> set[int]:
    """Serial numbers."""
    found = read_list(path)
    return set() if found is None else {each.serial_number for each in found}


def write_list(folder: Path, signer: KeyPair, serials: set[int]) -> None:
    """All that are revoked; whoever has the list before this one can tell that it is older."""
    authority, before = certificate_in(signer[1]), read_list(folder / LIST)
    now = datetime.now(UTC)
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(authority.subject)
        .last_update(now - timedelta(minutes=5))  # clocks differ
        .next_update(authority.not_valid_after_utc)  # it holds until there is another
        .add_extension(x509.CRLNumber(number_of(before) + 1), critical=False)
    )
    dates: dict[int, Any] = (
        {} if before is None else {each.serial_number: each.revocation_date_utc for each in before}
    )
    for serial in sorted(serials):
        entry = x509.RevokedCertificateBuilder().serial_number(serial)
        builder = builder.add_revoked_certificate(
            entry.revocation_date(dates.get(serial, now)).build()
        )
    made = builder.sign(private_key(signer[0]), hashes.SHA256())
    replace_public(folder / LIST, made.public_bytes(serialization.Encoding.PEM))


def number_of(crl: x509.CertificateRevocationList | None) -> int:
    if crl is None:
        return 0
    return int(crl.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number)


def require_signed(path: Path, authority_cert: bytes) -> None:
    """By the authority of this mesh, or it says nothing."""
    found = read_list(path)
    if found is not None:
        key: Any = certificate_in(authority_cert).public_key()
        if not found.is_signature_valid(key):
            raise InputError(
                f"{path} is not signed by this network's authority: copy it again from where "
                "`edgewise network revoke` wrote it"
            )
