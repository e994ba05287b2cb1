"""Couplings between peers, in one process: the simulator's iterates, and CVXPY's optimum."""

import asyncio
import copy
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from coupled_cases import Case, case, same, solve_by_cvxpy, with_data
from memory_peers import MemoryPeers, run

import edgewise as ew
from edgewise.methods.quadratic_prox import MOST_UNKNOWNS
from edgewise.peers.config.between import term_of
from edgewise.peers.config.peer_config import Fit, save
from edgewise.peers.coupled_mesh import create_coupled
from edgewise.peers.node.own_edges import difference, own_edge
from edgewise.peers.transport.frames import MessageFormat

pytestmark = pytest.mark.filterwarnings("ignore:.*has one neighbour")


def mesh(folder, made, fit):
    return create_coupled(folder, made.problem(), made.graph(), made.between(), fit)


@pytest.mark.parametrize(
    "name",
    [
        "inequalities",  # of 1 to 4 unknowns
        "lasso",
        # rows = and <=, budgets, a cost without curvature
        pytest.param("dispatch", marks=pytest.mark.exhaustive),
        pytest.param("both", marks=pytest.mark.exhaustive),
        pytest.param("shared", marks=pytest.mark.exhaustive),
    ],
)
def test_strict_peers_take_the_simulators_steps(name, tmp_path, monkeypatch):
    made, rounds = case(name), 40
    fit = Fit(mode="strict", rounds=rounds)
    peers = MemoryPeers(mesh(tmp_path / "m", made, fit), monkeypatch)

    async def peers_run():
        peers.start(*range(len(made.nodes)))
        return await peers.results()

    found = run(peers_run())
    alike = ew.solve(made.problem(), made.graph(), between=made.between(), rounds=rounds)
    for i, x in enumerate(alike.X):
        np.testing.assert_allclose(found[i].x, x, rtol=0, atol=1e-11)
    calls = [found[i].trace["oracle_calls"][-1] for i in found]
    assert np.mean(calls) == alike.trace["oracle_calls"][-1]
    for i, j in made.edges:  # messages are of each edge's own rows
        m = sum(len(t.c) for t in made.terms if {t.i, t.j} == {i, j})
        assert peers.peers[i].links[j].format == MessageFormat(1, 3 * m + 1, "float64")
        assert len(found[i].multipliers[j]) == len(found[j].multipliers[i]) == m


def test_a_peer_takes_newtons_steps_by_its_own_size(tmp_path, monkeypatch):
    """So it is in the simulator, where a longer model of another node makes all of them longer."""
    rng = np.random.default_rng(6)
    nodes = [with_data(rng, n, "logistic", cost=False) for n in (3, 4, MOST_UNKNOWNS + 1)]
    terms = [same(i, j, nodes, [0, 1], "2", weight=0.05) for i, j in ((0, 1), (1, 2), (0, 2))]
    made = Case(nodes, terms, loss="logistic", ridge=0.1)
    fit = Fit(mode="strict", rounds=12)
    peers = MemoryPeers(mesh(tmp_path / "m", made, fit), monkeypatch)

    async def peers_run():
        peers.start(0, 1, 2)
        return await peers.results()

    found = run(peers_run())
    whole = ew.solve(made.problem(), made.graph(), between=made.between(), rounds=12)
    for i, x in enumerate(whole.X):
        np.testing.assert_allclose(found[i].x, x, rtol=0, atol=1e-11)
    calls = [found[i].trace["oracle_calls"][-1] for i in range(3)]
    assert np.mean(calls) == whole.trace["oracle_calls"][-1]
    assert max(calls[:2]) < calls[2]  # few steps where they are Newton's


def apart(found, X):
    return max(np.abs(found[i].x - x).max() for i, x in enumerate(X) if x is not None)


def test_one_that_is_killed_goes_on_and_all_come_to_cvxpys_optimum(tmp_path, monkeypatch):
    made = case("inequalities")
    fit = Fit(tol=1e-9, rounds=10**6, patience=0.2)
    peers = MemoryPeers(mesh(tmp_path / "m", made, fit), monkeypatch)

    async def peers_run():
        peers.start(*range(len(made.nodes)))
        await peers.until_round(2, 25)
        await peers.kill(2)
        await peers.until_round(1, peers.peers[1].round + 15)
        peers.start(2)
        return await peers.results()

    found = run(peers_run())
    assert peers.peers[2].seconds_before > 0, "no checkpoint was taken up"
    assert apart(found, made.optimum.X) < 1e-6
    whole = np.sqrt(sum(found[i].violation ** 2 for i in found))
    assert whole < 1e-8
    assert sum(found[i].trace["objective"][-1] for i in found) == pytest.approx(
        made.optimum.objective, abs=1e-6
    )
    terms = {(min(t.i, t.j), max(t.i, t.j)): k for k, t in enumerate(made.terms)}
    for (i, j), k in terms.items():
        for one, other in ((i, j), (j, i)):
            kept = np.load(peers.configs[one].out / "model.npz")[f"multipliers_{other}"]
            assert np.array_equal(kept, found[one].multipliers[other])
            np.testing.assert_allclose(kept, made.optimum.multipliers[k], atol=1e-5)


def test_who_is_dropped_comes_back_and_what_an_edge_carries_changes(tmp_path, monkeypatch):
    made, everyone = case("inequalities"), range(5)
    fit = Fit(rounds=10**8, patience=0.1)
    peers = MemoryPeers(mesh(tmp_path / "m", made, fit), monkeypatch, drop_after=0.7)
    for config in peers.configs.values():
        save(config)

    def changed(between, other):
        """c of one row is another."""
        told = copy.deepcopy(between)
        told[other]["c"][0] -= 0.25
        return told

    later = Case(made.nodes, list(made.terms))
    t = later.terms[0]
    assert (t.i, t.j) == (0, 1)
    later.terms[0] = t._replace(c=t.c - np.array([0.25, 0]))

    async def at_rest(ids, around):
        """Until these take their steps with as many neighbours, and rest."""
        async with asyncio.timeout(300):
            while [len(getattr(peers.peers[i], "members", ())) for i in ids] != around:
                await asyncio.sleep(0.05)
            came_to = {i: peers.round(i) for i in ids}
            while any(
                peers.round(i) < came_to[i] + 60 or peers.peers[i].residual > 1e-10 for i in ids
            ):
                await asyncio.sleep(0.05)
        return [np.asarray(peers.peers[i].carry[0].X)[0] if i in ids else None for i in everyone]

    async def peers_run():
        peers.start(*everyone)
        whole = await at_rest(everyone, [2] * 5)
        await peers.kill(4)
        rest = await at_rest([0, 1, 2, 3], [1, 2, 2, 1])
        config, other = peers.configs[0], peers.configs[1]
        save(replace(config, between=changed(config.between, "1")))
        save(replace(other, between=changed(other.between, "0")))
        peers.start(4)
        while peers.peers[0].config == config or peers.peers[1].config == other:
            await asyncio.sleep(0.05)
        last = await at_rest(everyone, [2] * 5)
        for i in everyone:
            await peers.kill(i)
        return whole, rest, last

    whole, rest, last = run(peers_run())
    without = solve_by_cvxpy(made, [0, 1, 2, 3])
    assert max(np.abs(a - b).max() for a, b in zip(whole, later.optimum.X, strict=True)) > 1e-2
    for X, expected in ((whole, made.optimum), (rest, without), (last, later.optimum)):
        for x, y in zip(X, expected.X, strict=True):
            assert (x is None) == (y is None)
            assert x is None or np.abs(x - y).max() < 1e-6


# --- what neighbours compare ----------------------------------------------------------------------

SAME = "make them the same in both TOML files"


def told(me, *given):
    """What the end of the edge between 1 and 2 says of it, of a model of 3 unknowns."""
    terms = [term_of(part, Path(), "here") for part in given]
    return own_edge(terms, me, 3 - me, 3).told


ROW, OTHER = [[1.0, 0, 2]], [[0.0, 3, 0]]
TWICE = {"A": ROW + ROW, "c": [1.0, 2.0], "sense": ["=", "<="]}


@pytest.mark.parametrize(
    ("mine", "theirs", "said"),
    [
        (["lasso:0.1"], ["lasso:0.1"], ""),
        ([TWICE], [TWICE], ""),
        ([{"A": ROW, "other": OTHER, "c": 1.0}], [{"A": OTHER, "c": [1.0]}], ""),
        (["shared:0,2"], ["equal"], f"peer 2 has 3 rows on this edge, this peer 2: {SAME}"),
        (
            ["lasso:0.1"],
            ["lasso:0.2"],
            "peer 2 has lasso:0.2 in row 0 of this edge, this peer lasso:0.1: " + SAME,
        ),
        (
            [TWICE],
            [TWICE | {"sense": "<="}],
            "peer 2 has <= in row 0 of this edge, this peer =: " + SAME,
        ),
        (
            [TWICE],
            [TWICE | {"c": [1.0, 4.0]}],
            "peer 2 has c = 4.0 in row 1 of this edge, this peer c = 2.0: " + SAME,
        ),
        (
            ["shared:0,2"],
            ["shared:0,1"],
            "peer 2 has another matrix on this edge than this peer's TOML says: correct one of the "
            "two",
        ),
        (
            [{"A": ROW}],
            [{"A": ROW, "other": OTHER}],
            "peer 2 is told of another matrix on this edge than this peer has: correct one of the "
            "two TOML files",
        ),
        (
            [{"A": [[1.0, 0, 0]] * 101, "c": 1.0}],
            [{"A": [[1.0, 0, 0]] * 101, "c": 2.0}],
            f"c differs on the edge to peer 2, which has 101 rows: {SAME}",
        ),
    ],
)
def test_what_differs_between_two_ends_is_named(mine, theirs, said):
    heard = json.loads(json.dumps(told(2, *theirs)))
    assert difference(2, told(1, *mine), heard) == said


def test_what_a_neighbour_says_may_be_anything():
    mine = told(1, "lasso:0.1")
    assert "peer 2 has couplings on its edges and this peer none" in difference(2, None, mine)
    assert "this peer has couplings on its edges and peer 2 none" in difference(2, mine, None)
    for theirs in (3, [], {}, {"rows": 3}, mine | {"parts": [3]}, mine | {"parts": None}):
        assert "peer 2 says nothing usable of what" in difference(2, mine, theirs)
    many = mine | {"rows": "\n" * 500}
    assert "\n" not in difference(2, mine, many)
    assert len(difference(2, mine, many)) < 250


def test_peers_that_differ_stop_and_say_why(tmp_path, monkeypatch):
    made = case("inequalities")
    created = mesh(tmp_path / "m", made, Fit())
    config = created.peers[1]
    between = copy.deepcopy(config.between)
    between["0"]["c"][1] += 0.5
    created.peers[1] = replace(config, between=between)
    peers = MemoryPeers(created, monkeypatch)

    async def peers_run():
        peers.start(0, 1)
        return await asyncio.gather(*peers.tasks.values(), return_exceptions=True)

    said = [str(each) for each in run(peers_run())]
    c, other = config.between["0"]["c"][1], between["0"]["c"][1]
    for who, (has, own) in ((0, (other, c)), (1, (c, other))):
        words = f"peer {1 - who} has c = {has} in row 1 of this edge, this peer c = {own}: {SAME}"
        assert said[who] == words
