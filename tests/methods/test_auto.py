"""`method="auto"` is the default everywhere, chooses by what all nodes know, and says why."""

import inspect
import logging
from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest

import edgewise as ew
from edgewise import errors, spec
from edgewise.cli.network_options import InitOptions
from edgewise.cli.options import SolveOptions, TuneOptions
from edgewise.methods.auto import CUSTOM, LOCAL, MOST_UNKNOWNS, NEWTON, STREAMING, by_rule, choose
from edgewise.peers.config.peer_config import Fit
from edgewise.peers.node.handshake import agreed
from edgewise.peers.node.supported_methods import method_of, settled
from edgewise.sklearn import DecentralizedLasso, DecentralizedLogisticRegression, DecentralizedModel

RNG = np.random.default_rng(0)
GRAPH = ew.Graph.ring(3)


def problem(features=2, samples=6, loss=None, **more):
    X = RNG.standard_normal((samples, features))
    shards = ew.split(X, np.sign(X[:, 0]), nodes=3)
    return ew.Problem(shards, ew.Logistic(ridge=0.1) if loss is None else loss, **more)


@pytest.mark.parametrize(
    ("known", "name", "because"),
    [
        ({}, NEWTON, "31 unknowns fit a 31 x 31 matrix per node"),
        ({"unknowns": 1}, NEWTON, "1 unknown fits"),
        ({"unknowns": MOST_UNKNOWNS}, NEWTON, "1,000 unknowns fit"),
        ({"unknowns": MOST_UNKNOWNS + 1}, LOCAL, "1,001 unknowns are too many"),
        ({"unknowns": 7850, "outputs": 10}, NEWTON, "785 unknowns of a class fit a 785 x 785"),
        ({"unknowns": 10_010, "outputs": 10}, LOCAL, "1,001 unknowns of a class are too many"),
        ({"unknowns": 7850, "outputs": 10, "matrices": 100}, LOCAL, "would take 5.42 GB"),
        ({"unknowns": 500, "matrices": 10_000}, LOCAL, "would take 20 GB"),
        ({"linear": False}, CUSTOM, "no function of margins"),
        ({"wanted": "eta"}, LOCAL, "eta is asked for"),
        ({"streams": True}, STREAMING, "from a stream"),
    ],
)
def test_the_rule(known, name, because):
    chosen, why = by_rule(**{"unknowns": 31, "linear": True, "streams": False} | known)
    assert chosen == name
    assert because in why


def test_it_is_the_default_everywhere():
    for call in (ew.solve, ew.tune):
        assert inspect.signature(call).parameters["method"].default == "auto"
    for options in (SolveOptions, TuneOptions, InitOptions, Fit):
        assert {f.name: f.default for f in fields(options)}["method"] == "auto"
    for model in (DecentralizedLasso, DecentralizedLogisticRegression, DecentralizedModel):
        assert model().method == "auto"


def test_what_was_chosen_is_told(caplog):
    caplog.set_level(logging.INFO, "edgewise")
    result = ew.solve(problem(), GRAPH, rounds=2, reference=False)
    note = f"auto: {NEWTON}, because 2 unknowns fit a 2 x 2 matrix per node"
    assert result.method_note == result.trace.meta["method_note"] == note
    assert note in repr(result)
    assert note in caplog.messages
    named = ew.solve(problem(), GRAPH, NEWTON, rounds=2, reference=False)
    assert named.method_note == ""


def test_a_stream_falls_back_and_says_so():
    def draw(node, size, generator):
        rows = generator.standard_normal((size, 2))
        return rows, rows[:, 0]

    stream = ew.Stream(draw, ew.split(*draw(0, 12, RNG), nodes=3))
    result = ew.solve(ew.Problem(stream, ew.Squared()), GRAPH, rounds=2, reference=False)
    assert result.method_note.startswith(f"auto: {STREAMING}, because samples come from a stream")
    assert isinstance(result.method.gradient, ew.SGD)


def test_steps_and_settings_are_of_a_method():
    given = choose("auto", problem(), GRAPH, eta=0.25, rho="auto")
    assert given.name == LOCAL
    assert given.method.eta == 0.25
    assert choose("auto", problem(), GRAPH, eta="auto").name == NEWTON
    assert choose("auto", problem(), GRAPH, tunable=True).method.tunes
    with pytest.raises(errors.MethodError, match="auto is yet to choose: name one"):
        spec.method("auto", ["batch=4"])


@pytest.mark.parametrize("features", [2, MOST_UNKNOWNS + 1])
def test_peers_choose_alike_from_other_data(features):
    """By what they compare when they meet, in which the name stands and not the word auto."""
    fit = Fit(ridge=0.1, classes=(-1, 1))
    config = SimpleNamespace(agreed=lambda: {"method": "auto", "set": []})
    told = []
    for samples in (9, 30):
        own = problem(features, samples)
        named, note = settled(fit, own)
        peer = SimpleNamespace(config=config, problem=own, settled_fit=named, edges={})
        told.append(agreed(peer))
        assert note.startswith(f"auto: {named.method}, because {features:,} unknowns")
        assert method_of(named, penalised=True).samples != 1, "it shows no single sample"
    assert told[0] == told[1]
    assert told[0]["method"] == (NEWTON if features == 2 else LOCAL)
    assert settled(replace(fit, method="pd"), own) == (replace(fit, method="pd"), "")
