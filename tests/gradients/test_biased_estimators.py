"""SAG, PAGE, SARAH: how biased they are, by every draw, and everything else that they claim."""

import jax
import jax.numpy as jnp
import literal_biased
import numpy as np
import pytest
from draws import COUNTS, KINDS, NEVER, every_draw, exact, models, over_all, setting
from literal import make_case, words_for
from tracking_numpy import metropolis
from uneven import problem_of

import edgewise as ew
from edgewise.backend.declared import declared
from edgewise.engines import native
from edgewise.engines.simulator import Simulator
from edgewise.errors import MethodError
from edgewise.gradients import ESTIMATORS

CLOSE = 1e-12
BIASED = {
    "sag": lambda b: ew.SAG(batch=b),
    "page": lambda b: ew.PAGE(batch=b),
    "sarah": lambda b: ew.SARAH(batch=b, length=9),
}


def ridge_of(case, X):
    return np.array([case.node(i).ridge_part(x) for i, x in enumerate(X)])


def words_of(name, batch, coin=NEVER):
    words = every_draw(COUNTS, batch)
    if name == "page":
        words = np.concatenate([np.full_like(words[..., :1], coin), words], -1)
    return words


# --- the bias, by every draw ----------------------------------------------------------------------


@pytest.mark.parametrize(("problem", "kind", "batch"), KINDS)
def test_sag_averages_to_a_mix_of_the_gradient_and_what_it_remembers(problem, kind, batch):
    """(b/K) grad f(x) + (1 - b/K) (the mean before)"""
    case, p = setting(problem, kind)
    X = models(case, 1)
    G, _, before = over_all(ew.SAG(batch=batch), p, case, words_of("sag", batch))
    assert np.ptp(G, axis=0).max() > 1e-4, "all draws give the same: this shows nothing"
    part = (np.minimum(batch, COUNTS) / COUNTS)[:, None]
    data, ridge = exact(case, X) - ridge_of(case, X), ridge_of(case, X)
    expected = part * data + (1 - part) * before.mean + ridge
    assert np.abs(G.mean(0) - expected).max() <= CLOSE
    assert np.abs(expected - exact(case, X)).max() > 1e-2, "no bias: this shows nothing"


@pytest.mark.parametrize("name", ["page", "sarah"])
@pytest.mark.parametrize(("problem", "kind", "batch"), KINDS)
def test_a_correction_is_right_on_average_and_keeps_the_error_before(name, problem, kind, batch):
    """E g - grad f(x) = g_before - grad f(x_before)"""
    case, p = setting(problem, kind)
    X = models(case, 1)
    G, after, before = over_all(BIASED[name](batch), p, case, words_of(name, batch))
    assert np.ptp(G, axis=0).max() > 1e-3
    error = before.G - (exact(case, before.X) - ridge_of(case, before.X))
    assert np.abs(G.mean(0) - exact(case, X) - error).max() <= CLOSE
    wrong = [i for i, K in enumerate(COUNTS) if batch < K]
    assert np.abs(error[wrong]).max() > 1e-3, "no bias: this shows nothing"
    assert (after.calls[0] - before.calls == 2 * np.minimum(batch, COUNTS)).all()
    assert (after.X == X).all()


@pytest.mark.parametrize(("problem", "kind", "batch"), KINDS)
def test_page_takes_the_whole_gradient_at_heads(problem, kind, batch):
    case, p = setting(problem, kind)
    heads = words_of("page", batch, coin=0)
    G, after, before = over_all(ew.PAGE(batch=batch), p, case, heads)
    assert np.abs(G - exact(case, models(case, 1))).max() <= CLOSE
    assert (after.calls - before.calls == COUNTS).all()


@pytest.mark.parametrize("b", [1, 3])
def test_pages_coin_is_heads_for_b_of_k_and_b_words(b):
    """At each node one word is the last that is heads, the next the first that is tails."""
    case, p = setting("logistic", "dense")
    least = np.array([-(-b * 2**32 // (K + b)) for K in COUNTS])  # the first that is tails
    words = np.zeros((2, 3, b + 1), np.uint32)
    words[0, :, 0], words[1, :, 0] = least - 1, least
    _, after, before = over_all(ew.PAGE(batch=b), p, case, words)
    spent = after.calls - before.calls
    assert (spent[0] == COUNTS).all()
    assert (spent[1] == 2 * np.minimum(b, COUNTS)).all()


def test_sarah_takes_whole_gradients_at_the_start_of_its_epochs():
    """length=2: of the first, the third and the fifth point."""
    case, p = setting("custom", "dense")
    words = np.zeros((1, 3, 1), np.uint32)
    for steps in range(5):
        trail = np.array([models(case, 30 + t) for t in range(steps)]).reshape(-1, *case.X0.shape)
        G, after, before = over_all(ew.SARAH(length=2), p, case, words, trail=trail)
        whole = (np.abs(G[0] - exact(case, models(case, 1))) <= CLOSE).all()
        assert whole == (steps % 2 == 0), steps
        assert (after.calls[0] - before.calls == (COUNTS if whole else 2)).all()


def test_sag_keeps_the_mean_of_its_table_and_can_add_it_up_anew():
    case, p = setting("logistic", "sparse")
    trail = 0.5 * np.random.default_rng(0).normal(size=(300, *case.X0.shape))
    gradient = ew.SAG(batch=2)
    _, _, m = over_all(gradient, p, case, np.zeros((1, 3, 2), np.uint32), trail=trail)
    first = 0
    for i, K in enumerate(COUNTS):
        table = m.table[first : first + K]
        mean = np.append(table @ case.node(i).d, table.sum()) / K
        assert np.abs(mean - m.mean[i]).max() <= CLOSE
        assert m.calls[i] == K + 300 * 2
        first += K
    with jax.enable_x64(True):
        off = jax.tree.map(jnp.asarray, m)._replace(mean=jnp.asarray(m.mean + 1))
        anew = jax.jit(lambda g, p, m: g.summed_anew(p, m))(gradient, p, off)
    assert np.abs(np.asarray(anew.mean) - m.mean).max() <= CLOSE


# --- nodes that sleep -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", BIASED)
def test_nodes_that_are_not_active_are_asked_for_nothing(name):
    """Node 1 sleeps; the others get what they would have got."""
    case, p = setting("multinomial", "sparse")
    gradient, X = BIASED[name](2), models(case, 1)
    with jax.enable_x64(True):
        ask = jax.jit(lambda g, *rest: g(*rest))
        words = jnp.asarray(words_of(name, 2)[5])
        memory = jax.jit(lambda g, *rest: g.init(*rest))(gradient, p, jnp.asarray(models(case, 7)))
        memory = ask(gradient, p, jnp.asarray(models(case, 20)), memory, words)[1]
        awake = jnp.array([True, False, True])
        G, after = ask(gradient, p, jnp.asarray(X), memory, words)
        H, asleep = ask(gradient, p._replace(active=awake), jnp.asarray(X), memory, words)
    assert np.abs(np.asarray(G - H)[[0, 2]]).max() <= CLOSE
    spent, all_spent = (np.asarray(m.calls - memory.calls) for m in (asleep, after))
    assert spent[1] == 0
    assert (spent[[0, 2]] == all_spent[[0, 2]]).all()
    if name == "sag":
        own = slice(COUNTS[0], COUNTS[0] + COUNTS[1])
        assert (asleep.table[own] == memory.table[own]).all()
        assert (after.table[own] != memory.table[own]).any()


# --- composed with another method -----------------------------------------------------------------


def test_tracking_takes_them_too():
    """y(t) = W y(t-1) + g(t) - g(t-1) from y(-1) = g(-1) = 0."""
    case, steps, V, eta = make_case(penalty="none"), 12, 7, 0.3
    for gradient, name, words in ((ew.PAGE(2), "page", 3), (ew.SARAH(1, 3), "sarah", 1)):
        options = {"length": 3} if name == "sarah" else {}
        nodes = [case.node(i) for i in range(V)]
        made = [getattr(literal_biased, name)(nodes[i], case.X0[i], **options) for i in range(V)]
        for each in made:
            next(each)
        W, x = metropolis(case.graph), case.X0
        noise, y, before = words_for(5, V, steps, words), 0 * x, 0 * x
        with jax.enable_x64(True):
            method = ew.GradientTracking(gradient, eta=eta)
            sim = Simulator(case.problem, case.graph, method, 5, np.dtype("float64"))
            carry = sim.start(case.X0, None)
            for t in range(steps):
                g = np.array([made[i].send((x[i], noise[t, i])) for i in range(V)])
                y = W @ y + g - before
                x, before = W @ x - eta * y, g
                carry, _ = sim.advance(carry, t, 1)
                assert np.abs(np.array(sim.view(carry)[0]) - x).max() < 1e-10, (name, t)
        assert np.array(carry[0].memory.calls).tolist() == [node.calls for node in nodes]
        assert np.abs(x - case.X0).max() > 0.05


# --- what is declared -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", BIASED)
def test_no_compiled_copy_is_taken_for_them(name):
    """A compiled round of SAGA's would run, and be another estimator."""
    gradient = BIASED[name](1)
    assert declared(gradient) is None
    problem = problem_of(300, nodes=5)
    assert native.fits(problem, ew.PrimalDual(ew.SAGA())) or not native.numba_runs(problem)
    for method in (ew.PrimalDual(gradient), ew.PrimalDual(gradient, local=3)):
        assert not native.fits(problem, method)
        assert not native.fits_local(problem, method)


def test_settings_that_make_no_sense_are_refused():
    for make in (lambda: ew.SAG(batch=0), lambda: ew.PAGE(batch=1.5), lambda: ew.SARAH(length=0)):
        with pytest.raises(MethodError, match=r"batch|length"):
            make()
    for gradient in (ew.SAG(), ew.PAGE(), ew.SARAH()):
        with pytest.raises(MethodError, match="no analysis of"):
            gradient.theory_step(None)
        assert type(gradient) in ESTIMATORS
        assert gradient.exactness == "yes"


# --- where they end -------------------------------------------------------------------------------


def squares(V=6, K=5, n=4):
    """Least squares whose nodes differ, and its solution by the normal equations."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(V, K, n))
    X /= np.linalg.norm(X, axis=2, keepdims=True)
    y = np.einsum("vkn,vn->vk", X, rng.normal(size=(V, n))) + rng.normal(size=(V, K))
    normal = np.einsum("vkm,vkn->mn", X, X) / K + V * 0.05 * np.eye(n)
    star = np.linalg.solve(normal, np.einsum("vkn,vk->n", X, y) / K)
    problem = ew.Problem(list(zip(X, y, strict=True)), ew.Squared(ridge=0.05))
    return problem, ew.Graph.ring(V), star


@pytest.mark.parametrize("faulty", [False, True])
@pytest.mark.parametrize("name", BIASED)
def test_they_end_at_the_optimum(name, faulty):
    """Under faults too, where a fifth of the messages is lost and half of the nodes sleep."""
    problem, graph, star = squares()
    faults = ew.Faults(drop=0.2, awake=0.5, seed=2) if faulty else None
    method = f"{name}-pd"
    result = ew.solve(problem, graph, method, rounds=4000, faults=faults, reference=False)
    assert np.abs(result.X - star).max() < 1e-8
    assert result.method.form == ("edge" if faulty else "node")
    assert np.abs(star).max() > 0.1


@pytest.mark.parametrize("name", BIASED)
def test_the_automatic_step_is_safe_by_a_factor_of_two(name):
    problem, graph, star = squares()
    eta = 2 * BIASED[name](1).auto_step(problem.smoothness)
    result = ew.solve(problem, graph, f"{name}-pd", eta=eta, rounds=4000, reference=False)
    assert np.abs(result.X - star).max() < 1e-8


def test_sag_fails_at_a_step_several_times_as_long():
    """So that the test above can fail."""
    problem, graph, star = squares()
    eta = 8 * ew.SAG().auto_step(problem.smoothness)
    with pytest.warns(ew.errors.DivergenceWarning):
        result = ew.solve(problem, graph, "sag-pd", eta=eta, rounds=4000, reference=False)
    assert not np.abs(result.X - star).max() < 1
