"""Pictures: of graphs, of runs, and moving ones."""

import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_allclose
from PIL import Image

import edgewise as ew
from edgewise.errors import InputError

mpl.use("Agg")
GRAPH = ew.Graph.random(6, 9, seed=0)


@pytest.fixture(scope="module")
def result():
    X, y = ew.data.epsilon_like(rows=60, features=4)
    problem = ew.Problem(ew.split(X, y, nodes=6), loss=ew.Logistic(ridge=0.1))
    return ew.solve(problem, GRAPH, "pd", rounds=60, record_every=10)


def test_graphs_show_every_node_and_edge_and_the_values(tmp_path, drawn):
    values = np.arange(6.0)
    ax = GRAPH.plot(values, label="age", path=tmp_path / "graph.png")
    edges, nodes = ax.collections
    assert len(edges.get_paths()) == GRAPH.edge_count
    assert_allclose(nodes.get_array(), values)
    assert [a.get_ylabel() for a in ax.figure.axes if a is not ax] == ["age"]
    assert drawn["graph.png"] is ax.figure
    assert GRAPH.plot().collections


def test_runs_show_where_nodes_stand_and_how_they_came_there(result, tmp_path, drawn):
    spread = np.linalg.norm(result.X - result.X.mean(0), axis=1)
    assert result.apart.shape == (len(result.trace), 6)
    assert_allclose(result.apart[-1], spread)
    assert_allclose(np.sqrt((result.apart**2).mean(1)), result.trace["consensus"], atol=1e-12)
    left, right = result.plot(path=tmp_path / "run.png")
    assert_allclose(left.collections[1].get_array(), np.log10(np.maximum(spread, 1e-16)))
    assert [line.get_label() for line in right.lines] == [
        "optimality residual",
        "Bregman divergence",
        "disagreement between nodes",
    ]
    assert_allclose(right.lines[1].get_ydata(), result.trace["bregman"])
    assert len(left.collections[0].get_paths()) == GRAPH.edge_count
    assert drawn["run.png"].get_suptitle() == result.message


def test_runs_move(result, tmp_path):
    film = result.animate(tmp_path / "run.gif", frames=4)
    with Image.open(film) as image:
        assert image.n_frames == 4
    page = result.animate(tmp_path / "run.html", frames=3)
    assert "<script" in page.read_text()
    with pytest.raises(InputError, match="gif"):
        result.animate(tmp_path / "run.mp4")
