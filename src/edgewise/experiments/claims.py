"""What the paper says of its figures, held against runs: it holds, it does not, or it is undecided.

A claim about which method is faster is asked at every level from 1e-2 to 1e-9 of the divergence at
the start, with every seed. A level has an answer where more than half of the seeds have, and none
has the other. A claim holds where all levels that have an answer say so; where levels disagree, or
none has an answer, it is undecided, and says why.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from edgewise.experiments.passages import CALLS, Curves, Span, quickest, slowest

LEVELS = tuple(10.0 ** -np.arange(2, 10))  # of the divergence at the start
UNREACHED = "not reached"
CAP = "the end of a run decides"
COARSE = "the looks are too far apart"
SPLIT = "seeds disagree"


class Answer(NamedTuple):
    """Of one seed, at one level."""

    holds: bool | None
    why: str = ""  # it is undecided
    number: float = float("nan")  # what was measured


class Judged(NamedTuple):
    holds: bool | None  # None: undecided
    numbers: str  # what was measured, and why it is undecided


Beside = Callable[[str, Sequence[str]], list[Curves]]  # of another figure, some methods


@dataclass(frozen=True)
class Setting:
    """A figure's runs in one setting, a `Curves` per seed, and those of other figures."""

    seeds: list[Curves]
    beside: Beside

    def pairs(self, name: str, methods: Sequence[str]) -> list[tuple[Curves, Curves]]:
        """Each seed here, and there."""
        return list(zip(self.seeds, self.beside(name, methods), strict=False))


Judge = Callable[[Setting], Judged]
AtLevel = Callable[[Curves, float], Answer]


@dataclass(frozen=True)
class Claim:
    """In our words, and how it is judged."""

    says: str
    judge: Judge


# --- over levels and seeds ------------------------------------------------------------------------


def over_levels(test: AtLevel, what: str, levels: Sequence[float] = LEVELS) -> Judge:
    def judge(setting: Setting) -> Judged:
        return summed_up(levels, [[test(c, e) for c in setting.seeds] for e in levels], what)

    return judge


def over_pairs(
    test: Callable[[Curves, Curves, float], Answer], name: str, methods: Sequence[str], what: str
) -> Judge:
    """The same for a claim on two figures."""

    def judge(setting: Setting) -> Judged:
        both = setting.pairs(name, methods)
        return summed_up(LEVELS, [[test(a, b, e) for a, b in both] for e in LEVELS], what)

    return judge


def summed_up(levels: Sequence[float], answers: Sequence[Sequence[Answer]], what: str) -> Judged:
    each = [agreed(a) for a in answers]
    found = {a.holds for a in each} - {None}
    told = ", ".join(f"{e:.0e} {numbers(a)}" for e, a in zip(levels, answers, strict=True))
    told = f"{what}: {told}" if what else ""
    if len(found) == 1:
        at = [e for e, a in zip(levels, each, strict=True) if a.holds is not None]
        return Judged(found.pop(), f"{told} (decided at {len(at)} of {len(levels)} levels)")
    if found:
        at = [e for e, a in zip(levels, each, strict=True) if a.holds]
        not_at = [e for e, a in zip(levels, each, strict=True) if a.holds is False]
        reason = f"the level decides, yes at {listed(at)}, no at {listed(not_at)}"
    else:
        reason = Counter(a.why for a in each).most_common(1)[0][0]
    return Judged(None, f"{told} (undecided: {reason})")


def agreed(answers: Sequence[Answer]) -> Answer:
    """What more than half of the seeds say, if none says the opposite."""
    found = Counter(a.holds for a in answers)
    if found[True] and found[False]:
        return Answer(None, SPLIT)
    for holds in (True, False):
        if 2 * found[holds] > len(answers):
            return Answer(holds)
    return Answer(None, Counter(a.why for a in answers if a.holds is None).most_common(1)[0][0])


def over_seeds(test: Callable[[Curves], Answer], what: str) -> Judge:
    """For what is asked once a run."""

    def judge(setting: Setting) -> Judged:
        answers = [test(c) for c in setting.seeds]
        one = agreed(answers)
        why = f" (undecided: {one.why})" if one.holds is None else ""
        return Judged(one.holds, f"{what}: {numbers(answers)}{why}")

    return judge


def numbers(answers: Sequence[Answer]) -> str:
    """The median over the seeds, and from where to where they go."""
    known = np.array([a.number for a in answers])
    known = known[~np.isnan(known)]
    if len(known) == 0:
        return "-"
    ends = [said(v) for v in (np.sort(known)[len(known) // 2], known.min(), known.max())]
    return ends[0] if len(set(ends)) == 1 else f"{ends[0]} ({ends[1]} to {ends[2]})"


def said(value: float) -> str:
    if np.isinf(value):
        return "others never" if value > 0 else "ours never"
    return f"{value:.3g}" if 0.01 <= abs(value) < 1e4 or value == 0 else f"{value:.0e}"


def listed(levels: Sequence[float]) -> str:
    return ", ".join(f"{e:.0e}" for e in levels)


# --- which is faster ------------------------------------------------------------------------------


def compared(own: Span, rival: Span, margin: float = 1.0) -> Answer:
    """Whether `margin` times the own cost is no more than the rival's."""
    number = rival.high / own.high if np.isfinite(own.high) else -np.inf
    if np.isinf(own.high) and np.isinf(rival.high):
        return Answer(None, UNREACHED)
    most = own.times(margin)
    if most.high <= rival.low:
        return Answer(True, number=number)
    if most.low >= rival.high:
        return Answer(False, number=number)
    capped = np.isinf(own.high) or np.isinf(rival.high)
    return Answer(None, CAP if capped else COARSE, number)


def ahead(
    ours: Iterable[str], others: Iterable[str], margin: float = 1.0, unit: str = CALLS
) -> AtLevel:
    """Each of ours comes to the level `margin` times as cheaply as the best of the others."""
    mine, theirs = tuple(ours), tuple(others)

    def test(c: Curves, level: float) -> Answer:
        own = slowest(c.span(m, level, unit) for m in mine if m in c)
        rival = quickest(c.span(m, level, unit) for m in theirs if m in c)
        return compared(own, rival, margin)

    return test


def fastest(
    ours: Iterable[str], others: Iterable[str], margin: float = 1.0, unit: str = CALLS
) -> Judge:
    what = f"best of the others over ours, in {unit.replace('_', ' ')}"
    return over_levels(ahead(ours, others, margin, unit), what)


def within(ratio: float, low: float, high: float) -> Answer:
    if not np.isfinite(ratio):
        return Answer(None, UNREACHED)
    return Answer(low <= ratio <= high, number=ratio)


# --- what does not converge -----------------------------------------------------------------------

FALLEN, STUCK = 1e-2, 0.1  # parts of the start: has converged below one, has not above the other


def fails(methods: Sequence[str], every: Sequence[str]) -> Judge:
    """These end above a tenth of the start, while half of all methods come below a hundredth: else
    the test could not tell them from the rest."""

    def test(c: Curves) -> Answer:
        parts = [c.part(m) for m in methods]
        usual = float(np.median([c.part(m) for m in every if m in c]))
        if max(parts) < FALLEN or (usual < FALLEN and min(parts) < FALLEN):
            return Answer(False, number=max(parts))
        if usual >= FALLEN:
            return Answer(
                None, f"half of all methods end above {FALLEN:g} of the start", max(parts)
            )
        if min(parts) > STUCK:
            return Answer(True, number=min(parts))
        return Answer(None, f"it ends between {FALLEN:g} and {STUCK:g} of the start", max(parts))

    return over_seeds(test, f"{' and '.join(methods)}, part of the start that is left")
