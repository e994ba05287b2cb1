"""A peer's part in a fit under differential privacy: its noise is its own, what it tells of its
data is what is public, and what it has released is written down before it goes out."""

import json
import logging
from pathlib import Path

from edgewise import spec
from edgewise.differential_privacy.bounded_problem import bounded, require_clippable, row_norm_of
from edgewise.differential_privacy.budget import DP
from edgewise.differential_privacy.private_method import private_method
from edgewise.differential_privacy.spent import PrivacySpent
from edgewise.errors import CheckpointError, InputError
from edgewise.fileio import write_json
from edgewise.peers.config.peer_config import Fit, PeerConfig
from edgewise.peers.node.fit_identity import digest, identity_of
from edgewise.peers.node.state import PeerState

log = logging.getLogger("edgewise.peers")

LEDGER = "privacy.json"


def budget_of(fit: Fit) -> DP | None:
    """None where the fit is not private."""
    if fit.dp_epsilon is None:
        return None
    assert fit.dp_delta is not None
    assert fit.dp_clip is not None
    rounds = min(fit.rounds, fit.dp_rounds)
    return DP(fit.dp_epsilon, fit.dp_delta, fit.dp_clip, fit.dp_row_norm, rounds)


def refuse_sums(config: PeerConfig) -> None:
    """Raises InputError where a sum outside of the fit would tell what no noise hides."""
    if config.fit.dp_epsilon is not None:
        raise InputError(
            f"{config.path}: the fit is private (fit.dp_epsilon), and a sum over the peers' data "
            "is not covered by what it spends: take a configuration without it, if the sum may be "
            "known"
        )


class Ledger:
    """How many noisy gradients a peer has released, on disk before they go out.

    A peer that is killed does not know what has gone out since its last checkpoint, and takes those
    rounds again, with other noise: both count. So releases are reserved some rounds ahead, and what
    was reserved when it ended is spent. The rounds that it takes twice it lacks at the end.
    """

    def __init__(self, folder: Path, fit: str, most: int, ahead: int) -> None:
        """fit: a digest of what the releases belong to; ahead: how many are reserved at a time."""
        self.path, self.fit, self.most, self.ahead = folder / LEDGER, fit, most, ahead
        self.kept = self.read()
        self.reserved = self.used = self.kept.get(fit, 0)

    def read(self) -> dict[str, int]:
        try:
            kept = json.loads(self.path.read_text())
            return {str(name): int(count) for name, count in kept.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, AttributeError) as problem:
            raise CheckpointError(
                f"{self.path} cannot be read ({problem}), and says what has been spent of the "
                "privacy budget: put it back, or give another folder as out and add up the epsilons"
            ) from None

    def at_least(self, rounds: int) -> None:
        """A checkpoint says that so many are out."""
        self.reserved = self.used = max(self.used, rounds)

    def release(self) -> None:
        """One more is about to be made. Raises OSError where that cannot be written down."""
        if self.used >= self.reserved:
            self.reserved = min(self.used + self.ahead, self.most)
            self.kept[self.fit] = self.reserved
            write_json(self.path, self.kept)
        self.used += 1

    @property
    def spent(self) -> bool:
        return self.used >= self.most


def make_private(peer: PeerState) -> None:
    """The problem as it may be seen, and the method with noise. Where the fit is private, and its
    problem is the one that is to be fitted."""
    budget = budget_of(peer.config.fit)
    if budget is None:
        return
    require_clippable(peer.problem, known_fills=peer.config.schema is not None)
    fit, nodes = peer.settled_fit, peer.config.nodes
    row_norm = row_norm_of(peer.problem, budget)
    peer.problem = bounded(peer.problem, row_norm)
    rounds = budget.rounds
    asked = spec.method(fit.method, list(fit.set))
    peer.method = private_method(asked, peer.problem, budget, rounds, nodes, fit.eta, fit.rho)
    gradient = peer.method.gradient
    noise = float(gradient.noise)  # type: ignore[union-attr]
    peer.privacy = PrivacySpent(budget, rounds, noise, row_norm)
    if not hasattr(peer, "ledger"):
        fit_digest = digest(identity_of(peer.config.agreed()))
        peer.ledger = Ledger(peer.config.out, fit_digest, rounds, peer.config.checkpoint_every)
        others = sum(1 for name in peer.ledger.kept if name != fit_digest)
        if others:
            log.warning(
                "%s has releases of %d other private fits: their epsilons and this one's add up",
                peer.ledger.path,
                others,
            )
