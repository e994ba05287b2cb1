"""HOST:PORT, as texts."""

import ipaddress
import re
from typing import Any

from edgewise.errors import InputError

ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]{}]+):([0-9]{1,5})")
EXAMPLES = "HOST:PORT, such as peer3.example.org:24703 or [::1]:24703"


def is_address(value: Any, least_port: int = 1) -> bool:
    found = ADDRESS.fullmatch(value) if isinstance(value, str) else None
    return found is not None and least_port <= int(found[2]) <= 65535


def address_of(host: str, port: int) -> str:
    address = f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"
    if not is_address(address):
        raise InputError(f"{address} is no address: let host and port make {EXAMPLES}")
    return address


def host_of(address: str) -> str:
    return address.rpartition(":")[0]


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def listening(address: str) -> str:
    """Where a peer with this address listens: on all interfaces only if it must."""
    host, port = host_of(address), port_of(address)
    if is_loopback(host):
        return address
    return f"[::]:{port}" if host.startswith("[") else f"0.0.0.0:{port}"


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
