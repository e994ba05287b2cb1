"""What a peer came to."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edgewise.differential_privacy.spent import PrivacySpent
from edgewise.errors import EdgewiseError
from edgewise.inference.estimates import Inference
from edgewise.peers.node.ending import Ending
from edgewise.plotting.displays import peer_html, shown
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
    multipliers: dict[int, np.ndarray] = field(default_factory=dict, repr=False)  # by neighbour,
    # of the rows of their edge, where edges carry couplings
    violation: float = float("nan")  # of these: this peer's share, half of every edge's square
    ending: Ending | None = None  # why it ended, whether tol was met, who was away
    scores: dict[str, Any] | None = None  # on samples that all peers hold out, where they do
    summary: Inference | None = field(default=None, repr=False)  # with [fit] summary
    privacy: PrivacySpent | None = None  # what it told of any one sample, where the fit is private

    @property
    def converged(self) -> bool:
        """tol was met by all peers."""
        return self.ending is not None and self.ending.met

    @shown
    def _repr_html_(self) -> str:
        return peer_html(self)
