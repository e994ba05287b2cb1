"""The sums that a fit takes, before and after it, under pairwise masks (`masks`) where
`fit.masked` says so.

Each stage has key pairs of its own, which each peer tells its neighbours in a stage beside it. What
goes up the tree is then of no use to anybody by itself, and the total is the sum: modulo 2^128, in
multiples of 2^-53. Nobody can be left out, as the masks of who is missing stay in the sum: if one
is lost, or started anew in the midst of it, all give this sum up, and each says why.
"""

import asyncio

from edgewise.errors import DataError
from edgewise.peers.node.masks import (
    UNIT_BITS,
    Masker,
    centred,
    fixed_point,
    public_in,
)
from edgewise.peers.node.result import PeerError
from edgewise.peers.node.state import PeerState
from edgewise.peers.transport.reports import UNIT, Report, rounded

KEYS, GIVEN_UP = " keys", " given up"  # beside a stage's name
LAST_WORDS = 0.5  # seconds


class MaskedSumFailed(PeerError):
    """There is no sum of this stage, for anybody."""


class StageMasks:
    """One peer's masks of one stage."""

    def __init__(self, me: int, mesh: str, stage: str) -> None:
        self.me, self.stage = me, stage
        self.masker = Masker(me, f"{mesh}/fit/{stage}")
        self.used: dict[int, tuple[int, ...]] = {}  # neighbours' keys that its masks are made of
        self.told: tuple[int, ...] | None = None

    def numbers(
        self, plain: tuple[int, ...], keys: dict[int, tuple[int, ...] | None], nodes: int
    ) -> tuple[int, ...] | None:
        """What it tells for its numbers, in UNITs; None until all neighbours' keys are here."""
        for j, key in self.used.items():
            if keys.get(j) != key:
                raise MaskedSumFailed(
                    f"peer {j} was started anew, or has gone, in the midst of the masked sum of "
                    f"{self.stage}"
                )
        if not self.used:
            known = {j: key for j, key in keys.items() if key is not None}
            if len(known) < len(keys):
                return None
            try:
                publics = {j: public_in(j, key) for j, key in known.items()}
                own = fixed_point(rounded(plain), nodes)
                masked = self.masker.masked(own, publics)
            except DataError as wrong:
                raise MaskedSumFailed(f"{self.stage}: {wrong}") from None
            except ValueError:
                raise MaskedSumFailed("a neighbour says no usable key") from None
            self.used, self.told = known, tuple(n * UNIT for n in masked)
        elif set(keys) != set(self.used):
            raise MaskedSumFailed(
                f"neighbours have come in the midst of the masked sum of {self.stage}"
            )
        return self.told

    @property
    def report(self) -> Report:
        """Its key, for all neighbours."""
        halves = tuple(n * UNIT for n in self.masker.public)
        return Report(self.stage + KEYS, self.me, 0, None, (self.me,), halves)


def told_numbers(peer: PeerState, stage: str, plain: tuple[int, ...]) -> tuple[int, ...] | None:
    """What this peer adds to the sum of a stage: its numbers, in UNITs, or the same under masks,
    None while these cannot be made. Raises MaskedSumFailed where there will be no sum."""
    if not peer.config.fit.masked or peer.config.nodes == 1:
        return plain
    if total_heard(peer, stage) is not None:
        return plain  # it is known already, and nobody asks for this peer's numbers
    given_up = [j for j, report in of_stage(peer, stage, GIVEN_UP).items() if report is not None]
    if given_up:
        raise MaskedSumFailed(f"peer {given_up[0]} has given the masked sum of {stage} up")
    masks = peer.masks.get(stage)
    if masks is None:
        masks = peer.masks[stage] = StageMasks(peer.config.id, peer.config.mesh, stage)
    for link in peer.links.values():
        link.tell(masks.report)
    heard = of_stage(peer, stage, KEYS)
    keys = {j: None if report is None else report.sums for j, report in heard.items()}
    made: tuple[int, ...] | None = masks.numbers(plain, keys, peer.config.nodes)
    return made


def of_stage(peer: PeerState, stage: str, beside: str) -> dict[int, Report | None]:
    return {j: link.reports.heard.get(stage + beside) for j, link in peer.links.items()}


def total_heard(peer: PeerState, stage: str) -> Report | None:
    reports = of_stage(peer, stage, "").values()
    return next((r for r in reports if r is not None and r.total), None)


def sums_of(peer: PeerState, total: Report) -> tuple[int, ...]:
    """The sums that a total says, in UNITs."""
    if not peer.config.fit.masked or peer.config.nodes == 1:
        return total.sums
    return tuple(centred(n // UNIT) * (UNIT >> UNIT_BITS) for n in total.sums)


async def give_up(peer: PeerState, stage: str) -> None:
    """Tell all neighbours, who then tell theirs."""
    for link in peer.links.values():
        link.tell(Report(stage + GIVEN_UP, peer.config.id, 0, None))
    await asyncio.sleep(LAST_WORDS)
