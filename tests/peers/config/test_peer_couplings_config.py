"""What a peer's TOML says of its edges, its cost and its penalty; what `network` writes of them."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from network_calls import RING, call, peer, refused

import edgewise as ew
from edgewise.errors import EdgewiseError
from edgewise.peers.config.peer_config import Fit, read, save
from edgewise.peers.coupled_mesh import create_coupled
from edgewise.peers.node.own_edges import own_edges
from edgewise.peers.node.own_problem import one_node


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


TABLES = """
[between]
all = "lasso:0.1"
0 = { A = [[1.0, 0.0, 2.0]], other = "there.npy", c = 2.0, sense = "<=" }
2 = ["shared:0,2", { price = "huber:0.5,0.2", on = [1] }, { A = "rows.npz" }]

[cost]
Q = "Q.npy"
q = [1.0, 2.0, 3.0]

[penalty]
kind = "budget"
a = [1.0, 1.0, 0.0]
b = 1.0
lower = [0.0, 0.0, -inf]
"""


def written(tables):
    call("init", *RING, "--loss", "none", "--between", "lasso:0.1")
    config = peer(1)
    text = config.path.read_text()
    config.path.write_text(text[: text.index("[between]")] + tables)
    return config.path


def test_rows_costs_and_penalties_are_read():
    path = written(TABLES)
    sp.save_npz("mesh/rows.npz", sp.csr_array([[0.0, 0, 5], [0, 7, 0]]))
    np.save("mesh/there.npy", np.array([[3.0, 0.0]]))
    np.save("mesh/Q.npy", np.diag([1.0, 2.0, 0.0]))
    config = read(path)
    save(config)
    assert read(path) == config
    problem, edges = one_node(config, None), own_edges(config, 3)
    assert problem.size == 3
    assert np.array_equal(problem.cost.Q[0], np.diag([1.0, 2.0, 0.0]))
    assert np.array_equal(problem.cost.q[0], [1.0, 2.0, 3.0])
    assert (problem.penalty.a == [1.0, 1.0, 0.0]).all()
    assert (problem.penalty.lower == [0.0, 0.0, -np.inf]).all()
    low, high = edges[0].end, edges[2].end
    assert np.array_equal(low.A, [[1.0, 0.0, 2.0]])
    assert (low.rows.c, low.rows.low, low.sign) == (2.0, 0.0, -1.0)  # peer 0 is the lower end
    assert np.array_equal(high.A.toarray(), [[1, 0, 0], [0, 0, 1], [0, 1, 0], [0, 0, 5], [0, 7, 0]])
    assert high.sign == 1
    assert edges[2].told["of"] == ["=", "=", "huber:0.5,0.2", "=", "="]
    assert own_edges(replace(config, id=3), 3)[2].end.A.toarray()[0, 0] == -1  # the higher end


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("0 = {", "7 = {", "between.7"),
        ('all = "lasso:0.1"\n2 =', "2 =", "between says nothing of neighbour 0: give between.0"),
        ("c = 2.0", "cc = 2.0", "between.0.cc"),
        ('"<="', '"<"', 'give "=" or "<="'),
        ("[[1.0, 0.0, 2.0]]", "[[1.0, 0.0]]", "edge (1, 0): A has 2 columns, and node 1 has 3"),
        ("shared:0,2", "shared:0,3", "not among the 3 of node 1"),
        ("shared:0,2", "shared:0.5", "give whole numbers"),
        ("shared:0,2", "laso:0.1", "did you mean 'lasso'"),
        ("huber:0.5,0.2", "shared:1", "give lasso:W, ridge:W or huber:W,DELTA"),
        ("rows.npz", "gone.npz", "gone.npz cannot be read"),
        ('"there.npy"', "[[1.0], [2.0]]", "give it 1 rows, as A has"),
        ("q = [1.0, 2.0, 3.0]", "q = [1.0]", "Quadratic: Q has shape"),
        ("q = [1.0, 2.0, 3.0]", "w = [1.0]", "cost.w"),
        ('kind = "budget"', 'kind = "budgets"', "did you mean 'budget'"),
        ("b = 1.0", "", "of kind budget takes a, b, lower, upper: give those"),
        ("b = 1.0", "d = 1.0", "penalty.d"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(old, new, words):
    path = written(TABLES.replace(old, new) if "\n2 =" not in old else "")
    if "\n2 =" in old:
        path.write_text(path.read_text() + '[between]\n2 = "lasso:0.1"\n')
    sp.save_npz("mesh/rows.npz", sp.csr_array([[0.0, 0, 5], [0, 7, 0]]))
    np.save("mesh/there.npy", np.array([[3.0, 0.0]]))
    np.save("mesh/Q.npy", np.diag([1.0, 2.0, 0.0]))
    with pytest.raises(EdgewiseError) as error:
        used(path)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def used(path):
    config = read(path)
    one_node(config, None)
    own_edges(config, 3)


def test_a_peer_without_data_needs_a_cost_and_a_loss_goes_with_data():
    config = read(written('[between]\nall = "equal"\n'))
    with pytest.raises(EdgewiseError, match=r"peer 1 has neither data nor a \[cost\]: give one"):
        one_node(config, None)
    with pytest.raises(EdgewiseError, match=r"fit\.loss is none, and there are data"):
        one_node(config, (np.eye(2), [1.0, 2.0]))
    config.path.write_text(config.path.read_text().split("[between]")[0] + "[cost]\nQ = 1.0\n")
    with pytest.raises(EdgewiseError, match=r"goes with \[between\]"):
        read(config.path)


def test_init_add_and_leave_keep_what_edges_carry():
    call("init", *RING, "--between", "shared:0,2", "--between", "ridge:0.5")
    assert peer(3).between == {"all": ["shared:0,2", "ridge:0.5"]}
    call("add", "mesh", "--neighbours", "0,1")
    assert peer(5).between == peer(0).between == peer(3).between
    call("add", "mesh", "--neighbours", "0,5", "--between", "lasso:1")
    assert peer(6).between == {"all": "lasso:1"}
    assert peer(0).between == {**peer(3).between, "6": "lasso:1"}
    assert "give --between, or write" in refused("add", "mesh", "--neighbours", "2,3")
    call("leave", "mesh", 6)
    assert peer(0).between == peer(3).between


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--between", "laso:1"], "did you mean 'lasso'"),
        (["--between", "lasso:1", "--method", "extra"], "extra has no form for couplings"),
        (["--between", "lasso:1", "--bits", 8], "couplings do not take bits: leave it out"),
        (["--between", "lasso:1", "--dual-noise", 1], "couplings do not take dual_noise"),
        (["--between", "lasso:1", "--intercept"], "add a column of ones"),
        (["--loss", "none"], "unknown loss"),
    ],
)
def test_init_refuses_what_does_not_go_together(words, said):
    assert said in refused("init", *RING, *words)


def test_a_mesh_of_a_problem_says_what_the_problem_does(tmp_path):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 8))
    data = (rng.normal(size=(5, 8)), rng.normal(size=5))
    problem = ew.Problem(
        [data, None, None],
        ew.Huber(0.5, ridge=0.1),
        penalty=[ew.L1(0.2), None, ew.Box([-1.0] * 8, np.inf)],
        cost=[None, ew.Linear([1.0, 2.0]), ew.Quadratic(2.0, np.ones(8))],
    )
    between = {
        (1, 0): [ew.Coupling(np.eye(2), -np.eye(8)[:2], sense=["=", "<="]), ew.Shared([1])],
        (2, 0): ew.Coupling(A, A, c=np.arange(30.0), sense="<="),
        (1, 2): ew.NetworkRidge(0.3, on=[0]),
    }
    made = create_coupled(tmp_path / "m", problem, ew.Graph.ring(3), between, Fit())
    assert not contents_of(made.folder) ^ {"data", "issued.jsonl", "peer0-2-0.npz", "peer2-0-0.npz"}
    for i, config in made.peers.items():
        config = read(config.path)
        data = made.folder / "data" / f"peer{i}.npz"
        one = one_node(config, data if data.exists() else None)
        n = problem.sizes[i]
        assert one.size == n
        assert repr(one.loss) == repr(problem.loss)
        assert one.smoothness.sample == pytest.approx(problem.smoothness.sample[i], rel=1e-12)
        assert np.array_equal(one.shards.X, problem.shards[i][0][:, :n])
        if i:
            assert np.array_equal(one.cost.Q[0], problem.cost.Q[i][:n, :n])
    whole = ew.solve(problem, ew.Graph.ring(3), between=between, rounds=1)
    assert whole.X[0].shape == (8,)
    ends = {i: own_edges(config, problem.sizes[i]) for i, config in made.peers.items()}
    assert np.array_equal(ends[0][2].end.A, A)
    assert ends[1][0].told["of"] == ["=", "<=", "="]
    assert ends[0][1].told["parts"][0][1:] == ends[1][0].told["parts"][0][:0:-1]


def contents_of(folder):
    known = {"authority.key", "authority.pem"}
    return {
        path.name for path in folder.iterdir() if path.suffix not in (".toml", ".key", ".pem")
    } - known
