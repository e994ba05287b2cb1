"""A peer's checkpoint: all that it needs to go on as if it had never stopped."""

import hashlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from edgewise.peers.node.fit_identity import Identity, digest, ends_of, identity_of
from edgewise.peers.node.generations import read_newest
from edgewise.peers.node.handshake import agreed
from edgewise.peers.node.own_edges import made_edge
from edgewise.peers.node.state import PeerState
from edgewise.peers.transport.edge_facts import EdgeFacts, NodeFacts
from edgewise.peers.transport.frames import VECTORS, Frame
from edgewise.peers.transport.links import Link
from edgewise.problem.couplings import Rows
from edgewise.problem.edge_ends import End

EDGE = "edge"  # the first part of the names of arrays that say what an edge carries


def contents(peer: PeerState) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Head and arrays. In strict mode what was sent and not yet saved by its receiver goes in too:
    this peer may be the only one that still has it; what came is sent again. In tolerant mode the
    last message that came is what there is of an edge. In both the last news stay: their body is
    not told again before it changes."""
    head: dict[str, Any] = {
        "fit": peer.identity,
        "ends": ends_of(peer.config.fit),
        "round": peer.round,
        "saved": peer.newest_saved,  # which this one makes the one before
        "seconds": peer.seconds(),
        "sent": peer.sent_so_far(),
        "converged_hops": peer.converged_hops,
        "stop_at": peer.stop_at,
        "stop_reason": peer.stop_reason,
        "below_tol_at": peer.below_tol_at,
        "residual": peer.residual,
        "members": peer.members,
        "pairs": {str(j): pair for j, pair in known_pairs(peer).items()},
        "links": {
            str(j): [link.saved, link.gone, link.converged_hops, link.dropped]
            for j, link in peer.links.items()
        },
    }
    arrays = {f"leaf{k}": np.asarray(a) for k, a in enumerate(jax.tree.leaves(peer.carry))}
    for other, link in peer.links.items():
        for round, data in link.sent.items():
            arrays[f"out.{other}.{round}"] = np.frombuffer(data, np.uint8)
        if not link.strict:
            arrays |= {f"in.{other}.{round}": frame.payload for round, frame in link.inbox.items()}
        if link.format.head:
            arrays[f"news.{other}"] = last_news(link)
    if peer.coupled:
        head["edges"] = {str(other): edge.told for other, edge in peer.coupled.items()}
    for other, edge in peer.coupled.items():
        arrays |= {f"{EDGE}.{other}.{part}": a for part, a in packed(edge.end).items()}
    return head, arrays


def last_news(link: Link) -> np.ndarray:
    """A row as taken or, in tolerant mode, as with the message that is saved too."""
    row = link.news.copy()
    if not link.strict:
        for frame in link.inbox.values():
            row[: len(frame.news)] = frame.news
    return row


def known_pairs(peer: PeerState) -> dict[int, EdgeFacts]:
    """Of those that the steps are taken with, who may have left just now, and of all others met."""
    met = {j: link.pair for j, link in peer.links.items()}
    return peer.pairs | {j: pair for j, pair in met.items() if pair is not None}


def identity(peer: PeerState) -> Identity:
    """The fit, the data, and in strict mode the neighbours that a checkpoint is for."""
    own = list(peer.facts) if peer.strict else list(peer.facts[1:])
    known: dict[str, Any] = {"penalty": list(peer.config.penalty)}
    if peer.strict:
        known["neighbours"] = sorted(peer.links)
    known["data"] = digest(own, data_digest(peer.problem))
    if peer.edges:  # in tolerant mode what an edge carries may change, as neighbours may
        ends = [edge.digest for edge in peer.edges.values()] if peer.strict else []
        known["costs"] = digest(ends, cost_digest(peer.problem))
    return identity_of(agreed(peer), **known)


def data_digest(problem: Any) -> str:
    """Of the data themselves."""
    sum, X = hashlib.sha256(), problem.shards.X
    parts = [X.data, X.indices, X.indptr] if hasattr(X, "indptr") else [X]
    terms = [a for a in (problem.shards.offset, problem.shards.weight) if a is not None]
    for part in (*parts, problem.labels, *terms):
        sum.update(np.ascontiguousarray(part).data)
    return sum.hexdigest()


def cost_digest(problem: Any) -> str:
    """Of what a node has besides data: a cost, and a penalty with vectors."""
    sum, parts = hashlib.sha256(), jax.tree.leaves((problem.cost, problem._stacked))
    for part in parts:
        sum.update(np.ascontiguousarray(part).data)
    return sum.hexdigest()


def resume(peer: PeerState) -> dict[str, np.ndarray] | None:
    """Put the peer where the last checkpoint left off; its arrays, if there is one."""
    peer.identity = identity(peer)
    found = read_newest(peer.config.out, peer.identity)
    if found is None:
        return None
    head, arrays = found
    peer.round = peer.newest_saved = head["round"]
    peer.saved = head.get("saved", peer.round)
    peer.seconds_before = head["seconds"]
    peer.sent_before |= head.get("sent", {})
    same_end = head["ends"] == ends_of(peer.config.fit)
    if same_end:
        peer.converged_hops, peer.stop_at = head["converged_hops"], head["stop_at"]
        peer.stop_reason, peer.below_tol_at = head["stop_reason"], head["below_tol_at"]
    peer.residual = head["residual"]
    peer.members = head["members"]
    peer.pairs = {
        int(j): EdgeFacts(*(NodeFacts(*f) for f in pair)) for j, pair in head["pairs"].items()
    }
    told = head.get("edges", {})
    peer.coupled = {int(j): made_edge(unpacked(arrays, j), told[j]) for j in told}
    for other, link in peer.links.items():
        link.awaited_round, link.pair = peer.round, peer.pairs.get(other)
        if other in peer.coupled and not peer.carries_as_grouped(other):
            link.pair = None  # it is a new edge
            continue
        known = head["links"].get(str(other), (0, False, 0, False))
        link.saved, link.gone, link.converged_hops, link.dropped = known
        if not same_end:  # that one had come to the end that was is nothing to this one
            link.gone, link.converged_hops = False, 0
    restore_messages(peer, arrays)
    return arrays


def packed(end: End) -> dict[str, np.ndarray]:
    """An end of an edge: it may be another when the peer is back, and steps were taken with it."""
    A, names = sp.coo_array(end.A), end.rows._fields[2:]
    numbers = {name: np.asarray(getattr(end.rows, name), np.float64) for name in names}
    size = {"shape": np.array(A.shape), "sign": np.array([end.sign])}
    return numbers | size | {"row": A.row, "col": A.col, "data": A.data}


def unpacked(arrays: dict[str, np.ndarray], other: str) -> End:
    of = {
        name.split(".")[2]: a for name, a in arrays.items() if name.startswith(f"{EDGE}.{other}.")
    }
    A = sp.csr_array((of["data"], (of["row"], of["col"])), shape=tuple(of["shape"].tolist()))
    rows = Rows(A, None, *(of[name] for name in Rows._fields[2:]))
    return End(A, rows._replace(grouped=of["grouped"] > 0), float(of["sign"][0]))


def restore_messages(peer: PeerState, arrays: dict[str, np.ndarray]) -> None:
    """Messages, to their links; those of neighbours that have left are forgotten."""
    for name, value in arrays.items():
        kind, *where = name.split(".")
        link = peer.links.get(int(where[0])) if where and kind != EDGE else None
        if link is not None and not peer.carries_as_grouped(link.other):
            continue
        if link is not None and kind == "out":
            link.sent[int(where[1])] = value.tobytes()
        elif link is not None and kind == "news":
            link.news[:] = value
        elif link is not None:
            link.inbox[int(where[1])] = Frame(VECTORS, payload=value)


def restore_carry(carry: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The carry of the checkpoint, in the form of a new one."""
    leaves, tree = jax.tree.flatten(carry)
    return jax.tree.unflatten(
        tree, [jnp.array(arrays[f"leaf{k}"], copy=True) for k in range(len(leaves))]
    )
