"""An auditor's test: a canary in, or nothing in its place, in thousands of runs at once; what can
be told of which it was bounds epsilon from below."""

import numpy as np
import pytest
from scipy.stats import beta, norm

pytest.importorskip("dp_accounting", reason="pip install 'edgewise[privacy]'")

import jax

import edgewise as ew
from edgewise.differential_privacy.accountant import epsilon_of
from edgewise.differential_privacy.bounded_problem import bounded
from edgewise.differential_privacy.private_method import private_method
from edgewise.engines.simulator import Simulator

RUNS, SAMPLES, SIZE, ROUNDS = 6000, 4, 3, 3
DELTA, CONFIDENCE = 1e-5, 1e-3
PAIRS = ew.Graph.from_edges([(2 * k, 2 * k + 1) for k in range(RUNS)])
# at the first model a sample's slope is 1/2: gradients of rows of length 1 are then all clipped
CLIP = 0.2


def pairs_of_nodes(canary):
    """RUNS networks of two nodes, all of the same data, but one sample of every first node."""
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal((2, SAMPLES, SIZE)), rng.choice([-1.0, 1.0], (2, SAMPLES))
    rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
    rows[0, 0], labels[0, 0] = canary, -1.0
    shards = [(rows[i % 2], labels[i % 2]) for i in range(2 * RUNS)]
    return ew.Problem(shards, ew.Logistic(), classes=[-1.0, 1.0])


def told(canary, seed, budget, less_noise=1.0):
    """(RUNS,) what all messages of the first node say along the canary, added up: models are
    x + pull - eta g, so that who hears them has every noisy gradient."""
    problem = bounded(pairs_of_nodes(canary), 1.0)
    method = private_method("dgd-full", problem, budget, ROUNDS, 2, eta=0.5)
    method.gradient.__dict__["noise"] /= less_noise
    along = np.zeros(RUNS)
    with jax.enable_x64(True):
        simulator = Simulator(problem, PAIRS, method, seed, np.dtype("float64"))
        carry = simulator.start(simulator.origin(), None)
        before = np.asarray(simulator.view(carry)[0])
        weight = simulator.weights["mixing"][0]
        for t in range(ROUNDS):
            carry, _ = simulator.advance(carry, t, 1)
            after = np.asarray(simulator.view(carry)[0])
            own, other = before[::2], before[1::2]
            gradients = (own + weight * (other - own) - after[::2]) / 0.5
            along += (gradients - clean_gradient(own))[:, 0]
            before = after
    return along


def clean_gradient(models):
    """(RUNS, SIZE) without the sample in question, as an auditor knows all the others."""
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal((2, SAMPLES, SIZE)), rng.choice([-1.0, 1.0], (2, SAMPLES))
    rows = (rows / np.linalg.norm(rows, axis=-1, keepdims=True))[0, 1:]
    slopes = -labels[0, 1:] / (1 + np.exp(labels[0, 1:] * (models @ rows.T)))
    slopes = np.clip(slopes, -CLIP, CLIP)
    return slopes @ rows / SAMPLES


def least_mu(inside, outside):
    """What a Gaussian mechanism must have at least, by the errors of a test whose threshold was
    known before (Clopper, Pearson 1934)."""
    threshold = ROUNDS * CLIP / SAMPLES / 2
    errors = int((inside <= threshold).sum()), int((outside > threshold).sum())
    most = [beta.ppf(1 - CONFIDENCE, wrong + 1, RUNS - wrong) for wrong in errors]
    return float(-norm.ppf(most[0]) - norm.ppf(most[1]))


@pytest.mark.parametrize("epsilon", [2.0, 6.0])
def test_canaries_tell_no_more_than_was_claimed_and_more_than_half(epsilon):
    budget = ew.DP(epsilon, DELTA, CLIP, row_norm=1.0, rounds=ROUNDS)
    canary = np.eye(SIZE)[0]
    inside, outside = told(canary, 1, budget), told(0 * canary, 2, budget)
    least = epsilon_of(least_mu(inside, outside), DELTA)
    assert epsilon / 2 < least <= epsilon


def test_the_audit_finds_half_the_noise():
    budget = ew.DP(2.0, DELTA, CLIP, row_norm=1.0, rounds=ROUNDS)
    canary = np.eye(SIZE)[0]
    inside, outside = told(canary, 1, budget, 2.0), told(0 * canary, 2, budget, 2.0)
    assert epsilon_of(least_mu(inside, outside), DELTA) > 2.0
