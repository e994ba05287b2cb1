from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import edgewise as ew
from edgewise.engines.simulator import Simulator
from edgewise.errors import MethodError, UnknownName
from edgewise.methods.catalogue import make
from edgewise.study import theory

NODES, SAMPLES, SIZE = 6, 12, 5
GRAPH = ew.Graph.random(nodes=NODES, edges=9, seed=1)
PAIR = ew.Graph.ring(2)


def logistic(penalty=None, nodes=NODES, loss=None):
    """Noisy labels, so that there is an optimum; two equal columns, so that it is not unique and
    the loss nowhere strongly convex."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((nodes, SAMPLES, SIZE))
    X[..., -1] = X[..., 0]
    X /= np.linalg.norm(X, axis=2, keepdims=True)
    chance = 1 / (1 + np.exp(-2 * X @ rng.standard_normal(SIZE)))
    y = np.where(rng.random((nodes, SAMPLES)) < 0.1 + 0.8 * chance, 1, -1)
    return ew.Problem(list(zip(X, y, strict=True)), loss or ew.Logistic(), penalty)


PLAIN, SPARSE = logistic(), logistic(ew.L1(0.02))
PROBLEMS = {"plain": PLAIN, "l1": SPARSE}


def orthonormal(K=8):
    """Where the constants are nearly attained: sample k sees coordinate k alone, and L = 1."""
    y = np.random.default_rng(0).standard_normal((2, K))
    return ew.Problem([(np.eye(K), row) for row in y], ew.Squared())


# --- the template ---------------------------------------------------------------------------------

UNEQUAL = np.geomspace(0.1, 4, GRAPH.edge_count)
CASES = [(name, "theory") for name in ("pd", "spd", "saga-pd", "lsvr-pd", "sk-pd")]
CASES += [("saga-pd", UNEQUAL)]


@pytest.mark.quick_if(lambda kind, rho, **_: kind == ("l1" if isinstance(rho, str) else "plain"))
@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize(("name", "rho"), CASES)
def test_the_mean_divergence_stays_below_the_bound(name, rho, kind):
    problem, rounds = PROBLEMS[kind], 500
    method = make(name, "theory", rho)
    runs = [
        ew.solve(problem, GRAPH, method, rounds=rounds, seed=seed, record_every=1).trace["bregman"]
        for seed in range(2)
    ]
    divergence = np.mean(runs, 0)  # its row 0 is the paper's t = 1
    start = theory.Start(problem, GRAPH, method)
    assert divergence[0] == pytest.approx((start.from_f + start.from_h).sum())
    for T in (1, 5, 25, 100, rounds):
        measured = divergence[:T].mean()
        assert measured <= theory.bound(start, T) <= theory.bound(start, T, tight=False)
    if name != "spd":  # and it says something
        assert theory.bound(start, rounds) < 12 * measured


@pytest.mark.parametrize("name", ["pd", "spd", "saga-pd", "lsvr-pd", "sk-pd"])
def test_theory_steps_are_the_largest_that_the_constants_allow(name):
    start = theory.Start(PLAIN, GRAPH, name)
    most = theory.largest_step(theory.constants(start))
    np.testing.assert_allclose(most, start.gradient.theory_step(PLAIN.smoothness), rtol=1e-12)
    np.testing.assert_allclose(most, start.eta, rtol=1e-12)
    theory.bound(start, 10)
    longer = ew.PrimalDual(start.gradient, eta=1.01 * most, rho=1.0)
    with pytest.raises(MethodError, match="theory"):
        theory.bound(theory.Start(PLAIN, GRAPH, longer), 10)


def test_w1_and_upsilon_by_hand():
    """Two nodes, one edge: lambda_12* is all of node 1's gradient."""
    problem = logistic(ew.L1(0.02), nodes=2)
    star = ew.reference(problem)
    method = ew.PrimalDual(ew.Full(), eta=2.0, rho=0.5)
    X0 = np.stack([star.x + 1, star.x - 0.5])
    start = theory.Start(problem, PAIR, method, X0=X0)
    dual = star.gradients[0] + star.subgradients[0]
    np.testing.assert_allclose(start.duals, [dual, -dual], atol=1e-12)
    far = [SIZE, SIZE / 4]
    psi = ((0.5 * 1 + dual) ** 2).sum() + ((0.5 * -0.5 - dual) ** 2).sum()
    h = 0.02 * (np.abs(X0) - np.abs(star.x)) - star.subgradients * (X0 - star.x)
    assert start.w1 == pytest.approx(SIZE)
    assert theory.bound(start, 7) == pytest.approx((psi + sum(far) / 2 + 2 * h.sum()) / 7)
    by_w1 = SIZE * (2 * (0.5 + 2) + 2 / 2 + 2 * 2) / 7
    assert theory.bound(start, 7, tight=False) == pytest.approx(by_w1)


def test_the_noise_of_spd_stays_in_the_bound():
    start, x, noise = theory.Start(PLAIN, GRAPH, "spd"), ew.reference(PLAIN).x, 0.0
    for i, eta in enumerate(start.eta):
        D = PLAIN.shards[i][0]
        y = PLAIN.labels[PLAIN.own(i)]
        each = (-y / (1 + np.exp(y * (D @ x))))[:, None] * D
        noise += 2 * eta * ((each - each.mean(0)) ** 2).sum(1).mean()
    assert theory.bound(start, 10**15) == pytest.approx(noise, rel=1e-9)


# --- the constants, by enumeration ----------------------------------------------------------------


@jax.jit
def first(gradient, block, S):
    return gradient.init(block, S)


@jax.jit
def ask(gradient, block, X, memory, words):
    return gradient(block, X, memory, words)


def moments(start, X, S):
    """What Assumption 2 compares, at models X with the memory taken at S: D, phi, the mean of
    |g - grad f_i(x*)|^2 over all samples that the estimator may draw, and that of phi'."""
    g, star, K = start.gradient, start.star, int(start.counts[0])
    G, tables = [], []
    with jax.enable_x64(True):
        memory = first(g, start.block, jnp.asarray(S))
        for k in range(K):  # the last word picks the sample; one before it says tails
            words = np.full((2, g.random_draws), 2**32 - 1, np.uint32)
            words[:, -1] = np.ceil(k * 2**32 / K)
            drawn, after = ask(g, start.block, jnp.asarray(X), memory, jnp.asarray(words))
            G.append(np.asarray(drawn))
            tables.append(getattr(after, "table", None))
    np.testing.assert_allclose(np.mean(G, 0), start.mean(start.gradients(X)), atol=1e-12)
    second = ((np.array(G) - star.gradients) ** 2).sum(2).mean(0)
    D, at_S = (theory.Start(start.problem, PAIR, "saga-pd", X0=at).from_f for at in (X, S))
    if isinstance(g, ew.SGD):
        return D, 0 * D, second, 0 * D
    if isinstance(g, ew.LSVRG):
        return D, at_S, second, (1 - 1 / K) * at_S + D / K

    def phi(table):
        each = np.asarray(table)[:, None] * start.problem.shards.X
        return start.mean(((each - start.gradients(star.x)) ** 2).sum(1))

    return D, phi(memory.table), second, np.mean([phi(table) for table in tables], 0)


def slack(c, found):
    """Right minus left side of the two inequalities, per node; negative where one fails."""
    D, phi, second, later = found
    first = 2 * c.A * D + c.B * phi + 2 * c.sigma2 - second
    return np.minimum(first, (1 - c.varrho) * phi + 2 * c.C * D - later)


ESTIMATORS = {"spd": ("A", "sigma2"), "saga-pd": ("A", "B", "C"), "lsvr-pd": ("A", "B", "C")}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_constants_hold_at_random_points(name):
    rng = np.random.default_rng(1)
    for problem in (logistic(nodes=2), logistic(nodes=2, loss=ew.SmoothedHinge()), orthonormal()):
        start = theory.Start(problem, PAIR, name)
        c = theory.constants(start)
        for spread in (0.01, 1.0, 10.0):
            X, S = start.star.x + spread * rng.standard_normal((2, 2, problem.size))
            found = moments(start, X, S)
            assert (slack(c, found) >= -1e-12 * (1 + found[2])).all()


def attained(start):
    """Models at x* + u and memories at x* - u: every change counts twice."""
    x = start.star.x
    u = x - start.problem.labels.reshape(2, -1)  # for SGD: along the gradients at x*
    return moments(start, x + u, x - u)


@pytest.mark.parametrize(("name", "field"), [(n, f) for n in ESTIMATORS for f in ESTIMATORS[n]])
def test_no_constant_can_be_halved(name, field):
    start = theory.Start(orthonormal(), PAIR, name)
    c, found = theory.constants(start), attained(start)
    assert (slack(c, found) >= -1e-12).all()
    assert (slack(c._replace(**{field: getattr(c, field) / 2}), found) < -1e-3).all()


def test_the_printed_constants_of_lsvr_are_violated():
    start = theory.Start(orthonormal(), PAIR, "lsvr-pd")
    c, found = theory.constants(start), attained(start)
    printed = c._replace(B=2 * start.L, C=1 / start.counts)
    np.testing.assert_allclose(theory.largest_step(printed), theory.largest_step(c))
    assert (slack(printed, found) < -1e-3).all()


def test_batches():
    for gradient in (ew.SGD(3), ew.SAGA(3), ew.LSVRG(3), ew.SEGA(batch=2)):
        start = theory.Start(PLAIN, GRAPH, ew.PrimalDual(gradient, "theory", "theory"))
        single = theory.constants(
            theory.Start(PLAIN, GRAPH, ew.PrimalDual(replace(gradient, batch=1), 1e-3, 1.0))
        )
        c = theory.constants(start)
        assert (theory.largest_step(c) >= start.eta * (1 - 1e-12)).all()
        assert (c.sigma2 <= single.sigma2).all()
    everything = theory.Start(PLAIN, GRAPH, ew.PrimalDual(ew.SGD(SAMPLES), "theory", "theory"))
    assert (theory.constants(everything).sigma2 == 0).all()


# --- epochs ---------------------------------------------------------------------------------------


def snapshots(problem, gradient, lengths, seed, X0=0.0):
    """(S, V, n) the means with which the epochs end, read off the estimator's memory."""
    method = ew.PrimalDual(gradient, eta="theory", rho="theory")
    out, before = [], 0
    with jax.enable_x64(True):
        engine = Simulator(problem, GRAPH, method, seed, np.dtype("float64"))
        carry = engine.start(np.zeros((NODES, problem.size)) + X0, None)
        stride = int(np.gcd.reduce(lengths))  # one compiled program
        for length in lengths:
            for t in range(before, before + length, stride):
                carry, _ = engine.advance(carry, t, stride)
            state = carry[0]
            epoch = state.memory.extra
            assert (np.asarray(epoch.done) == length - 1).all()
            last = engine.method.answer(state)
            out.append(np.asarray(epoch.total + last) / length)
            before += length
    return np.array(out)


def divergences(problem, snapshots):
    found = [theory.Start(problem, GRAPH, "saga-pd", X0=X) for X in snapshots]
    return np.array([(s.from_f + s.from_h).sum() for s in found])


def epochs_below_the_bound(problem, gradient, lengths, times):
    runs = [divergences(problem, snapshots(problem, gradient, lengths, seed)) for seed in range(3)]
    measured = np.mean(runs, 0)
    start = theory.Start(problem, GRAPH, ew.PrimalDual(gradient, "theory", "theory"))
    tight = np.array([theory.epoch_bound(start, s + 1) for s in range(len(lengths))])
    by_w1 = [theory.epoch_bound(start, s + 1, tight=False) for s in range(len(lengths))]
    assert (measured <= tight).all()
    assert np.less_equal(tight, by_w1).all()
    assert (tight / measured).min() < times
    return start, tight


@pytest.mark.parametrize("kind", PROBLEMS)
def test_svr_snapshots_stay_below_their_bound(kind):
    gradient = ew.SVRG(first=5, longest=10**9)
    _, tight = epochs_below_the_bound(PROBLEMS[kind], gradient, [5 * 2**s for s in range(8)], 100)
    np.testing.assert_allclose(np.diff(np.log2(tight)), -1)


@pytest.mark.parametrize("kind", PROBLEMS)
def test_asvr_snapshots_stay_below_their_bound(kind):
    beta, lengths = 0.5, []
    for _ in range(8):
        lengths.append(int(np.ceil(SAMPLES / beta)))
        beta = (np.sqrt(beta**4 + 4 * beta**2) - beta**2) / 2
    start, tight = epochs_below_the_bound(PROBLEMS[kind], ew.ASVRG(floor=0.0), lengths, 100)
    distances, divergence, _ = start.terms(True)
    for s, value in enumerate(tight, 1):  # the closed form, but for epochs that are rounded up
        closed = 2 / (s + 3) ** 2 * (4 * divergence + distances / SAMPLES)
        assert value <= 1.05 * closed


def test_the_printed_bound_of_asvr_is_violated():
    """In a box y cannot overshoot, so half of x is still the first snapshot, however long the
    first epoch: a bracket with m, not 4 m, would have the divergence fall to an eighth."""
    problem, gradient = logistic(ew.Box(-0.1, 0.1)), ew.ASVRG(floor=0.0, length=500)
    X0 = -ew.reference(problem).x
    after = divergences(problem, snapshots(problem, gradient, [1000], 0, X0))[0]
    start = theory.Start(problem, GRAPH, ew.PrimalDual(gradient, "theory", "theory"), X0)
    distances, divergence, _ = start.terms(True)
    assert after <= theory.epoch_bound(start, 1) < 1.2 * after
    assert after > 2 * (divergence + distances / 500) / 8


# --- what cannot be bounded -----------------------------------------------------------------------


def epoch_bound(gradient, epochs=3, problem=PLAIN, eta="theory"):
    start = theory.Start(problem, GRAPH, ew.PrimalDual(gradient, eta, "theory"))
    return theory.epoch_bound(start, epochs)


def test_bounds_refuse_what_they_do_not_cover():
    L = PLAIN.smoothness.sample
    uneven = [PLAIN.shards[i] for i in range(NODES - 1)]
    uneven.append(tuple(part[:-2] for part in PLAIN.shards[NODES - 1]))
    uneven = ew.Problem(uneven, ew.Logistic())
    for problem in (PLAIN, uneven):
        assert epoch_bound(ew.SVRG(first=4, longest=10**9), 9, problem) > 0
        assert epoch_bound(ew.ASVRG(length=10, floor=0.0), 9, problem) > 0
    for refused in (
        lambda: epoch_bound(ew.SVRG(first=4), 9),  # capped
        lambda: epoch_bound(ew.SVRG(stop=0.01)),
        lambda: epoch_bound(ew.SVRG(), problem=uneven),
        lambda: epoch_bound(ew.ASVRG(), problem=uneven),
        lambda: epoch_bound(ew.SVRG(), eta=1.01 / (6 * L)),
        lambda: epoch_bound(ew.ASVRG(floor=0.0), eta=2.02 / (5 * L)),
        lambda: epoch_bound(
            ew.ASVRG(0.99, 0.2, floor=0.0), 1, eta=0.0021 / L
        ),  # the paper's experiments
        lambda: epoch_bound(ew.SAGA()),
        lambda: theory.bound(theory.Start(PLAIN, GRAPH, "svr-pd"), 10),
        lambda: theory.bound(theory.Start(PLAIN, GRAPH, "sk-pd-fd"), 10),
    ):
        with pytest.raises(MethodError):
            refused()
    assert epoch_bound(ew.ASVRG(0.99, 0.2, floor=0.0), 1, eta=0.0019 / L) > 0


# --- rates ----------------------------------------------------------------------------------------


def flat():
    """Losses like r^4 near zero, all least at x = 0: no curvature at the optimum at all."""
    loss = ew.CustomLoss(lambda x, d, y: (d @ x) ** 4 / (1 + (d @ x) ** 2), smoothness=2.5)
    problem, none = logistic(loss=loss), np.zeros((NODES, SIZE))
    return problem, ew.Reference(none[0], 0.0, 0.0, none, none, 0)


def tail(problem, name, star=True):
    """The last divergence, and the slope of log(running mean) over log(rounds) from a tenth of the
    run on."""
    rounds, every = 10_000, 20
    X0 = np.ones(SIZE)
    run = ew.solve(problem, GRAPH, name, rounds, record_every=every, X0=X0, reference=star)
    t, d = run.trace["rounds"][:-1] + every, run.trace["bregman"][:-1]
    mean = np.cumsum(d) / np.arange(1, len(d) + 1)
    late = t >= rounds / 10
    return d[-1], np.polyfit(np.log(t[late]), np.log(mean[late]), 1)[0]


@pytest.mark.parametrize("name", ["saga-pd", "svr-pd", "lsvr-pd"])
def test_running_means_fall_at_least_like_one_over_t(name):
    problem, star = flat()
    last, slope = tail(problem, name, star)
    assert last > 1e-10  # no linear rate here
    assert slope <= -0.95


def test_plain_stochastic_gradients_do_not():
    assert tail(PLAIN, "spd")[1] > -0.8


def test_oracle_complexity():
    def calls(name, epsilon=1e-6, K=100, L=0.25):
        return theory.oracle_complexity(name, 20, 50, K, L, epsilon)

    for name, slope in {
        "pd": -1,
        "saga-pd": -1,
        "lsvr-pd": -1,
        "svr-pd": -1,
        "asvr-pd": -0.5,
    }.items():
        found = np.log10(calls(name, 1e-12) / calls(name, 1e-10)) / -2
        assert found == pytest.approx(slope, abs=1e-3)
    for L in np.geomspace(1e-3, 1e3, 7):
        for K in np.geomspace(1, 1e6, 7):
            eta = np.minimum(np.geomspace(1e-8, 1e8, 4001), 1 / (8 * L))
            best = (4 * 50 + 2 * 20 + 20 * (1 / eta + 4 * eta * L * K).min()) / 1e-6
            assert 1 < best / calls("saga-pd", K=K, L=L) < 16
    with pytest.raises(UnknownName, match="saga-pd"):
        calls("saga")
