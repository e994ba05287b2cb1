"""Node form and edge form against the paper's per-edge updates, for every gradient estimator."""

import jax
import literal
import literal_biased
import numpy as np
import pytest
from literal import make_case

import edgewise as ew
from edgewise.engines import wires
from edgewise.engines.simulator import Simulator

CLOSE = 1e-12
STRETCH, ROUNDS = 4, 60

ESTIMATORS = {
    "full": (lambda b: ew.Full(), literal.full, {}),
    "sgd": (lambda b: ew.SGD(batch=b), literal.sgd, {}),
    "saga": (lambda b: ew.SAGA(batch=b), literal.saga, {}),
    "svrg": (lambda b: ew.SVRG(batch=b), literal.svrg, {}),
    "svrg-lengths": (
        lambda b: ew.SVRG(batch=b, first=3, longest=7),
        literal.svrg,
        {"first": 3, "longest": 7},
    ),
    "svrg-stop": (lambda b: ew.SVRG(batch=b, stop=0.6), literal.svrg, {"stop": 0.6}),
    "lsvrg": (lambda b: ew.LSVRG(batch=b), literal.lsvrg, {}),
    "asvrg": (
        lambda b: ew.ASVRG(batch=b, momentum=0.3, ask=0.6),
        literal.asvrg,
        {"momentum": 0.3, "ask": 0.6},
    ),
    "asvrg-paper": (
        lambda b: ew.ASVRG(batch=b, floor=0.3, momentum=0.9, length=4),
        literal.asvrg,
        {"floor": 0.3, "momentum": 0.9, "length": 4},
    ),
    "sag": (lambda b: ew.SAG(batch=b), literal_biased.sag, {}),
    "page": (lambda b: ew.PAGE(batch=b), literal_biased.page, {}),
    "sarah": (lambda b: ew.SARAH(batch=b), literal_biased.sarah, {}),
    "sarah-length": (lambda b: ew.SARAH(b, length=5), literal_biased.sarah, {"length": 5}),
    "sega": (lambda b: ew.SEGA(batch=b), literal.sega, {}),
    "differences": (
        lambda b: ew.SEGA(ew.FiniteDifference(step=0.1), batch=b),
        literal.sega,
        {"difference": 0.1},
    ),
}


def simulate(case, gradient, form, rounds=ROUNDS, stretch=STRETCH, X0=None, duals=None, seed=0):
    """[(rounds so far, answer, duals, calls)], every few rounds."""
    out = []
    with jax.enable_x64(True):
        method = ew.PrimalDual(gradient, eta=case.eta, rho=case.rho, form=form)
        sim = Simulator(case.problem, case.graph, method, seed, np.dtype("float64"))
        sim.unroll, sim.options = 1, {**sim.options, **literal.QUICK}  # half the compiling
        carry = sim.start(case.X0 if X0 is None else X0, duals)
        for t in range(0, rounds + 1, stretch):
            if t:
                carry, _ = sim.advance(carry, t - stretch, stretch)
            kept = (*sim.view(carry), carry[0].memory.calls)
            out.append((t, *(np.array(a, copy=True) for a in kept)))
    return out


def paper(case, name, batch):
    """The estimator for the library, and what the literal code says of it."""
    make, estimator, options = ESTIMATORS[name]
    if estimator is literal.asvrg:
        options = {**options, "batch": batch}
    gradient = make(batch)
    return gradient, literal.run(case, estimator, ROUNDS, gradient.random_draws, **options)


def assert_same(case, gradient, forms, told):
    assert np.abs(told[-1].X - told[0].X).max() > 0.05, "nothing moves: this shows nothing"
    for form in forms:
        for t, X, duals, calls in simulate(case, gradient, form):
            assert np.abs(X - told[t].X).max() <= CLOSE, (form, t)
            assert np.abs(duals - told[t].duals).max() <= CLOSE, (form, t)
            assert (calls == told[t].calls).all(), (form, t)


@pytest.mark.quick_if(lambda name, form, batch: form == "node" or name in ("saga", "svrg"))
@pytest.mark.parametrize(("form", "batch"), [("node", 1), ("edge", 3)])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_equals_the_paper(name, form, batch):
    """Crossed with one batch each to save compiling: a form does not look into its estimator."""
    case = make_case()
    gradient, told = paper(case, name, batch)
    assert_same(case, gradient, [form], told)


CASES = {
    "constraints": ({"penalty": "constraints"}, "saga", 3),
    "intercept": ({"intercept": True, "weighted": True}, "svrg-stop", 3),
    "classes": ({"loss": "multinomial", "intercept": True}, "saga", 1),
    "custom": ({"loss": "bilinear", "penalty": "none", "sparse": True}, "lsvrg", 1),
    "custom-page": ({"loss": "bilinear", "penalty": "none", "sparse": True}, "page", 1),
    "classes-sag": ({"loss": "multinomial", "intercept": True}, "sag", 3),
}


@pytest.mark.parametrize("name", CASES)
def test_both_forms_equal_the_paper_on_other_problems(name):
    given, which, batch = CASES[name]
    case = make_case(**given)
    gradient, told = paper(case, which, batch)
    assert_same(case, gradient, ["node", "edge"], told)


def test_nodes_with_very_many_neighbours_are_summed_edge_by_edge(monkeypatch):
    monkeypatch.setattr(wires, "MOST_SLOTS", 2)
    case = make_case()
    gradient, told = paper(case, "sgd", 1)
    assert_same(case, gradient, ["node", "edge"], told)


def test_the_papers_asvrg_with_its_own_first_values_equals_the_paper():
    case = make_case()
    told = literal.run(case, literal.asvrg, ROUNDS, 4, batch=3, floor=0.0)
    assert_same(case, ew.ASVRG(batch=3, floor=0.0), ["node"], told)


def test_constraints_are_met_at_every_node():
    """The case above is only worth something if the sets are in the way."""
    case = make_case(penalty="constraints")
    X = literal.run(case, literal.saga, ROUNDS, 3)[-1].X
    for x, prox in zip(X, case.prox, strict=True):
        assert np.abs(prox(x, 0.0) - x).max() < 1e-14
    free = make_case(penalty="none")
    assert np.abs(literal.run(free, literal.saga, ROUNDS, 3)[-1].X - X).max() > 0.05


@pytest.mark.parametrize("form", ["node", "edge"])
def test_solve_hands_back_the_models_and_the_duals_of_its_last_round(form):
    case = make_case()
    told = literal.run(case, literal.saga, 43, 1, seed=5)
    method = ew.PrimalDual(ew.SAGA(), eta=case.eta, rho=case.rho, form=form)
    run = ew.solve(
        case.problem,
        case.graph,
        method,
        rounds=43,
        record_every=10,
        seed=5,
        X0=case.X0,
        reference=False,
        progress=False,
    )
    assert np.abs(run.X - told[43].X).max() <= CLOSE
    assert np.abs(run.duals - told[43].duals).max() <= CLOSE
    assert np.abs(run.x - told[43].X.mean(0)).max() <= CLOSE
    assert list(run.trace["rounds"]) == [0, 10, 20, 30, 40, 43]


def test_without_a_starting_point_a_run_begins_at_the_prox_of_zero():
    case = make_case(penalty="constraints")
    off = ew.Box(0.1 * np.ones(case.n), np.ones(case.n))  # zero is not in it
    parts = [(d, y) for d, y in case.problem.shards]
    problem = ew.Problem(parts, ew.Logistic(ridge=0.05), [off, *case.problem.penalty[1:]])
    run = ew.solve(problem, case.graph, "saga-pd", rounds=1, reference=False, progress=False)
    with jax.enable_x64(True):
        sim = Simulator(problem, case.graph, ew.PrimalDual(ew.SAGA()), 0, np.dtype("float64"))
    case.problem, case.eta = problem, sim.eta[:, 0]
    case.rho = 0.2 / np.sqrt(
        np.prod([case.eta[e] * case.graph.degrees[e] for e in case.graph.edges.T], axis=0)
    )
    case.prox[0] = lambda x, t: np.clip(x, 0.1, 1.0)
    X0 = np.zeros_like(case.X0)
    X0[0] = 0.1
    told = literal.run(case, literal.saga, 1, 1, X0=X0)
    assert np.abs(run.X - told[1].X).max() <= CLOSE


# --- warm starts ---------------------------------------------------------------------------------

BEFORE, AFTER = 200, 20


@pytest.mark.parametrize("form", ["node", "edge"])
@pytest.mark.parametrize("penalty", ["l1", "constraints"])
def test_a_warm_start_goes_straight_on(form, penalty):
    case = make_case(penalty=penalty)
    method = ew.PrimalDual(ew.Full(), eta=case.eta, rho=case.rho, form=form)

    def go(rounds, X0, duals=None):
        return ew.solve(
            case.problem,
            case.graph,
            method,
            rounds=rounds,
            record_every=1 if rounds == AFTER else rounds,
            X0=X0,
            duals=duals,
            reference=False,
            progress=False,
        )

    first = go(BEFORE, case.X0)
    warm, cold = go(AFTER, first.X, first), go(AFTER, first.X)

    assert np.abs(first.duals.sum(0)).max() <= CLOSE
    for seed in (0, 1):  # which antisymmetric duals does not matter: their sums say it all
        told = literal.run(
            case,
            literal.full,
            AFTER,
            0,
            X0=first.X,
            duals=case.antisymmetric(first.duals, seed),
        )
        assert np.abs(warm.X - told[AFTER].X).max() <= CLOSE
        assert np.abs(warm.duals - told[AFTER].duals).max() <= CLOSE

    left = first.trace["residual"][-1]
    assert left < 0.05 * first.trace["residual"][0], "not far enough to lose anything"
    assert warm.trace["residual"].max() < 2 * left
    assert warm.trace["residual"][-1] < left
    assert cold.trace["residual"].max() > 5 * left, "duals of zero cost nothing here"
