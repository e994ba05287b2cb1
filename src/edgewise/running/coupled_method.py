"""What `solve` makes of a problem and a method where neighbours are coupled."""

from dataclasses import replace
from typing import Any

from edgewise.engines.faults import Faults
from edgewise.errors import MethodError
from edgewise.methods.auto import Choice, require_bounded_curvature, require_convexity
from edgewise.methods.catalogue import AUTO, CATALOGUE, make, takes_couplings
from edgewise.methods.short_nodes import longest_short
from edgewise.problem.coupled import CoupledProblem

CHOSEN = "pdmm"
CHOSEN_NOTE = f"{AUTO}: {CHOSEN}, because edges carry couplings"


def is_coupled(problem: Any, between: Any) -> bool:
    """Costs go with couplings: a node without data has its own way of finding its minimum."""
    return between is not None or getattr(problem, "cost", None) is not None


def choose_coupled(problem: CoupledProblem, method: Any, eta: Any, rho: Any, faults: Any) -> Choice:
    """The method in its form for couplings; raises MethodError where it has none."""
    if isinstance(faults, Faults) and faults.compresses:
        raise MethodError("couplings do not take bits or keep: leave them out")
    note, name = "", method if isinstance(method, str) else ""
    if name == AUTO:
        note, name = CHOSEN_NOTE, CHOSEN
    made = require_convexity(make(name or method, eta, rho), problem)
    require_bounded_curvature(made, problem)
    name = name or type(made).__name__
    coupled = coupled_form(made, name, problem.rows, problem.has_data)
    return Choice(replace(coupled, short=longest_short(problem.sizes)), name, note)


def coupled_form(method: Any, name: str, rows: int, has_data: bool) -> Any:
    """Raises MethodError where it has none."""
    chosen = method.coupled(rows, has_data)
    if chosen is None:
        having = [known for known in CATALOGUE if takes_couplings(make(known))]
        raise MethodError(f"{name} has no form for couplings: use {CHOSEN}, or {', '.join(having)}")
    return chosen
