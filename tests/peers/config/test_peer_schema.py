"""[schema]: what it says, what does not fit it, and what differs between two peers."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from network_calls import RING, call, peer, refused

import edgewise as ew
from edgewise.errors import DataError, InputError
from edgewise.peers.config.schema import Column, Schema, read_schema
from edgewise.peers.node.own_data import own_data
from edgewise.peers.node.table_form import MOST_TOLD, difference, told

SCHEMA = Schema(
    (
        Column("age", unit="years", centre=50.0, scale=10.0),
        Column("sex", "text", levels=("f", "m")),
        Column("stage", "text", levels=("1", "2", "3")),
        Column("crp", fill=5.0),
    ),
    label="ill",
    classes=("no", "yes"),
    ignore=("patient",),
)
ROWS = [(61.0, "m", 3, 2.5, "yes"), (42.0, "f", 1, np.nan, "no")]
TABLE = pd.DataFrame(ROWS, columns=["age", "sex", "stage", "crp", "ill"])
X = np.array([[1.1, 1, 0, 0, 1, 2.5], [-0.8, 0, 1, 0, 0, 5.0]])


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def config():
    with open("schema.toml", "w") as file:
        file.write(SCHEMA.text())
    call("init", *RING, "--schema", "schema.toml")
    return peer(2)


def read(config, table, **options):
    table.to_csv("own.csv", index=False)
    return own_data(config, "own.csv", **options).shards


def test_what_is_written_is_read(config):
    assert read_schema("schema.toml") == SCHEMA
    assert config.schema == SCHEMA
    assert config.classes == ("no", "yes")


@pytest.mark.parametrize("change", ["none", "reversed", "ignored", "renamed label", "frame"])
def test_a_table_is_brought_into_the_schemas_form(config, change):
    table, options = TABLE, {}
    if change == "reversed":
        table = TABLE[TABLE.columns[::-1]]
    elif change == "ignored":
        table = TABLE.assign(patient=[7, 8])[["patient", *TABLE.columns]]
    elif change == "renamed label":
        table, options = TABLE.rename(columns={"ill": "outcome"}), {"label": "outcome"}
    if change == "frame":
        shards = own_data(config, (TABLE.drop(columns="ill"), TABLE["ill"])).shards
    else:
        shards = read(config, table, **options)
    np.testing.assert_allclose(shards.X, X)
    assert shards.y.tolist() == ["yes", "no"]
    assert shards.columns == ("age", "sex=m", "stage=1", "stage=2", "stage=3", "crp")
    np.testing.assert_allclose(shards.preparation.apply(TABLE)["age"], TABLE["age"])
    assert shards.scaling.scale[0] == 10.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"age": None}, 'there is no column "age", which the schema has: give the schema'),
        ({"smoker": 1}, 'the schema does not know column "smoker": list it under ignore'),
        ({"sex": ["m", "w"]}, "column \"sex\", line 3: 'w' is none of its 2 levels: f, m"),
        ({"ill": ["yes", "maybe"]}, "column \"ill\", line 3: 'maybe' is none of the schema's cl"),
        ({"crp": ["high", "low"]}, "column \"crp\", line 2 (and 1 more): 'high' is text, and the"),
        ({"age": [np.nan, 42]}, 'column "age", line 2: the cell is empty: leave the row out, or'),
        ({"ill": ["yes", None]}, 'column "ill", line 3: there is no label'),
    ],
)
def test_what_does_not_fit_is_refused_by_column_and_line(config, change, words):
    (name, value), table = *change.items(), TABLE
    table = TABLE.drop(columns=name) if value is None else TABLE.assign(**{name: value})
    with pytest.raises(DataError) as error:
        read(config, table)
    assert words in str(error.value)


def test_arrays_are_held_against_it_by_name_or_number(config):
    y = np.array(["yes", "no"])
    np.savez("named.npz", X=X[:, ::-1], y=y, columns=TABLE_NAMES[::-1])
    Z = own_data(config, "named.npz").shards.X
    np.testing.assert_allclose(Z[:, 1:], X[:, 1:])
    np.testing.assert_allclose(Z[:, 0], (X[:, 0] - 50) / 10)
    with pytest.raises(DataError, match=r"the data have 5 columns, the schema in .* 6"):
        own_data(config, (X[:, :5], y))


TABLE_NAMES = ["age", "sex=m", "stage=1", "stage=2", "stage=3", "crp"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('label = "age"', 'schema says "age" twice'),
        ('lable = "ill"', "did you mean 'schema.label'"),
        ('columns = [{ name = "a", type = "date" }]', "type is 'date': give number or text"),
        ('columns = [{ name = "a", type = "text" }]', "levels is to list all the texts"),
        ('columns = [{ name = "a", scale = 0 }]', "scale is 0: give a positive number"),
        ('classes = ["yes"]', "schema.classes is ['yes']: give two labels or more"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(line, words):
    columns = "" if line.startswith("columns") else 'columns = [{ name = "age" }]\n'
    with open("schema.toml", "w") as file:
        file.write(f"[schema]\n{line}\n{columns}")
    with pytest.raises((InputError, ew.errors.UnknownName)) as error:
        read_schema("schema.toml")
    assert words in str(error.value)


def test_fixed_numbers_and_standardised_columns_do_not_go_together(config):
    words = ["--schema", "schema.toml", "--standardize", "--out", "b"]
    assert "the schema has centre and scale" in refused("init", *RING, *words)


# --- what a table suggests ------------------------------------------------------------------------


def test_a_schema_is_proposed_from_a_table():
    table = pd.concat([TABLE.assign(patient=[7, 8])] * 3)
    table.to_csv("own.csv", index=False)
    told = call("schema", "own.csv", "--label", "ill", "--ignore", "patient").stdout
    assert '# column "crp" has 3 empty cells: give it a fill' in told
    with open("schema.toml", "w") as file:
        file.write(told)
    expected = (Column("age"), Column("sex", "text", levels=("f", "m")), *map(Column, STAGE_CRP))
    assert read_schema("schema.toml") == Schema(expected, "ill", ("no", "yes"), ("patient",))


STAGE_CRP = ("stage", "crp")


# --- what differs ---------------------------------------------------------------------------------


def with_column(place, **change):
    columns = list(SCHEMA.columns)
    columns[place] = replace(columns[place], **change)
    return replace(SCHEMA, columns=tuple(columns))


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        (SCHEMA, ""),
        (replace(SCHEMA, ignore=()), ""),
        (with_column(0, unit="months"), 'unit = "months" for column "age", and here "years"'),
        (with_column(1, levels=("f", "x")), "levels = ['f', 'x'] for column \"sex\", and here"),
        (with_column(3, name="CRP"), 'no column "crp", which is here'),
        (replace(SCHEMA, columns=SCHEMA.columns[::-1]), 'column 1 is "crp", and here "age"'),
        (replace(SCHEMA, classes=("yes", "no")), "classes = ['yes', 'no'], and here ['no', 'yes']"),
        (None, "this peer has a [schema] and peer 4 none"),
    ],
)
def test_neighbours_name_what_differs_of_their_schemas(theirs, words):
    said = difference(4, told(SCHEMA, None), told(theirs, ("age", "sex=m")))
    assert words in said
    assert bool(said) == bool(words)


LONG = tuple(f"column number {k}" for k in range(MOST_TOLD // 16))


@pytest.mark.parametrize(
    ("own", "their", "words"),
    [
        (("a", "b"), ("a", "b"), ""),
        (("a", "b"), ("b", "a"), 'the table of peer 4 differs: column 1 is "b", and here "a"'),
        (("a", "b"), ("a", "c"), 'no column "b", which is here'),
        (("a", "b"), None, ""),
        (("a", "b"), ("1", "2"), ""),  # a file without a header
        (LONG, LONG, ""),
        (LONG, LONG[::-1], "the order is another"),
    ],
)
def test_without_a_schema_names_of_columns_are_compared(own, their, words):
    said = difference(4, told(None, own), told(None, their))
    assert words in said
    assert bool(said) == bool(words)


def test_what_is_no_such_thing_is_said_to_be_unusable():
    for theirs in (None, [], {"digest": 3}, {"digest": "x", "schema": 1, "columns": None}):
        assert "peer 4" in difference(4, told(SCHEMA, None), theirs)
