"""What a greeting tells of the two ends of an edge."""

from typing import Any, NamedTuple

USUAL = (1e-30, 1e30)  # what facts are between; beyond it a weight might not be finite
MOST_APART = 1e12  # times that the curvatures of two peers may differ: else somebody lies, or errs
COUNTS_APART = 1e4  # times that they count as different where an edge is weighed
MOST_SAMPLES = 1e12


class NodeFacts(NamedTuple):
    """What the two ends of an edge must know of each other to weigh it alike."""

    degree: int
    samples: int
    sample_smoothness: float
    mean_smoothness: float
    intercept_smoothness: float = 0.0  # none where there is no intercept
    reach: float = 1.0  # of this end's matrix on the edge, where that carries a coupling


class EdgeFacts(NamedTuple):
    """The two ends of an edge as they were when it came about. Its weight is made of these and
    stays, whoever else joins either end or leaves it: all that matters is that both have the same.
    """

    own: NodeFacts
    other: NodeFacts

    def weighed(self) -> "EdgeFacts":
        """As the edge's weight is made of them: by a curvature that is beyond all others a model
        would be held where it is. Both ends come to the same."""
        return EdgeFacts(within(self.own, self.other), within(self.other, self.own))


SMOOTH = ("sample_smoothness", "mean_smoothness", "intercept_smoothness")


def within(facts: NodeFacts, other: NodeFacts) -> NodeFacts:
    """No curvature much larger than that of the other end."""
    most = COUNTS_APART * other.sample_smoothness
    return facts._replace(**{name: min(getattr(facts, name), most) for name in SMOOTH})


def unlikely(facts: NodeFacts, own: NodeFacts, nodes: int) -> str:
    """What of a neighbour's facts cannot be, or nothing."""
    if facts.samples > MOST_SAMPLES:
        return f"{facts.samples:.0e} samples"
    if facts.degree > 2 * nodes + 100:  # others may have joined that this peer's TOML has not
        return f"{facts.degree:.0e} neighbours in a network of {nodes}"
    larger, smaller = facts.sample_smoothness, own.sample_smoothness
    if not 1 / MOST_APART < larger / smaller < MOST_APART:
        return f"data of curvature {larger:.0e}, where this peer's have {smaller:.0e}"
    return ""


def facts_in(values: Any) -> NodeFacts:
    """Raises ValueError unless they can be used."""
    degree, samples, *smooth = values
    facts = NodeFacts(int(degree), int(samples), *map(float, smooth))
    usual = all(USUAL[0] < number < USUAL[1] for number in (*facts[:4], facts.reach))
    if not (usual and 0 <= facts.intercept_smoothness < USUAL[1]):
        raise ValueError("no usual numbers")
    return facts
