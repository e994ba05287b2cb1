"""Oracle calls, rounds, vectors and bytes, exactly, at every round, by the paper's convention."""

import literal
import numpy as np
import pytest
from literal import asvrg_schedule, heads, make_case, words_for

import edgewise as ew
from edgewise.methods.catalogue import CATALOGUE, make

T = 40
CASE = make_case()
K = CASE.counts
V, E, n = CASE.graph.nodes, CASE.graph.edge_count, CASE.n
t = np.arange(T + 1)


def solve(method, dtype="float64", rounds=T, every=1, seed=0):
    run = ew.solve(
        CASE.problem,
        CASE.graph,
        method,
        rounds=rounds,
        record_every=every,
        seed=seed,
        X0=CASE.X0,
        eta=CASE.eta,
        rho=CASE.rho,
        dtype=dtype,
        reference=False,
        progress=False,
    )
    return run.trace


def per_node(count):
    """(T + 1,) the mean over nodes of count(K_i, i), itself (T + 1,)."""
    return np.mean([count(int(k), i) for i, k in enumerate(K)], axis=0)


def svrg_calls(k, b, first=None, longest=None):
    """K for the first snapshot, 2b a step, K whenever a step finds its epoch over."""
    calls, total = [k], k
    left = length = first or max(k // 4, 1)
    for _ in range(T):
        if left == 0:
            total += k
            left = length = min(2 * length, longest or 2 * k)
        total += 2 * min(b, k)
        left -= 1
        calls.append(total)
    return np.array(calls)


def lsvrg_calls(k, i, b):
    coins = [heads(w, 1 / k) for w in words_for(0, V, T, b + 1)[:, i, 0]]
    return k + 2 * min(b, k) * t + k * np.r_[0, np.cumsum(coins)]


def page_calls(k, i, b):
    """K for the first gradient and at heads, which comes up b times in K + b; else 2b."""
    whole = [heads(w, b / (k + b)) for w in words_for(0, V, T, b + 1)[:, i, 0]]
    whole[0] = True
    return np.cumsum(np.r_[0, np.where(whole, k, 2 * min(b, k))])


def sarah_calls(k, b, length=None):
    """K every so many steps, from the first on; else 2b."""
    length = length or -(-k // b)
    return np.cumsum([0, *(k if t % length == 0 else 2 * min(b, k) for t in range(T))])


def asvrg_calls(k, i, b, **schedule):
    """2b per active step only, K per epoch: the coin is heads with probability p."""
    epochs = asvrg_schedule(k, b, **schedule)
    calls, total, (_, p, left) = [k], k, next(epochs)
    for w in words_for(0, V, T, b + 1)[:, i, 0]:
        if left == 0:
            total += k
            _, p, left = next(epochs)
        total += 2 * min(b, k) * heads(w, p)
        left -= 1
        calls.append(total)
    return np.array(calls)


def early_stopping_calls(b, **options):
    """When an epoch stops depends on the iterates, so only the literal run can tell."""
    told = literal.run(CASE, literal.svrg, T, b, **options)
    return np.array([m.calls.mean() for m in told])


NAMES = {
    "pd": lambda: per_node(lambda k, i: k * t),
    "spd": lambda: 1.0 * t,
    "saga-pd": lambda: K.mean() + t,
    "svr-pd": lambda: per_node(lambda k, i: svrg_calls(k, 1)),
    "svr-pd-es": lambda: early_stopping_calls(1, stop=0.05),
    "lsvr-pd": lambda: per_node(lambda k, i: lsvrg_calls(k, i, 1)),
    "asvr-pd": lambda: per_node(lambda k, i: asvrg_calls(k, i, 1)),
    "asvr-pd-paper": lambda: per_node(lambda k, i: asvrg_calls(k, i, 1, floor=0.0)),
    "sag-pd": lambda: K.mean() + t,
    "page-pd": lambda: per_node(lambda k, i: page_calls(k, i, 1)),
    "sarah-pd": lambda: per_node(lambda k, i: sarah_calls(k, 1)),
    "sk-pd": lambda: 1.0 * t,
    "sk-pd-fd": lambda: 1.0 * t,
}
b3 = np.minimum(3, K)
OBJECTS = {
    "spd-3": (lambda: ew.SGD(batch=3), lambda: b3.mean() * t),
    "saga-3": (lambda: ew.SAGA(batch=3), lambda: K.mean() + b3.mean() * t),
    "svrg-3": (
        lambda: ew.SVRG(batch=3, first=2, longest=8),
        lambda: per_node(lambda k, i: svrg_calls(k, 3, 2, 8)),
    ),
    "svrg-stop": (lambda: ew.SVRG(stop=0.6), lambda: early_stopping_calls(1, stop=0.6)),
    "lsvrg-3": (lambda: ew.LSVRG(batch=3), lambda: per_node(lambda k, i: lsvrg_calls(k, i, 3))),
    "sag-3": (lambda: ew.SAG(batch=3), lambda: K.mean() + b3.mean() * t),
    "page-3": (lambda: ew.PAGE(batch=3), lambda: per_node(lambda k, i: page_calls(k, i, 3))),
    "sarah-3": (lambda: ew.SARAH(batch=3), lambda: per_node(lambda k, i: sarah_calls(k, 3))),
    "sarah-2-5": (
        lambda: ew.SARAH(2, length=5),
        lambda: per_node(lambda k, i: sarah_calls(k, 2, 5)),
    ),
    "asvrg-3": (lambda: ew.ASVRG(batch=3), lambda: per_node(lambda k, i: asvrg_calls(k, i, 3))),
}


def test_every_primal_dual_name_is_here():
    """Those that train locally are in test_local_training.py."""
    made = {name: make(name) for name in CATALOGUE}
    ours = {name for name, m in made.items() if isinstance(m, ew.PrimalDual) and m.local is None}
    assert ours == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_counts_of_a_name(name):
    trace = solve(name)
    assert np.abs(trace["oracle_calls"] - NAMES[name]()).max() < 1e-9
    values = 2.0 * t if name == "sk-pd-fd" else 0.0 * t
    assert (trace["function_values"] == values).all()
    assert (trace["rounds"] == t).all()
    assert (trace["vectors_sent"] == t * 2 * E).all()
    assert (trace["bytes_sent"] == t * 2 * E * n * 8).all()


@pytest.mark.parametrize("name", OBJECTS)
def test_counts_of_a_batch(name):
    gradient, expected = OBJECTS[name]
    trace = solve(ew.PrimalDual(gradient()))
    assert np.abs(trace["oracle_calls"] - expected()).max() < 1e-9


def test_early_stopping_stops_early():
    assert (early_stopping_calls(1, stop=0.6) != early_stopping_calls(1)).any()


def test_a_finite_difference_step_takes_one_value_more_than_its_coordinates():
    trace = solve(ew.PrimalDual(ew.SEGA(ew.FiniteDifference(), batch=3)))
    assert (trace["oracle_calls"] == 3 * t).all()
    assert (trace["function_values"] == (3 + 1) * t).all()


@pytest.mark.parametrize("form", ["node", "edge"])
def test_float32_sends_half_the_bytes_and_counts_alike(form):
    trace = solve(ew.PrimalDual(ew.LSVRG(), form=form), dtype="float32", every=T)
    assert trace["oracle_calls"][-1] == pytest.approx(NAMES["lsvr-pd"]()[-1], abs=1e-9)
    assert trace["vectors_sent"][-1] == T * 2 * E
    assert trace["bytes_sent"][-1] == T * 2 * E * n * 4


def test_counts_do_not_depend_on_how_often_they_are_recorded():
    often, seldom = solve("lsvr-pd"), solve("lsvr-pd", every=20)
    at = [0, 20, 40]
    for column in ("rounds", "oracle_calls", "vectors_sent", "bytes_sent"):
        assert (seldom[column] == often[column][at]).all()


def test_another_seed_draws_other_coins():
    assert (
        solve("lsvr-pd", seed=0)["oracle_calls"][-1] != solve("lsvr-pd", seed=3)["oracle_calls"][-1]
    )


def test_an_oracle_budget_stops_at_the_first_row_beyond_it():
    run = ew.solve(
        CASE.problem,
        CASE.graph,
        "saga-pd",
        rounds=T,
        record_every=4,
        oracle_budget=K.mean() + 10,
        reference=False,
        progress=False,
    )
    assert run.trace["rounds"][-1] == 12
