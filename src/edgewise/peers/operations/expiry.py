"""When a peer's certificate ends, and the word about it in time."""

import logging
from datetime import UTC, datetime, timedelta

from edgewise.errors import InputError
from edgewise.peers.config import certificates
from edgewise.peers.config.peer_config import PeerConfig

log = logging.getLogger("edgewise.peers")

SOON = timedelta(days=30)


def expires(config: PeerConfig) -> datetime | None:
    """None where there is no certificate that can be read: who needs it says so."""
    try:
        return certificates.expiry(config.certificate.read_bytes())
    except (OSError, InputError):
        return None


def warning(config: PeerConfig, ends: datetime | None = None) -> str:
    """What to do, where it ends soon; else nothing."""
    ends = expires(config) if ends is None else ends
    left = None if ends is None else ends - datetime.now(UTC)
    if ends is None or left is None or left > SOON:
        return ""
    days = left // timedelta(days=1)
    when = "has expired" if left < timedelta() else f"expires in {days} days"
    return (
        f"the certificate of peer {config.id} {when}, at {ends:%Y-%m-%d %H:%M} UTC: make a new one "
        "with `edgewise network renew` (a running peer takes it up)"
    )


class Reminder:
    """Warns at the start, and once a day."""

    def __init__(self) -> None:
        self.last: datetime | None = None

    def look(self, config: PeerConfig) -> None:
        now = datetime.now(UTC)
        if self.last is not None and now - self.last < timedelta(days=1):
            return
        self.last = now
        if told := warning(config):
            log.warning(told)
