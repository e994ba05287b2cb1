"""A mesh whose edges carry couplings, from a problem as `solve(between=...)` takes it: to try peers
on what the simulator has solved. In life every peer writes its own tables."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from edgewise import spec
from edgewise.errors import InputError
from edgewise.graph.graph import Graph
from edgewise.peers.config.between import HASH
from edgewise.peers.config.peer_config import Fit
from edgewise.peers.config.tables import ALL
from edgewise.peers.node.own_edges import digest_of
from edgewise.peers.node.own_problem import NO_LOSS, PENALTIES
from edgewise.peers.operations.mesh import Mesh, create
from edgewise.problem.between import edge_terms
from edgewise.problem.costs import Sized
from edgewise.problem.coupled import CoupledProblem, couple
from edgewise.problem.couplings import Coupling, Shared, Term, chosen, dense
from edgewise.problem.prices import NetworkHuber, NetworkLasso, Price
from edgewise.problem.problem import Problem

INLINE = 200  # numbers of a matrix in a TOML file; larger ones get a file of their own


def create_coupled(
    folder: str | Path,
    problem: Problem,
    graph: Graph,
    between: Any,
    fit: Fit,
    host: str = "127.0.0.1",
    port: int = 24700,
    days: int = 365,
) -> Mesh:
    """Keys, certificates and configurations, {id} in `host` being a peer's number; data of those
    that have some go to data/peerI.npz, where `edgewise network local` finds them. Loss, ridge and
    classes of `fit` are the problem's."""
    folder, coupled = Path(folder), couple(problem, graph, between)
    files: dict[str, np.ndarray] = {}
    tables = edge_tables(coupled, between, files)

    def own(i: int) -> dict[str, Any]:
        cost, penalty = cost_of(coupled, i), penalty_of(coupled, i)
        return {"between": tables[i], "cost": cost, "own_penalty": penalty}

    texts: list[tuple[str, ...]] = [()] * graph.nodes
    fit = replace(fit, **fitted(coupled))
    made = create(
        folder, graph, fit, texts, lambda i: host.replace("{id}", str(i)), port, days, own
    )
    for name, A in files.items():
        np.savez(folder / name, A=A)
    (folder / "data").mkdir(exist_ok=True)
    for i in np.flatnonzero(has_data(coupled)).tolist():
        X, y = coupled.shards[i]
        np.savez(folder / "data" / f"peer{i}.npz", X=dense(X)[:, : coupled.sizes[i]], y=y)
    return made


def has_data(problem: Problem) -> np.ndarray:
    if problem.cost is None:
        return np.ones(problem.nodes, bool)
    return np.asarray(problem.cost.lossy[:, 0] > 0)


def fitted(problem: CoupledProblem) -> dict[str, Any]:
    """What a fit says of the loss."""
    if not problem.has_data:
        return {"loss": NO_LOSS}
    if problem.scale is not None and not np.isin(problem.scale, (0, 1)).all():
        raise InputError("peers' samples have no weights: leave weights and sample_weight out")
    loss: Any = problem.loss
    names = {syntax.make: name for name, syntax in spec.LOSSES.items()}
    if type(loss) not in names:
        raise InputError(f"{loss!r} has no name that a TOML file could give: use another loss")
    takes = [f.name for f in fields(loss) if f.name not in ("ridge", "outputs")]
    numbers = ",".join(repr(float(getattr(loss, name))) for name in takes)
    text = names[type(loss)] + (f":{numbers}" if numbers else "")
    classes = None if problem.classes is None else tuple(problem.classes.tolist())
    return {"loss": text, "ridge": float(loss.ridge), "classes": classes}


def cost_of(problem: Problem, i: int) -> dict[str, Any]:
    if problem.cost is None:
        return {}
    n = int(problem.sizes[i])
    Q, q = np.asarray(problem.cost.Q[i][:n, :n]), np.asarray(problem.cost.q[i][:n])
    if has_data(problem)[i] and not Q.any() and not q.any():
        return {}
    if not Q.any():
        most, alone = (
            float(L.sample[k])
            for L, k in ((problem.smoothness, i), (problem.only([i]).smoothness, 0))
        )
        return {"q": q.tolist()} | ({} if most == alone else {"smoothness": most})
    diagonal = np.array_equal(Q, np.diag(np.diag(Q)))
    return {"Q": (np.diag(Q) if diagonal else Q).tolist(), "q": q.tolist()}


def penalty_of(problem: Problem, i: int) -> dict[str, Any]:
    h = problem.penalty[i] if isinstance(problem.penalty, list | tuple) else problem.penalty
    h = h.penalty if isinstance(h, Sized) else h
    if getattr(h, "absent", False):
        return {}
    names = {kind: name for name, kind in PENALTIES.items() if isinstance(kind, type)}
    if type(h) not in names:
        raise InputError(f"node {i}: {h!r} has no name that a TOML file could give: use another")
    values = {f.name: np.asarray(getattr(h, f.name)).tolist() for f in fields(h)}
    return {"kind": names[type(h)], **values}


# --- edges ----------------------------------------------------------------------------------------


class Ends:
    """An edge whose first end is the one that its key named first."""

    def __init__(self, problem: CoupledProblem, edge: int, ids: tuple[int, int]) -> None:
        self.edge, self.ids = edge, ids
        self.sizes = int(problem.sizes[ids[0]]), int(problem.sizes[ids[1]])

    def on(self, coordinates: Any, at: int) -> list[int]:
        return [int(k) for k in chosen(coordinates, self.ids, at, self.sizes[at])]


def edge_tables(
    problem: CoupledProblem, between: Any, files: dict[str, np.ndarray]
) -> list[dict[str, Any]]:
    """[between] of every peer; matrices that are large go to `files`, by name."""
    tables: list[dict[str, Any]] = [{} for _ in range(problem.nodes)]
    edges = [(int(i), int(j)) for i, j in problem.graph.edges]
    given = edge_terms(Coupling() if between is None else between, edges)
    for e, ((i, j), (turned, terms)) in enumerate(zip(edges, given, strict=True)):
        ends = Ends(problem, e, (j, i) if turned else (i, j))
        for at in (0, 1):
            said = [one_end(term, ends, at, k, files) for k, term in enumerate(terms)]
            tables[ends.ids[at]][str(ends.ids[1 - at])] = said[0] if len(said) == 1 else said
    for table in tables:
        carried = list(table.values())
        if carried and isinstance(carried[0], str) and carried.count(carried[0]) == len(carried):
            table.clear()
            table[ALL] = carried[0]
    return tables


def one_end(term: Term, ends: Ends, at: int, place: int, files: dict[str, np.ndarray]) -> Any:
    """A text or a table."""
    if isinstance(term, Price):
        text, on = price_text(term, ends.edge), ends.on(term.on, at)
        return text if on == list(range(ends.sizes[at])) else {"price": text, "on": on}
    if isinstance(term, Shared):
        return f"shared:{','.join(map(str, ends.on(term.coordinates, at)))}"
    rows = term.rows(ends.edge, ends.ids, ends.sizes)
    A, other = (dense(rows[k]) for k in (at, 1 - at))
    matrix: Any = A.tolist()
    if A.size > INLINE:
        matrix = f"peer{ends.ids[at]}-{ends.ids[1 - at]}-{place}.npz"
        files[matrix] = A
    senses = ["<=" if bound == 0 else "=" for bound in rows.low]
    sense = senses[0] if len(set(senses)) == 1 else senses
    return {"A": matrix, "other": HASH + digest_of(other), "c": rows.c.tolist(), "sense": sense}


def price_text(term: Price, edge: int) -> str:
    weights = np.ravel(term.weight)
    weight = repr(float(weights[edge if len(weights) > 1 else 0]))
    if isinstance(term, NetworkLasso):
        return f"lasso{'' if term.grouped else '-l1'}:{weight}"
    if isinstance(term, NetworkHuber):
        return f"huber:{weight},{term.delta!r}"
    return f"ridge:{weight}"
