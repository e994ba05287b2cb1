"""What a greeting tells of the two ends of an edge."""

from typing import Any, NamedTuple

USUAL = (1e-30, 1e30)  # what facts are between; beyond it a weight might not be finite


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


def facts_in(values: Any) -> NodeFacts:
    """Raises ValueError unless they can be used."""
    degree, samples, *smooth = values
    facts = NodeFacts(int(degree), int(samples), *map(float, smooth))
    usual = all(USUAL[0] < number < USUAL[1] for number in (*facts[:4], facts.reach))
    if not (usual and 0 <= facts.intercept_smoothness < USUAL[1]):
        raise ValueError("no usual numbers")
    return facts
