"""Estimators: unbiased by enumerating every draw, and what they remember stays true."""

from collections import Counter
from itertools import combinations
from math import comb

import jax
import jax.numpy as jnp
import literal
import numpy as np
import pytest
from draws import COUNTS, KINDS, NEVER, every_draw, exact, models, over_all, setting, word
from hypothesis import given, settings
from hypothesis import strategies as st

import edgewise as ew
from edgewise.backend.random_bits import draw_bits
from edgewise.gradients.memory import coin
from edgewise.problem.block import choose

CLOSE = 1e-12
ESTIMATORS = {
    "sgd": lambda b: ew.SGD(batch=b),
    "saga": lambda b: ew.SAGA(batch=b),
    "svrg": lambda b: ew.SVRG(batch=b, first=2),
    "lsvrg": lambda b: ew.LSVRG(batch=b),
}


# --- unbiased ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(("problem", "kind", "batch"), KINDS)
def test_the_average_over_all_draws_is_the_gradient(name, problem, kind, batch):
    case, p = setting(problem, kind)
    gradient = ESTIMATORS[name](batch)
    words = every_draw(COUNTS, batch)
    if name == "lsvrg":
        words = np.concatenate([np.full_like(words[..., :1], NEVER), words], -1)
    G, _, _ = over_all(gradient, p, case, words)
    assert np.ptp(G, axis=0).max() > 1e-3, "all draws give the same: this shows nothing"
    assert np.abs(G.mean(0) - exact(case, models(case, 1))).max() <= CLOSE


@pytest.mark.parametrize(
    ("problem", "kind", "batch", "options"),
    [
        ("logistic", "sparse", 2, {}),
        ("custom", "dense", 1, {"floor": 0.1, "momentum": 0.7, "ask": 0.3, "length": 1}),
    ],
)
def test_asvrg_averages_to_the_gradient_at_its_point(problem, kind, batch, options):
    """Over all draws, heads weighing p and tails 1 - p."""
    case, p = setting(problem, kind)
    gradient = ew.ASVRG(batch=batch, **options).tuned(case.problem.smoothness)
    words = every_draw(COUNTS, batch)
    heads = np.concatenate([np.zeros_like(words[..., :1]), words], -1)
    tails = np.concatenate([np.full_like(words[..., :1], NEVER), words], -1)
    G, after, _ = over_all(gradient, p, case, np.concatenate([heads, tails]))
    D = len(words)
    m = after.extra
    beta, ask, center = m.beta[0][:, None], m.ask[0][:, None], m.center[0]
    assert (m.center == center).all()  # no draw decides on the point
    assert (m.ask[0] < 1).all()
    X = (1 - beta) * center + beta * models(case, 1)
    assert np.ptp(G[:D], axis=0).max() > 1e-3
    assert np.ptp(G[D:], axis=0).max() == 0
    mean = ask * G[:D].mean(0) + (1 - ask) * G[D:].mean(0)
    assert np.abs(mean - exact(case, X)).max() <= CLOSE


@jax.jit
def passes(p, X):
    return p.full(X) + p.ridge(X), p.values(X)


@pytest.mark.parametrize(("problem", "kind", "_"), KINDS)
def test_passes_over_the_data_are_exact(problem, kind, _):
    case, p = setting(problem, kind)
    X = models(case, 1)
    with jax.enable_x64(True):
        full, values = map(np.asarray, passes(p, jnp.asarray(X)))
    assert np.abs(full - exact(case, X)).max() <= CLOSE
    told = [case.node(i).value(x) for i, x in enumerate(X)]
    assert np.abs(values - told).max() <= CLOSE


@pytest.mark.parametrize("batch", [1, 2])
def test_sega_averages_to_the_gradient_over_all_coordinates(batch):
    case, p = setting("logistic", "dense")
    gradient = ew.SEGA(batch=batch)
    G, _, _ = over_all(gradient, p, case, every_draw([case.n] * 3, batch))
    assert np.ptp(G, axis=0).max() > 1e-3
    assert np.abs(G.mean(0) - exact(case, models(case, 1))).max() <= CLOSE


def test_more_coordinates_than_there_are_is_an_error():
    case, p = setting("logistic", "dense")
    gradient = ew.SEGA(batch=case.n + 1)
    with jax.enable_x64(True):
        words = jnp.zeros((3, case.n + 1), jnp.uint32)
        memory = gradient.init(p, jnp.asarray(case.X0))
        with pytest.raises(ew.errors.MethodError, match="only 4 coordinates"):
            gradient(p, jnp.asarray(case.X0), memory, words)


def test_finite_differences_average_to_the_difference_quotients():
    case, p = setting("logistic", "sparse")
    gradient, step = ew.SEGA(ew.FiniteDifference(step=0.1)), 0.1
    X = models(case, 1)
    quotients = np.empty_like(X)
    for i, x in enumerate(X):
        f = case.node(i).value
        for j in range(case.n):
            quotients[i, j] = (f(x + step * np.eye(case.n)[j]) - f(x)) / step
    G, _, _ = over_all(gradient, p, case, every_draw([case.n] * 3, 1))
    assert np.abs(G.mean(0) - quotients).max() <= CLOSE
    assert np.abs(quotients - exact(case, X)).max() > 1e-3, "a step of 0.1 is coarse"


def test_the_default_difference_step_is_near_the_gradient():
    case, p = setting("logistic", "dense")
    X = models(case, 1)
    with jax.enable_x64(True):
        at = jnp.tile(jnp.arange(case.n), (3, 1))
        seen = jax.jit(lambda p, X, at: ew.FiniteDifference()(p, X, at))(p, jnp.asarray(X), at)
        seen = np.asarray(seen)
    assert np.abs(seen - exact(case, X)).max() < 1e-7


# --- SAGA's table, L-SVRG's snapshot -------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "kind", "batch"), [("logistic", "sparse", 4), ("custom", "dense", 1)]
)
def test_saga_keeps_the_mean_of_its_table(problem, kind, batch):
    """Also at nodes with fewer samples than the batch, whose picks stand twice."""
    case, p = setting(problem, kind)
    trail = 0.5 * np.random.default_rng(0).normal(size=(500, *case.X0.shape))
    words = np.zeros((1, 3, batch), np.uint32)
    _, _, memory = over_all(ew.SAGA(batch=batch), p, case, words, trail=trail)
    first = 0
    for i, K in enumerate(COUNTS):
        table = memory.table[first : first + K]
        if problem == "custom":
            mean = table.mean(0)
        else:
            mean = np.append(table @ case.node(i).d, table.sum()) / K
        assert np.abs(mean - memory.mean[i]).max() <= CLOSE
        assert memory.calls[i] == K + 500 * min(batch, K)
        first += K


def test_saga_remembers_the_slope_of_the_last_visit():
    case, p = setting("logistic", "dense")
    words = np.array([[[word(2, K)] for K in COUNTS]], np.uint32)
    _, after, before = over_all(ew.SAGA(), p, case, words)
    first = 0
    for i, K in enumerate(COUNTS):
        for k in range(K):
            slope = before.table[first + k]
            if k == 2:
                slope = case.node(i).sample(models(case, 1)[i], k)[-1]  # the intercept's entry
            assert abs(after.table[0, first + k] - slope) <= CLOSE
        first += K


def test_lsvrg_moves_its_snapshot_where_the_coin_says_so():
    case, p = setting("custom", "dense")  # no table: the snapshot itself is kept
    least = [word(1, K) for K in COUNTS]  # the first word that is tails
    words = np.array([[[least[0] - 1, 0], [least[1], 0], [least[2] - 1, 0]]], np.uint32)
    _, after, before = over_all(ew.LSVRG(), p, case, words)
    X = models(case, 1)
    assert (after.snapshot[0] == np.stack([X[0], before.snapshot[1], X[2]])).all()
    data = exact(case, after.snapshot[0]) - case.problem.loss.ridge * after.snapshot[0]
    assert np.abs(after.mean[0] - data).max() <= CLOSE
    assert list(after.calls[0] - before.calls) == [2 + 3, 2, 2 + 6]


def test_svrg_stays_put_until_its_epoch_is_over_and_then_takes_the_mean():
    """first=2: the start is no iterate, so two more points end the epoch."""
    case, p = setting("custom", "dense")
    start = models(case, 7)
    words = np.zeros((1, 3, 1), np.uint32)
    trail = np.array([start, models(case, 21)])
    _, after, before = over_all(ew.SVRG(first=2), p, case, words, trail=trail)
    assert (before.snapshot == start).all()
    mean = (models(case, 21) + models(case, 1)) / 2
    assert np.abs(after.snapshot[0] - mean).max() <= CLOSE
    data = exact(case, mean) - case.problem.loss.ridge * mean
    assert np.abs(after.mean[0] - data).max() <= CLOSE
    assert list(after.calls[0] - before.calls) == [2 + K for K in COUNTS]


# --- coins ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("K", [1, 2, 3, 7, 1000, 2**31 - 1])
def test_the_coin_is_heads_for_one_kth_of_the_words(K):
    heads = -(-(2**32) // K)  # words 0..heads-1
    words = [w for w in (0, heads - 1, heads, heads + 1, NEVER) if w <= NEVER]
    with jax.enable_x64(True):
        fell = coin(jnp.asarray(words, jnp.uint32), 1 / jnp.asarray([K] * len(words)))
    assert list(fell) == [w < heads for w in words]


def test_the_coin_is_the_same_in_both_precisions():
    with jax.enable_x64(True):
        words = jnp.asarray([0, 2**31 - 1, 2**31, NEVER], jnp.uint32)
        assert list(coin(words, jnp.float32(0.5))) == [True, True, False, False]
        assert list(coin(words, jnp.float64(0.5))) == [True, True, False, False]
        assert not coin(words, jnp.float64(0)).any()
        assert coin(words, jnp.float64(1)).all()


# --- draws without replacement -------------------------------------------------------------------


@jax.jit
def chosen(words, counts):
    return choose(words, counts)


def drawn(words, counts):
    """A list of picks for each row, those beyond its size cut off."""
    with jax.enable_x64(True):
        at, size = chosen(jnp.asarray(words, jnp.uint32), jnp.asarray(counts, jnp.int64))
    at, size = np.asarray(at), np.asarray(size)
    return [row[:s].tolist() for row, s in zip(at, size, strict=True)], at


WORDS = st.integers(0, 2**32 - 1) | st.sampled_from([0, 1, 2**31, NEVER])
SIZES = st.integers(1, 9) | st.sampled_from([2**16 + 1, 2**31 - 1, 2**32])


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([1, 2, 5]), st.data())
def test_draws_are_distinct_and_in_range(batch, data):
    words = data.draw(st.lists(st.lists(WORDS, min_size=batch, max_size=batch), min_size=4))
    words = (words * 4)[:4]
    counts = data.draw(st.lists(SIZES, min_size=4, max_size=4))
    rows, at = drawn(words, counts)
    for picks, whole, row, K in zip(rows, at, words, counts, strict=True):
        assert len(picks) == min(batch, K) == len(set(picks))
        assert 0 <= min(whole) <= max(whole) < K
        assert (whole[len(picks) :] == whole[0]).all()  # beyond: the first again
        assert picks == literal.draw(row, K)


@pytest.mark.parametrize(("K", "batch"), [(5, 1), (4, 2), (5, 3), (6, 5), (3, 3), (2, 5)])
def test_every_subset_is_equally_likely(K, batch):
    words = every_draw([K], batch)[:, 0]
    rows, _ = drawn(words, np.full(len(words), K))
    b = min(batch, K)
    seen = Counter(tuple(sorted(r)) for r in rows)
    assert set(seen) == set(combinations(range(K), b))
    assert set(seen.values()) == {len(words) // comb(K, b)}


@pytest.mark.parametrize("K", [7, 1000])
def test_single_draws_split_the_words_evenly(K):
    """The least word that draws k, and the one before it, which draws k - 1."""
    k = np.unique(np.linspace(1, K - 1, 6).astype(int))
    at = np.array([word(int(a), K) for a in k])
    rows, _ = drawn(np.r_[at, at - 1][:, None], np.full(2 * len(k), K))
    assert [r[0] for r in rows] == [*k, *(k - 1)]


def test_drawn_pairs_are_uniform_by_a_chi_square():
    K, batch, rounds, nodes = 6, 2, 3000, 5
    with jax.enable_x64(True):
        noise = draw_bits(jax.random.key(0), jnp.arange(nodes), jnp.arange(rounds), batch)
    rows, _ = drawn(np.asarray(noise).reshape(-1, batch), np.full(rounds * nodes, K))
    seen = Counter(tuple(sorted(r)) for r in rows)
    expected = rounds * nodes / comb(K, batch)
    chi2 = sum((seen[s] - expected) ** 2 / expected for s in combinations(range(K), batch))
    assert chi2 < 36.1  # 99.9 % of 14 degrees of freedom
