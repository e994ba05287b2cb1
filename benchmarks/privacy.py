"""What neighbours learn of a peer's gradients, and what random first messages (`dual_noise`) cost.

    python benchmarks/privacy.py

Six peers, each joined to each, breast cancer data, SAGA-PD with batches of 8. Peer 0 is looked at
by all of its neighbours, or by all but one: those see every iterate of everybody, and work out what
the one that is not with them sends, as far as they can. Rounds are counted there, and on a ring of
twenty, where messages have a long way.
"""

import jax
import numpy as np
from sklearn.preprocessing import normalize, scale

import edgewise as ew
from edgewise.peers.node.stepper import Stepper, facts_of
from edgewise.peers.transport.edge_facts import EdgeFacts

PEERS, ON_A_RING, ROUNDS, SEED = 6, 20, 200, 0
MOST = 60_000  # rounds
CLOSE = 1e-8
NOISES = (0.0, 0.01, 0.1, 1.0, 10.0)


class Crowd:
    """All peers in one process, whose messages all arrive."""

    def __init__(self, problem, graph, dual_noise):
        V = problem.nodes
        parts = [problem.only([i]) for i in range(V)]
        facts = [facts_of(part, int(graph.degrees[i])) for i, part in enumerate(parts)]
        self.around = [graph.neighbours(i).tolist() for i in range(V)]
        method = ew.PrimalDual(ew.SAGA(batch=8))
        self.peers = [
            Stepper(parts[i], i, method, SEED, np.dtype(float), facts[i]).among(
                [EdgeFacts(facts[i], facts[j]) for j in self.around[i]]
            )
            for i in range(V)
        ]
        self.carries = [peer.start(dual_noise) for peer in self.peers]
        self.sent = [tuple(map(np.asarray, outbox)) for _, outbox in self.carries]
        self.round = 0

    def message(self, sender, receiver):
        place = self.around[sender].index(receiver)
        return self.peers[sender].outgoing(self.sent[sender], place)[0]

    def models(self):
        return np.stack([np.asarray(state.X)[0] for state, _ in self.carries])

    def weight(self, i, j):
        return float(self.peers[i].block.links.rho[self.around[i].index(j)])

    def step(self):
        heard = [
            (np.stack([self.message(j, i) for j in around]),)
            for i, around in enumerate(self.around)
        ]
        after = [
            peer.step(carry, self.round, got)
            for peer, carry, got in zip(self.peers, self.carries, heard, strict=True)
        ]
        self.carries, self.sent = map(list, zip(*after, strict=True))
        self.round += 1


def gradients_seen(problem, dual_noise, alone):
    """(rounds, n) what was peer 0's, and what is worked out by all neighbours, or all but one."""
    crowd, victim, honest = Crowd(problem, ew.Graph.complete(PEERS), dual_noise), 0, 1
    peer = crowd.peers[victim]
    eta = float(peer.method.eta[0, 0])
    gamma = 1 / (1 / eta + float(peer.block.links.total[0, 0]))
    rho, X = crowd.weight(victim, honest), crowd.models()
    to, fro = rho * X[honest], rho * X[victim]  # of the honest one, if nothing was noisy_duals
    true, seen = [], []
    for _ in range(ROUNDS):
        sums = sum(crowd.message(j, victim) for j in crowd.around[victim])
        guess = sums if alone else sums - crowd.message(honest, victim) + to
        before = crowd.models()[victim]
        crowd.step()
        X = crowd.models()
        step = before / eta - X[victim] / gamma
        true.append(step + sums)
        seen.append(step + guess)
        to, fro = 2 * rho * X[honest] - fro, 2 * rho * X[victim] - to
    return np.array(true), np.array(seen)


def rounds_needed(problem, graph, dual_noise, optimum):
    crowd = Crowd(problem, graph, dual_noise)
    while crowd.round < MOST:
        if np.abs(crowd.models() - optimum).max() < CLOSE * np.abs(optimum).max():
            return crowd.round
        crowd.step()
    return None


def apart(true, seen):
    return np.linalg.norm(seen - true) / np.linalg.norm(true)


def problem_of(peers):
    X, y = ew.data.dataset("breast_cancer")
    shards = ew.split(normalize(scale(X)), y, nodes=peers, how="label", seed=0)
    return ew.Problem(shards, loss=ew.Logistic(ridge=0.03))


def main():
    problem = problem_of(PEERS)
    cases = [(problem, ew.Graph.complete(PEERS)), (problem_of(ON_A_RING), ew.Graph.ring(ON_A_RING))]
    with jax.enable_x64(True):
        print("relative error of what is worked out of a peer's gradients")
        print("noise      by all  all but 1    changes | rounds to 1e-8: complete, ring")
        for dual_noise in NOISES:
            everybody = apart(*gradients_seen(problem, dual_noise, alone=True))
            true, seen = gradients_seen(problem, dual_noise, alone=False)
            changes = apart(true[2:] - true[:-2], seen[2:] - seen[:-2])
            needed = [
                rounds_needed(problem, graph, dual_noise, ew.reference(problem).x)
                for problem, graph in cases
            ]
            errors = f"{everybody:10.1e} {apart(true, seen):10.1e} {changes:10.1e}"
            print(f"{dual_noise:<6g} {errors} | {needed[0]}, {needed[1]}")


if __name__ == "__main__":
    main()
