"""The examples of couplings end at the answers of solvers that see all data, and draw them."""

import sys

import matplotlib as mpl
import numpy as np
import pytest
from drawings import legend, lines
from example_files import EXAMPLES, example
from numpy.testing import assert_allclose

mpl.use("Agg")
pytest.importorskip("cvxpy", reason="the examples compare with CVXPY")


@pytest.fixture(autouse=True)
def no_windows():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


@pytest.fixture(autouse=True)
def beside_each_other(monkeypatch):
    """As for `python examples/power_flow.py`, which imports power_cases."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield
    sys.modules.pop("power_cases", None)


# What PYPOWER 5.1.21's rundcopf says of the cases as they are; lines that are full with our limits.
PYPOWER = {14: 7642.593735, 30: 565.205966}
FULL = {14: {(1, 2), (4, 5), (5, 6)}, 30: {(15, 23), (21, 22), (25, 27)}}


@pytest.mark.parametrize(
    ("buses", "drop"),
    [(14, 0.0), (30, 0.0), pytest.param(14, 0.2, marks=pytest.mark.exhaustive)],
)
def test_power_flow(buses, drop, drawn, tmp_path):
    module = example("power_flow")
    options = ["--buses", str(buses), "--drop", str(drop), "--plot", str(tmp_path / "a.png")]
    found = module.main(options)
    assert_allclose(found[module.DISPATCH]["cost"], PYPOWER[buses], rtol=1e-6)
    assert np.ptp(found[module.DISPATCH]["prices"]) < 1e-3
    assert found[module.DISPATCH]["textbook"] < 1e-3
    for one in found.values():
        assert_allclose(one["cost"], one["exact"]["cost"], rtol=1e-6)
        assert max(one["off"].values()) < 1e-3  # MW of hundreds, $/MWh of tens
    last = found[module.LIMITED]
    assert last["cost"] > found[module.DISPATCH]["cost"] + 0.5
    lines_ = np.array(last["network"].case.lines)[:, :2].astype(int)
    assert {tuple(line) for line in lines_[last["full"]].tolist()} == FULL[buses]
    assert np.ptp(last["prices"]) > 1

    ax = drawn["a.png"].axes[0]
    shown = [c for c in ax.collections if len(c.get_offsets()) and c.get_array() is not None]
    prices = np.concatenate([c.get_array() for c in shown])
    assert_allclose(np.sort(prices), np.sort(last["prices"]))
    assert {text.get_text() for text in ax.texts} == {str(i + 1) for i in range(buses)}
    for name, widths in zip(found, drawn["a.png"].axes[1].containers, strict=True):
        assert_allclose([bar.get_width() for bar in widths], found[name]["output"])


def test_transport(drawn, tmp_path):
    found = example("transport").main(["--plot", str(tmp_path / "a.png")])
    for one in found.values():
        assert_allclose(one["time"], one["exact"], rtol=1e-6)
    assert_allclose(found["never jam"]["time"], 144, rtol=1e-6)
    assert_allclose(found["jam"]["net"], found["jam"]["exact_net"], atol=1e-4)
    used = {name: (abs(one["net"]) > 1e-3).sum() for name, one in found.items()}
    assert used["jam"] > used["never jam"]

    for ax, one in zip(drawn["a.png"].axes, found.values(), strict=True):
        arrows = [text for text in ax.texts if not text.get_text()]
        assert len(arrows) == (abs(one["net"]) > 1e-3).sum()
    assert "road that is full" in legend(drawn["a.png"])


def test_clocks(drawn, tmp_path):
    numbers = example("clocks").main(["--plot", str(tmp_path / "a.png")])
    assert numbers["off"] < 1e-5  # ms
    assert numbers["set by each other"] < 0.7 * numbers["down a tree"] < 1
    assert numbers["as they are"] > 50
    titles = [ax.get_title() for ax in drawn["a.png"].axes[:2]]
    for title, name in zip(titles, ("down a tree", "set by each other"), strict=True):
        assert title == f"{name}: worst {numbers[name]:.2f} ms"
    counts = [len(c.get_offsets()) for c in drawn["a.png"].axes[0].collections]
    assert counts == [30]


def test_house_prices(drawn, tmp_path):
    found = example("house_prices").main(["--plot", str(tmp_path / "a.png")])
    path, best = found["path"], found["best"]
    assert max(one["off"] for one in path.values()) < 1e-6
    counts = [one["clusters"] for one in path.values()]
    assert counts[0] == 36
    assert counts[-1] < 10
    assert (np.diff(counts) <= 0).all()
    assert found["mixed"] == 0
    chosen = path[best]["held out"]
    assert chosen < 0.6 * found["a region alone"]["held out"]
    assert chosen < 0.4 * found["one for all"]["held out"]

    left, right = drawn["a.png"].axes
    assert sum(len(c.get_offsets()) for c in left.collections) == 36
    weights, errors = lines(right)["network lasso"]
    assert_allclose(weights, list(path))
    assert_allclose(errors, [one["held out"] for one in path.values()])
    assert [text.get_text() for text in right.texts] == [str(count) for count in counts]


def test_houses_of_a_file(tmp_path):
    """A file as California's: eight columns of which the last two are a place."""
    rng = np.random.default_rng(0)
    north, east = 34 + 4 * rng.random(2_000), -122 + 4 * rng.random(2_000)
    rows = np.column_stack([rng.uniform(1, 900, (2_000, 6)), north, east])
    text = "\n".join(
        "200000 " + " ".join(f"{k}:{value:.3f}" for k, value in enumerate(row, 1)) for row in rows
    )
    (tmp_path / "a.svm").write_text(text + "\n")
    houses = example("house_prices").california(str(tmp_path / "a.svm"), seed=0)
    assert len(houses.place) == 100
    assert all(len(y) for _, y in houses.fit)
    parts = (houses.fit, houses.check, houses.held_out)
    assert sum(len(y) for part in parts for _, y in part) == 2_000
    assert sum(len(y) for _, y in houses.fit) < 400


def test_tanks(drawn, tmp_path):
    module = example("tanks")
    found = module.main(["--plot", str(tmp_path / "a.png")])
    assert_allclose(found["cost"], found["exact"], rtol=1e-6)
    assert found["levels"] < 1e-5
    assert found["pumps"] < 1e-4
    assert found["played"] < 1e-5
    assert found["u"].max() > 1 - 1e-5
    assert found["u"].min() < 1e-5

    axes = drawn["a.png"].axes
    assert len(axes) == module.TANKS
    for i, ax in enumerate(axes):
        assert_allclose(lines(ax)["level"][1], [module.START[i], *found["h"][:, i]])
        assert_allclose(lines(ax)["pump"][1], found["u"][:, i])
    assert legend(drawn["a.png"]) == ["pump", "level", "level wanted"]
