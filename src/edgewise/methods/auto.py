"""`method="auto"`: which method a problem gets where none is named, and why, in one sentence.

The choice depends only on what every rank of a job and every peer of a mesh knows alike: the number
of unknowns, the kind of loss, and what the user gave; in one process also on the graph. So all
choose the same, and nobody asks anybody.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from edgewise.errors import MethodError
from edgewise.graph.graph import Graph
from edgewise.methods.catalogue import AUTO, make
from edgewise.methods.class_blocks import block_shape
from edgewise.methods.contract import Method
from edgewise.problem.whole_nodes import has_hessians

if TYPE_CHECKING:
    from edgewise.problem.problem import Problem

NEWTON = "newton-pd"  # n x n matrices; few rounds, no steps
LOCAL = "lt-saga-pd"  # gradients alone, any size; a number kept per sample
CUSTOM = "lt-svr-pd-es"  # the same for any loss: no gradient kept per sample
STREAMING = "spd"
ONE_WAY = "push-diging"  # whole gradients: fewer rounds than push-saga
NOT_CONVEX = "pd"  # whole gradients: the fewest rounds; local problems need not have minima

MOST_UNKNOWNS = 1000  # beyond, to factorise a matrix takes longer than rounds of local training
MOST_BYTES = 4e9  # of all nodes' and edges' matrices together


class Choice(NamedTuple):
    method: Method
    name: str  # in the catalogue; an object's class
    note: str  # what was chosen and why; nothing where the user chose


def choose(
    method: Method | str,
    problem: "Problem",
    graph: Graph | None = None,
    eta: Any = None,
    rho: Any = None,
    tunable: bool = False,
) -> Choice:
    """The method that is named, or for "auto" the one that fits the problem. `graph`: where one
    process may have to hold all of it; `tunable`: one that has steps."""
    if not (isinstance(method, str) and method == AUTO):
        made = require_convexity(make(method, eta, rho), problem)
        return Choice(made, method if isinstance(method, str) else type(made).__name__, "")
    steps = [name for name, value in (("eta", eta), ("rho", rho)) if is_given(value)]
    if graph is not None and graph.one_way:
        return Choice(
            make(ONE_WAY, eta, rho), ONE_WAY, f"{AUTO}: {ONE_WAY}, because links go one way"
        )
    name, because = by_rule(
        problem.size,
        problem.loss.linear,
        problem.stream is not None,
        0 if graph is None else 2 * graph.edge_count + 4 * graph.nodes,
        " and ".join(steps) or ("a step to tune" if tunable else ""),
        problem.loss.outputs,
        problem.convex,
        has_hessians(problem.loss),
        problem.smooth,
    )
    made = make(name, eta, rho) if steps else make(name)
    return Choice(made, name, f"{AUTO}: {name}, because {because}")


def by_rule(
    unknowns: int,
    linear: bool,
    streams: bool,
    matrices: int = 0,
    wanted: str = "",
    outputs: int = 1,
    convex: bool = True,
    hessians: bool | None = None,
    smooth: bool = True,
) -> tuple[str, str]:
    """A name, and the reason. matrices: how many are held at a time, where somebody holds all;
    wanted: what a method with matrices has not; outputs: classes, each with a matrix of its own;
    hessians: whether the loss has them, else whether it is of margins; smooth: whether the loss's
    curvature is bounded, as step rules need it."""
    hessians = linear if hessians is None else hessians
    blocks, width = block_shape(unknowns, outputs)
    n, of_class = f"{width:,}", "" if outputs == 1 else " of a class"
    size = matrices * blocks * width**2 * 8.0
    if streams:
        return STREAMING, "samples come from a stream, which the others cannot draw from again"
    if not convex:
        return (
            NOT_CONVEX,
            f"the loss is not convex, and Hessians, as {NEWTON} takes, are indefinite",
        )
    if not hessians:
        return CUSTOM, f"the loss is no function of margins, which {NEWTON} takes Hessians by"
    local = LOCAL if linear else CUSTOM
    if wanted:
        return local, f"{wanted} is asked for, which {NEWTON} has not"
    if not smooth and size <= MOST_BYTES:
        return NEWTON, "the loss's curvature has no bound: steps of gradients may diverge"
    if width > MOST_UNKNOWNS:
        too_many = f"{n} unknowns{of_class} are too many for a matrix per node"
        return local, f"{too_many} ({MOST_UNKNOWNS:,} at most)"
    if size > MOST_BYTES:
        return local, (
            f"matrices of {n} x {n} for all nodes and edges would take {size / 1e9:.3g} GB "
            f"({MOST_BYTES / 1e9:.3g} at most)"
        )
    what = f"{n} unknown{of_class} fits" if width == 1 else f"{n} unknowns{of_class} fit"
    return NEWTON, f"{what} a {n} x {n} matrix per node"


def candidates(eta: Any = None, rho: Any = None) -> tuple[str, ...]:
    """What "auto" may come to where samples are finite, whatever the data turn out to be."""
    steps = LOCAL, CUSTOM, NOT_CONVEX
    return steps if is_given(eta) or is_given(rho) else (NEWTON, *steps)


def require_convexity(method: Method, problem: "Problem") -> Method:
    """The method; raises MethodError where it needs a convex loss, and the problem's is not."""
    if problem.convex or not (method.second_order or method.solves_subproblem):
        return method
    what = "Hessians" if method.second_order else "local problems"
    raise MethodError(
        f"{type(method).__name__} takes {what} to be convex, which those of "
        f"{type(problem.loss).__name__} are not: use {NOT_CONVEX}, or another that takes gradients "
        "alone, such as page-pd"
    )


def require_bounded_curvature(method: Method, problem: "Problem") -> Method:
    """The method; raises MethodError where its step is by a rule from a bound that the loss has
    not: it would diverge on the first sample that is far out."""
    if problem.smooth or method.second_order or is_number(method.eta):
        return method
    raise MethodError(
        f"the curvature of {type(problem.loss).__name__} has no bound, which the step of "
        f"{type(method).__name__} is to be made of: use {NEWTON}, whose steps are damped where "
        "they lead too far, or give a number for eta"
    )


def is_number(step: Any) -> bool:
    return not isinstance(step, str)


def is_given(step: Any) -> bool:
    """Whether a step is a number or a rule other than the default."""
    return step is not None and not (isinstance(step, str) and step == "auto")
