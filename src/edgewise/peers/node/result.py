"""What a peer came to."""

from dataclasses import dataclass, field

import numpy as np

from edgewise.errors import EdgewiseError
from edgewise.running.trace import Trace


class PeerError(EdgewiseError):
    """Neighbours that do not fit together."""


@dataclass(frozen=True)
class PeerResult:
    """What a peer came to."""

    x: np.ndarray
    rounds: int
    residual: float
    message: str
    trace: Trace = field(repr=False)
    method_note: str = ""  # which method "auto" came to, and why; nothing where one was named
