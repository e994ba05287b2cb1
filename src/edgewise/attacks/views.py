"""What those who put their messages together know of messages between others."""

from typing import NamedTuple

import numpy as np

from edgewise.attacks.recording import Recording


class View(NamedTuple):
    """What came in along the edges of nodes, as somebody else works it out."""

    heard: tuple[np.ndarray, ...]  # for each vector (rounds + 1, e, n)
    whole: np.ndarray  # (V,) nodes of which no message had to be guessed


def all_neighbours(recording: Recording) -> View:
    """Of each node what its own neighbours sent it: they know all of that."""
    return View(recording.heard, np.ones(recording.graph.nodes, bool))


def first_neighbours(recording: Recording) -> np.ndarray:
    """(V,) of each node the neighbour of the lowest number."""
    return np.array([recording.graph.neighbours(i)[0] for i in range(recording.graph.nodes)])


def one_neighbour(recording: Recording) -> View:
    """Of each node what that one neighbour alone can say."""
    graph = recording.graph
    who = [[a] for a in first_neighbours(recording)]
    return worked_out(recording, [np.isin(np.arange(graph.nodes), a) for a in who])


def coalition(recording: Recording, members: np.ndarray) -> View:
    """Of each node what the members (V,) can say together."""
    return worked_out(recording, recording.graph.nodes * [members])


def worked_out(recording: Recording, members: list[np.ndarray]) -> View:
    """Of each node's edges what its attackers, members[i] (V,), make of them. Their own messages
    they have. Between two others whose models they see, in the edge form,

        m_ji(0) = rho x_j(0),    m_ji(t+1) = 2 rho_ij x_j(t+1) - m_ij(t)

    which is right as long as duals began at zero. A neighbour whose model they do not see they take
    to be where the node itself is."""
    graph, d = recording.graph, recording.graph.directed
    adjacent = np.zeros((graph.nodes, graph.nodes), bool)
    adjacent[d.owner, d.other] = True
    ours = np.array(members)  # (V, V), by node that is looked at
    sees = ours | ((ours @ adjacent) > 0)
    told, seen = ours[d.owner, d.other], sees[d.owner, d.other]
    whole = np.ones(graph.nodes, bool)
    np.logical_and.at(whole, d.owner, seen)
    X = np.where(seen[:, None], recording.models[:, d.other], recording.models[:, d.owner])
    guessed = []
    for kind, heard, sent in zip(
        recording.method.hears, recording.heard, recording.sent, strict=True
    ):
        if kind == "each":
            rho, own = recording.edge_weights, recording.models[:, d.owner]
            into, back = np.empty_like(heard), np.empty_like(heard)
            into[0], back[0] = rho * X[0], rho * own[0]
            for t in range(recording.rounds):
                into[t + 1] = 2 * rho * X[t + 1] - back[t]
                back[t + 1] = 2 * rho * own[t + 1] - into[t]
        elif kind == "news":
            into = np.where(seen[:, None], heard, sent[:, d.owner])
        else:
            into = np.where(seen[:, None], sent[:, d.other], sent[:, d.owner])
        guessed.append(np.where(told[:, None], heard, into))
    return View(tuple(guessed), whole)
