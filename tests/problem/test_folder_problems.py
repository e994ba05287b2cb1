"""A problem over a folder reads what is asked for and no more, and is what it is in memory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import edgewise as ew
from edgewise.cli.inputs import make_inputs
from edgewise.cli.option_groups import ProblemOptions
from edgewise.data import folders, write_shards
from edgewise.errors import DataError, ProblemError

V, N, P = 7, 90, 4
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, P)) * RNG.uniform(0.3, 3, (N, 1))
Y = np.array(["no", "yes"])[RNG.integers(0, 2, N)]
WEIGHT = RNG.uniform(0.2, 2, N)
PENALTIES = [ew.L1(0.1 * (i + 1)) if i % 2 else None for i in range(V)]


def shards(X=X, y=Y):
    return ew.split(X, y, nodes=V, how="size", seed=1)


@pytest.fixture
def folder(tmp_path):
    return write_shards(tmp_path / "shards", shards())


@pytest.fixture
def read(monkeypatch):
    """The nodes whose files were read, in that order."""
    nodes = []
    read_node = folders.read_node

    def noting(folder, node, manifest=None):
        nodes.append(node)
        return read_node(folder, node, manifest)

    monkeypatch.setattr(folders, "read_node", noting)
    return nodes


def matrix(problem):
    X = problem.shards.X
    return X.toarray() if sp.issparse(X) else X


def assert_same(a, b):
    assert_array_equal(matrix(a), matrix(b))
    assert a.shards.X.dtype == b.shards.X.dtype
    for name in ("ids", "counts", "labels", "classes"):
        assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert (a.scale is None) == (b.scale is None)
    if a.scale is not None:
        assert_array_equal(a.scale, b.scale)
    assert (a.size, a.free, repr(a.loss)) == (b.size, b.free, repr(b.loss))
    Z = RNG.standard_normal((a.nodes, a.size))
    with jax.enable_x64(True):
        values = [p.block(None, np.float64).penalty.value(jnp.asarray(Z)) for p in (a, b)]
    assert_array_equal(*values)


# --- a folder ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [str, lambda path: path, folders.FolderShards])
def test_a_folder_is_not_read_ahead(folder, read, kind):
    problem = ew.Problem(kind(folder), ew.Logistic(), PENALTIES, sample_weight=WEIGHT)
    assert (problem.nodes, problem.size, problem.shards.samples) == (V, P, N)
    assert (problem.shards.dtype, problem.shards.sparse) == (np.float64, False)
    assert_array_equal(problem.counts, shards().counts)
    assert_array_equal(problem.shards.first, shards().first)
    assert_array_equal(problem.classes, ["no", "yes"])
    assert problem.own(2) == ew.Problem(shards(), ew.Logistic()).own(2)
    assert repr(problem) == f"Problem({V} nodes, {N} samples, {P} unknowns, Logistic)"
    assert read == []


def test_a_folder_read_whole_is_what_was_written(folder, read):
    options = {"penalty": PENALTIES, "weights": "sample", "sample_weight": WEIGHT}
    lazy = ew.Problem(folder, ew.Logistic(ridge=0.1), **options)
    held = ew.Problem(shards(), ew.Logistic(ridge=0.1), **options)
    assert_same(lazy, held)
    assert len(lazy.shards) == V
    for (X_i, y_i), (D, t) in zip(lazy.shards, shards(), strict=True):
        assert_array_equal(X_i, D)
        assert_array_equal(y_i, t)
    assert_array_equal(lazy.shards[3][0], shards()[3][0])
    assert_array_equal(ew.reference(lazy).x, ew.reference(held).x)
    runs = [ew.solve(p, ew.Graph.ring(V), "saga-pd", rounds=40) for p in (lazy, held)]
    assert_array_equal(runs[0].X, runs[1].X)
    assert_same(lazy.only([5, 2]), held.only([5, 2]))
    assert read == list(range(V))  # each once


MATRICES = [X, X.astype(np.float32), sp.csr_array(np.where(X > 0.5, X, 0))]


@pytest.mark.parametrize("D", MATRICES, ids=["float64", "float32", "sparse"])
@pytest.mark.parametrize("weights", ["node", "sample"])
@pytest.mark.parametrize("sample_weight", [None, WEIGHT], ids=["equal", "weighted"])
def test_some_nodes_need_their_own_files_only(tmp_path, read, D, weights, sample_weight):
    given = shards(D)
    folder = write_shards(tmp_path, given)
    for node in (0, 2, 3, 5):
        (folder / f"node-{node}.npz").unlink()
    options = {"penalty": PENALTIES, "weights": weights, "sample_weight": sample_weight}
    lazy = ew.Problem(folder, ew.Logistic(ridge=0.1), **options, intercept=True)
    held = ew.Problem(given, ew.Logistic(ridge=0.1), **options, intercept=True)
    some = lazy.only([4, 1, 6])
    assert read == [4, 1, 6]
    assert_array_equal(some.ids, [4, 1, 6])
    assert_same(some, held.only([4, 1, 6]))
    if held.scale is not None:
        assert_array_equal(some.scale[some.own(1)], held.scale[held.own(1)])
        assert_array_equal(some.scale[some.own(2)], held.scale[held.own(6)])
    assert_same(some.only([2, 0]), held.only([6, 4]))  # positions, not ids
    assert read == [4, 1, 6]
    if not sp.issparse(D):
        assert some.shards.X.ctypes.data % 64 == 0  # where JAX can use it in place


def test_weights_of_shards_that_were_never_one_set(tmp_path):
    """They go by the order of the shards, and no file says where a node's begin."""
    given = ew.Shards.from_parts([(X[:20], Y[:20]), (X[20:50], Y[20:50]), (X[50:], Y[50:])])
    folder = write_shards(tmp_path, given)
    held = ew.Problem(given, ew.Logistic(), sample_weight=WEIGHT)
    lazy = ew.Problem(folder, ew.Logistic(), sample_weight=WEIGHT)
    assert_array_equal(lazy.only([2]).scale, held.scale[50:])
    assert_array_equal(lazy.scale, held.scale)


def test_a_node_without_weight_is_named_by_its_id(folder):
    weight = np.ones(N)
    weight[folders.load_node(folder, 4)[2]] = 0
    lazy = ew.Problem(folder, ew.Logistic(), sample_weight=weight)
    assert lazy.only([0, 3]).scale.shape == (shards().counts[[0, 3]].sum(),)
    with pytest.raises(DataError, match="zero for all of node 4"):
        lazy.only([3, 4])


def test_weights_are_checked_without_reading(folder, read):
    for weight, words in ((np.ones(5), "give 90"), (-np.ones(N), "not negative")):
        with pytest.raises(DataError, match=words):
            ew.Problem(folder, ew.Logistic(), sample_weight=weight)
    with pytest.raises(DataError, match="zero for every sample"):
        ew.Problem(folder, ew.Logistic(), weights="sample", sample_weight=np.zeros(N))
    assert read == []


def test_damage_is_found_where_it_is_read(folder):
    path = folder / "node-3.npz"
    path.write_bytes(path.read_bytes() + b"x")
    (folder / "node-5.npz").unlink()
    problem = ew.Problem(folder, ew.Logistic())
    assert problem.only([0, 1, 2]).nodes == 3
    with pytest.raises(DataError, match=r"shard of node 3, .*node-3\.npz, is damaged"):
        problem.only([2, 3])
    with pytest.raises(DataError, match=r"shard of node 5, .*node-5\.npz, is missing"):
        problem.only([5])
    with pytest.raises(DataError, match="shard of node 3"):
        ew.reference(problem)
    with pytest.raises(DataError, match=r"has no manifest\.json"):
        ew.Problem(str(folder.parent), ew.Logistic())


def test_only_takes_numbers_of_nodes(folder):
    for problem in (ew.Problem(folder, ew.Logistic()), ew.Problem(shards(), ew.Logistic())):
        for nodes in ([7], [-1], np.array([0, 99])):
            with pytest.raises(ProblemError, match="nodes are 0 to 6"):
                problem.only(nodes)
        for nodes in ([], np.ones(V, bool), 3, [0.5]):
            with pytest.raises(ProblemError, match="give the numbers of one node or more"):
                problem.only(nodes)


# --- labels --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "loss", "classes"),
    [
        (np.repeat(["a", "b", "c"], 30), ew.Multinomial(), ["a", "b", "c"]),
        (np.repeat([b"no", b"yes"], 45), ew.Logistic(), [b"no", b"yes"]),
        (np.repeat([False, True], 45), ew.SmoothedHinge(), [False, True]),
        (np.repeat([3, 5, 9], 30), ew.Multinomial(), [3, 5, 9]),
        (np.repeat([3, 5, 9], 30), ew.Squared(), None),
        (np.repeat([3, 5, 9], 30).astype(np.float32), ew.Huber(), None),
        (X[:, 0], ew.Squared(), None),
    ],
)
def test_a_node_may_see_one_class_only(tmp_path, read, y, loss, classes):
    given = ew.Shards(X, y, np.array([30, 15, 15, 30]))
    lazy = ew.Problem(write_shards(tmp_path, given), loss)
    held = ew.Problem(given, loss)
    assert read == []
    assert_array_equal(lazy.classes, held.classes)
    assert_array_equal(lazy.classes, classes)
    assert_same(lazy.only([0]), held.only([0]))
    assert_same(lazy.only([3]), held.only([3]))
    assert read == [0, 3]
    assert_same(lazy, held)


def test_labels_come_through_the_loss_itself(tmp_path):
    class ZeroOrOne(ew.Logistic):
        def encode(self, y):
            codes, classes = super().encode(y)
            return (codes + 1) / 2, classes

    held = ew.Problem(shards(), ZeroOrOne())
    lazy = ew.Problem(write_shards(tmp_path, shards()), ZeroOrOne())
    assert set(held.labels) == {0.0, 1.0}
    assert_array_equal(lazy.only([1, 2]).labels, held.only([1, 2]).labels)
    assert_array_equal(held.encode(held.shards.y), held.labels)


def test_classes_that_the_manifest_leaves_out_are_read(tmp_path, read):
    """It lists up to a hundred, and whole numbers only; then it takes all labels."""
    halves = np.where(Y == "no", 0.5, 1.5)
    two = ew.Problem(write_shards(tmp_path / "two", shards(y=halves)), ew.Logistic())
    assert read == list(range(V))
    assert_same(two, ew.Problem(shards(y=halves), ew.Logistic()))
    many = write_shards(tmp_path / "many", shards(y=X[:, 0]))
    with pytest.raises(DataError, match="takes two classes, the labels have 90: use Multinomial"):
        ew.Problem(many, ew.Logistic())
    assert ew.Problem(many, ew.Multinomial()).loss.outputs == N
    names = np.array([f"name {k % 101}" for k in range(120)])
    text = ew.Shards(np.ones((120, 1)), names, np.array([60, 60]))
    with pytest.raises(DataError, match="Squared needs numbers as labels"):
        ew.Problem(write_shards(tmp_path / "text", text), ew.Squared())


def test_errors_that_the_manifest_can_tell(folder, read):
    with pytest.raises(DataError, match="Squared needs numbers as labels"):
        ew.Problem(folder, ew.Squared())
    with pytest.raises(ProblemError, match="is not a loss"):
        ew.Problem(folder, 3)
    assert read == []


# --- the command line ----------------------------------------------------------------------------


def test_inputs_on_shards_read_nothing_ahead(folder, read):
    for where in ({"shards": str(folder)}, {"data": str(folder)}):
        inputs = make_inputs(
            ProblemOptions(**where, penalty=["l1:0.1", "3=non-negative"], intercept=True)
        )
        assert (inputs.problem.nodes, inputs.graph.nodes, inputs.done) == (V, V, [])
        assert isinstance(inputs.problem.penalty[3], ew.NonNegative)
        with pytest.raises(DataError, match="has 7 nodes, not 3: leave --nodes out"):
            make_inputs(ProblemOptions(**where, nodes=3))
    assert read == []
    scaled = make_inputs(ProblemOptions(shards=str(folder), scale=True))
    assert read == list(range(V))
    assert_allclose(scaled.problem.shards.X.std(0), 1)
    assert_allclose(scaled.problem.shards.scaling.centre, X.mean(0))
