"""Models of counts, rates, amounts and quantiles, kept and used, against scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import GammaRegressor, PoissonRegressor, TweedieRegressor
from sklearn.metrics import d2_pinball_score, d2_tweedie_score

import edgewise as ew
from edgewise.errors import DataError, InputError
from edgewise.running.model_form import ModelForm

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
EXPOSURE = RNG.uniform(1, 4, 60)
Y = RNG.poisson(np.exp(X @ [0.4, -0.3] + 0.5)).astype(float)
TABLE = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "years": EXPOSURE, "y": Y})
THEIRS = {
    "poisson": PoissonRegressor,
    "gamma": GammaRegressor,
    "tweedie:1.5": lambda **given: TweedieRegressor(power=1.5, link="log", **given),
}


def fit(loss, y=Y, **options):
    problem = ew.Problem(ew.split(X, y, 2), loss, weights="sample", intercept=True, **options)
    return ew.FittedModel.of(ModelForm.of(problem), ew.reference(problem).x, {})


@pytest.mark.parametrize("name", THEIRS)
def test_predictions_score_and_the_estimator_are_those_of_scikit_learn(name, tmp_path):
    y = Y + 0.5 if name == "gamma" else Y
    fit(name, y).save(tmp_path)
    model = ew.load_model(tmp_path)
    assert model.loss == name
    theirs = THEIRS[name](alpha=0, tol=1e-10, max_iter=1000).fit(X, y)
    assert model.predict(X) == pytest.approx(theirs.predict(X), rel=1e-6)
    assert model.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-9)
    made = model.to_sklearn()
    assert type(made) is type(theirs)
    assert made.predict(X) == pytest.approx(model.predict(X), rel=1e-12)


def test_of_a_quantile_the_score_is_of_the_pinball_loss():
    model = fit("quantile:0.7,0.2")
    z = model.predict(X)
    assert z == pytest.approx(X @ model.coef[0] + model.intercept[0])
    assert model.score(X, Y) == pytest.approx(d2_pinball_score(Y, z, alpha=0.7))
    assert model.to_sklearn().predict(X) == pytest.approx(z)


def test_rates_of_trials_and_overdispersed_counts_have_no_estimator_there():
    for name in ("negative-binomial:0.5", "binomial"):
        model = fit(name, np.minimum(Y, 1))
        assert 0 < model.score(X, np.minimum(Y, 1)) < 1
        with pytest.raises(InputError, match="no estimator with this loss"):
            model.to_sklearn()


def test_an_offset_goes_into_predictions_and_into_what_they_are_held_against():
    model = fit("poisson", exposure=EXPOSURE)
    rate = model.predict(X)
    assert model.predict(X, exposure=EXPOSURE) == pytest.approx(rate * EXPOSURE)
    assert model.predict(X, offset=1.0) == pytest.approx(rate * np.e)
    # of counts over exposures, weighed by these, Poisson's D² is the same
    score = d2_tweedie_score(Y / EXPOSURE, rate, sample_weight=EXPOSURE, power=1)
    assert model.score(X, Y, exposure=EXPOSURE) == pytest.approx(score, abs=1e-12)


def test_of_a_table_the_columns_that_it_was_fitted_with_are_the_offset(tmp_path):
    file = tmp_path / "claims.csv"
    TABLE.to_csv(file, index=False)
    names = ew.data.row_terms.TermColumns(exposure="years")
    samples = ew.data.loading.read_samples(file, terms=names)
    assert samples.columns == ("a", "b")
    shards = ew.Shards(
        samples.X, samples.y, [60], columns=samples.columns,
        preparation=samples.preparation, offset=samples.terms.offset,
    )  # fmt: skip
    problem = ew.Problem(shards, ew.Poisson(), intercept=True)
    ew.FittedModel.of(ModelForm.of(problem), ew.reference(problem).x, {}).save(tmp_path)
    model = ew.load_model(tmp_path)
    table = TABLE[["years", "b", "a"]]
    wanted = fit("poisson", exposure=EXPOSURE).predict(X, exposure=EXPOSURE)
    assert model.predict(table) == pytest.approx(wanted, rel=1e-6)
    assert model.predict(table, exposure=1) == pytest.approx(wanted / EXPOSURE, rel=1e-6)
    for lacking in (table[["a", "b"]], X):
        with pytest.raises(DataError, match='the data lack "years"'):
            model.predict(lacking)


@pytest.mark.parametrize(
    ("terms", "change", "said"),
    [
        ({"offset": "age"}, {}, 'there is no column "age": columns are a, b, years, y'),
        ({"offset": "years", "exposure": "years"}, {}, '"years" is given for two things'),
        ({"exposure": "years"}, {"years": 0.0}, 'column "years", row 3 has no exposure: leave'),
        ({"case_weight": "years"}, {"years": -1.0}, 'column "years", row 3 has a weight below'),
        ({"offset": "years"}, {"years": np.nan}, 'column "years", row 3: the cell is empty'),
    ],
)
def test_columns_that_are_no_offsets_are_refused(terms, change, said):
    table = TABLE.copy()
    for name, value in change.items():
        table.loc[3, name] = value
    with pytest.raises(DataError, match=said):
        ew.data.row_terms.TermColumns(**terms).taken_from(table)
