"""From a model to its standard errors, by sums over all nodes; whoever has a way to add up can
take it: one process has all nodes' numbers, a peer its own alone."""

import warnings
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgewise.errors import AccuracyWarning, MethodError, ProblemError
from edgewise.inference import covariance as kinds
from edgewise.inference.covariance import Flat, Totals, covariance, effective_size, inverse
from edgewise.inference.estimates import Inference, Spread
from edgewise.inference.likelihood_sums import likelihood_sums, null_margin
from edgewise.inference.node_sums import node_sums, require_sums
from edgewise.inference.sums import Sums
from edgewise.inference.units import Units
from edgewise.problem.penalty_terms import terms_of
from edgewise.problem.problem import Problem
from edgewise.problem.whole_nodes import is_whole

Ask = Callable[[Problem, int], np.ndarray]  # what node i of a problem adds to a sum
Steps = Generator[Ask, np.ndarray, Inference]  # asks, is told the sum over all nodes, and ends

MOST_UNKNOWNS = 2_000
OFF = 0.01  # standard errors from the optimum, from which on it is worth a warning
NEWTON, DONE = 50, 1e-9  # steps at most, and what is left of the way, in standard errors
FEW_CLUSTERS = 20


@dataclass(frozen=True)
class Wanted:
    """What is to be known of a fit.

    covariance   "auto": model-based where the fit maximises a likelihood, else HC0; or "model",
                 "HC0", "HC1", "cluster" (clusters are nodes)
    weights_are  "cases": a weight of 3 stands for three alike; "precisions": of a sample's mean,
                 or trials of `Binomial`; default: cases, but for `Binomial`
    information  of the model-based covariance: "expected" over labels, as statsmodels has it, or
                 "observed". They differ where the link is not the canonical one
    debias       go from a penalised model to the unpenalised optimum first
    student      intervals by Student's t; default: for `Squared`, and for clusters
    """

    covariance: str = kinds.AUTO
    weights_are: str | None = None
    information: str = "expected"
    debias: bool = False
    student: bool | None = None

    def __post_init__(self) -> None:
        if self.weights_are not in (None, "cases", "precisions"):
            raise MethodError(f"weights_are={self.weights_are!r}: give 'cases' or 'precisions'")
        if self.information not in ("expected", "observed"):
            raise MethodError(f"information={self.information!r}: give 'expected' or 'observed'")


def estimation(problem: Problem, x: np.ndarray, wanted: Wanted) -> Steps:
    """problem: the nodes that are here; what it says of the others is not asked for."""
    require_inference(problem, wanted.debias)
    if not np.isfinite(x).all():
        raise ProblemError("there is no model, as the run diverged: there are no standard errors")
    loss: Any = problem.loss
    units = Units(problem)
    binomial = getattr(loss, "trials", False)
    cases = wanted.weights_are == "cases" if wanted.weights_are else not binomial
    likelihood = hasattr(loss, "log_likelihood") or is_whole(loss)

    def sums_at(x: np.ndarray) -> Ask:
        return lambda problem, i: node_sums(problem, i, x, cases).packed()

    try:
        sums, totals = added(problem, (yield sums_at(x)), wanted)
        if wanted.debias:
            totals = totals.without_ridge()
            for _ in range(NEWTON):
                step = inverse(totals.hessian) @ totals.gradient
                x = x - step
                sums, totals = added(problem, (yield sums_at(x)), wanted)
                totals = totals.without_ridge()
                if not np.isfinite(totals.gradient).all():
                    break
                if decrement(totals, x, 1.0) <= DONE * np.sqrt(totals.size):
                    break
            else:
                raise diverged()
            if not np.isfinite(totals.gradient).all():
                raise diverged()
        size = effective_size(totals)
        phi = scale_of(loss, sums, totals.cases - size)
        phi_of_likelihood = phi
        if getattr(loss, "link", "") == "identity":
            phi_of_likelihood = sums.number("deviance") / sums.number("weight")
        tells = likelihood and totals.alike and (cases or not getattr(loss, "estimated", False))
        known: dict[str, Any] = {}
        if tells:
            null = None if is_whole(loss) else null_margin(problem, sums)
            numbers = yield lambda p, i: likelihood_sums(p, i, x, phi_of_likelihood, null)
            known = likelihoods(problem, sums, numbers, null)
        apart, off = not is_whole(loss), decrement(totals, x, phi)
        kind = kinds.chosen(wanted.covariance, totals, likelihood, apart)
        others = {}
        for each in kinds.KINDS:
            try:
                kinds.chosen(each, totals, likelihood, apart)
            except ProblemError:
                continue
            others[each] = Spread(
                units.covariance(covariance(totals, each, phi)),
                freedom(each, wanted.student, loss, totals, size),
                tuple(notes(problem, totals, each, wanted, off)),
            )
    except Flat as flat:
        raise flat.named(units.fitted_names) from None
    if off > OFF:
        warnings.warn(
            f"the model is {off:.2g} standard errors from its optimum: fit with a smaller tol "
            "before these numbers are used",
            AccuracyWarning,
            stacklevel=3,
        )
    estimated = bool(getattr(loss, "estimated", False))
    return Inference(
        names=units.names,
        coef=units.coef(x),
        kind=kind,
        **others[kind]._asdict(),
        loss=type(loss).__name__,
        nodes=totals.nodes,
        samples=totals.cases,
        size=size,
        scale=phi,
        events=sums.number("events") if is_whole(loss) else None,
        estimated=estimated,
        penalised=totals.penalised,
        intercept=bool(problem.free),
        off_optimum=off,
        others=others,
        **known,
    )


def added(problem: Problem, flat: np.ndarray, wanted: Wanted) -> tuple[Sums, Totals]:
    sums = Sums.unpacked(flat, problem.size)
    if wanted.information == "observed":
        sums = sums._replace(expected=sums.hessian)
    return sums, Totals.of(sums, float(np.asarray(problem.loss.ridge)), problem.free)


def scale_of(loss: Any, sums: Sums, df_residual: float) -> float:
    if not getattr(loss, "estimated", False):
        return 1.0
    if df_residual <= 0:
        raise ProblemError(
            "there are as many unknowns as samples, so nothing is left to tell the scale by: fit "
            "fewer columns"
        )
    return sums.number("pearson") / df_residual


def likelihoods(
    problem: Problem, sums: Sums, numbers: np.ndarray, null: float | None
) -> dict[str, Any]:
    own, none, deviance = map(float, numbers)
    if is_whole(problem.loss):
        return {"log_likelihood": own, "null_log_likelihood": none}
    known: dict[str, Any] = {"log_likelihood": own}
    known |= {name: sums.number(name) for name in ("deviance", "pearson")}
    if null is not None:
        if getattr(problem.loss, "link", "") == "identity":  # whose scale is its own
            W = sums.number("weight")
            none = -W / 2 * (np.log(2 * np.pi * deviance / W) + 1)
        known |= {"null_log_likelihood": none, "null_deviance": deviance}
    return known


def freedom(kind: str, student: bool | None, loss: Any, totals: Totals, size: float) -> float:
    """Of Student's t: infinite for the normal distribution."""
    if kind == kinds.CLUSTER:
        return np.inf if student is False else totals.nodes - 1
    normal = getattr(loss, "link", "") != "identity" or kind != kinds.MODEL
    usual = not normal if student is None else student
    return totals.cases - size if usual else np.inf


def decrement(totals: Totals, x: np.ndarray, phi: float) -> float:
    """How far the model is from the optimum, in standard errors along the way there."""
    slope = totals.slope(x)
    bread = inverse(totals.hessian + np.diag(totals.ridge))
    return float(np.sqrt(max(slope @ bread @ slope, 0.0) / phi))


def diverged() -> ProblemError:
    return ProblemError(
        "without its penalty the fit has no optimum that Newton's method comes to (classes that a "
        "hyperplane separates have none): there are no standard errors of it"
    )


def require_inference(problem: Problem, debias: bool) -> None:
    """Raises ProblemError where standard errors would say nothing."""
    require_sums(problem)
    if problem.size > MOST_UNKNOWNS:
        raise ProblemError(
            f"{problem.size} unknowns: standard errors take matrices of that size from every node, "
            f"and {MOST_UNKNOWNS} are the most"
        )
    every = problem.penalty if isinstance(problem.penalty, list | tuple) else [problem.penalty]
    for h in every:
        terms = terms_of(h)
        if not terms._replace(groups=()).plain:
            raise ProblemError(
                f"standard errors are of models that may lie anywhere, and {h} bounds them: at a "
                "bound an estimate is not normal; fit without it"
            )
        shrinks = terms.groups or (terms.l1 is not None and float(np.asarray(terms.l1)) > 0)
        if shrinks and not debias:
            raise ProblemError(
                f"{h} picks coefficients and shrinks them, so that estimates are not normal, and "
                "standard errors of those that are left would ignore the picking: take "
                "debias=True, which goes on from here to the fit of all columns without a penalty"
            )


def notes(problem: Problem, totals: Totals, kind: str, wanted: Wanted, off: float) -> list[str]:
    told = []
    if totals.penalised:
        told.append(
            "A ridge shrinks the estimates: standard errors are smaller than without it, and "
            "intervals are about what it shrinks to, not about the coefficients themselves."
        )
    if wanted.debias and (problem.penalised or float(np.asarray(problem.loss.ridge))):
        told.append("Without the penalty: the estimates are not the model's own coefficients.")
    if kind in (kinds.ROBUST, kinds.ROBUST_FEW) and not totals.alike:
        told.append("Nodes count alike, and not samples: there is no likelihood.")
    if kind == kinds.CLUSTER and totals.nodes < FEW_CLUSTERS:
        told.append(
            f"{totals.nodes} nodes are few clusters: standard errors by them tend to be too small."
        )
    if off > OFF:
        told.append(f"The model is {off:.2g} standard errors from its optimum.")
    return told
