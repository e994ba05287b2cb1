"""Four peers, a penalty of its own at each, for tests over bad lines: well conditioned, as rounds
are slow there."""

from uneven import problem_of

import edgewise as ew
from edgewise.methods.catalogue import make
from edgewise.peers.config.peer_config import Fit

RIDGE = 0.3
GRAPH = ew.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
PENALTIES = [("l1:1e-2",), ("box:-0.1,0.1",), (), ("l2-ball:0.3",)]
FIT = Fit("saga-pd", weights="node", ridge=RIDGE, classes=(-1.0, 1.0))


def penalised():
    each = [ew.L1(1e-2), ew.Box(-0.1, 0.1), ew.NoPenalty(), ew.L2Ball(0.3)]
    return problem_of(7, 4, penalty=each, loss=ew.Logistic(ridge=RIDGE))


def simulated(problem, graph, rounds):
    method = make(FIT.method).healing()
    return ew.solve(problem, graph, method, rounds=rounds, reference=False).X
