"""The argument of docs/faults.md, with the expectation over a round taken by enumeration: two nodes
that sleep and messages that are lost, SAGA's gradients, and a penalty that is curved."""

from itertools import product

import numpy as np

ETA, RHO, K = np.array([0.11, 0.07]), 0.6, 2
CURVED = 40.0  # of the penalty: steeper than the step is short
AWAKE, ARRIVES = np.array([0.3, 0.8]), np.array([0.6, 0.9])
L = 1.0
B, RATE = 2.0, 1 / K  # SAGA's constants, with A = 2L and C = L / K
rng = np.random.default_rng(0)
MINIMA = rng.normal(size=(2, K))  # sample k of node i: (x - MINIMA[i, k])^2 / 2
GAMMA = 1 / (1 / ETA + RHO)
STAR = MINIMA.mean(1).sum() / (2 + 2 * CURVED)
FORCE = STAR - MINIMA.mean(1) + CURVED * STAR  # grad f_i + v_i, which the duals balance
MESSAGE = RHO * STAR + FORCE  # m_ji* at node i: gamma (x/eta - g + m) = x + gamma v


def step(i, k, x, table, inbox):
    g = x[i] - MINIMA[i, k] - table[i, k] + table[i].mean()
    return GAMMA[i] * (x[i] / ETA[i] - g + inbox[i]) / (1 + GAMMA[i] * CURVED)


def potential(x, table, inbox, weight_of_h):
    """`inbox[i]` is what i holds of the other, which was sent with its probabilities."""
    e = x - STAR
    phi = ((table - (STAR - MINIMA)) ** 2).mean(1)
    own = e**2 / (2 * ETA) + B * ETA * phi / (2 * RATE)
    penalty = CURVED * e**2 / 2 * weight_of_h
    sender = [1, 0]
    messages = (inbox - MESSAGE) ** 2 / (4 * RHO * (AWAKE * ARRIVES)[sender])
    return (own / AWAKE).sum() + penalty.sum() + messages.sum()


def expected(x, table, inbox, weight_of_h):
    total = 0.0
    for awake, arrives, picks in product(*(list(product((0, 1), repeat=2)),) * 3):
        chance = 1 / K**2
        new, memory, heard = x.copy(), table.copy(), inbox.copy()
        for i, k in enumerate(picks):
            chance *= AWAKE[i] if awake[i] else 1 - AWAKE[i]
            chance *= ARRIVES[i] if arrives[i] else 1 - ARRIVES[i]
            if not awake[i]:
                continue
            new[i] = step(i, k, x, table, inbox)
            memory[i, k] = x[i] - MINIMA[i, k]
            if arrives[i]:
                heard[1 - i] = 2 * RHO * new[i] - inbox[i]
        total += chance * potential(new, memory, heard, weight_of_h)
    return total


def rises(weight_of_h):
    """By how much more than the bound allows, for any place to start from."""
    most = -np.inf
    for _ in range(60):
        size = 10 ** rng.uniform(-2, 1, 3)
        x = STAR + size[0] * rng.normal(size=2)
        table = STAR - MINIMA + size[1] * rng.normal(size=(2, K))
        inbox = MESSAGE + size[2] * rng.normal(size=2)
        change = expected(x, table, inbox, weight_of_h) - potential(x, table, inbox, weight_of_h)
        e = x - STAR
        gained = (e**2 / 4).sum() + (CURVED * e**2 / 2).sum()  # D_f / 2 and D_h
        most = max(most, (change + gained) / (e**2).sum())
    return most


def test_the_optimum_stays():
    at = STAR * np.ones(2), STAR - MINIMA, MESSAGE.copy()
    assert abs(sum(FORCE)) < 1e-12
    assert abs(step(0, 1, *at) - STAR) < 1e-12
    assert abs(2 * RHO * STAR - MESSAGE[0] - MESSAGE[1]) < 1e-12


def test_with_all_of_a_node_weighed_by_its_wakefulness_it_falls():
    assert (1 / (8 * L) >= ETA).all()
    assert rises(1 / AWAKE) < 1e-9


def test_with_the_penaltys_divergence_as_it_is_it_need_not():
    assert rises(np.ones(2)) > 0.1
