"""Shards on disk: what was written comes back, and what was damaged is named."""

import hashlib
import json

import numpy as np
import pytest
import scipy.sparse as sp

import edgewise as ew
from edgewise.data import load_node, load_shards, read_manifest, write_shards
from edgewise.errors import DataError

RNG = np.random.default_rng(0)
X = RNG.standard_normal((23, 4))
Y = np.array(["no", "yes"])[RNG.integers(0, 2, 23)]


def shards(X=X, y=Y, **more):
    return ew.split(X, y, nodes=5, how="size", seed=1, **more)


@pytest.fixture
def folder(tmp_path):
    return write_shards(tmp_path / "shards", shards())


def same(a, b):
    dense = [m.toarray() if sp.issparse(m) else m for m in (a.X, b.X)]
    np.testing.assert_array_equal(*dense)
    np.testing.assert_array_equal(a.y, b.y)
    np.testing.assert_array_equal(a.counts, b.counts)
    assert a.X.dtype == b.X.dtype
    assert a.y.dtype == b.y.dtype


@pytest.mark.parametrize(
    ("matrix", "labels"),
    [
        (X, Y),
        (X.astype(np.float32), RNG.standard_normal(23)),
        (sp.csr_array(np.where(X > 1, X, 0)), Y),
        (sp.csr_array(X), np.arange(23)),  # sparse by type, though all of it is stored
    ],
)
def test_what_was_written_comes_back(tmp_path, matrix, labels):
    given = shards(matrix, labels)
    back = load_shards(write_shards(tmp_path, given))
    same(given, back)
    assert sp.issparse(back.X) == sp.issparse(load_node(tmp_path, 0)[0]) == sp.issparse(matrix)
    np.testing.assert_array_equal(back.order, given.order)


def test_columns_keep_their_names_on_disk(tmp_path):
    given = shards()
    names = ("age", "dose", "größe", "a, b")
    named = ew.Shards(given.X, given.y, given.counts, given.order, names, given.order + 2)
    folder = write_shards(tmp_path, named)
    of_folder = ew.Problem(folder, ew.Logistic())
    assert load_shards(folder).columns == of_folder.columns == of_folder.only([1]).columns == names
    np.testing.assert_array_equal(load_shards(folder).lines, given.order + 2)
    with np.load(folder / "node-2.npz") as file:
        assert tuple(file["columns"]) == names
    assert load_shards(write_shards(tmp_path / "unnamed", given)).columns is None


def test_shards_that_were_never_one_set_have_no_order(tmp_path):
    given = ew.Shards.from_parts([(X[:3], Y[:3]), (X[3:], Y[3:])])
    assert load_shards(write_shards(tmp_path, given)).order is None


def test_sample_weights_find_their_samples(folder):
    weight = RNG.uniform(0.5, 2, 23)
    mine = ew.Problem(shards(), ew.Logistic(), sample_weight=weight)
    theirs = ew.Problem(load_shards(folder), ew.Logistic(), sample_weight=weight)
    np.testing.assert_array_equal(mine.scale, theirs.scale)


def test_the_manifest_says_what_is_there(folder):
    said = json.loads((folder / "manifest.json").read_text())
    assert said == read_manifest(folder)
    assert (said["nodes"], said["samples"], said["features"]) == (5, 23, 4)
    assert said["labels"] == {"kind": "text", "dtype": "<U3", "classes": ["no", "yes"]}
    assert [s["samples"] for s in said["shards"]] == shards().counts.tolist()
    for one in said["shards"]:
        content = (folder / one["file"]).read_bytes()
        assert one["sha256"] == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    ("y", "kind", "classes"),
    [
        (np.array([1.0, -1.0, 1.0]), "numbers", [-1.0, 1.0]),
        (np.array([1.5, 2.0, 2.5]), "numbers", None),
        (np.array([b"a", b"b", b"a"]), "text", ["a", "b"]),
    ],
)
def test_labels_are_classes_or_numbers(tmp_path, y, kind, classes):
    given = ew.Shards.from_parts([(X[:3], y)])
    labels = read_manifest(write_shards(tmp_path, given))["labels"]
    assert (labels["kind"], labels["classes"]) == (kind, classes)


def test_one_node_needs_its_own_file_only(folder):
    for node in (0, 1, 2, 4):
        (folder / f"node-{node}.npz").unlink()
    own, labels = shards()[3]
    X3, y3, order = load_node(folder, 3)
    np.testing.assert_array_equal(X3, own)
    np.testing.assert_array_equal(y3, labels)
    np.testing.assert_array_equal(X[order], own)
    np.testing.assert_array_equal(ew.data.load(folder / "node-3.npz")[0], own)  # a plain data file
    with pytest.raises(DataError, match="no node 5: nodes are 0 to 4"):
        load_node(folder, 5)


def test_a_missing_shard_is_named(folder):
    (folder / "node-2.npz").unlink()
    with pytest.raises(DataError, match=r"shard of node 2, .*node-2\.npz, is missing"):
        load_shards(folder)


def test_a_changed_shard_is_named(folder):
    path = folder / "node-4.npz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"shard of node 4, .*node-4\.npz, is damaged"):
        load_shards(folder)
    load_node(folder, 0)


def test_folders_that_hold_no_shards(folder, tmp_path):
    with pytest.raises(DataError, match=r"has no manifest\.json"):
        load_shards(tmp_path)
    with pytest.raises(DataError, match="holds shards already"):
        write_shards(folder, shards())
    for text, words in (("{", "cannot be read"), ("[]", "no manifest"), ("{}", "no manifest")):
        (folder / "manifest.json").write_text(text)
        with pytest.raises(DataError, match=words):
            load_shards(folder)


def test_a_manifest_that_does_not_add_up(folder):
    said = read_manifest(folder)
    short = said | {"shards": said["shards"][:-1]}
    other = said | {"samples": 24}
    bare = said | {"shards": [{"file": "node-0.npz"}] * 5}
    for wrong in (short, other, bare, said | {"shards": 5}):
        (folder / "manifest.json").write_text(json.dumps(wrong))
        with pytest.raises(DataError, match="lists other shards than it counts"):
            read_manifest(folder)


def test_a_split_that_was_cut_short_has_no_manifest(tmp_path, monkeypatch):
    def full(path):
        if path.name == "node-2.npz":
            raise OSError("disk full")
        return ""

    monkeypatch.setattr("edgewise.data.folders.digest", full)
    with pytest.raises(OSError, match="disk full"):
        write_shards(tmp_path, shards())
    assert (tmp_path / "node-1.npz").exists()
    assert not (tmp_path / "manifest.json").exists()
