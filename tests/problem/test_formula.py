"""Formulas over tables of nodes against formulaic's of all rows together."""

import numpy as np
import pandas as pd
import pytest

import edgewise as ew
from edgewise.errors import DataError, InputError

formulaic = pytest.importorskip("formulaic", reason="formulas: pip install 'edgewise[formula]'")

RNG = np.random.default_rng(0)
N = 40
TABLE = pd.DataFrame(
    {
        "days": RNG.exponential(5, N) + 1,
        "died": RNG.random(N) < 0.5,
        "age": RNG.normal(60, 9, N),
        "stage": RNG.choice(["I", "II", "III", "IV"], N),
        "sex": RNG.choice(["f", "m"], N),
        "grade": RNG.choice([1, 2, 3], N),
    }
)
TABLE.loc[TABLE.index[:10], "stage"] = "II"  # node 0 has one level, which is not the first
TABLE.loc[TABLE.index[10:20], "sex"] = "f"
NODES = [TABLE.iloc[i : i + 10] for i in range(0, N, 10)]


@pytest.mark.parametrize(
    "text",
    [
        "days ~ age + C(stage) + sex",
        "days ~ C(stage) * sex + np.log(age)",
        "days ~ 0 + C(grade) + age:C(stage)",
        'days ~ C(stage, contr.treatment("III"))',
        "days ~ C(stage, contr.sum) + I(age ** 2)",
    ],
)
def test_columns_are_those_of_all_rows_together(text):
    shards, design = ew.formula(text, NODES, "path")
    theirs = formulaic.Formula(text).rhs.get_model_matrix(TABLE, context={"np": np})
    assert design.intercept == ("Intercept" in theirs.columns)
    theirs = theirs.drop(columns="Intercept", errors="ignore")
    assert shards.columns == tuple(theirs.columns)
    np.testing.assert_array_equal(shards.X, theirs.to_numpy(float))
    np.testing.assert_array_equal(shards.y, TABLE["days"])
    pd.testing.assert_frame_equal(
        pd.concat(design.apply(part) for part in NODES), design.apply(TABLE), check_dtype=False
    )


def test_levels_are_agreed_on_by_neighbours():
    _, design = ew.formula("days ~ C(stage) + sex", NODES, ew.Graph.path(4))
    assert design.levels == {"C(stage)": ("I", "II", "III", "IV"), "sex": ("f", "m")}
    assert 1 <= design.rounds <= 3
    ends = [TABLE[TABLE["stage"] == level] for level in ("I", "II", "III", "IV")]
    _, design = ew.formula("days ~ C(stage)", ends, ew.Graph.path(4))
    assert design.rounds == 3  # from one end to the other
    ordered = pd.CategoricalDtype(["IV", "II", "III", "I"])
    parts = [part.astype({"stage": ordered}) for part in NODES]
    assert ew.formula("days ~ stage", parts, "ring")[1].levels["stage"] == (*ordered.categories,)
    given = {"C(stage)": ["I", "II", "III", "IV", "V"]}
    shards, design = ew.formula("days ~ C(stage)", NODES, levels=given)
    assert shards.columns[-1] == "C(stage)[T.V]"
    again = ew.Design("days ~ C(stage)", given).apply(NODES[1])
    np.testing.assert_array_equal(again, shards[1][0])


def test_terms_and_left_sides():
    shards, design = ew.formula("survival_labels(days, died) ~ C(stage) + age - 1", NODES)
    assert not design.intercept
    np.testing.assert_array_equal(shards.y, ew.survival_labels(TABLE["days"], TABLE["died"]))
    shards, design = ew.formula("died ~ C(stage) + age", NODES)
    assert shards.y.dtype == bool
    columns = ["C(stage)[T.II]", "C(stage)[T.III]", "C(stage)[T.IV]"]
    assert design.terms(NODES[0]) == {"C(stage)": columns, "age": ["age"]}


def test_what_a_node_cannot_say_for_all_is_refused():
    with pytest.raises(DataError, match=r"node 0: center\(age\) looks at the whole column"):
        ew.formula("days ~ center(age)", NODES)
    with pytest.raises(DataError, match=r"node 0: .*missing"):
        ew.formula("days ~ age", [TABLE.assign(age=np.nan), *NODES])
    coded = NODES[1].assign(stage=2.0)
    with pytest.raises(DataError, match="stage is a category at node 0, and numbers at node 1"):
        ew.formula("days ~ stage", [NODES[0], coded])
    _, design = ew.formula("days ~ C(stage)", NODES)
    with pytest.raises(DataError, match="a level 'V', which is none of I, II, III, IV"):
        design.apply(NODES[0].assign(stage="V"))
    with pytest.raises(InputError, match="no formula"):
        ew.formula("days ~ ~ age", NODES)
    with pytest.raises(DataError, match="no left side"):
        ew.formula("age", NODES)
    with pytest.raises(DataError, match="one table per node"):
        ew.formula("days ~ age", TABLE)
