"""How large a neighbour's numbers may be.

What is within the bounds of the format can still ruin a run: an edge's messages are its whole dual
state, some of whose parts never die down, so that a 1e12 in them leaves its rounding, 1e-4, for
ever. So a peer finds out how large its own messages are, on its own data alone (`node.own_size`),
and says so in its greeting. A message may be a thousand times as large as the larger of both ends'
sizes, of which the neighbour's counts up to a thousand times this peer's own. Whoever was lied to
within these bounds sends nothing beyond half of its own, so that honest peers never refuse it.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from edgewise.peers.transport.frames import Frame, ProtocolError

MORE = 1e3  # times the larger size of both ends, that a message may have
MOST_TOLD = 1e3  # times this peer's own size, that a neighbour's counts for
PART_SENT = 0.5  # of that, of its own size: a wire may round up
BODY_MORE, HEAD_MOST = 1e9, 1e12  # of news: matrices are taken in anew, and leave nothing


class Bounds:
    """What one peer takes; all of it before its own size is known, or where that is zero."""

    def __init__(self) -> None:
        self.sizes: np.ndarray | None = None  # (k,) of the vectors of a message
        self.body = 0.0  # of a body of news

    def grown(self, sizes: np.ndarray) -> None:
        """Its own messages have become larger, and its model is sound."""
        if self.sizes is not None:
            self.sizes = np.maximum(self.sizes, sizes)

    def most(self, told: np.ndarray | None) -> np.ndarray | None:
        """(k,) of a message from a neighbour that has told this of its own."""
        own = self.sizes
        if own is None:
            return None
        theirs = np.zeros_like(own) if told is None or len(told) != len(own) else told
        larger = np.maximum(own, np.minimum(theirs, np.where(own > 0, MOST_TOLD * own, np.inf)))
        return np.where(larger > 0, MORE * larger, np.inf)

    def clipped(self, vectors: np.ndarray) -> np.ndarray:
        """(k, n) as they may go out: as they are, unless somebody has lied to this peer."""
        if self.sizes is None:
            return vectors
        most = PART_SENT * MORE * self.sizes
        if not (np.abs(vectors).max(axis=1, initial=0) > most).any():
            return vectors
        most = np.where(most > 0, most, np.inf)[:, None]
        return np.clip(vectors, -most, most)

    def require(self, frame: Frame, told: np.ndarray | None, head: int) -> None:
        """Raises ProtocolError where a message has numbers beyond that."""
        most = self.most(told)
        if most is None or self.sizes is None:
            return
        found = np.abs(frame.payload).max(axis=1, initial=0)
        if (found > most).any():
            k = int(np.argmax(found / most))
            raise ProtocolError(
                f"numbers up to {found[k]:.0e}, where this peer's own are about {self.sizes[k]:.0e}"
            )
        told_head, told_body = frame.news[:head], frame.news[head:]
        if np.abs(told_head).max(initial=0) > HEAD_MOST:
            raise ProtocolError("news with numbers that no run comes to")
        if self.body > 0 and np.abs(told_body).max(initial=0) > BODY_MORE * self.body:
            raise ProtocolError(
                f"curvatures up to {np.abs(told_body).max():.0e}, where this peer's own are about "
                f"{self.body:.0e}"
            )


def sizes_in(said: Any) -> np.ndarray | None:
    """Of a greeting; None where it has none that can be used."""
    try:
        sizes = np.array([float(size) for size in said], np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    usable: Iterable[bool] = np.isfinite(sizes) & (sizes >= 0)
    return sizes if all(usable) else None
