"""What nodes far away learn: the bound is never below what they do learn where that is known
exactly, which it is for gradients that are linear in the model: all is Gaussian then."""

import numpy as np
import pytest

pytest.importorskip("dp_accounting", reason="pip install 'edgewise[privacy]'")

import edgewise as ew
from edgewise.differential_privacy.network_bound import mixing_matrix, releases_between
from edgewise.graph.mixing import mixing_weights

ROUNDS = 10
GRAPHS = {
    "path": ew.Graph.path(5),
    "ring": ew.Graph.ring(7),
    "random": ew.Graph.random(7, 10, seed=1),
}


def exact_releases(W, curvatures, v, u, noise):
    """mu^2 of all that node v hears, over that of one release: models are
    x(t+1) = W x(t) - eta (h x(t) + sensitivity at u + noise), eta h = curvatures, in one unknown.
    It knows its own noise, and all data but the sample."""
    V = len(W)
    seen = W[v] > 0
    step = W - np.diag(curvatures)
    hidden_noise = np.diag(np.where(np.arange(V) == v, 0, noise))
    shift, spread = np.zeros(V), np.zeros((V, ROUNDS * V))  # means, and what noise makes of each
    means, spreads = [], []
    for t in range(ROUNDS):
        own = np.zeros((V, ROUNDS * V))
        own[:, t * V : (t + 1) * V] = hidden_noise
        shift, spread = step @ shift + noise[u] * np.eye(V)[u], step @ spread + own
        means.append(shift[seen])
        spreads.append(spread[seen])
    m, S = np.concatenate(means), np.concatenate(spreads)
    return float(m @ np.linalg.pinv(S @ S.T, rcond=1e-12) @ m)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("curved", [0.0, 1.0])
def test_no_node_learns_more_than_the_bound(name, curved):
    graph, rng = GRAPHS[name], np.random.default_rng(3)
    W = mixing_matrix(graph, mixing_weights("lazy-metropolis", graph))
    V, loosest = graph.nodes, 0.0
    for noise in (np.ones(V), rng.uniform(0.5, 2, V)):
        curvatures = curved * rng.uniform(0, 2 * np.diag(W))  # eta <= 2 W_ww / L_w
        for v in range(V):
            seen = (W[v] > 0) | (np.arange(V) == v)
            for u in np.delete(np.arange(V), v):
                bound = releases_between(W, seen, u, ROUNDS, noise)
                exact = exact_releases(W, curvatures, v, u, noise)
                assert exact <= bound * (1 + 1e-9)
                assert bound == ROUNDS or not seen[u]
                if exact > 1e-6 and not curved:
                    loosest = max(loosest, bound / exact)
    if not curved:
        assert 1 < loosest < 4  # no empty bound either


def test_farther_nodes_learn_less():
    X, y = ew.data.dataset("breast_cancer")
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    problem = ew.Problem(ew.split(X, y, 8, seed=0), ew.Logistic(), weights="sample")
    budget = ew.DP(1, 1e-5, 1.0, rounds=40, noise_seed=0)
    spent = {}
    for method in ("dgd-full", "pd"):
        run = ew.solve(problem, ew.Graph.ring(8), method, privacy=budget, reference=False)
        spent[method] = run.privacy.by_distance()
        assert list(spent[method]) == [1, 2, 3, 4]
        assert spent[method][1] == pytest.approx(run.privacy.epsilon) == pytest.approx(1)
        assert np.all(np.diff(list(spent[method].values())) < 0)
    assert spent["dgd-full"][2] < 0.6
    assert spent["dgd-full"][4] < 0.3
    assert spent["pd"][4] > 0.9  # no claim but that news take their time
    long_steps = ew.solve(
        problem, ew.Graph.ring(8), "dgd-full", eta=5.4, privacy=budget, reference=False
    )
    assert long_steps.privacy.weights is None  # 2 W_ii / L_i is 5.33: models might move apart
    under_faults = ew.solve(
        problem,
        ew.Graph.ring(8),
        "pd",
        privacy=budget,
        reference=False,
        faults=ew.Faults(drop=0.1),
    )
    assert under_faults.privacy.weights is None
