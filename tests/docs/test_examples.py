"""Every example runs, draws its picture, shows what it says it shows, and is in the gallery."""

import json
import re
import runpy
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from drawings import bars, legend, lines
from example_files import DATA, EXAMPLES, example
from numpy.testing import assert_allclose
from paths import ROOT
from PIL import Image
from sklearn.linear_model import Lasso
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import edgewise as ew
from edgewise.plotting.axes import LABELS

GALLERY = ROOT / "docs" / "gallery.md"

mpl.use("Agg")


@pytest.fixture(autouse=True)
def no_windows():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def assert_shows_a_run(figure, trace, nodes, edges):
    """The network on the left, and how the run went on the right."""
    left, right = figure.axes[:2]
    sizes = sorted(len(c.get_offsets()) for c in left.collections)
    assert nodes in sizes
    assert edges in [len(c.get_paths()) for c in left.collections]
    shown = lines(right)
    assert list(shown) == legend(right) == [LABELS[k] for k in ("residual", "bregman", "consensus")]
    for label, column in zip(shown, ("residual", "bregman", "consensus"), strict=True):
        heights = np.abs(trace[column])
        assert_allclose(shown[label][0], trace["rounds"])
        assert_allclose(shown[label][1], np.where(heights > 0, heights, np.nan))
    assert right.get_yscale() == "log"


def diabetes():
    """As the examples hold it out."""
    X, y = ew.data.dataset("diabetes")
    X, _, y, _ = train_test_split(X, y, test_size=1 / 3, random_state=0)
    return StandardScaler().fit_transform(X), y


def test_demo(tmp_path, monkeypatch, capsys, drawn):
    monkeypatch.setattr(sys, "argv", ["demo.py", "--out", str(tmp_path / "run")])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(EXAMPLES / "demo.py"), run_name="__main__")
    assert not end.value.code
    assert re.search(r"converged\W+yes", capsys.readouterr().out)
    trace = ew.Trace.load(tmp_path / "run" / "trace.npz")
    assert trace["bregman"][-1] < 1e-10
    graph = json.loads((tmp_path / "run" / "result.json").read_text())
    assert_shows_a_run(drawn["plot.png"], trace, graph["nodes"], graph["edges"])


def test_quickstart(drawn, tmp_path, capsys):
    result, numbers = example("quickstart").main(["--plot", str(tmp_path / "a.png")])
    assert result.converged
    assert numbers["off"] < 1e-6
    assert 20 <= numbers["used"] <= 28
    assert numbers["right"] > 0.93 > 0.7 > numbers["majority"]
    assert "95.8% (62.9% by calling all benign)" in capsys.readouterr().out
    assert_shows_a_run(drawn["a.png"], result.trace, result.graph.nodes, result.graph.edge_count)


def test_hospital_study(drawn, tmp_path):
    pytest.importorskip("formulaic", reason="formulas: pip install 'edgewise[formula]'")
    study = example("hospital_study").main(["--plot", str(tmp_path / "study.png")])
    assert_allclose(study.network, study.pooled, rtol=1e-6)
    assert study.names[-1] == "C(health)[T.4 poor]"
    assert study.hospitals[-1] == 5  # of twelve
    off = np.abs(study.meta - study.pooled)[:, 0] / study.pooled[:, 1]
    assert 0.7 < off.max() < 0.9
    limited = study.names.index("limited")
    for values, sure in ((study.pooled, False), (study.network, False), (study.meta, True)):
        coef, error = values[limited]
        assert (coef > 1.96 * error) == sure
    ax = drawn["study.png"].axes[0]
    heights = [np.array(bars[0].get_xdata()) for bars in ax.containers]
    for shown, values in zip(heights, (study.pooled, study.network, study.meta), strict=True):
        assert_allclose(shown, values[1:, 0])


def test_unequal_hospitals(drawn, tmp_path):
    module = example("unequal_hospitals")
    sizes, alone, scores = module.main(["--plot", str(tmp_path / "a.png")])
    joint = scores['joint fit, weights="sample"']
    assert sizes.min() == 1
    assert sizes.max() > 50
    assert joint > max(alone)
    assert joint > scores["mean, weighted by size"] > scores["mean of their models"]
    assert joint > scores['joint fit, weights="node"'] + 0.03

    (ax,) = drawn["a.png"].axes
    shown = lines(ax)
    assert list(shown) == legend(drawn["a.png"])
    hospitals = np.hstack([shown["a hospital alone"], shown["the same, below"]])
    assert_allclose(np.sort(hospitals[0]), np.sort(sizes))
    assert_allclose(np.sort(hospitals[1]), np.sort(np.maximum(alone, -0.6)))
    for kind in list(scores)[2:]:
        assert_allclose(shown[kind][1], scores[kind])

    X, y = ew.data.dataset("diabetes")
    X, X_out, y, y_out = train_test_split(X, y, test_size=1 / 3, random_state=0)
    scaler = StandardScaler().fit(X)
    pooled = Lasso(alpha=module.ALPHA, tol=1e-10).fit(scaler.transform(X), y)
    assert_allclose(joint, pooled.score(scaler.transform(X_out), y_out), atol=1e-6)


def test_own_constraints(drawn, tmp_path):
    import cvxpy as cp

    module = example("own_constraints")
    fits = module.main(["--plot", str(tmp_path / "a.png")])
    without, x = fits["without the rules"], fits["with them"]
    assert abs(x[:2]).max() < 1e-6
    assert x.min() > -1e-6
    assert x.max() < 20 + 1e-6
    assert x[4:].sum() < 30 + 1e-6
    assert without.max() > 21
    assert without.min() < -1

    (ax,) = drawn["a.png"].axes
    shown = bars(ax)
    assert list(shown) == legend(drawn["a.png"])
    for kind, coefficients in fits.items():
        (heights,) = (h for label, h in shown.items() if label.startswith(f"{kind}: s1 to s6"))
        assert_allclose(heights, coefficients)
    assert [t.get_text() for t in ax.texts] == ["barred"] * 2

    X, y = diabetes()
    w, b = cp.Variable(10), cp.Variable()
    loss = cp.sum_squares(X @ w + b - y) / (2 * len(y)) + 0.6 * cp.norm1(w)
    rules = [w[:2] == 0, w >= 0, w <= 20, cp.sum(w[4:]) <= 30]
    for wanted, held in ((without, []), (x, rules)):
        cp.Problem(cp.Minimize(loss), held).solve(solver=cp.CLARABEL)
        assert_allclose(wanted, w.value, atol=1e-3)


def test_custom_loss(drawn, tmp_path):
    module = example("custom_loss")
    found = module.main(["--plot", str(tmp_path / "a.png")])
    for q, numbers in found.items():
        assert numbers["scipy"] < 1e-4
        assert numbers["sharp"] < 0.1  # of a response whose deviation is 0.77: corners are rounded
        assert abs(numbers["below"] - q) < 0.06  # a share in 148 deviates by 0.025 to 0.04

    (ax,) = drawn["a.png"].axes
    shown = lines(ax)
    (spans,) = ax.collections
    low, high = np.array([segment[:, 1] for segment in spans.get_segments()]).T
    assert list(shown) == ["0.5", "inside", "outside"]
    at, middle = shown["0.5"]
    assert len(at) == len(low) == 148
    assert (np.diff(middle) >= 0).all()
    for kind, is_inside in (("inside", True), ("outside", False)):
        place, y = shown[kind]
        k = np.searchsorted(at, place)
        assert (((low[k] <= y) & (y <= high[k])) == is_inside).all()
    assert len(shown["inside"][0]) + len(shown["outside"][0]) == 148


@pytest.mark.exhaustive
def test_comparing_methods(drawn, tmp_path, capsys):
    found = example("comparing_methods").main(["--plot", str(tmp_path / "a.png")])
    assert not found.refused
    assert all(np.isfinite(found.cost(m, 1e-6)).all() for m in found.runs)
    assert found.best(1e-6, "bytes_sent") == "pdmm"
    assert found.best(1e-6, "oracle_calls") in ("svr-pd-es", "saga-pd", "gt-saga")
    calls = {m: found.cost(m, 1e-6, "oracle_calls")[1] for m in found.runs}
    assert max(calls, key=calls.__getitem__) == "pdmm"
    assert "cheapest to 1e-6: pdmm" in capsys.readouterr().out
    for ax, unit in zip(drawn["a.png"].axes, ("oracle_calls", "bytes_sent"), strict=True):
        shown = lines(ax)
        assert list(shown) == list(found.runs)
        assert ax.get_xlabel() == LABELS[unit]
        for method, (_, heights) in shown.items():
            assert heights[0] > 0.1, method
            assert heights[-1] < 1e-6, method


@pytest.mark.exhaustive
def test_lossy_network(drawn, tmp_path, monkeypatch):
    module = example("lossy_network")
    every = module.cases
    shown = ("none", "all of these")  # compiling the others takes half a minute
    monkeypatch.setattr(module, "cases", lambda rounds: {k: every(rounds)[k] for k in shown})
    traces = module.main(["--rounds", "6000", "--plot", str(tmp_path / "a.png")])
    healed, lost = (trace["bregman"] for trace in traces["all of these"])
    assert healed[-1] < 1e-9
    assert not lost[-1] < 1e-2
    assert all(trace["bregman"][-1] < 1e-20 for trace in traces["none"])
    shown = lines(drawn["a.png"].axes[0])
    for kind, name in (("all faults", "all of these"), ("no faults", "none")):
        for method, trace in zip(("SAGA-PD", "GT-SAGA"), traces[name], strict=True):
            rounds, heights = shown[f"{method}, {kind}"]
            assert_allclose(rounds, trace["rounds"])
            assert_allclose(heights, np.maximum(trace["bregman"], 1e-18))


@pytest.mark.exhaustive
def test_animate(tmp_path):
    module = example("animate")
    result = module.main(["--plot", str(tmp_path / "a.gif")])
    rounds, apart = result.trace["rounds"], result.apart.max(1)
    assert apart[0] > 1
    assert apart[rounds == module.CRASH].item() < 1e-4
    assert apart[rounds > module.CRASH].max() > 1e-2
    assert apart[-1] < 1e-6
    with Image.open(tmp_path / "a.gif") as film:
        assert film.n_frames == 31


def test_every_example_is_in_the_gallery_and_tested():
    page = GALLERY.read_text()
    tests = "".join(file.read_text() for file in Path(__file__).parent.glob("test_*examples.py"))
    for file in EXAMPLES.glob("*.py"):
        assert f"(../examples/{file.name})" in page, file.name
        if file.name not in DATA:
            assert f"python examples/{file.name}" in page, file.name
            assert f"def test_{file.stem}(" in tests, file.name


def test_pictures_of_the_gallery_are_shown_and_small():
    page = GALLERY.read_text()
    for picture in (ROOT / "docs" / "images").glob("gallery_*"):
        assert f"(images/{picture.name})" in page, picture.name
        assert picture.stat().st_size < 400_000, picture.name
