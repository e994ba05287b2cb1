"""What a run came to."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from edgewise.data.disclosure import LEAST
from edgewise.differential_privacy.spent import PrivacySpent
from edgewise.engines.faults import Faults
from edgewise.engines.mpi import MPI
from edgewise.errors import ProblemError
from edgewise.graph.graph import Graph
from edgewise.inference.bootstrap import Bootstrap
from edgewise.inference.estimates import Inference
from edgewise.inference.estimation import Wanted
from edgewise.methods.contract import Method
from edgewise.plotting.displays import result_html, shown
from edgewise.problem.problem import Problem
from edgewise.running.fitted_model import FittedModel
from edgewise.running.model_form import ModelForm
from edgewise.running.summary import bootstrap_of, summary_of
from edgewise.running.trace import Trace


@dataclass(frozen=True)
class Result:
    """What a run came to."""

    x: np.ndarray  # (n,) the mean of the nodes' models, settled where they have a penalty: with its
    # exact zeros, on its constraints (`Evaluator.settled`)
    X: np.ndarray = field(repr=False)  # (V, n) each node's model
    trace: Trace = field(repr=False)
    converged: bool
    message: str
    duals: np.ndarray = field(repr=False)  # (V, n) each node's sum of duals: `solve(duals=...)`
    method: Method = field(repr=False)  # with the steps that were used
    apart: np.ndarray = field(repr=False)  # (T, V) distance of each node from the mean, by row
    graph: Graph = field(repr=False)
    method_note: str = ""  # which method "auto" came to, and why; nothing where one was named
    explanation: str = ""  # why it ended short of its goal, and what to try: part of `message`
    form: ModelForm | None = field(default=None, repr=False)  # what the problem's models are
    problem: Problem | None = field(default=None, repr=False)
    privacy: PrivacySpent | None = None  # what the run tells of any one sample, if `solve` was told
    # to keep that small

    @property
    def model(self) -> FittedModel:
        """What `x` predicts, for data as they came: before any scaling, by column name."""
        if self.form is None:
            raise ProblemError("this result does not know its problem: take that of ew.solve")
        return FittedModel.of(self.form, self.x, self.provenance())

    def summary(
        self,
        covariance: str = "auto",
        *,
        weights_are: str | None = None,
        information: str = "expected",
        debias: bool = False,
        student: bool | None = None,
        graph: Graph | str | None = None,
        accuracy: float = 1e-12,
        faults: Faults | None = None,
        engine: MPI | None = None,
        least_count: int | Sequence[int] = LEAST,
    ) -> Inference:
        """Standard errors, tests and intervals of the coefficients, by sums over the network of
        d x d matrices: an `Inference`, which prints as a table.

        covariance   "auto": model-based where the fit maximises a likelihood, else HC0; or
                     "model", "HC0", "HC1", "cluster" (clusters are nodes)
        weights_are  what `sample_weight` says: "cases", a weight of 3 stands for three alike, or
                     "precisions"; default: cases, but for `Binomial` trials
        information  of the model-based covariance: "expected", as statsmodels has it, "observed"
        debias       go from a penalised model to the unpenalised optimum first
        student      intervals by Student's t; default: for `Squared`, and for clusters
        graph        that the sums go over; default: that of the fit
        accuracy, faults, engine  as `sum_over` has them
        least_count  a node with fewer samples refuses: one number, or one per node
        """
        wanted = Wanted(covariance, weights_are, information, debias, student)
        options: Any = accuracy, faults, engine, least_count
        return summary_of(self._fitted(), graph or self.graph, self.x, wanted, *options)

    def bootstrap(
        self,
        replicates: int = 400,
        seed: int = 0,
        *,
        graph: Graph | str | None = None,
        accuracy: float = 1e-12,
        faults: Faults | None = None,
        engine: MPI | None = None,
        least_count: int | Sequence[int] = LEAST,
    ) -> Bootstrap:
        """Fits to nodes drawn with replacement, by a few sums over the network for all replicates
        together: what estimates would be with other nodes of the kind. It takes a Hessian and a
        gradient per replicate and Newton step; arguments are those of `summary`."""
        drawn = replicates, seed
        options: Any = accuracy, faults, engine, least_count
        return bootstrap_of(self._fitted(), graph or self.graph, self.x, *drawn, *options)

    def _fitted(self) -> Problem:
        if self.privacy is not None:
            raise ProblemError(
                "this run was private, and sums over the data, as of standard errors, are not "
                "covered by what it spent: there is no summary of it"
            )
        if self.problem is None:
            raise ProblemError("this result does not know its problem: take that of ew.solve")
        return self.problem

    def to_sklearn(self) -> Any:
        """`model` as a fitted estimator of scikit-learn."""
        return self.model.to_sklearn()

    def save(self, path: str | Path) -> Path:
        """Keep `model` as plain JSON, in path/model.json or at a path that ends in .json:
        `edgewise.load_model(path)` and `edgewise predict` read it."""
        return self.model.save(path)

    def provenance(self) -> dict[str, Any]:
        """Where a model comes from: how the run went."""
        private = self.privacy is not None  # a residual is measured on the data
        return provenance(
            str(self.trace.meta.get("method", "")),
            int(self.trace["rounds"][-1]),
            self.converged,
            self.message,
            float("nan") if private else float(self.trace["residual"][-1]),
            self.method_note,
        )

    @shown
    def _repr_html_(self) -> str:
        return result_html(self)

    def plot(self, path: str | Path | None = None) -> Any:
        """The nodes on their graph, and how they came to agree; saved where `path` says."""
        from edgewise.plotting.runs import plot_result

        return plot_result(self, path)

    def animate(self, path: str | Path, frames: int = 60) -> Path:
        """The nodes' disagreement over the graph as it shrinks, as .gif or .html."""
        from edgewise.plotting.runs import animate_result

        return animate_result(self, Path(path), frames)


def own_version() -> str:
    try:
        return version("edgewise")
    except PackageNotFoundError:  # a source tree on PYTHONPATH
        return "0+unknown"


def provenance(
    method: str, rounds: int, converged: bool, message: str, residual: float, note: str = ""
) -> dict[str, Any]:
    """What a saved model says of the run that it comes from."""
    return {
        "edgewise": own_version(),
        "method": method,
        "method_note": note,
        "rounds": rounds,
        "converged": converged,
        "message": message,
        "residual": residual if np.isfinite(residual) else None,
    }
