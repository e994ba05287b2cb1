"""Offsets, exposures and case weights against statsmodels, and in every engine alike."""

import numpy as np
import pytest
import scipy.sparse as sp
import statsmodels.api as sm

import edgewise as ew
from edgewise.data import write_shards
from edgewise.engines.native import fits, fits_local
from edgewise.errors import DataError, ProblemError
from edgewise.methods.catalogue import make

N, NODES = 90, 3
RNG = np.random.default_rng(5)
X = RNG.normal(size=(N, 2))
EXPOSURE = RNG.uniform(0.2, 8, N)
OFFSET = RNG.normal(size=N)
WEIGHT = RNG.integers(1, 4, N).astype(float)
MEAN = EXPOSURE * np.exp(X @ [0.5, -0.4] - 0.2)
COUNTS = RNG.poisson(MEAN).astype(float)
ALL = {"weights": "sample", "sample_weight": WEIGHT, "intercept": True}
RING = ew.Graph.ring(NODES)


def shards(x=X, y=COUNTS):
    return ew.split(x, y, NODES, how="size", seed=2)


def glm(family, y=COUNTS, **options):
    model = sm.GLM(y, sm.add_constant(X), family=family, freq_weights=WEIGHT, **options)
    a, *w = model.fit(tol=1e-14, maxiter=300).params
    return np.array([*w, a])


FAMILIES = {
    "poisson": (ew.Poisson(), sm.families.Poisson(), COUNTS),
    "gamma": (ew.Gamma(), sm.families.Gamma(sm.families.links.Log()), MEAN + 0.1),
    "negative-binomial": (
        ew.NegativeBinomial(0.7), sm.families.NegativeBinomial(alpha=0.7), COUNTS,
    ),
    "binomial": (ew.Binomial(), sm.families.Binomial(), (COUNTS > 1).astype(float)),
    "logistic": (ew.Logistic(), sm.families.Binomial(), (COUNTS > 1).astype(float)),
    "squared": (ew.Squared(), sm.families.Gaussian(), np.log(MEAN)),
}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_with_an_offset_the_answer_is_that_of_statsmodels(name):
    loss, family, y = FAMILIES[name]
    p = ew.Problem(shards(y=y), loss, **ALL, offset=OFFSET)
    assert ew.reference(p).x == pytest.approx(glm(family, y, offset=OFFSET), abs=1e-8)


@pytest.mark.parametrize("name", ["poisson", "logistic"])
def test_and_so_it_is_over_a_network(name):
    loss, family, y = FAMILIES[name]
    p = ew.Problem(shards(y=y), loss, **ALL, offset=OFFSET)
    result = ew.solve(p, RING, tol=1e-8)
    star = np.tile(glm(family, y, offset=OFFSET), (NODES, 1))
    assert pytest.approx(star, abs=1e-6) == result.X


def test_an_exposure_is_an_offset_by_its_logarithm():
    p = ew.Problem(shards(), ew.Poisson(), **ALL, exposure=EXPOSURE, offset=0.1 * OFFSET)
    star = glm(sm.families.Poisson(), exposure=EXPOSURE, offset=0.1 * OFFSET)
    assert ew.reference(p).x == pytest.approx(star, abs=1e-8)


def test_shards_may_bring_their_own(tmp_path):
    held = shards()
    own = ew.Shards(
        held.X, held.y, held.counts, held.order,
        offset=OFFSET[held.order], weight=WEIGHT[held.order],
    )  # fmt: skip
    wanted = ew.Problem(held, ew.Poisson(), **ALL, offset=OFFSET)
    write_shards(tmp_path / "shards", own)
    for given in (own, tmp_path / "shards"):
        p = ew.Problem(given, ew.Poisson(), weights="sample", intercept=True)
        assert (p.offset == wanted.offset).all()
        assert p.scale == pytest.approx(wanted.scale, rel=1e-14)
        part = p.only([2, 1])
        assert (part.offset == np.r_[p.offset[p.own(2)], p.offset[p.own(1)]]).all()
        assert part.scale == pytest.approx(np.r_[p.scale[p.own(2)], p.scale[p.own(1)]])
    with pytest.raises(DataError, match="an offset of their own"):
        ew.Problem(own, ew.Poisson(), offset=OFFSET)
    with pytest.raises(DataError, match="weights of their own"):
        ew.Problem(own, ew.Poisson(), sample_weight=WEIGHT)


def test_of_a_folder_without_one_offsets_follow_its_order(tmp_path):
    held = shards()
    write_shards(tmp_path / "shards", held)
    p = ew.Problem(tmp_path / "shards", ew.Poisson(), **ALL, offset=OFFSET)
    assert (p.only([1]).offset == OFFSET[held.order[p.own(1)]]).all()
    assert (p.offset == OFFSET[held.order]).all()


@pytest.mark.parametrize(
    ("method", "sparse"),
    [("saga-pd", False), ("svr-pd", True), ("lt-saga-pd", False), ("pdmm", True)],
)
def test_every_pass_over_the_data_adds_it(method, sparse):
    """By a column with an offset in it, whose coefficient a constraint holds at one."""
    y = (COUNTS > 1).astype(float)
    wide = np.c_[X, OFFSET]
    x = sp.csr_array(X) if sparse else X
    p = ew.Problem(shards(x, y), ew.Logistic(ridge=0.1), offset=OFFSET)
    result = ew.solve(p, RING, method, rounds=4000, tol=1e-9)
    assert result.converged
    held = ew.Box([-9, -9, 1], [9, 9, 1])
    other = ew.reference(ew.Problem(shards(wide, y), ew.Logistic(ridge=0.1), held))
    assert result.x == pytest.approx(other.x[:2], abs=1e-6)


def test_successes_of_trials_are_statsmodels_two_columns():
    trials = RNG.integers(1, 9, N)
    successes = RNG.binomial(trials, 1 / (1 + np.exp(-X[:, 0])))
    rows = sm.add_constant(X)
    both = np.c_[successes, trials - successes]
    a, *w = sm.GLM(both, rows, sm.families.Binomial()).fit(tol=1e-14).params
    held = shards(y=successes)
    own = ew.Shards(held.X, held.y, held.counts, held.order, weight=np.ones(N))
    for given in (held, own):
        p = ew.Problem(given, ew.Binomial(), weights="sample", intercept=True, trials=trials)
        assert ew.reference(p).x == pytest.approx([*w, a], abs=1e-8)
    twice = {"sample_weight": WEIGHT, "trials": trials}
    p = ew.Problem(held, ew.Binomial(), weights="sample", intercept=True, **twice)
    again = sm.GLM(both, rows, sm.families.Binomial(), freq_weights=WEIGHT)
    a, *w = again.fit(tol=1e-14).params
    assert ew.reference(p).x == pytest.approx([*w, a], abs=1e-8)


@pytest.mark.parametrize("nodes", [3, 300])
def test_and_every_way_of_reading_it(nodes):
    """One stretch, slices and chunks of many small nodes: gradients, from margins worked out."""
    import jax
    import jax.numpy as jnp

    rows = 1200 if nodes == 300 else 60
    rng = np.random.default_rng(1)
    x, o = rng.normal(size=(rows, 150)), rng.normal(size=rows)
    y = rng.normal(size=rows)
    for counts in (np.full(nodes, rows // nodes), np.r_[rows - 2 * (nodes - 1), [2] * (nodes - 1)]):
        p = ew.Problem(ew.Shards(x, y, counts), ew.Squared(), offset=o)
        W = rng.normal(size=(nodes, 150))
        owner = np.repeat(np.arange(nodes), counts)
        each = (np.einsum("ij,ij->i", x, W[owner]) + o - y)[:, None] * x
        wanted = np.add.reduceat(each, p.shards.first) / counts[:, None]
        with jax.enable_x64(True):
            block = p.block(None, jnp.float64)
            assert block.full(jnp.asarray(W)) == pytest.approx(wanted, abs=1e-10)


def test_compiled_rounds_which_know_none_leave_problems_with_offsets_alone():
    x, y = RNG.normal(size=(8, 300)), RNG.normal(size=8)
    for o, wanted in ((None, True), (y, False)):
        p = ew.Problem(ew.split(x, y, 2), ew.Squared(ridge=1.0), offset=o)
        assert fits(p, make("saga-pd")) == fits_local(p, make("lt-saga-pd")) == wanted


@pytest.mark.parametrize(
    ("loss", "given", "error", "said"),
    [
        (ew.Poisson(), {"offset": OFFSET[1:]}, DataError, "offset has shape"),
        (ew.Poisson(), {"offset": OFFSET + np.inf}, DataError, "offset must be finite"),
        (ew.Poisson(), {"exposure": 0 * OFFSET}, DataError, "exposure must be positive"),
        (ew.Binomial(), {"trials": 0 * COUNTS}, DataError, "trials must be positive"),
        (ew.Binomial(), {"trials": 0 * COUNTS + 1}, DataError, "successes of 1 trials"),
        (ew.Poisson(), {"trials": COUNTS}, ProblemError, "Poisson knows no trials"),
        (ew.Squared(), {"exposure": EXPOSURE}, ProblemError, "Squared has no means that grow"),
        (ew.Multinomial(), {"offset": OFFSET}, ProblemError, "Multinomial takes no offset"),
        (ew.CustomLoss(lambda x, d, y: d @ x), {"offset": OFFSET}, ProblemError, "takes no offset"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(loss, given, error, said):
    with pytest.raises(error, match=said):
        ew.Problem(shards(), loss, **given)


def test_a_stream_has_no_offset():
    stream = ew.Stream(lambda node, size, rng: (X[:size], COUNTS[:size]), shards())
    with pytest.raises(ProblemError, match="a stream has no weights and no offsets"):
        ew.Problem(stream, ew.Poisson(), offset=OFFSET)
