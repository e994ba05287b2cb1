"""How much a relay does for whom."""

import time
from collections.abc import Hashable
from typing import NamedTuple


class Limits(NamedTuple):
    connections: int = 256  # of all peers together; each takes up to half a megabyte
    of_a_peer: int = 64  # one for each of its neighbours
    bytes_per_second: float = 50e6  # from each peer
    calls_per_second: float = 20.0  # from each address
    waits: float = 10.0  # seconds for the other end to call
    idle: float = 30.0  # seconds without a byte; peers have a heartbeat every 1.5 s


class Allowances:
    """So much a second for each of many, and once what a while of it comes to."""

    def __init__(self, rate: float, burst: float, most: int = 4096) -> None:
        """most: how many are remembered; who came longest ago is forgotten first."""
        self.rate, self.burst, self.most = rate, burst, most
        self.left: dict[Hashable, tuple[float, float]] = {}  # and as of when

    def taken(self, who: Hashable, much: float) -> float:
        """Seconds to wait before more is taken; 0 while there is some left."""
        now = time.monotonic()
        left, since = self.left.pop(who, (self.burst, now))
        left = min(self.burst, left + self.rate * (now - since)) - much
        self.left[who] = left, now
        while len(self.left) > self.most:
            del self.left[next(iter(self.left))]
        return max(-left / self.rate, 0.0)
