"""A peer's ends of its edges, where these carry couplings or prices, and what neighbours compare of
them before they start."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from edgewise.errors import ProblemError
from edgewise.peers.config.between import HASH, OwnTerm, terms_towards
from edgewise.peers.config.peer_config import PeerConfig
from edgewise.problem.between import joined, listed
from edgewise.problem.coupled import norm
from edgewise.problem.couplings import Rows
from edgewise.problem.edge_ends import End

MOST_TOLD = 100  # entries that a greeting has one by one; of more a hash
MAX_SHOWN = 100  # letters
FIELDS = ("c", "low", "high", "slack", "grouped")


class OwnEdge(NamedTuple):
    end: End
    told: dict[str, Any]  # what the neighbour compares
    reach: float  # the norm of A
    digest: str  # of all of it

    @property
    def rows(self) -> int:
        return len(self.end.rows.c)


def own_edges(config: PeerConfig, size: int) -> dict[int, OwnEdge]:
    """By neighbour; of models of this size. None where all models are equal."""
    if not config.couples:
        return {}
    folder, at = config.path.parent, str(config.path)
    return {
        n.id: own_edge(terms_towards(config.between, n.id, folder, at), config.id, n.id, size)
        for n in config.neighbours
    }


def own_edge(terms: Sequence[OwnTerm], me: int, other: int, size: int) -> OwnEdge:
    listed([t.term for t in terms], f"the edge ({me}, {other})")
    parts = [own_rows(t, me, other, size) for t in terms]
    rows = joined(parts)
    told = {
        "rows": len(rows.c),
        "of": brief(list(map(said, *kinds(rows)))),
        "c": brief(rows.c.tolist()),
        "parts": [
            [len(part.c), digest_of(part.A), expected(term, part)]
            for term, part in zip(terms, parts, strict=True)
        ],
    }
    return made_edge(End(rows.A, rows, 1.0 if me < other else -1.0), told)


def digest(edges: dict[int, OwnEdge], id: int) -> str | None:
    return edges[id].digest if id in edges else None


def made_edge(end: End, told: dict[str, Any]) -> OwnEdge:
    text = json.dumps([told, end.sign, digest_of(end.A)])
    return OwnEdge(end, told, norm(end.A), hashlib.sha256(text.encode()).hexdigest())


def own_rows(term: OwnTerm, me: int, other: int, size: int) -> Rows:
    """A is this end's; B is the neighbour's where a difference of models says what it is. Of its
    size nothing is known."""
    rows = term.term.rows(0, (me, other), (size, size))
    if term.stated or me < other:
        return rows
    return rows._replace(A=rows.B, B=rows.A)


def expected(term: OwnTerm, rows: Rows) -> str | None:
    """The hash that the neighbour's matrix must have, if this end knows."""
    if not term.stated:
        return digest_of(rows.B)
    if term.other is None:
        return None
    if isinstance(term.other, str):
        return term.other.removeprefix(HASH)
    if len(rows.c) != term.other.shape[0]:
        raise ProblemError(
            f"the edge's other matrix has shape {term.other.shape}: give it {len(rows.c)} rows, as "
            "A has"
        )
    return digest_of(term.other)


def digest_of(A: Any) -> str:
    """Of the numbers that are not zero, and where they are: how wide it is does not count."""
    flat = sp.coo_array(A)
    flat.sum_duplicates()
    flat.eliminate_zeros()
    order = np.lexsort((flat.col, flat.row))
    sum = hashlib.sha256()
    for part, kind in ((flat.row, "<i8"), (flat.col, "<i8"), (flat.data, "<f8")):
        sum.update(np.ascontiguousarray(part[order], kind).data)
    return sum.hexdigest()


def brief(values: list[Any]) -> Any:
    if len(values) <= MOST_TOLD:
        return values
    return HASH + hashlib.sha256(json.dumps(values).encode()).hexdigest()


def kinds(rows: Rows) -> tuple[list[Any], ...]:
    return tuple(np.asarray(getattr(rows, name)).tolist() for name in FIELDS[1:])


def said(low: float, high: float, slack: float, grouped: bool) -> str:
    """What a row is: a constraint, or part of a price."""
    if not slack and high == np.inf:
        return "=" if low == -np.inf else "<="
    if not slack:
        return f"lasso{'' if grouped else '-l1'}:{high}"
    weight = 1 / (2 * slack)
    return f"ridge:{weight}" if high == np.inf else f"huber:{weight},{high * slack}"


# --- what must fit --------------------------------------------------------------------------------

SAME = "make them the same in both TOML files"


def difference(other: int, mine: dict[str, Any] | None, theirs: Any) -> str:
    """What differs between two ends of an edge as each of them says it; nothing where they fit."""
    if mine is None and theirs is None:
        return ""
    if mine is None or theirs is None:
        has, lacks = f"peer {other}", "this peer"
        has, lacks = (has, lacks) if mine is None else (lacks, has)
        return (
            f"{has} has couplings on its edges and {lacks} none, so that all models are equal: "
            "give both [between] in their TOML files, or neither"
        )
    try:
        return differing_rows(other, mine, theirs) or differing_matrices(other, mine, theirs)
    except (KeyError, TypeError, ValueError, IndexError):
        return f"peer {other} says nothing usable of what their edge carries"


def differing_rows(other: int, mine: dict[str, Any], theirs: dict[str, Any]) -> str:
    """Row by row, as far as the greeting has them."""
    m, n = mine["rows"], theirs["rows"]
    if m != n:
        return f"peer {other} has {shown(n)} rows on this edge, this peer {m}: {SAME}"
    for name, told in (("", "of"), ("c = ", "c")):
        if mine[told] == theirs[told]:
            continue
        own, their = (every_row(said[told]) for said in (mine, theirs))
        if len(own) != m or len(their) != m:
            what = "senses or prices differ" if told == "of" else "c differs"
            return f"{what} on the edge to peer {other}, which has {m} rows: {SAME}"
        k = next(k for k in range(m) if own[k] != their[k])
        return (
            f"peer {other} has {name}{shown(their[k])} in row {k} of this edge, this peer "
            f"{name}{own[k]}: {SAME}"
        )
    return ""


def every_row(told: Any) -> list[Any]:
    """None where there is only a hash."""
    return told if isinstance(told, list) else []


def differing_matrices(other: int, mine: dict[str, Any], theirs: dict[str, Any]) -> str:
    """Where an end knows what the other's should be."""
    own, their = mine["parts"], theirs["parts"]
    if [part[0] for part in own] != [part[0] for part in their]:
        if not any(part[2] for part in (*own, *their)):
            return ""
        return (
            f"peer {other} says what this edge carries in {len(their)} parts, this peer in "
            f"{len(own)}, so that matrices cannot be compared: {SAME}"
        )
    for (_, A, B), (_, their_A, their_B) in zip(own, their, strict=True):
        if B is not None and their_A != B:
            return (
                f"peer {other} has another matrix on this edge than this peer's TOML says: correct "
                "one of the two"
            )
        if their_B is not None and their_B != A:
            return (
                f"peer {other} is told of another matrix on this edge than this peer has: correct "
                "one of the two TOML files"
            )
    return ""


def shown(value: Any) -> str:
    """What somebody else chose, for a line of the log."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= MAX_SHOWN and text.isprintable() else repr(text)[:MAX_SHOWN] + "..."
