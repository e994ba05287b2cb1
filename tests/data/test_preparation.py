"""Missing cells and text: as scikit-learn and pandas have them, and the same again for new data."""

import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from edgewise.data import Preparation, prepare
from edgewise.errors import DataError, UnknownName

RNG = np.random.default_rng(0)
N = 60


def table(gaps=True):
    """Numbers and texts, every fifth cell of three columns missing."""
    made = pd.DataFrame(
        {
            "age": RNG.normal(50, 9, N),
            "city": RNG.choice(["Rome", "Oslo", "Köln"], N, p=[0.2, 0.2, 0.6]),
            "sex": RNG.choice(["f", "m"], N),
            "dose": RNG.integers(0, 9, N).astype(float),
            "sick": RNG.choice(["no", "yes"], N),
        },
        index=pd.RangeIndex(2, N + 2, name="line"),
    )
    for name in ("age", "city", "dose"):
        if gaps:
            made.loc[RNG.random(N) < 0.2, name] = None
    return made


@pytest.mark.parametrize("missing", ["mean", "median"])
def test_filled_and_encoded_as_scikit_learn_does(missing):
    given = table()
    X, y, preparation = prepare(given, missing=missing, encode="onehot")
    numbers = SimpleImputer(strategy=missing).fit_transform(given[["age", "dose"]])
    texts = given[["city", "sex"]].to_numpy(object)
    texts[pd.isna(texts)] = np.nan
    texts = SimpleImputer(strategy="most_frequent").fit_transform(texts)
    encoder = OneHotEncoder(drop="if_binary", sparse_output=False).fit(texts)
    encoded = encoder.transform(texts)
    np.testing.assert_allclose(X[["age", "dose"]], numbers, rtol=1e-14)
    np.testing.assert_array_equal(X[["city=Köln", "city=Oslo", "city=Rome", "sex=m"]], encoded)
    assert tuple(X.columns) == preparation.names
    assert preparation.names[0] == "age"
    np.testing.assert_array_equal(y, given["sick"])
    assert X.index.tolist() == given.index.tolist()
    assert f"the column's {missing} over all rows" in preparation.done[0]
    assert f"age {given['age'].isna().sum()} with" in preparation.done[0]
    assert preparation.done[1].endswith("levels over all rows: city (3 levels), sex (2 levels)")


def test_dropped_as_pandas_does():
    given = table()
    X, y, preparation = prepare(given, missing="drop", encode="onehot")
    whole = given.dropna()
    assert X.index.equals(whole.index)
    np.testing.assert_array_equal(X[["age", "dose"]], whole[["age", "dose"]])
    np.testing.assert_array_equal(y, whole["sick"])
    assert f"rows left out, with missing cells: {N - len(whole)} of {N}" in preparation.done[0]


def test_indicators_say_where():
    given = table()
    X, _, preparation = prepare(given, missing="indicator", encode="onehot")
    for name in ("age", "dose"):
        np.testing.assert_array_equal(X[f"{name} is missing"], given[name].isna())
        assert X.loc[given[name].isna(), name].to_numpy() == pytest.approx(given[name].mean())
    np.testing.assert_array_equal(X["city=(missing)"], given["city"].isna())
    assert "sex=(missing)" not in X
    assert preparation.indicated == ("age", "dose")


@pytest.mark.parametrize("missing", ["drop", "mean", "median", "indicator"])
def test_the_same_again_from_json(missing):
    given = table()
    X, _, preparation = prepare(given, missing=missing, encode="onehot", ignore=["dose"])
    again = Preparation.from_dict(json.loads(json.dumps(preparation.to_dict())))
    assert again == preparation
    shuffled = given[["sick", "sex", "dose", "city", "age"]]
    pd.testing.assert_frame_equal(again.apply(shuffled), X)
    one = again.apply(given.iloc[[3]].fillna({"age": 1.0, "city": "Oslo"}))  # a row by itself
    assert one.shape == (1, len(preparation.names))
    assert one["age"].item() in (given["age"].iloc[3], 1.0)


def test_new_data_that_do_not_fit_are_refused_by_line():
    _, _, preparation = prepare(table(gaps=False), encode="onehot")
    new = table(gaps=False)
    for change, message in (
        (
            {"city": "Rome Rome"},
            "column \"city\", line 2: 'Rome Rome' is none of its 3 levels: Köln",
        ),
        ({"age": "abc"}, "column \"age\", line 2.*: 'abc' is not a number"),
        ({"age": np.nan}, 'column "age", line 2: the cell is empty'),
    ):
        with pytest.raises(DataError, match=message):
            preparation.apply(new.assign(**change))
    with pytest.raises(DataError, match='there is no column "age": give the columns'):
        preparation.apply(new.drop(columns="age"))
    with pytest.raises(DataError, match="no preparation of a table"):
        Preparation.from_dict({"format": "other"})


@pytest.mark.parametrize("sentinel", ["n.a.", "-999"])
def test_what_stands_for_a_missing_cell_can_be_said(sentinel):
    given = table(gaps=False)
    gone = given["dose"].where(np.arange(N) % 7 > 0)
    marked = given.assign(dose=gone.astype(object).where(gone.notna(), sentinel))
    if sentinel == "-999":
        marked["dose"] = marked["dose"].astype(int)
        told = prepare(marked, encode="onehot").preparation.done[0]
        assert 'column "dose" has -999 in 9 rows and nothing else below zero' in told
    options = {"missing": "indicator", "encode": "onehot"}
    X, _, preparation = prepare(marked, na=[sentinel], **options)
    pd.testing.assert_frame_equal(X, prepare(given.assign(dose=gone), **options).X)
    again = Preparation.from_dict(json.loads(json.dumps(preparation.to_dict())))
    pd.testing.assert_frame_equal(again.apply(marked), X)
    old = preparation.to_dict()
    del old["na"]  # as those had it that did not know of it
    assert Preparation.from_dict(old).na == ()


def test_tables_that_are_none_or_name_a_column_twice_are_refused():
    for wrong in (None, np.eye(3), {"a": [1], "y": [0]}):
        with pytest.raises(DataError, match="is no table: give one with names"):
            prepare(wrong)
    with pytest.raises(DataError, match='two columns are both called "sex": rename one'):
        prepare(table().rename(columns={"city": "sex"}))


def test_what_stands_for_a_missing_cell_is_no_truth_and_may_be_one_text():
    given = table(gaps=False).assign(sex=pd.array(RNG.random(N) < 0.5, dtype="boolean"))
    X, _, preparation = prepare(given, missing="mean", encode="onehot", na="1")
    assert preparation.na == ("1",)
    np.testing.assert_array_equal(X["sex"], given["sex"])
    assert (X["dose"] != 1).all()


def test_categories_are_levels_whatever_they_are_called():
    codes = RNG.choice([10, 20, 30], N)
    given = table(gaps=False).assign(dose=pd.Categorical(codes))
    X, _, preparation = prepare(given, encode="onehot")
    np.testing.assert_array_equal(X["dose=20"], codes == 20)
    plain = given.assign(dose=np.where(codes == 20, np.nan, codes))  # floats, as gaps make them
    filled = Preparation.from_dict({**preparation.to_dict(), "fills": {"dose": "20"}})
    pd.testing.assert_frame_equal(filled.apply(plain), X)


def test_a_column_that_was_whole_is_filled_in_new_data_too():
    given = table(gaps=False)
    _, _, preparation = prepare(given, missing="mean", encode="onehot")
    new = given.iloc[:1].assign(age=np.nan, city=None)
    filled = preparation.apply(new)
    assert filled["age"].item() == pytest.approx(given["age"].mean())
    commonest = given["city"].mode()[0]
    assert filled[f"city={commonest}"].item() == 1


def test_labels():
    given = table(gaps=False)
    for where, expected in (
        ("last", given["sick"]),
        ("first", given["age"]),
        ("dose", given["dose"]),
    ):
        X, y, preparation = prepare(given, label=where, encode="onehot")
        np.testing.assert_array_equal(y, expected)
        assert preparation.label == expected.name
        assert expected.name not in preparation.columns
    given.loc[7, "sick"] = None
    with pytest.raises(DataError, match='column "sick", line 7: the cell is empty'):
        prepare(given, encode="onehot")
    X, y, preparation = prepare(given, missing="mean", encode="onehot")
    assert 7 not in X.index
    assert len(y) == N - 1
    assert preparation.done[0] == "rows left out, without a label: 1"


@pytest.mark.parametrize(
    ("options", "change", "message"),
    [
        ({}, {}, 'column "city" holds text .* in line 2.: give encode="onehot"'),
        ({"label": "ill"}, {}, 'no column \'ill\': give label="last", "first" or one of age, city'),
        ({"ignore": ["ill"]}, {}, 'no column "ill" to ignore: columns are age'),
        (
            {"encode": "onehot"},
            {"sex": [str(i) + "x" for i in range(N)]},
            "60 different texts in 60",
        ),
        ({"encode": "onehot"}, {"age": pd.Timestamp("2020")}, 'column "age" holds dates'),
        ({"encode": "onehot"}, {"age": np.arange(20240101, 20240131).repeat(2)}, "holds dates"),
        ({"encode": "onehot"}, {"sex": [f"Jan {i % 28 + 1}, 2020" for i in range(N)]}, "s dates"),
        ({"encode": "onehot"}, {"sex": [f"{i} kg" for i in range(N)]}, "take the units away"),
        ({"encode": "onehot"}, {"sex": [f"1,{100 + i}.5" for i in range(N)]}, "part thousands"),
        ({"encode": "onehot"}, {"dose": [*["n.a."] * 3, *range(N - 3)]}, r"na=\['n.a.'\] \(--na n"),
        ({"encode": "onehot", "missing": "mean"}, {"age": np.nan}, 'column "age" is empty'),
        (
            {"encode": "onehot", "missing": "drop"},
            {"age": np.nan},
            r'every row lacks .*"age" in 60',
        ),
    ],
)
def test_what_cannot_be_prepared_is_refused_by_name(options, change, message):
    with pytest.raises(DataError, match=message):
        prepare(table(gaps=False).assign(**change), **options)


def test_unknown_ways_are_refused():
    with pytest.raises(UnknownName, match="did you mean 'median'"):
        prepare(table(), missing="medain")
    with pytest.raises(UnknownName, match="known are onehot"):
        prepare(table(), encode="ordinal")


def test_levels_that_say_nothing_make_no_column():
    given = table(gaps=False).assign(sex="f")
    X, _, preparation = prepare(given, encode="onehot")
    assert not [name for name in X if name.startswith("sex")]
    assert "sex (one: no column)" in preparation.done[-1]


def test_every_kind_of_number_that_pandas_and_arrow_have():
    given = pd.DataFrame(
        {
            "whole": pd.array([1, None, 3], dtype=pd.ArrowDtype(pa.int64())),
            "word": pd.array(["x", "y", "x"], dtype=pd.ArrowDtype(pa.string())),
            "exact": [Decimal("1.5"), None, Decimal(2)],
            "truth": pd.array([True, None, False], dtype="boolean"),
            "object": pd.Series([True, None, False], dtype=object),
            "sparse": pd.arrays.SparseArray([0.0, 1, 0]),
            "mixed": pd.Series([1, "2", 3.5], dtype=object),
            "y": pd.Categorical(["u", "v", "u"]),
        }
    )
    X, y, _ = prepare(given, missing="mean", encode="onehot")
    expected = [[1, 0, 1.5, 1, 1, 0, 1], [2, 1, 1.75, 0.5, 0.5, 1, 2], [3, 0, 2, 0, 0, 0, 3.5]]
    np.testing.assert_array_equal(X, expected)
    assert y.tolist() == ["u", "v", "u"]
    for other, message in (
        (pd.array([1, 2, 3], dtype=pd.ArrowDtype(pa.timestamp("s"))), "holds dates"),
        ([[1], [2], [3]], "holds values that are no numbers"),
        ([1j, 2, 3], "holds values that are no numbers"),
    ):
        with pytest.raises(DataError, match=f'column "word" {message} .* in row 0'):
            prepare(given.assign(word=other), missing="mean", encode="onehot")
    with pytest.raises(DataError, match="no rows"):
        prepare(given[:0])
