"""Tables on the command line: prepared as asked, said and kept; what cannot be used is named."""

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
from command_line import call, said

import edgewise as ew
from edgewise.data import Preparation, read_table

ROWS = 40
RNG = np.random.default_rng(1)
OPTIONS = ["--nodes", 4, "--graph", "ring", "--ridge", 0.1, "--method", "pd", "--rounds", 20]
PREPARED = ["--missing", "mean", "--encode", "onehot", "--ignore", "id"]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A folder with people.csv in it, of German make."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    age = [f"{a:.1f}".replace(".", ",") for a in RNG.normal(50, 9, ROWS)]
    age[7] = ""
    city = RNG.choice(["Rom", "Köln", "Oslo"], ROWS)
    lines = [f"P{i};{age[i]};{city[i]};{'ja' if i % 3 else 'nein'}" for i in range(ROWS)]
    text = "\n".join(["id;alter;größe;krank", *lines])
    Path("people.csv").write_bytes(text.encode("latin-1"))


def test_a_table_is_prepared_and_what_was_done_is_said_and_kept():
    done = call("solve", "people.csv", *OPTIONS, *PREPARED, "--out", "run", code=1).stdout
    assert "people.csv is not UTF-8: read as Windows-1252" in done
    assert "commas are read as decimal marks" in done
    assert "columns left out: id" in done
    assert "alter 1 with" in done
    assert "größe (3 levels)" in done
    config = tomllib.loads(Path("run/run.toml").read_text())
    assert [config[k] for k in ("missing", "encode", "ignore")] == ["mean", "onehot", ["id"]]
    assert len(json.loads(Path("run/result.json").read_text())["data"]) == 5
    model = json.loads(Path("run/model.json").read_text())
    kept = Preparation.from_dict(model["preparation"])
    assert kept.names == ("alter", "größe=Köln", "größe=Oslo", "größe=Rom")
    new = kept.apply(read_table("people.csv"))
    assert new.shape == (ROWS, 4)
    ages = read_table("people.csv")["alter"]
    assert new["alter"].iloc[7] == pytest.approx(ages.mean())
    resumed = said("solve", "--resume", "run", "--rounds", 30, code=1)  # prepared the same way
    assert resumed["rounds"] == 30


def test_a_split_table_is_solved_as_the_table_itself():
    assert "columns left out: id" in call("split", "people.csv", "--nodes", 4, *PREPARED).stdout
    shards = ew.Problem("shards", ew.Logistic())
    assert shards.columns == ("alter", "größe=Köln", "größe=Oslo", "größe=Rom")
    assert sorted(ew.data.load_shards("shards").lines) == list(range(2, ROWS + 2))
    whole = said("solve", "people.csv", *OPTIONS, *PREPARED, "--no-save", code=1)
    parts = said("solve", "--shards", "shards", *OPTIONS, "--no-save", code=1)
    assert parts["residual"] == whole["residual"]
    assert parts["data"] == whole["data"]
    refused = call("solve", "--shards", "shards", *OPTIONS, "--missing", "mean", code=2).stderr
    assert "shards holds shards, which were read from a file before: leave --missing out" in refused


def test_compare_and_tune_prepare_too():
    words = ["people.csv", "--nodes", 4, "--budget", 20, "--ridge", 0.1, *PREPARED, "--no-save"]
    told = call("compare", *words, "--methods", "pd", "--seeds", 1, "--no-tune", code=1).stdout
    assert "columns left out: id" in told
    told = call("tune", *words, "--method", "pd", "--factors", "1", code=0).stdout
    assert "columns left out: id" in told


@pytest.mark.parametrize(
    ("content", "name", "words", "message"),
    [
        ("a,c,y\n1,x,0\n2,y,1\n", "d.csv", [], "column \"c\" holds text ('x' in line 2): give"),
        ("a,b,y\n1,2,0\n3,,1\n", "d.csv", [], 'column "b", line 3: the cell is empty'),
        ("a,b,y\n1,2,0\n1e400,2,1\n", "d.csv", ["--scale"], 'column "a", line 3 is infinite'),
        ("0 1:1 2:2\n1 1:1e400\n", "d.svm", ["--scale"], "X has an infinity in column 0, row 1:"),
        ("0 1:1 2:2\n1 1:1e200\n", "d.svm", [], "X has 1e+200 in column 0, row 1 of the data set"),
        ('{"a": [1]}', "d.json", [], "d.json is not read: pandas.read_json(path)"),
        ("a,y\n1,0\n2,1\n", "d.csv", ["--label", "z"], "no column 'z'"),
        ("a,y\n1,0\n2,1\n", "d.csv", ["--missing", "guess"], "unknown missing= 'guess'"),
        ("a,y\n1,u\n2,\n3,v\n", "d.csv", ["--loss", "multinomial"], 'column "y", line 3: the cell'),
    ],
)
def test_what_cannot_be_used_is_named(content, name, words, message):
    Path(name).write_text(content)
    done = call("solve", name, "--nodes", 2, "--graph", "path", *words, code=2)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(Path("out").glob("*"))


def test_weights_of_rows_that_were_left_out_are_said_to_be_too_many():
    np.savetxt("weights.txt", np.ones(ROWS))
    dropped = ["--missing", "drop", *PREPARED[2:], "--sample-weight", "weights.txt", "--no-save"]
    done = call("solve", "people.csv", *OPTIONS, *dropped, code=2).stderr
    assert "weights.txt has 40 weights and 39 rows are left (rows left out" in done


def test_named_sets_and_missing_files_with_options_of_tables():
    assert "leave --missing out" in call("solve", "iris", "--missing", "drop", code=2).stderr
    assert "there is no file gone.parquet" in call("solve", "gone.parquet", code=2).stderr


def test_where_nothing_can_be_written_it_says_what_to_do(monkeypatch):
    words = ["people.csv", *OPTIONS, *PREPARED]
    done = call("solve", *words, "--out", "people.csv/run", code=2).stderr
    assert "people.csv/run cannot be written to (Not a directory): give --out a folder" in done
    assert (
        "cannot be written"
        in call("split", *words[:3], *PREPARED, "--out", "people.csv/s", code=2).stderr
    )

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", "out")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", refuse)
        done = call("solve", *words, code=2).stderr
    assert "cannot be written to (Permission denied): give --out a folder where you may" in done
    assert "or --no-save" in done
    weights = call("solve", *words, "--sample-weight", "gone.npy", "--no-save", code=2).stderr
    assert "gone.npy cannot be read or written (No such file or directory)" in weights
