"""Compiled rounds are for classes that say in their own body which formula they are: a subclass may
compute something else, and runs plainly."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from uneven import problem_of

import edgewise as ew
from edgewise.backend.declared import declared
from edgewise.backend.pytree import pytree
from edgewise.engines import native
from edgewise.engines.simulator import Simulator

pytest.importorskip("numba", reason="compiled rounds need Numba: pip install 'edgewise[fast]'")


def clipped(G):
    return jnp.clip(G, -1e-3, 1e-3)


@pytree("batch")
class ClippedSAGA(ew.SAGA):
    def __call__(self, p, X, m, random_bits):
        G, m = super().__call__(p, X, m, random_bits)
        return clipped(G), m


@pytree("batch", "first", "longest", "stop")
class ClippedSVRG(ew.SVRG):
    def __call__(self, p, X, m, random_bits):
        G, m = super().__call__(p, X, m, random_bits)
        return clipped(G), m


@pytree("batch", "length")
class ShyPlainSVRG(ew.gradients.PlainSVRG):
    def draw(self, p, X, m, random_bits):
        draw, m = super().draw(p, X, m, random_bits)
        return draw._replace(slopes=0.5 * draw.slopes), m


@pytree("form")
class HalfSteps(ew.PrimalDual):
    def step(self, p, s, inbox, random_bits):
        new, _ = super().step(p, s, inbox, random_bits)
        X = 0.5 * (s.X + new.X)
        return new._replace(X=X), (X,)


def slope_halved(loss):
    @pytree()
    class Halved(loss):
        def slope(self, z, y):
            return 0.5 * super().slope(z, y)

    return Halved


def prox_doubled(penalty):
    @pytree()
    class Doubled(penalty):
        def prox(self, x, t):
            return 2 * super().prox(x, t)

    return Doubled


LOSSES = (ew.Logistic, ew.Squared, ew.Huber, ew.SmoothedHinge)
PENALTIES = {ew.NoPenalty: (), ew.L1: (1e-3,), ew.SquaredL2: (0.5,), ew.ElasticNet: (1e-3, 0.5)}
CHANGED = {
    "estimator SAGA": (ew.PrimalDual(ClippedSAGA()), {}),
    "estimator SVRG": (ew.PrimalDual(ClippedSVRG()), {}),
    "estimator PlainSVRG": (ew.PrimalDual(ShyPlainSVRG()), {}),
    "method": (HalfSteps(ew.SAGA()), {}),
    **{
        f"loss {kind.__name__}": (ew.PrimalDual(ew.SAGA()), {"loss": slope_halved(kind)()})
        for kind in LOSSES
    },
    **{
        f"penalty {kind.__name__}": (
            ew.PrimalDual(ew.SAGA()),
            {"penalty": prox_doubled(kind)(*numbers)},
        )
        for kind, numbers in PENALTIES.items()
    },
}


@pytest.mark.parametrize("changed", CHANGED)
def test_a_subclass_that_computes_something_else_gets_what_it_computes(monkeypatch, changed):
    method, options = CHANGED[changed]
    problem, graph = problem_of(300, nodes=5, **options), ew.Graph.ring(5)
    found = []
    assert not native.fits(problem, method)
    for switch in ("1", "0"):
        monkeypatch.setenv("EDGEWISE_NATIVE", switch)
        found.append(ew.solve(problem, graph, method, rounds=12, reference=False).X)
    assert np.abs(found[1]).max() > 1e-5  # it moved
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-12)


def test_a_clipped_gradient_stays_clipped():
    """The compiled rounds of plain SAGA would go a hundred times as far."""
    problem, graph = problem_of(300, nodes=5), ew.Graph.ring(5)
    far, near = (
        np.abs(ew.solve(problem, graph, ew.PrimalDual(g), rounds=12, reference=False).X).max()
        for g in (ew.SAGA(), ClippedSAGA())
    )
    assert far > 10 * near


def engine_for(method):
    problem, graph = problem_of(300, nodes=5), ew.Graph.ring(5)
    with jax.enable_x64(True):
        return native.simulator(problem, graph, method, 0, np.dtype(np.float64))


ESTIMATORS = (
    ew.SAGA(),
    ew.SVRG(),
    ew.SVRG(stop=0.1),
    ew.gradients.PlainSVRG(),
    ew.LSVRG(),
    ew.ASVRG(),
)


@pytest.mark.parametrize("form", ["node", "edge"])
@pytest.mark.parametrize("gradient", ESTIMATORS, ids=lambda g: type(g).__name__)
def test_what_is_declared_gets_compiled_rounds(gradient, form):
    from edgewise.engines.native.rounds import NativeSimulator

    method = ew.PrimalDual(gradient, form=form)
    assert type(engine_for(method)) is NativeSimulator


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", PENALTIES)
def test_losses_and_penalties_that_are_declared_get_compiled_rounds(loss, penalty):
    problem = problem_of(300, nodes=5, loss=loss(), penalty=penalty(*PENALTIES[penalty]))
    assert native.fits(problem, ew.PrimalDual(ew.SAGA()))


def test_a_changed_one_gets_the_plain_engine():
    assert type(engine_for(ew.PrimalDual(ClippedSAGA()))) is Simulator


def test_a_subclass_may_declare_it_anew():
    @pytree("batch")
    class Renamed(ew.SAGA):
        compiled_as = "saga"

    assert native.fits(problem_of(300, nodes=5), ew.PrimalDual(Renamed()))


def test_an_object_with_a_method_of_its_own_declares_nothing():
    saga = ew.SAGA()
    assert declared(saga) == "saga"
    vars(saga)["draw"] = lambda *of: None
    assert declared(saga) is None
    assert declared(ClippedSAGA()) is None
    assert declared(object()) is None
