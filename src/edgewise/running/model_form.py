"""What of a problem its models need to be used: no data."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from edgewise.data.preparation import Preparation
from edgewise.data.scaling import Standardization
from edgewise.graph.graph import Graph
from edgewise.problem.families import (
    Binomial,
    Gamma,
    NegativeBinomial,
    Poisson,
    Quantile,
    Tweedie,
)
from edgewise.problem.losses import (
    Huber,
    Logistic,
    Multinomial,
    Sigmoid,
    SmoothedHinge,
    Squared,
)
from edgewise.problem.problem import Problem

LONGEST = 300  # letters of a penalty's text


class Kind(NamedTuple):
    """What is known of a loss's models."""

    loss: type
    estimator: str  # scikit-learn's name of it; empty where it has none
    numbers: tuple[str, ...] = ()  # the loss's own parameters
    chances: bool = False  # whether margins tell probabilities


KINDS = {
    "logistic": Kind(Logistic, "LogisticRegression", chances=True),
    "multinomial": Kind(Multinomial, "LogisticRegression", chances=True),
    "smoothed-hinge": Kind(SmoothedHinge, "LinearSVC", ("width",)),
    "sigmoid": Kind(Sigmoid, "LinearSVC"),
    "squared": Kind(Squared, "LinearRegression"),
    "huber": Kind(Huber, "LinearRegression", ("delta",)),
    "poisson": Kind(Poisson, "PoissonRegressor"),
    "gamma": Kind(Gamma, "GammaRegressor"),
    "tweedie": Kind(Tweedie, "TweedieRegressor", ("power",)),
    "negative-binomial": Kind(NegativeBinomial, "", ("dispersion",)),
    "binomial": Kind(Binomial, ""),
    "quantile": Kind(Quantile, "QuantileRegressor", ("level", "width")),
}


class ModelForm(NamedTuple):
    """What of a problem its models need to be used: nothing of its data but their sizes."""

    kind: str  # of KINDS; empty where the loss is one's own
    loss: str
    outputs: int
    free: int
    penalty: str
    classes: np.ndarray | None
    columns: tuple[str, ...] | None
    preparation: Preparation | None
    scaling: Standardization | None
    facts: dict[str, Any]

    @classmethod
    def of(cls, problem: Problem, graph: Graph | None = None) -> "ModelForm":
        loss = problem.loss
        kind = next((name for name, k in KINDS.items() if type(loss) is k.loss), "")
        if problem.unequal or (problem.cost is not None and not problem.cost.lossy.any()):
            kind = ""  # models are no weights of columns
        own = [f"{float(getattr(loss, n)):.12g}" for n in KINDS[kind].numbers] if kind else []
        every = problem.penalty if isinstance(problem.penalty, list) else [problem.penalty]
        texts = dict.fromkeys(repr(h) for h in every if not getattr(h, "absent", False))
        facts: dict[str, Any] = {
            "ridge": float(np.asarray(loss.ridge)) if np.ndim(loss.ridge) == 0 else None,
            "nodes": problem.nodes,
            "samples_per_node": problem.counts.tolist(),
        }
        if graph is not None:
            facts["edges"] = graph.edge_count
        return cls(
            kind=kind,
            loss=f"{kind}:{','.join(own)}" if own else kind,
            outputs=loss.outputs,
            free=problem.free,
            penalty=", ".join(texts)[:LONGEST],
            classes=problem.classes,
            columns=None if counted(problem.columns) else problem.columns,
            preparation=problem.preparation,
            scaling=problem.scaling,
            facts=facts,
        )

    def weights(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(C, p) weights and (C,) intercepts; one row for two classes and for numbers."""
        W = x[: x.size - self.free].reshape(self.outputs, -1)
        b = x[x.size - self.free :] if self.free else np.zeros(self.outputs)
        return (W[1:] - W[:1], b[1:] - b[:1]) if len(W) == 2 else (W, b)


def counted(columns: Iterable[str] | None) -> bool:
    """Whether the names of columns are numbers alone, as those of a file without a header are."""
    return columns is None or all(name.isdigit() for name in columns)
