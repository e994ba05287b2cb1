"""Losses, penalties, graphs, methods and faults are what their text says."""

import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import is_classifier

import edgewise as ew
from edgewise import spec
from edgewise.errors import InputError, MethodError, ProblemError, UnknownName
from edgewise.sklearn import DecentralizedModel


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("l1:1e-3", ew.L1(1e-3)),
        ("squared-l2:2", ew.SquaredL2(2)),
        ("elastic-net:1,2", ew.ElasticNet(1, 2)),
        ("group-l2:0.5,1,1,2", ew.GroupL2(0.5, [1, 1, 2])),
        ("box:-inf,0.5", ew.Box(-np.inf, 0.5)),
        ("non-negative", ew.NonNegative()),
        ("simplex", ew.Simplex()),
        ("simplex:2", ew.Simplex(2)),
        ("l1-ball:3", ew.L1Ball(3)),
        ("l2-ball:3", ew.L2Ball(3)),
        ("half-space:1,2,-3,4", ew.HalfSpace([1, 2, -3], 4)),
        ("l1:0.1 + box:-1,1", ew.L1(0.1) + ew.Box(-1, 1)),
        ("l1:1e+1+box:-1,+inf+non-negative", ew.L1(10) + ew.Box(-1, np.inf) + ew.NonNegative()),
        ("box:0,1 & half-space:1,1,1", ew.Box(0, 1) & ew.HalfSpace([1, 1], 1)),
    ],
)
def test_penalties(text, expected):
    assert repr(spec.penalty([text], 5)) == repr(expected)


def test_penalties_for_some_nodes():
    found = spec.penalty(["0-1=l1:1", "l1:2", "3=box:0,1"], 5)
    assert list(map(repr, found)) == list(
        map(repr, [ew.L1(1), ew.L1(1), ew.L1(2), ew.Box(0, 1), ew.L1(2)])
    )
    assert spec.penalty(["4=l1:1"], 5)[0] is None
    for wrong in (["5=l1:1"], ["a=l1:1"], ["3-2=l1:1"], ["l1:1", "l1:2"], ["l1"], ["box:1,b"]):
        with pytest.raises(ProblemError):
            spec.penalty(wrong, 5)


SHARDS = [(np.eye(3), np.array([1.0, -1, 1])), (np.eye(3), np.array([-1.0, 1, 1]))]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("l1:0.1", ew.L1(0.1)),
        ("l1:0.1 + box:-1,1", ew.L1(0.1) + ew.Box(-1, 1)),
        (["l1:0.1", "box:0,1"], [ew.L1(0.1), ew.Box(0, 1)]),
        (["l1:0.1", ew.Box(0, 1)], [ew.L1(0.1), ew.Box(0, 1)]),
        ([None, "simplex"], [ew.NoPenalty(), ew.Simplex()]),
        ("1=l1:0.1", [ew.NoPenalty(), ew.L1(0.1)]),
        (["l1:0.1", "1=box:0,1"], [ew.L1(0.1), ew.Box(0, 1)]),
    ],
)
def test_problems_take_the_texts_of_the_command_line(given, meant):
    problem = ew.Problem(SHARDS, "huber:0.5", given)
    assert repr(problem.penalty) == repr(meant)
    assert repr(problem.loss) == repr(ew.Huber(0.5))


@pytest.mark.parametrize(
    ("loss", "penalty", "message"),
    [
        ("logistic", "l1", "penalty 'l1' cannot be read: give l1:LAM"),
        ("logistic", "l1:0.1 + bix:0,1", "unknown penalty 'bix': did you mean 'box'"),
        ("logistic", "l1:0.1 +", "cannot be read"),
        ("logistic", ["l1:0.1"], "1 penalties for 2 nodes"),
        ("logistic", "5=l1:0.1", "'5' are no nodes"),
        ("logistc", None, "unknown loss 'logistc': did you mean 'logistic'"),
    ],
)
def test_texts_that_mean_nothing_are_refused_as_the_command_line_does(loss, penalty, message):
    with pytest.raises(InputError, match=re.escape(message)):
        ew.Problem(SHARDS, loss, penalty)


def test_graphs_from_texts():
    problem = ew.Problem(SHARDS, "squared", "l1:0.1")
    one, two = (ew.solve(problem, g, rounds=5).X for g in ("ring", ew.Graph.ring(2)))
    assert_array_equal(one, two)
    with pytest.raises(UnknownName, match="did you mean 'ring'"):
        ew.solve(problem, "rin", rounds=5)


def test_estimators_take_texts_too():
    X = np.random.default_rng(0).normal(size=(30, 3))
    y = np.where(X[:, 0] > 0, "yes", "no")
    options = {"n_nodes": 3, "graph": "ring", "max_iter": 50, "tol": 1e-3}
    texts = DecentralizedModel("logistic", "l1:0.01 + box:-2,2", **options).fit(X, y)
    objects = DecentralizedModel(ew.Logistic(), ew.L1(0.01) + ew.Box(-2, 2), **options).fit(X, y)
    assert_array_equal(texts.coef_, objects.coef_)
    assert is_classifier(texts)
    assert abs(texts.coef_).max() <= 2
    assert texts.predict_proba(X).shape == (30, 2)
    assert texts.get_params()["penalty"] == "l1:0.01 + box:-2,2"
    with pytest.raises(ProblemError, match="give l1:LAM"):
        DecentralizedModel("logistic", "l1").fit(X, y)


def test_losses():
    assert repr(spec.loss("huber:2", 0.5)) == repr(ew.Huber(delta=2.0, ridge=0.5))
    assert repr(spec.loss("smoothed-hinge", 0)) == repr(ew.SmoothedHinge())
    with pytest.raises(ProblemError, match="give huber:DELTA"):
        spec.loss("huber:1,2", 0)
    with pytest.raises(UnknownName, match="did you mean 'logistic'"):
        spec.loss("logistc", 0)


def test_settings_of_methods():
    assert spec.method("pd", None) == "pd"
    made = spec.method("pmgt-saga", ["depth=3", "mixing=metropolis", "batch=2"])
    assert (made.depth, made.mixing, made.gradient.batch) == (3, "metropolis", 2)
    assert_array_equal(spec.method("pd", ["eta=1,2"]).eta, [1, 2])
    known = "eta, form, local, radius, rho"
    with pytest.raises(MethodError, match=f"sets nothing that pd has: give NAME=VALUE of {known}"):
        spec.method("pd", ["batch=2"])


def test_graphs_by_kind_and_size():
    size = spec.GraphSize(edges=15, rows=2)
    assert_array_equal(spec.graph("random", 12, 3, size).edges, ew.Graph.random(12, 15, 3).edges)
    assert_array_equal(spec.graph("torus", 12, 0, size).edges, ew.Graph.torus(2, 6).edges)
    assert_array_equal(spec.graph("grid", 12, 0).edges, ew.Graph.grid(3, 4).edges)


def test_faults_from_numbers_and_events():
    assert spec.faults({"drop": None, "down": [], "awake": None}, seed=3) is None
    given = {"drop": 0.0, "awake": "0.5,1", "down": ["0:1:3:9"], "wipe": ["2:5"], "keep": None}
    found = spec.faults(given, feedback=False, seed=4)
    expected = ew.Faults(
        drop=0.0, awake=np.array([0.5, 1]), down=(0, 1, 3, 9), wipe=(2, 5), feedback=False, seed=4
    )
    assert repr(found) == repr(expected)
    with pytest.raises(MethodError, match="--wipe '2' cannot be read: give NODE:ROUND"):
        spec.faults({"wipe": ["2"]})
    with pytest.raises(MethodError, match="give I:J:FIRST:LAST"):
        spec.faults({"down": ["1:2"]})
