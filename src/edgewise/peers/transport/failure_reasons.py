"""Why a neighbour cannot be reached, or a caller was refused, in words.

There is a bounded number of them, whatever the other side does: each is said once in a while.
"""

import socket
import ssl

from edgewise.errors import InputError


class ConnectionFailure(ConnectionError):
    """One that says why in words of ours."""


class ForeignWords(ConnectionFailure):
    """One with words that the other side chose. A log has these beside its format and not in it:
    kinds of lines are told by the format, and there must not be as many as somebody likes."""

    def __init__(self, ours: str, *theirs: object) -> None:
        """ours: a format for theirs."""
        super().__init__(ours % theirs)
        self.ours, self.theirs = ours, theirs


EXPIRED, NOT_YET, SELF_SIGNED = 10, 9, (18, 19, 20, 21)  # of OpenSSL's verification
OTHER_AUTHORITY = "a certificate of another authority"

OF_TLS = {  # what OpenSSL calls it, with this side looking at the other's certificate or protocol
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the other side has no certificate",
    "HTTP_REQUEST": "plain HTTP",
    "HTTPS_PROXY_REQUEST": "plain HTTP",
    "WRONG_VERSION_NUMBER": "no TLS: another service, or a proxy in the way",
    "PACKET_LENGTH_TOO_LONG": "no TLS: another service, or a proxy in the way",
    "RECORD_LAYER_FAILURE": "no TLS: another service, or a proxy in the way",
    "UNSUPPORTED_PROTOCOL": "TLS older than 1.3",
    "TLSV1_ALERT_PROTOCOL_VERSION": "TLS older than 1.3",
    "NO_SHARED_CIPHER": "TLS older than 1.3",
    # alerts: the other side's verdict on this one
    "TLSV1_ALERT_UNKNOWN_CA": "it takes this peer's certificate for one of another authority",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "it takes this peer's certificate for expired: "
    "`edgewise network renew` makes a new one, or a clock is wrong",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it cannot use this peer's certificate",
    "TLSV1_ALERT_DECRYPT_ERROR": "this peer's key does not fit its certificate",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it wants a certificate",
}


def reason_of(failure: BaseException) -> str:
    match failure:
        case ssl.SSLCertVerificationError():
            if failure.verify_code == EXPIRED:
                return "a certificate that has expired"
            if failure.verify_code == NOT_YET:
                return "a certificate that is not good yet: a clock is wrong"
            if failure.verify_code in SELF_SIGNED:
                return OTHER_AUTHORITY
            return f"a certificate that does not hold ({failure.verify_message})"
        case ssl.SSLEOFError() | ssl.SSLZeroReturnError() | EOFError():
            return "it hung up"
        case ssl.SSLError():
            named = getattr(failure, "reason", None) or "TLS_FAILED"
            return OF_TLS.get(named, named.lower().replace("_", " "))
        case socket.gaierror():
            return f"its name leads to no address ({failure.strerror}): check it, and the DNS here"
        case ConnectionRefusedError():
            return "nothing listens there (connection refused): does it run, and is the port right?"
        case TimeoutError():
            return "no answer (timed out): a firewall, or its host is down"
        case ConnectionResetError() | BrokenPipeError():
            return "it hung up (connection reset)"
        case InputError() | ConnectionFailure():
            return str(failure)
        case OSError():
            return failure.strerror or str(failure)
    return repr(failure)


def text_of(failure: BaseException) -> str:
    """The same as part of a format, so that a log tells one reason from another; what it is to be
    filled with is in `words_of`."""
    if isinstance(failure, ForeignWords):
        return failure.ours
    return reason_of(failure).replace("%", "%%")


def words_of(failure: BaseException) -> tuple[object, ...]:
    return failure.theirs if isinstance(failure, ForeignWords) else ()
