"""News: heads with every message, bodies where they have changed, whoever loses what."""

import jax
import numpy as np
import pytest
from news_method import HEAD, Bulletin
from numpy.testing import assert_allclose
from sharded_cases import build

import edgewise as ew
from edgewise.engines.faulty_executor import FaultyExecutor
from edgewise.engines.simulator import Simulator

GRAPH = ew.Graph.random(6, 9, seed=1)
V, n, E = GRAPH.nodes, 5, GRAPH.edge_count
OWNER, OTHER = GRAPH.directed.owner, GRAPH.directed.other
LINK = GRAPH.edges[0].tolist()
HEAD_BYTES, BODY_BYTES = 4 * HEAD, 4 * (1 + n)
BUSY = {"drop": 0.3, "awake": 0.6}
# every five rounds, so that few programs are to be compiled
EVENTS = {"wipe": (2, 10), "leave": (1, 15), "join": [(4, 5), (1, 25)], "down": (*LINK, 5, 9)}


def solve(faults=None, method=None, rounds=30, **options):
    given = {"record_every": 5, "reference": False, **options}
    method = Bulletin() if method is None else method
    return ew.solve(build(GRAPH), GRAPH, method, rounds=rounds, faults=faults, **given)


@pytest.mark.parametrize(
    "given",
    [
        {**BUSY, **EVENTS},
        {**BUSY, **EVENTS, "delay": 3},
        {"awake": 0.5, "delay": 2, "patience": 2, **EVENTS},
        {"awake": 0.5, "bits": 4},
        {"drop": 0.2, "keep": 0.3, "bits": 4, "feedback": False},
    ],
    ids=["no delays", "delays", "patience", "bits", "few numbers, no feedback"],
)
def test_what_is_heard_is_the_last_head_and_the_last_body(given):
    """Against a mailbox that is told which messages arrived, and takes those of news apart."""
    faults, sent, late, whole = ew.Faults(**given), 0, 0, 0
    box, letters = np.zeros((2 * E, HEAD + 1 + n), np.float32), []
    with jax.enable_x64(True):
        made = FaultyExecutor(build(GRAPH), GRAPH, Bulletin(), 0, np.dtype("float64"), faults)
        carry = made.start(made.origin(), None)
        for t in range(30):
            made.set_network(t)
            carry = made.apply_events(carry, t, 1)
            come = np.isin(np.arange(V), [i for i, r in faults.join if r == t])
            anew = come | np.isin(np.arange(V), [i for i, r in faults.wipe if r == t])
            box[anew[OWNER] | come[OTHER]] = 0
            alive, up = map(np.array, (made.network.alive, made.network.up))
            sends = np.array(carry[2].fresh)[OTHER] & alive
            letters.append(np.array(carry[1][1])[OTHER])
            before = np.array(carry[2].stamp)
            carry, _ = Simulator.advance(made, carry, t, 1)
            state, _, mail = jax.tree.map(np.array, carry)
            new, letter = sends & up & ~mail.cut, letters[t]
            if faults.delay:
                new = mail.stamp > before
                letter = np.array(letters)[mail.stamp, np.arange(2 * E)]
                late += (new & (mail.stamp < t)).sum()
            changed = new & (letter[:, 0] == 1)
            box[new, :HEAD] = letter[new, :HEAD]
            box[changed] = letter[changed]
            assert np.array_equal(mail.heard[1], box), f"round {t}"
            if not faults.compresses:  # heads and the other vectors travel together
                heard = box[:, 1] > 0
                assert np.array_equal(mail.heard[0][heard, 0], box[heard, 1])
            stepped = mail.fresh[OWNER] if made.network.sleeps else np.ones(2 * E, bool)
            seen = np.where(alive[:, None], box[:, HEAD + 1 :], 0)
            assert np.array_equal(state.seen[stepped], seen[stepped].astype(np.float64))
            sent += (sends & (letters[t][:, 0] == 1)).sum()
            whole += sends.sum()
            assert made.counts(carry, t + 1).bodies.sum() == sent
    assert 0 < sent < 0.8 * whole, "some bodies go, and not all"
    assert late > 0 or not faults.delay


def test_bytes_are_of_heads_and_of_bodies_that_went():
    trace = solve().trace
    with jax.enable_x64(True):
        made = Simulator(build(GRAPH), GRAPH, Bulletin(), 0, np.dtype("float64"))
        carry, flags = made.start(made.origin(), None), []
        for t in range(30):
            flags.append(np.array(carry[1][1])[:, 0])
            carry, _ = made.advance(carry, t, 1)
    bodies = np.r_[0, (np.array(flags) @ GRAPH.degrees).cumsum()][::5]
    messages = 2 * E * trace["rounds"]
    assert list(trace["vectors_sent"]) == list(messages + bodies)
    assert list(trace["bytes_sent"]) == list(messages * (8 * n + HEAD_BYTES) + bodies * BODY_BYTES)
    assert 0 < bodies[-1] < messages[-1]


@pytest.mark.parametrize("method", [None, "newton-pd"])
def test_no_faults_change_nothing(method):
    calm, same = solve(None, method), solve(ew.Faults(), method)
    assert_allclose(calm.X, same.X, atol=1e-12, rtol=0)
    for column in ("oracle_calls", "vectors_sent", "bytes_sent"):
        assert list(calm.trace[column]) == list(same.trace[column])


def test_compression_spares_news():
    trace = solve(ew.Faults(bits=6)).trace
    bodies = trace["vectors_sent"] - 2 * E * trace["rounds"]
    message = np.ceil(6 * n / 8) + 3 + HEAD_BYTES
    assert_allclose(trace["bytes_sent"], 2 * E * trace["rounds"] * message + bodies * BODY_BYTES)


@pytest.mark.quick_if(lambda method, faults: method is None)
@pytest.mark.parametrize("faults", [None, {**BUSY, **EVENTS, "delay": 3}, {"bits": 6}])
@pytest.mark.parametrize("method", [None, "newton-pd"])
def test_a_run_goes_on_from_a_checkpoint(tmp_path, method, faults):
    faults, path = None if faults is None else ew.Faults(**faults), tmp_path / "run.npz"
    whole = solve(faults, method)
    solve(faults, method, rounds=20, checkpoint=path)
    rest = solve(faults, method, checkpoint=path)
    assert np.array_equal(rest.X, whole.X)
    for column in ("vectors_sent", "bytes_sent", "residual"):
        assert list(rest.trace[column]) == list(whole.trace[column])
