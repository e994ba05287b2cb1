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
        left = self.remember(who, self.left_of(who) - much)
        return max(-left / self.rate, 0.0)

    def admits(self, who: Hashable) -> bool:
        """One more, where one is left. Who is refused is charged nothing: it calls again, and many
        behind one address would charge each other for ever."""
        left = self.left_of(who)
        self.remember(who, left - 1 if left >= 1 else left)
        return left >= 1

    def left_of(self, who: Hashable) -> float:
        now = time.monotonic()
        left, since = self.left.get(who, (self.burst, now))
        return min(self.burst, left + self.rate * (now - since))

    def remember(self, who: Hashable, left: float) -> float:
        self.left.pop(who, None)
        self.left[who] = left, time.monotonic()
        while len(self.left) > self.most:
            del self.left[next(iter(self.left))]
        return left
