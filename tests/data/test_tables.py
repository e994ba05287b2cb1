"""Tables as people have them: read as they mean them, or refused by line and column."""

import gzip
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import edgewise as ew
from edgewise.data import load, read_table
from edgewise.data.loading import read_samples
from edgewise.errors import DataError


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(content, name="d.csv"):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    return write


PLAIN = "a,b,y\n1.5,2,0\n3,4.25,1\n"
LATIN = PLAIN.replace("b", "größe").encode("latin-1")


@pytest.mark.parametrize(
    ("content", "columns", "first_line"),
    [
        (PLAIN, ("a", "b"), 2),
        (PLAIN.replace(",", "\t"), ("a", "b"), 2),
        (PLAIN.replace(",", "|"), ("a", "b"), 2),
        (PLAIN.replace(",", ";"), ("a", "b"), 2),
        (PLAIN.replace(",", "  "), ("a", "b"), 2),
        (PLAIN.replace(",", ";").replace(".", ","), ("a", "b"), 2),
        ("1,5;2;0\n3;4,25;1\n", ("1", "2"), 1),  # by commas too there are as many cells a line
        (PLAIN.replace("\n", "\r\n"), ("a", "b"), 2),
        (PLAIN.replace("\n", "\r"), ("a", "b"), 2),
        ("\n\n" + PLAIN, ("a", "b"), 4),
        ("sep=,\n" + PLAIN, ("a", "b"), 3),
        ("# made by hand, of 2020\n# twice\n" + PLAIN, ("a", "b"), 4),
        ('# 5" wide\n# and 6 long\n' + PLAIN, ("a", "b"), 4),
        ('"a\nof 2020",b,y\n1.5,2,0\n3,4.25,1\n', ("a\nof 2020", "b"), 3),
        ("a,b,y,\n1.5,2,0,\n3,4.25,1,\n", ("a", "b"), 2),
        ("a,b,y\n1.5,2,0,\n3,4.25,1,\n", ("a", "b"), 2),
        (",a,b,y\n0,1.5,2,0\n1,3,4.25,1\n", ("a", "b"), 2),
        ('"a","b, or so","y"\n1.5,2,0\n3,"4.25",1\n', ("a", "b, or so"), 2),
        ("a, b, y\n1.5, 2, 0\n3, 4.25, 1", ("a", "b"), 2),
        (LATIN, ("a", "größe"), 2),
        (b"\xef\xbb\xbf" + PLAIN.encode(), ("a", "b"), 2),
        (PLAIN.encode("utf-16"), ("a", "b"), 2),
    ],
)
def test_text_in_all_shapes(file, content, columns, first_line):
    X, y, named, lines, *_ = read_samples(file(content))
    np.testing.assert_array_equal(X, [[1.5, 2], [3, 4.25]])
    np.testing.assert_array_equal(y, [0, 1])
    assert named == columns
    assert lines.tolist() == [first_line, first_line + 1]


def test_what_was_not_as_usual_is_noted(file):
    assert read_table(file(PLAIN)).attrs["notes"] == ()
    for content, note in (
        (LATIN, "d.csv is not UTF-8: read as Windows-1252"),
        (PLAIN.replace(",", ";").replace(".", ","), "commas are read as decimal marks"),
        (PLAIN + ",,\n", "1 empty line left out"),
        (",a,y\n0,1,0\n1,3,1\n", "the first column has no name and counts the rows: left out"),
    ):
        (told,) = read_table(file(content)).attrs["notes"]
        assert note in told


def test_what_is_not_found_out_can_be_said(file):
    name = file("1x2,5x0\n3x4x1\n")
    table = read_table(name, separator="x", decimal=",", header=False)
    np.testing.assert_array_equal(table, [[1, 2.5, 0], [3, 4, 1]])
    assert list(read_table(file("city,2019,2020\na,1,2\n"), header=True)) == [
        "city",
        "2019",
        "2020",
    ]
    assert list(read_table(file("y,1\n0,1\n"), names=["y"])) == ["y", "1"]
    assert read_samples(file("5,2,0\n6,2,1\n"), label="1").y.tolist() == [5, 6]  # by its place
    assert list(read_table(file("é,y\n1,2\n".encode("cp850")), encoding="cp850")) == ["é", "y"]
    for options, message in (
        ({"encoding": "klingon"}, "encoding 'klingon' is unknown"),
        ({"encoding": "ascii"}, "is not in the encoding ascii"),
        ({"separator": "ab"}, "give one character"),
        ({"decimal": "x"}, "give a point or a comma"),
    ):
        with pytest.raises(DataError, match=message):
            read_table("d.csv", **options)


def test_lines_are_the_files_after_headers_blank_lines_quotes_and_whatever_was_left_out(file):
    rows = ["a,name,y", "", "1,one,0", ",,", '2,"two', 'lines",1', "3,one,", "x,,0", "4,one,1", ""]
    name = file("\n".join(rows))
    table = read_table(name)
    assert table.index.tolist() == [3, 5, 7, 8, 9]
    with pytest.raises(DataError, match=r"d\.csv: column \"a\", line 8: 'x' is not a number"):
        load(name, encode="onehot", missing="drop")
    samples = read_samples(
        file("\n".join(rows).replace("x,", "7,")), encode="onehot", missing="drop"
    )
    assert samples.lines.tolist() == [3, 5, 9]
    shards = ew.split(samples.X, samples.y, 3, columns=samples.columns, lines=samples.lines)
    np.testing.assert_array_equal(shards.lines, samples.lines[shards.order])
    assert shards.columns == ("a", "name=two\nlines")


def test_text_that_turns_up_late_is_found(file):
    rows = "".join(f"{i},{i % 90},{i % 2}\n" for i in range(9_998))
    name = file("a,age,y\n" + rows + "1,abc,0\n2,3,1\n")
    for encode in (None, "onehot"):
        with pytest.raises(DataError, match="column \"age\", line 10000: 'abc' is not a number"):
            load(name, encode=encode)
    late = b"a,b,y\n" + b"1,x,0\n" * 50_000 + "1,ö,1\n".encode("cp1252")  # beyond what is sniffed
    assert read_samples(file(late), encode="onehot").columns == ("a", "b=ö")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b,y\n1,2,0\n1,2\n3,4,1\n", "line 3 has 2 columns and the header has 3"),
        ("a,b,y\n1,2,0\n1,2,3,4\n3,4,1\n", "line 3 has 4 columns and the header has 3"),
        ('a,b,y\n1,"2,0\n1,2,3\n', r"line 2: a quote \(\"\) is opened and never closed"),
        ("a,b,a\n1,2,0\n", 'columns 1 and 3 are both called "a"'),
        ('"a" "b" "y"\n"1" 1 2 0\n"2" 3 4 1\n', "header names 3 columns and lines have 4"),
        ("a,b,y\n1,2,0\n1e400,2,1\n", 'column "a", line 3 is infinite, or larger'),
        ("d,a,y\n2020-01-02,1,0\n2020-01-03,1,1\n", 'column "d" holds dates .* in line 2'),
        ("d,a,y\n1.2.2020 10:30,1,0\n1.3.2020 9:30,1,1\n", 'column "d" holds dates .* in line 2'),
        ('a,b,y\n"1,5",2,0\n"2,5",2,1\n', r'if commas are decimal marks here, give decimal=","'),
        (b"\x89PNG\0\0\0", "holds binary data"),
        (b"", "no samples"),
        (",,\n,,\n", "holds separators alone"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name_and_line(file, content, message):
    with pytest.raises(DataError, match=f"d.csv.*{message}"):
        load(file(content), encode="onehot", missing="drop")


def frame():
    return pd.DataFrame(
        {
            "n": [1.0, 2.0, 3.0, 4.0],
            "class": pd.Categorical(["u", "v", "u", "w"]),
            "s": pd.Series(["p", "q", "p", "q"], dtype="string"),
            "i": pd.array([1, None, 3, 5], dtype="Int64"),
            "y": [True, False, True, True],
        }
    )


@pytest.mark.parametrize("name", ["d.parquet", "d.feather", "d.arrow"])
def test_parquet_and_arrow(file, name):
    if name == "d.parquet":
        frame().to_parquet(name)
    elif name == "d.feather":
        frame().to_feather(name)
    else:
        table = pa.Table.from_pandas(frame())
        with pa.ipc.new_stream(name, table.schema) as stream:
            stream.write_table(table)
    X, y, columns, lines, *_ = read_samples(name, encode="onehot", missing="median")
    assert columns == ("n", "class=u", "class=v", "class=w", "s=q", "i")
    expected = [[1, 1, 0, 0, 0, 1], [2, 0, 1, 0, 1, 3], [3, 1, 0, 0, 0, 3], [4, 0, 0, 1, 1, 5]]
    np.testing.assert_array_equal(X, expected)
    np.testing.assert_array_equal(y, [True, False, True, True])
    assert lines is None
    with pytest.raises(DataError, match=f"{name}: column \"class\" holds text .'u' in row 0."):
        load(name)


def test_what_pandas_and_arrow_add(file, monkeypatch):
    frame().iloc[[2, 0, 1]].to_parquet("d.parquet")  # with an index that is no count
    table = read_table("d.parquet")
    assert list(table) == ["n", "class", "s", "i", "y"]
    assert table.attrs["notes"] == ("d.parquet: pandas' index is left out",)
    with pytest.raises(DataError, match=r"no file gone\.parquet"):
        load("gone.parquet")
    with pytest.raises(DataError, match=r"bad\.parquet cannot be read"):
        load(file("nothing", "bad.parquet"))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"pip install 'edgewise\[tables\]'"):
        load("d.parquet")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("d.json", '{"a": 1}', r"d.json is not read: pandas.read_json\(path\)"),
        ("d.xlsx", "PK", "d.xlsx is not read: save the sheet as CSV"),
        ("d.foo", "1,2,0\n", "for its suffix .foo: Edgewise reads tables as .csv, .tsv, .parquet"),
        ("d.csv.gz", gzip.compress(PLAIN.encode() * 99, mtime=0)[:-9], "d.csv.gz cannot be read"),
        ("d.svm", "1 1:2\n", None),
        ("d.foo", "1 1:2\n", None),  # it looks like what it is
        ("d.data", "1 1:2\n", None),
        ("d.data", "2,1\n3,0", None),
        ("d.csv.gz", gzip.compress(b"2,1\n3,0", mtime=0), None),
    ],
)
def test_suffixes(file, name, content, message):
    file(content, name)
    if message is None:
        assert load(name, features=1)[0].tolist()[0] == [2]
        return
    with pytest.raises(DataError, match=message):
        load(name)


def test_other_files_know_their_columns_or_take_no_preparation(file, tmp_path):
    shards = ew.split(pd.DataFrame({"a": [1.0, 2], "b": [3.0, 4]}), [0, 1], 2)
    folder = ew.data.write_shards(tmp_path / "shards", shards)
    assert read_samples(folder / "node-1.npz").columns == ("a", "b")
    with pytest.raises(DataError, match=r"d\.svm is libsvm: missing, encode, ignore and na go"):
        load(file("1 1:2\n", "d.svm"), missing="mean")
