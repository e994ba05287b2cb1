"""Shards, splits and readers: what goes in comes out, and what is unusable is named."""

import bz2
import gzip
import lzma
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from paths import SHARED
from sklearn.datasets import load_svmlight_file

import edgewise as ew
from edgewise.data import Shards, load, read_csv, read_libsvm, read_npz, split
from edgewise.data.arrays import aligned_empty
from edgewise.errors import DataError, UnknownName


def toy(rows=6, columns=3):
    return np.arange(rows * columns, dtype=float).reshape(rows, columns), np.arange(rows) % 2


def dense(X):
    return X.toarray() if sp.issparse(X) else X


# Shards


def test_nodes_are_views_of_the_one_matrix():
    X, y = toy()
    shards = Shards(X, y, np.array([1, 3, 2]))
    assert shards.X is X
    assert (shards.nodes, len(shards), shards.features, shards.samples) == (3, 3, 3, 6)
    assert shards.first.tolist() == [0, 1, 4]
    X_1, y_1 = shards[1]
    np.testing.assert_array_equal(X_1, X[1:4])
    np.testing.assert_array_equal(y_1, y[1:4])
    assert np.shares_memory(X_1, X)
    np.testing.assert_array_equal(shards[-1][0], X[4:])
    assert [len(y_i) for _, y_i in shards] == [1, 3, 2]
    for outside in (3, -4):
        with pytest.raises(IndexError, match="of 3"):
            shards[outside]


@pytest.mark.parametrize("dtype", [np.int32, bool, np.uint8, np.float16])
def test_other_numbers_become_aligned_float64(dtype):
    X, y = toy()
    shards = Shards(X.astype(dtype), y, np.array([6]))
    assert shards.X.dtype == np.float64
    assert shards.X.ctypes.data % 64 == 0
    np.testing.assert_array_equal(shards.X, X.astype(dtype).astype(float))


def test_fortran_order_is_copied_and_float32_kept():
    X, y = toy()
    shards = Shards(np.asfortranarray(X, dtype=np.float32), y, np.array([6]))
    assert shards.X.dtype == np.float32
    assert shards.X.flags.c_contiguous
    np.testing.assert_array_equal(shards.X, X)


def test_csr_keeps_small_indices():
    X, y = toy()
    csr = sp.csr_matrix(X.astype(int))
    csr.indices, csr.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
    shards = Shards(csr, y, np.array([2, 4]))
    assert isinstance(shards.X, sp.csr_array)
    assert (shards.X.dtype, shards.X.indices.dtype) == (np.float64, np.int32)
    np.testing.assert_array_equal(shards[1][0].toarray(), X[2:])


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_from_parts_puts_nodes_end_to_end(kind):
    X, y = toy()
    shards = Shards.from_parts((kind(X[a:b]), y[a:b]) for a, b in [(0, 1), (1, 5), (5, 6)])
    np.testing.assert_array_equal(dense(shards.X), X)
    np.testing.assert_array_equal(shards.y, y)
    assert shards.counts.tolist() == [1, 4, 1]


def test_build_fills_one_aligned_allocation():
    seen = []

    def fill(node, X, y):
        seen.append(X)
        X[...] = node
        y[...] = -node

    shards = Shards.build([2, 1, 3], 4, fill, dtype=np.float32)
    assert shards.X.ctypes.data % 64 == 0
    assert shards.X.dtype == np.float32
    np.testing.assert_array_equal(shards.X, np.repeat([0, 0, 1, 2, 2, 2], 4).reshape(6, 4))
    np.testing.assert_array_equal(shards.y, [0, 0, -1, -2, -2, -2])
    assert all(np.shares_memory(X, shards.X) for X in seen)


@pytest.mark.parametrize("shape", [(7,), (1000, 33)])
def test_aligned_empty(shape):
    array = aligned_empty(shape, np.float32)
    assert array.shape == shape
    assert array.flags.writeable
    assert array.ctypes.data % 64 == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"counts": [3, 0, 3]}, "node 1 has 0 samples"),
        ({"counts": []}, "at least one node"),
        ({"counts": [2.5, 3.5]}, "whole number per node"),
        ({"counts": [3, 4]}, "add up to 7"),
        ({"y": np.zeros(5)}, "y has 5"),
        ({"y": np.zeros((6, 1))}, r"y\.ravel"),
        ({"y": np.array([0, 1, 0, 1, 0, np.nan])}, r"y has a NaN.* row 5 \(node 1, its row 1\)"),
        (
            {"y": np.array([0, None] * 3)},
            r"y has a NaN.* row 1 .* and in 2 more",
        ),
        ({"y": np.array(["a", "", "b", "a", " ", "b"])}, r"y has no label in row 1 .* in 1 more"),
        ({"y": np.zeros(6, dtype=complex)}, "complex"),
        ({"X": np.zeros(6)}, r"reshape\(-1, 1\)"),
        ({"X": np.zeros((6, 0))}, "at least one column"),
        ({"X": sp.csr_array((6, 0))}, "at least one feature"),
        ({"X": np.array([["a"]] * 6, dtype=object)}, "encode every column"),
        ({"X": np.zeros((6, 2), dtype=complex)}, "complex128"),
        ({"order": np.arange(5)}, "order has 5"),
    ],
)
def test_unusable_shards_are_refused(change, message):
    X, y = toy()
    with pytest.raises(DataError, match=message):
        Shards(**({"X": X, "y": y, "counts": np.array([4, 2])} | change))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_bad_value_is_named_even_blocks_away(bad, kind):
    X = np.ones((300_000, 4))  # more than one block
    X[290_001, 2] = bad
    what = "a NaN" if np.isnan(bad) else "an infinity"
    where = r"in column 2, row 290001 \(node 1, its row 90001\): drop"
    with pytest.raises(DataError, match=f"X has {what} {where}"):
        Shards(kind(X), np.zeros(300_000), np.array([200_000, 100_000]))


def test_what_cannot_be_squared_is_refused_and_what_is_merely_large_is_not():
    X = np.full((4, 2), 1e99)
    assert Shards(X, np.zeros(4), np.array([4])).X is X
    X = np.full((2, 2), np.finfo(np.float32).max)  # computed with in float64
    assert Shards(X.astype(np.float32), np.zeros(2), np.array([2])).samples == 2
    X = np.array([[1.0, 2], [3, -1e200]])
    with pytest.raises(DataError, match=r"X has -1e\+200 in column 1, row 1: give numbers"):
        Shards(X, np.zeros(2), np.array([2]))


# names, and where rows come from


def test_a_bad_value_is_named_by_its_row_of_the_data_set_wherever_it_went():
    X, y = toy(300)
    X[299, 1] = np.nan
    with pytest.raises(DataError, match=r"column 1, row 299 of the data set \(node"):
        split(X, y, 3)
    frame = pd.DataFrame(X, columns=["a", "age", "b"], index=pd.RangeIndex(2, 302, name="line"))
    with pytest.raises(DataError, match=r'a NaN in column "age", line 301 \(node'):
        split(frame, y, 3)
    labels = np.where(np.arange(300) == 7, np.nan, y)
    with pytest.raises(DataError, match=r"no label in row 7 of the data set:"):
        split(X, labels, 3, how="label")
    with pytest.raises(DataError, match=r"no label in line 9:"):
        split(frame, labels, 3, how="label")


def test_frames_bring_names_and_lines_to_shards_and_to_problems():
    X, y = toy(12)
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=pd.RangeIndex(2, 14, name="line"))
    shards = split(frame, pd.Series(y), 3)
    assert shards.columns == ("a", "b", "c")
    np.testing.assert_array_equal(shards.lines, shards.order + 2)
    np.testing.assert_array_equal(shards.X, X[shards.order])
    np.testing.assert_array_equal(shards.of([2]).lines, shards.lines[8:])
    parts = [(frame[:5], y[:5]), (frame[["c", "a", "b"]][5:], y[5:])]  # names decide, not order
    problem = ew.Problem(parts, ew.Logistic())
    assert problem.columns == ("a", "b", "c")
    np.testing.assert_array_equal(problem.shards.X, X)
    np.testing.assert_array_equal(problem.shards.lines, np.arange(2, 14))
    assert Shards(frame, y, np.array([12])).columns == ("a", "b", "c")
    assert split(pd.DataFrame(X), y, 3).columns is None  # pandas counted them
    with pytest.raises(DataError, match='node 1 has no column "b", unlike node 0'):
        Shards.from_parts([parts[0], (frame[5:].rename(columns={"b": "B"}), y[5:])])
    assert split(X, y, 3, columns=["p", "q", "r"]).columns == ("p", "q", "r")


class Polars:
    """What a frame of polars has in common with an Arrow table: names, and a way to pandas."""

    def __init__(self, frame):
        self.frame, self.columns, self.shape = frame, list(frame.columns), frame.shape

    def to_pandas(self):
        return self.frame


def test_other_tables_bring_their_names_too():
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4], "b": [5.0, 6, 8, 7]})
    y = np.array([0.0, 1, 1, 2])
    for table in (pa.table(frame), Polars(frame)):
        for shards in (ew.split(table, y, 2), Shards.from_parts([(table, y)] * 2)):
            assert shards.columns == ("a", "b")
        model = ew.solve(ew.Problem([(table, y)] * 3, "squared"), "ring", tol=1e-9).model
        turned = table.select(["b", "a"]) if hasattr(table, "select") else Polars(frame[["b", "a"]])
        np.testing.assert_allclose(model.predict(turned), model.predict(frame), rtol=1e-12)
        assert ew.data.prepare(table).X.columns.tolist() == ["a"]


def test_pandas_own_kinds_are_numbers_too():
    y = [0, 1, 0]
    frame = pd.DataFrame(
        {
            "a": pd.array([1, 2, 3], dtype="Int64"),
            "b": [True, False, True],
            "c": pd.Series([0.5, 1, 2], dtype="object"),
            "d": pd.Categorical([5, 7, 5]),
        }
    )
    expected = [[1, 1, 0.5, 5], [2, 0, 1, 7], [3, 1, 2, 5]]
    np.testing.assert_array_equal(Shards(frame, y, np.array([3])).X, expected)
    missing = frame.assign(c=pd.Series([0.5, pd.NA, 2], dtype="object"))
    with pytest.raises(DataError, match=r'a NaN in column "c", row 1 of the data set'):
        split(missing, y, 1)
    with pytest.raises(DataError, match="no label in row 1"):
        split(frame, pd.Series([1, pd.NA, 0], dtype="object"), 1)
    with pytest.raises(DataError, match="no label in row 2"):
        split(frame, pd.Series(["a", "b", None]), 1)
    np.testing.assert_array_equal(split(frame, pd.array([1, 0, 1], dtype="Int64"), 1).order.size, 3)
    for column, message in (
        (
            ["x", "y", "z"],
            r'column "e" holds text \(\'x\' in row 0\): edgewise.data.prepare reads it; give',
        ),
        (
            pd.to_datetime(["2020-01-01"] * 3),
            r'column "e" holds dates .* reads it; turn them',
        ),
        ([[1], [2], [3]], r'column "e" holds values that are no numbers'),
    ):
        with pytest.raises(DataError, match=message):
            split(frame.assign(e=column), y, 1)


def peak_of(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_nothing_as_large_as_the_data_is_held_on_the_side():
    X, y = np.ones((40_000, 100)), np.zeros(40_000)  # 32 MB
    assert peak_of(lambda: Shards(X, y, np.array([40_000]))) < 1 << 20
    assert peak_of(lambda: split(X, y, 7)) < 1.15 * X.nbytes
    by_column = np.asfortranarray(X)
    assert peak_of(lambda: split(by_column, y, 7)) < 1.5 * X.nbytes


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "no nodes"),
        ([(np.ones((2, 3)), [0, 1]), (np.ones((2, 4)), [0, 1])], "node 1 has 4 features"),
        ([(np.ones((2, 3)), [0, 1]), (np.ones((2, 3)), [0])], "node 1 has 2 rows and 1 labels"),
        ([(np.ones((1, 3)), [0]), (sp.csr_array(np.ones((1, 3))), [0])], "one dense, one sparse"),
        ([(np.ones((1, 3)), [0]), (np.ones((1, 3)), ["a"])], "one kind"),
        ([(np.ones((1, 3)), [0]), (np.ones((0, 3)), np.zeros(0))], "node 1 has 0 samples"),
    ],
)
def test_parts_that_do_not_fit_are_refused(parts, message):
    with pytest.raises(DataError, match=message):
        Shards.from_parts(parts)


# split


@settings(max_examples=150, deadline=None)
@given(
    samples=st.integers(1, 120),
    node_share=st.floats(0, 1),
    classes=st.integers(1, 5),
    how=st.sampled_from(["iid", "label", "size"]),
    alpha=st.sampled_from([1e-6, 0.05, 0.5, 10.0, 1e6]),
    seed=st.integers(0, 2**32),
    sparse=st.booleans(),
)
def test_every_sample_goes_to_one_node(samples, node_share, classes, how, alpha, seed, sparse):
    nodes = max(1, round(node_share * samples))
    X = np.arange(1.0, 2 * samples + 1).reshape(samples, 2)
    y = np.arange(samples) % classes
    given_X = sp.coo_array(X) if sparse else X
    shards = split(given_X, y, nodes, how=how, alpha=alpha, seed=seed)
    assert shards.nodes == nodes
    assert shards.counts.min() >= 1
    np.testing.assert_array_equal(np.sort(shards.order), np.arange(samples))
    np.testing.assert_array_equal(dense(shards.X), X[shards.order])
    np.testing.assert_array_equal(shards.y, y[shards.order])
    if how == "iid":
        assert np.ptp(shards.counts) <= 1
    again = split(given_X, y, nodes, how=how, alpha=alpha, seed=seed)
    np.testing.assert_array_equal(again.order, shards.order)
    np.testing.assert_array_equal(again.counts, shards.counts)


@pytest.mark.parametrize("how", ["iid", "label", "size"])
def test_another_seed_is_another_split(how):
    X, y = toy(200)
    assert not np.array_equal(split(X, y, 5, how, 1).order, split(X, y, 5, how, 2).order)


def test_alpha_sets_the_label_skew():
    X, y = toy(2000)
    purity = {}
    for alpha in (0.01, 1000.0):
        shares = [np.mean(y_i) for _, y_i in split(X, y, 8, "label", alpha=alpha)]
        purity[alpha] = np.mean(np.maximum(shares, np.subtract(1, shares)))
    assert purity[0.01] > 0.9
    assert purity[1000.0] < 0.6


def test_alpha_sets_the_size_skew_and_labels_stay_mixed():
    X, y = toy(4000)
    uneven = split(X, y, 8, "size", alpha=0.5)
    assert uneven.counts.max() > 3 * uneven.counts.min()
    assert abs(np.mean(uneven[int(np.argmax(uneven.counts))][1]) - 0.5) < 0.1
    even = split(X, y, 8, "size", alpha=1e6)
    assert np.ptp(even.counts) < 20


@pytest.mark.parametrize("given_dtype", [np.float32, np.float64, np.int16])
@pytest.mark.parametrize("layout", ["C", "F"])
def test_the_gather_is_aligned_and_keeps_floats(given_dtype, layout):
    X, y = toy(50)
    shards = split(np.array(X, dtype=given_dtype, order=layout), y, 4)
    assert shards.X.dtype == (np.float32 if given_dtype == np.float32 else np.float64)
    assert shards.X.ctypes.data % 64 == 0
    np.testing.assert_array_equal(shards.X, X[shards.order])


def test_pandas_and_text_labels():
    X, y = toy(40)
    names = np.array(["no", "yes"])[y]
    shards = split(pd.DataFrame(X, columns=list("abc")), pd.Series(names), 3, "label")
    np.testing.assert_array_equal(shards.X, X[shards.order])
    np.testing.assert_array_equal(shards.y, names[shards.order])
    assert shards.y.dtype.kind == "U"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"nodes": 7}, "at most 6 nodes"),
        ({"nodes": 0}, "nodes is 0"),
        ({"alpha": 0.0}, "positive"),
        ({"alpha": np.nan}, "positive"),
        ({"y": np.zeros(5)}, "y has 5"),
        ({"y": np.linspace(0, 1, 6), "how": "label"}, 'use how="iid"'),
    ],
)
def test_splits_that_cannot_be_are_refused(arguments, message):
    X, y = toy()
    with pytest.raises(DataError, match=message):
        split(**({"X": X, "y": y, "nodes": 2} | arguments))


def test_too_many_classes_and_unknown_splits_are_refused():
    X, _ = toy(101)
    with pytest.raises(DataError, match="101 distinct values"):
        split(X, np.arange(101), 2, how="label")
    with pytest.raises(UnknownName, match="did you mean 'label'"):
        split(X, np.arange(101), 2, how="labels")


# readers

LIBSVM = b"+1 1:0.5 3:-2e-3\n\n-1 # nothing here\n2.5 qid:7 2:4 3:1e2 # a remark 9:9\r\n-1 4:7"
LIBSVM_X = [[0.5, 0, -2e-3, 0], [0, 0, 0, 0], [0, 4, 100, 0], [0, 0, 0, 7]]
LIBSVM_Y = [1, -1, 2.5, -1]


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", ["d", "d.svm", "d.libsvm", "d.txt", "d.t", "d.tr", "d.scale"])
def test_libsvm_text(tmp_path, name):
    X, y = load(write(tmp_path, name, LIBSVM))
    assert isinstance(X, sp.csr_array)
    assert X.indices.dtype == np.int32
    np.testing.assert_array_equal(X.toarray(), LIBSVM_X)
    np.testing.assert_array_equal(y, LIBSVM_Y)


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)],
)
def test_packed_files(tmp_path, suffix, pack):
    X, y = load(write(tmp_path, "d.svm" + suffix, pack(LIBSVM)), dense=True)
    np.testing.assert_array_equal(X, LIBSVM_X)
    np.testing.assert_array_equal(y, LIBSVM_Y)
    X, y = load(write(tmp_path, "d.csv" + suffix, pack(b"1,2,0\n3,4,1\n")))
    np.testing.assert_array_equal(X, [[1, 2], [3, 4]])
    broken = write(tmp_path, "e.svm" + suffix, pack(LIBSVM)[:-12])
    with pytest.raises(DataError, match=r"e\.svm.*cannot be read"):
        load(broken)


def test_density_decides_unless_told(tmp_path):
    full = write(tmp_path, "full", b"1 1:1 2:2\n-1 1:3\n")
    X, _ = read_libsvm(full, dtype=np.float32)
    assert (X.dtype, X.ctypes.data % 64) == (np.float32, 0)
    np.testing.assert_array_equal(X, [[1, 2], [3, 0]])
    assert sp.issparse(read_libsvm(full, dense=False)[0])
    wide, _ = read_libsvm(full, features=4)  # 3 of 8
    assert sp.issparse(wide)
    assert wide.shape == (2, 4)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"1 0:5", "index 0 after 0: number the features from 1"),
        (b"1 3:5 2:1", "index 2 after 3"),
        (b"1 3:5 3:1", "index 3 after 3"),
        (b"1 3", "is not `label"),
        (b"1 3:", "is not `label"),
        (b"1 3: 4", "is not `label"),
        (b"1 3:4:5", "is not `label"),
        (b"1 3::4", "is not `label"),
        (b"1 3 :4", "is not `label"),
        (b"1 3:4: 5:6", "is not `label"),
        (b"1 -3:4", "is not `label"),
        (b"1 1.5:4", "is not `label"),
        (b"1 3:abc", "is not `label"),
        (b"1 3:x", "is not `label"),
        (b"1 3:4x 5:6", "is not `label"),
        (b"x 3:4", "is not `label"),
        (b"3:4", "is not `label"),
        (b"1,2 3:4", "is not `label"),
        (b"1 3:\xff", "is not `label"),
    ],
)
def test_a_malformed_line_is_named(tmp_path, line, message):
    sound = b"1 1:2 2:0.5\n" * 100_000  # more than one block
    path = write(tmp_path, "bad.svm", sound + b"\n# remark\n" + line + b"\n" + sound)
    with pytest.raises(DataError, match=r"bad\.svm, line 100003: .*" + message):
        read_libsvm(path)


def test_files_that_cannot_be_used_are_named(tmp_path):
    with pytest.raises(DataError, match=r"no file .*gone\.svm"):
        load(tmp_path / "gone.svm")
    with pytest.raises(DataError, match=r"no file .*gone\.npz"):
        load(tmp_path / "gone.npz")
    with pytest.raises(DataError, match="no samples"):
        load(write(tmp_path, "empty", b"# only a remark\n"))
    with pytest.raises(DataError, match=r"too few .* give features=4 or more"):
        load(write(tmp_path, "wide", LIBSVM), features=3)
    with pytest.raises(DataError, match="labels only"):
        load(write(tmp_path, "labels", b"1\n-1\n"))
    with pytest.raises(DataError, match=r"plain\.gz cannot be read"):
        load(write(tmp_path, "plain.gz", LIBSVM))


@pytest.mark.parametrize(
    "name",
    ["a9a", "mushrooms", "ijcnn1", "epsilon_first100", "reuters_moneyfx.t", "space_ga", "spambase"],
)
def test_real_files_as_scikit_learn_reads_them(name):
    path = SHARED / f"{name}.svm.xz"
    if not path.exists():
        pytest.skip(f"the shared test data is not beside this checkout: no {path}")
    X, y = load(path)
    with lzma.open(path) as file:
        expected_X, expected_y = load_svmlight_file(file)
    assert X.shape == expected_X.shape
    difference = sp.csr_array(X) - sp.csr_array(expected_X)
    assert difference.nnz == 0 or abs(difference).max() == 0
    np.testing.assert_array_equal(y, expected_y)


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.floats(allow_nan=False, allow_infinity=False),
            st.dictionaries(
                st.integers(1, 30), st.floats(allow_nan=False, allow_infinity=False), max_size=6
            ),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_numbers_survive_the_text_exactly(tmp_path_factory, rows):
    lines = [
        " ".join([repr(label), *(f"{i}:{value!r}" for i, value in sorted(entries.items()))])
        for label, entries in rows
    ]
    path = tmp_path_factory.mktemp("libsvm") / "d.svm"
    path.write_text("\n".join(lines))
    X, y = read_libsvm(path, features=30, dense=True)
    expected = np.zeros((len(rows), 30))
    for r, (_, entries) in enumerate(rows):
        for i, value in entries.items():
            expected[r, i - 1] = value
    np.testing.assert_array_equal(X, expected)
    np.testing.assert_array_equal(y, [label for label, _ in rows])


@pytest.mark.parametrize(
    ("text", "label", "expected_y"),
    [
        (b"1,2,0\n3,4,1\n", "last", [0, 1]),
        (b"\na,b,target\n1,2,0\n\n3,4,1", "last", [0, 1]),
        (b"target,a,b\r\n0,1,2\r\n1,3,4\r\n", "first", [0, 1]),
        (b'a,"the, target",b\n1,0,2\n3,1,4\n', "the, target", [0, 1]),
        (b"\xef\xbb\xbf1,2,0\n3,4,1\n", "last", [0, 1]),
        (b"a,b,animal\n1,2,cat\n3,4,dog\n", "last", ["cat", "dog"]),
        (b"1,2,cat\n3,4,dog\n", "last", ["cat", "dog"]),
        (b'1,2,y\n3,4,"cat, big"\n', "last", ["y", "cat, big"]),
    ],
)
def test_csv(tmp_path, text, label, expected_y):
    X, y = load(write(tmp_path, "d.csv", text), label=label)
    np.testing.assert_array_equal(X, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(y, expected_y)
    assert X.ctypes.data % 64 == 0


def test_csv_across_blocks(tmp_path):
    table = np.random.default_rng(0).normal(size=(30_000, 5))
    text = "a,b,c,d,y\n" + "".join(",".join(map(repr, row)) + "\n" for row in table.tolist())
    X, y = read_csv(write(tmp_path, "d.csv", text.encode()))
    np.testing.assert_array_equal(X, table[:, :4])
    np.testing.assert_array_equal(y, table[:, 4])
    assert sp.issparse(read_csv(tmp_path / "d.csv", dense=False)[0])
    with pytest.raises(DataError, match="has 4 features, not 3"):
        read_csv(tmp_path / "d.csv", features=3)


@pytest.mark.parametrize(
    ("text", "label", "message"),
    [
        (
            b"a,b,y\n1,2,0\n\n1,,0\n",
            "last",
            'column "b", line 4: the cell is empty .missing in all: b 1.: give',
        ),
        (b"1,2,0\n1,?,0\n", "last", 'column "2", line 2: the cell is empty'),
        (b"1,2,0\n1,2,3,0\n", "last", "line 2 has 4 columns and the first has 3"),
        (b"1,2,cat\n1,2\n", "last", "line 2 has 2 columns"),
        (b"1,2,0\n3,4,dog\n5,6,0\n", "last", "column \"3\", line 2: 'dog' is not a number"),
        (b"1,2,0\n3,\xff,1\n5,6,7", "last", "column \"2\", line 2: 'ÿ' is not a number"),
        (b"a,b\n1,2\n", "c", "no column 'c'.*one of a, b"),
        (b"a,b\n", "last", "header and no samples"),
        (b"1\n2\n", "last", "one column"),
        (b"\n", "last", "no samples"),
    ],
)
def test_unusable_csv_is_named(tmp_path, text, label, message):
    with pytest.raises(DataError, match=r"d\.csv.*" + message):
        read_csv(write(tmp_path, "d.csv", text), label=label)


def test_npz(tmp_path):
    X, y = toy()
    np.savez(tmp_path / "dense.npz", X=X.astype(np.uint8), y=y)
    read_X, read_y = load(tmp_path / "dense.npz", dtype=np.float32)
    assert read_X.dtype == np.float32
    np.testing.assert_array_equal(read_X, X)
    np.testing.assert_array_equal(read_y, y)

    csr = sp.csr_array(np.eye(6, 9))
    parts = {"data": csr.data, "indices": csr.indices, "indptr": csr.indptr}
    np.savez(tmp_path / "sparse.npz", **parts, shape=csr.shape, y=y)
    read_X, read_y = load(tmp_path / "sparse.npz")
    assert isinstance(read_X, sp.csr_array)
    np.testing.assert_array_equal(read_X.toarray(), np.eye(6, 9))
    np.testing.assert_array_equal(load(tmp_path / "sparse.npz", dense=True)[0], np.eye(6, 9))

    np.savez(tmp_path / "other.npz", A=X)
    with pytest.raises(DataError, match="holds A: save arrays X and y"):
        read_npz(tmp_path / "other.npz")
    with pytest.raises(DataError, match="has 3 features, not 4"):
        read_npz(tmp_path / "dense.npz", features=4)
    with pytest.raises(DataError, match="cannot be read"):
        read_npz(write(tmp_path, "text.npz", b"not a zip file"))


def test_names_are_of_every_column_once():
    shards = ew.Shards(np.eye(4, 2), np.arange(4), np.array([1, 3]), columns=("age", "dose"))
    problem = ew.Problem(shards, ew.Squared())
    assert shards.of([1]).columns == problem.columns == problem.only([0]).columns == ("age", "dose")
    assert ew.Problem([(np.eye(2), [0, 1])], ew.Squared()).columns is None
    with pytest.raises(DataError, match='called "age"'):
        ew.Shards(np.eye(2), np.arange(2), np.array([2]), columns=("age", "age"))
    with pytest.raises(DataError, match="1 columns are named and X has 2"):
        ew.Shards(np.eye(2), np.arange(2), np.array([2]), columns=("age",))
