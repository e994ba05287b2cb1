"""Faults that make no sense, that the graph cannot have, or that a method does not heal from."""

import warnings

import numpy as np
import pytest

import edgewise as ew
from edgewise.engines.faults import under_faults
from edgewise.errors import FaultWarning, GraphError, MethodError
from edgewise.methods.catalogue import make

V = 6
GRAPH = ew.Graph.ring(V)
rng = np.random.default_rng(0)
SHARDS = ew.split(rng.standard_normal((30, 2)), rng.standard_normal(30), nodes=V)
PROBLEM = ew.Problem(SHARDS, ew.Squared())


def solve(faults):
    return ew.solve(PROBLEM, GRAPH, "saga-pd", faults=faults, reference=False)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        *(({"drop": bad}, "drop=.* give a part of one") for bad in (1.0, -0.1, "all", np.nan)),
        *(({"awake": bad}, "awake=.* give a part of one") for bad in (0.0, 1.5, [0.5, 0.0], "x")),
        *(({"keep": bad}, "keep=.* give a part of one") for bad in (0.0, 1.1)),
        *(({k: bad}, f"{k}=.* from 1 up") for k in ("burst", "nap") for bad in (0.5, np.inf, "x")),
        ({"drop": 0.9, "burst": 5}, "burst=5 is too short for a part of 0.9"),
        ({"awake": [1.0, 0.1], "nap": 2}, "nap=2 is too short for a part of 0.9"),
        *(({"delay": bad}, "delay is .* whole number from 0 up") for bad in (-1, 1.5)),
        ({"seed": -1}, "the faults' seed is -1"),
        *(({"patience": bad}, "patience is .* whole number from 0 up") for bad in (-1, 0.5)),
        ({"bits": 1}, "bits is 1: give a whole number from 2 up"),
        ({"bits": 33}, "bits=33: give 2 to 32"),
        ({"wipe": 3}, "wipe=3: give tuples of 2 whole numbers"),
        ({"wipe": "ab"}, "wipe='ab': give tuples"),
        ({"leave": (1, 2, 3)}, r"leave: \[1, 2, 3\] should be 2 whole numbers"),
        ({"down": [(0, 1, 5)]}, "should be 4 whole numbers"),
        ({"down": (0, 1, 5, 4)}, "ends before it begins"),
        ({"join": (1, -5)}, "join is -5"),
        *(
            ({"bits": 8, **bad}, "changes can only be sent where none gets lost")
            for bad in ({"drop": 0.1}, {"delay": 1}, {"wipe": (0, 5)}, {"leave": (0, 5)})
        ),
    ],
)
def test_what_cannot_be_is_refused(given, message):
    with pytest.raises(MethodError, match=message):
        ew.Faults(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"awake": [0.5, 0.5]}, f"awake has shape .* give one number, or {V}"),
        ({"awake": []}, "awake has shape"),
        ({"wipe": (9, 5)}, "wipe: there is no node 9, nodes are 0 to 5"),
        ({"leave": (6, 5)}, "leave: there is no node 6"),
        ({"down": (0, 0, 5, 6)}, "the graph has no edge between 0 and 0"),
        ({"leave": [(i, 5 + i) for i in range(V)]}, "in round 10 no node is left"),
    ],
)
def test_what_the_graph_does_not_have_is_refused(given, message):
    with pytest.raises(GraphError, match=message):
        solve(ew.Faults(**given))


def test_nobody_may_be_cut_off():
    with pytest.raises(GraphError, match="in round 7 the nodes present are not connected"):
        ew.solve(PROBLEM, ew.Graph.path(V), "saga-pd", faults=ew.Faults(leave=(2, 7)))
    whole = ew.Faults(leave=(0, 7), join=(1, 9))
    with pytest.raises(GraphError, match="in round 0 the nodes present"):
        ew.solve(PROBLEM, ew.Graph.path(V), "saga-pd", faults=whole)


def test_other_things_than_faults_are_refused():
    with pytest.raises(MethodError, match="give edgewise"):
        solve({"drop": 0.2})
    stream = ew.Problem(ew.Stream(lambda *_: SHARDS[0], SHARDS), ew.Squared())
    with pytest.raises(MethodError, match="this problem has a stream"):
        ew.solve(stream, GRAPH, "spd", faults=ew.Faults(drop=0.1))


@pytest.mark.parametrize("given", [{"drop": 0.1}, {"awake": 0.5}, {"wipe": (1, 3)}, {"keep": 0.1}])
def test_methods_that_do_not_heal_say_so(given):
    with pytest.warns(FaultWarning, match="EXTRA does not heal"):
        under_faults(make("pg-extra"), ew.Faults(**given), PROBLEM, GRAPH)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        under_faults(make("pg-extra"), ew.Faults(), PROBLEM, GRAPH)
        for method in ("saga-pd", "pdmm"):
            assert under_faults(make(method), ew.Faults(**given), PROBLEM, GRAPH).heals


@pytest.mark.parametrize("method", ["saga-pd", "pdmm", "nids"])
def test_nobody_is_exact_without_feedback(method):
    with pytest.warns(FaultWarning, match="every method away from the optimum"):
        under_faults(make(method), ew.Faults(bits=8, feedback=False), PROBLEM, GRAPH)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        under_faults(make(method), ew.Faults(bits=8), PROBLEM, GRAPH)
