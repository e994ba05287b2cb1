"""Couplings of every kind on a small grid, for engines to be compared on."""

import numpy as np

import edgewise as ew
from edgewise.problem.coupled import couple
from edgewise.running.coupled_method import choose_coupled

GRID = ew.Graph.grid(3, 4)


def coupled_grid():
    """The problem, and X0, duals and between: nodes of two and three unknowns, with data, a cost,
    or both; rows of both senses, and a price."""
    rng = np.random.default_rng(5)
    sizes = [2 + i % 2 for i in range(12)]
    shards = [
        None if i % 3 == 0 else (rng.standard_normal((4, n)), rng.standard_normal(4))
        for i, n in enumerate(sizes)
    ]
    costs = [
        ew.Quadratic(1.0 + i, np.ones(n)) if i % 6 in (0, 2, 3, 4) else None
        for i, n in enumerate(sizes)
    ]
    penalties = [ew.Box(-0.4, 2.0) if i % 4 == 0 else None for i in range(12)]
    between, duals = {}, {}
    for i, j in GRID.edges.tolist():
        m = 1 + (i + j) % 2
        A, B = rng.standard_normal((m, sizes[i])), rng.standard_normal((m, sizes[j]))
        between[i, j] = [ew.Coupling(A, B, rng.random(m), ["=", "<="][:m])]
        between[i, j] += [ew.NetworkLasso(0.1, on=[0])] * (i % 2)
        duals[i, j] = rng.random(m + i % 2) / 10
    X0 = [rng.standard_normal(n) for n in sizes]
    problem = ew.Problem(shards, ew.Squared(), penalties, cost=costs)
    return problem, {"between": between, "X0": X0, "duals": duals}


def coupled_parts(method):
    """A CoupledProblem and the method's form for it, as `solve` makes them."""
    problem, options = coupled_grid()
    made = couple(problem, GRID, options["between"])
    return made, choose_coupled(made, method, None, None, None).method


def padded(X):
    return np.array([np.pad(x, (0, 3 - len(x))) for x in X])
