"""The faulty network: its books against a plain mailbox, its chances, its counts, its refusals."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from faults_numpy import replay
from numpy.testing import assert_allclose

import edgewise as ew
from edgewise.backend.random_bits import draw_bits
from edgewise.engines.faulty_executor import FaultyExecutor
from edgewise.methods.catalogue import make

V, n, RIDGE, L1 = 6, 4, 0.1, 0.02
COUNTS = (4, 9, 6, 12, 5, 8)
GRAPH = ew.Graph.random(V, 9, seed=1)
E = GRAPH.edge_count
DEGREE = GRAPH.degrees
LINK = GRAPH.edges[0].tolist()
HALF = 2.0**31


@cache
def parts():
    rng = np.random.default_rng(5)
    X = [rng.standard_normal((k, n)) + 0.3 * i for i, k in enumerate(COUNTS)]
    return [(x, np.where(x @ [1.0, -1.0, 0.5, 0.0] > 0.3, 1, -1)) for x in X]


@cache
def problem(penalised=True):
    penalty = ew.L1(L1) if penalised else ew.NoPenalty()
    return ew.Problem(parts(), ew.Logistic(ridge=RIDGE), penalty)


def solve(faults, method="saga-pd", rounds=60, **options):
    given = {"record_every": 5, "reference": False, **options}  # one length: fewer programs
    return ew.solve(problem(), GRAPH, method, rounds=rounds, faults=faults, **given)


def simulator(faults, method="saga-pd", dtype="float64"):
    """In edge form, and its first carry."""
    chosen = make(method)
    if not chosen.heals:
        chosen = ew.PrimalDual(chosen.gradient, form="edge")
    made = FaultyExecutor(problem(), GRAPH, chosen, 0, np.dtype(dtype), faults)
    return made, made.start(made.origin(), None)


# --- iterates -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"burst": 3, "nap": 4, "seed": 1},
        {"wipe": [(2, 7), (5, 11)], "down": (*LINK, 3, 9)},
        {"leave": (1, 5), "join": [(3, 8), (1, 19)]},
        {"patience": 2},
        {"patience": 3, "wipe": (2, 7), "down": (*LINK, 3, 9), "leave": (1, 5), "join": (3, 8)},
        {"patience": 2, "delay": 0, "seed": 1},
    ],
    ids=[
        "alone",
        "bursts and naps",
        "wipe and down",
        "leave and join",
        "patience",
        "patience, and those who come and go",
        "patience, no delays",
    ],
)
def test_iterates_are_those_of_a_plain_mailbox(given):
    faults, rounds = ew.Faults(**{"drop": 0.3, "awake": 0.6, "delay": 3, **given}), 30
    with jax.enable_x64(True):
        made, carry = simulator(faults, "pd")
        weights = np.asarray(made.all_links.rho)
        d = GRAPH.directed
        rho = dict(zip(zip(d.owner.tolist(), d.other.tolist(), strict=True), weights, strict=True))
        plain = list(replay(parts(), RIDGE, L1, faults, made.eta[:, 0], rho, rounds))
        for t, (X, sent) in enumerate(plain):
            carry, _ = made.advance(carry, t, 1)
            assert_allclose(made.view(carry)[0], X, atol=1e-12, rtol=0, err_msg=f"round {t}")
            assert made.sent(carry, t + 1) == sent
    assert np.abs(plain[-1][0] - plain[-2][0]).max() > 1e-6


def test_no_faults_change_nothing():
    with_network = solve(ew.Faults())
    edge = solve(None, ew.PrimalDual(ew.SAGA(), form="edge"))
    node = solve(None)
    assert (with_network.method.form, node.method.form) == ("edge", "node")
    assert_allclose(with_network.X, edge.X, atol=1e-12, rtol=0)
    assert_allclose(with_network.duals, edge.duals, atol=1e-12, rtol=0)
    assert_allclose(with_network.X, node.X, atol=1e-10, rtol=0)
    for column in ("oracle_calls", "vectors_sent", "bytes_sent"):
        assert list(with_network.trace[column]) == list(node.trace[column])


@pytest.mark.parametrize("method", ["gt-saga", "pmgt-lsvrg"])
def test_nor_do_they_to_methods_that_pull(method):
    smooth = problem(penalised=False)
    options = {"rounds": 32, "record_every": 32, "reference": False}
    calm = ew.solve(smooth, GRAPH, method, **options)
    same = ew.solve(smooth, GRAPH, method, faults=ew.Faults(), **options)
    assert_allclose(same.X, calm.X, atol=1e-12, rtol=0)
    assert list(same.trace["vectors_sent"]) == list(calm.trace["vectors_sent"])


# --- chances --------------------------------------------------------------------------------------


def spans(off):
    """Lengths of the stretches for which a column of (rounds, k) is on end true, the last left
    out."""
    found = []
    for column in off.T:
        edges = np.flatnonzero(np.diff(np.r_[0, column.astype(int)]))
        found += [b - a for a, b in zip(edges[::2], edges[1::2], strict=False)]
    return np.array(found)


@pytest.mark.parametrize(
    ("faults", "loss", "burst", "sleep", "nap"),
    [
        ({"drop": 0.2, "awake": 0.5}, 0.2, 1 / 0.8, 0.5, 2.0),
        ({"drop": 0.3, "burst": 10, "awake": 0.6, "nap": 5}, 0.3, 10.0, 0.4, 5.0),
    ],
)
def test_loss_and_sleep_are_as_asked(faults, loss, burst, sleep, nap):
    with jax.enable_x64(True):
        made, carry = simulator(ew.Faults(delay=3, **faults), "pd")
        edge_bits, node_bits = made.arguments(carry, 0, 20_000)[5]
        net, mail = made.network, carry[2]

        def play(was, now):
            cut = net.chances.cut.off(was[0], now[0][0, :, 0])
            asleep = net.chances.sleep.off(was[1], now[1][0])
            return (cut, asleep), (cut, asleep)

        cut, asleep = jax.lax.scan(play, (mail.cut, mail.asleep), (edge_bits, node_bits))[1]
        for t in range(12):  # the network does just that
            carry, _ = made.advance(carry, t, 1)
            assert np.array_equal(carry[2].cut, cut[t])
            assert np.array_equal(carry[2].asleep, asleep[t])
            assert np.array_equal(carry[2].fresh, ~asleep[t])
    for off, part, length in ((np.asarray(cut), loss, burst), (np.asarray(asleep), sleep, nap)):
        assert off.mean() == pytest.approx(part, rel=0.03)
        assert spans(off).mean() == pytest.approx(length, rel=0.04)
        apart = np.corrcoef(off.T) - np.eye(off.shape[1])
        assert np.abs(apart).max() < 0.08, "edges, or nodes, fail by themselves"


def test_delays_are_uniform_and_the_overtaken_are_thrown_away():
    """After a round the newest message along an edge is k rounds old or more where none of the
    last k has come: with chances 5/6, 5/6 4/6, ..."""
    rounds, delay = 400, 5
    with jax.enable_x64(True):
        made, carry = simulator(ew.Faults(delay=delay), "pd")
        stamps = []
        for t in range(rounds):
            carry, _ = made.advance(carry, t, 1)
            stamps.append(np.asarray(carry[2].stamp))
    stamps = np.array(stamps)
    assert (np.diff(stamps, axis=0) >= 0).all(), "no older message takes a newer one's place"
    age = np.arange(rounds)[delay:, None] - stamps[delay:]
    assert age.max() == delay
    expected = np.cumprod([(delay - k) / (delay + 1) for k in range(delay + 1)])
    seen = [(age > k).mean() for k in range(delay + 1)]
    assert_allclose(seen, expected, atol=0.03)


# --- counts ---------------------------------------------------------------------------------------


def test_who_sleeps_neither_calls_nor_sends():
    rounds = 60
    trace = solve(ew.Faults(awake=0.5, seed=2), rounds=rounds).trace
    key = jax.random.fold_in(jax.random.key(2), 1)
    words = np.asarray(draw_bits(key, jnp.arange(V), jnp.arange(rounds), 1)[..., 0])
    awake = words >= HALF
    calls = sum(COUNTS) + np.r_[0, awake.sum(1).cumsum()]
    assert_allclose(trace["oracle_calls"] * V, calls[::5])
    fresh = np.r_[[[True] * V], awake[:-1]]  # all have a first message
    assert list(trace["vectors_sent"]) == [0, *(fresh @ DEGREE).cumsum()[4::5]]


def test_who_is_away_is_not_counted():
    result = solve(ew.Faults(leave=(1, 20), join=(4, 35)))
    r = result.trace["rounds"]
    gone, late = np.maximum(r - 20, 0), np.minimum(r, 35)  # rounds away
    shared = [1, 4] in GRAPH.edges.tolist()
    lost = DEGREE[1] * gone + DEGREE[4] * late - shared * np.maximum(late - 20, 0)
    assert list(result.trace["vectors_sent"]) == list(2 * (E * r - lost))
    calls = sum(COUNTS) - COUNTS[4] * (r <= 35) + V * r - gone - late
    assert_allclose(result.trace["oracle_calls"] * V, calls)


@pytest.mark.parametrize(
    ("squeeze", "size"),
    [
        ({}, 8 * n),
        ({"bits": 6}, np.ceil(6 * n / 8) + 2 + 1),
        ({"bits": 6, "feedback": False}, np.ceil(6 * n / 8) + 2),
        ({"keep": 0.5}, 2 * (8 + 4)),
        ({"keep": 0.3, "bits": 6}, np.ceil(2 * 6 / 8) + 2 * 4 + 2 + 1),
    ],
)
def test_bytes_are_those_of_what_is_sent(squeeze, size):
    with jax.enable_x64(True):
        assert simulator(ew.Faults(**squeeze))[0].message_bytes == pytest.approx(size)


def test_bytes_are_of_all_messages():
    trace = solve(ew.Faults(bits=6), rounds=10).trace
    assert list(trace["vectors_sent"]) == [0, 2 * E * 5, 2 * E * 10]
    assert_allclose(trace["bytes_sent"], trace["vectors_sent"] * (np.ceil(6 * n / 8) + 3))


# --- events ---------------------------------------------------------------------------------------

BUSY = {"drop": 0.2, "awake": 0.7, "delay": 2}
# every five rounds, so that few programs are to be compiled
EVENTS = {"join": (4, 5), "wipe": (2, 10), "leave": (1, 15), "down": (*LINK, 5, 9)}


def test_events_come_in_their_rounds_however_often_is_recorded():
    faults = ew.Faults(**BUSY, **EVENTS)
    often, seldom = (solve(faults, rounds=20, record_every=k) for k in (3, 20))
    assert_allclose(often.X, seldom.X, atol=1e-13, rtol=0)
    other = ew.Faults(**BUSY, **{**EVENTS, "wipe": (2, 11)})
    assert np.abs(solve(other, rounds=20, record_every=3).X - often.X).max() > 1e-6


def test_an_event_in_round_r_is_when_r_rounds_are_over():
    calm = ew.Faults(**BUSY)
    for rounds, apart in ((10, False), (15, True)):
        X, wiped = (solve(f, rounds=rounds).X for f in (calm, ew.Faults(**BUSY, wipe=(2, 10))))
        assert (np.abs(X - wiped).max() > 1e-6) == apart


@pytest.mark.quick_if(lambda method: method == "svr-pd")
@pytest.mark.parametrize("method", ["saga-pd", "svr-pd", "sk-pd-fd"])
def test_a_wiped_node_forgets_all_but_its_counts(method):
    who, at = 2, 5
    with jax.enable_x64(True):
        made, first = simulator(ew.Faults(**BUSY, wipe=(who, at)), method)
        begun = jax.tree.map(np.asarray, first)
        before, _ = made.advance(first, 0, at)
        made.set_network(at)
        after = jax.tree.map(np.asarray, made.apply_events(before, at, 1))
        before = jax.tree.map(np.asarray, before)
    own = np.repeat(np.arange(V), COUNTS) == who
    for then, now, start in zip(
        *map(jax.tree.leaves, (before[0], after[0], begun[0])), strict=True
    ):
        mine = own if len(now) == sum(COUNTS) else np.arange(V) == who
        assert np.array_equal(now[~mine], then[~mine])
        if now.dtype.kind == "f":
            assert np.array_equal(now[mine], start[mine])
    assert not np.array_equal(before[0].X[who], begun[0].X[who])
    spent = [c for c in ("calls", "evaluations") if hasattr(before[0].memory, c)]
    for c in spent:
        counts = [getattr(a[0].memory, c) for a in (before, after, begun)]
        assert np.array_equal(counts[1], counts[0] + (np.arange(V) == who) * counts[2])
    mine = np.asarray(GRAPH.directed.owner) == who  # what it has heard, and what it says
    for k in (lambda c: c[2].heard[0], lambda c: c[1][0]):
        assert np.array_equal(k(after)[mine], k(begun)[mine])
        assert np.array_equal(k(after)[~mine], k(before)[~mine])
    assert (after[2].due[:, mine] == -1).all()
    assert np.array_equal(after[2].due[:, ~mine], before[2].due[:, ~mine])


def test_a_newcomer_starts_from_nothing():
    late = solve(ew.Faults(join=(4, 40)), rounds=40)
    assert not late.X[4].any()
    assert np.abs(np.delete(late.X, 4, 0)).max(1).min() > 0.01
    assert late.x == pytest.approx(np.delete(late.X, 4, 0).mean(0))
    assert np.abs(solve(ew.Faults(join=(4, 40)), rounds=45).X[4]).max() > 0.01


def test_a_run_goes_on_from_a_checkpoint(tmp_path):
    faults, path = ew.Faults(**BUSY, **EVENTS), tmp_path / "run.npz"
    whole = solve(faults, rounds=20)
    solve(faults, rounds=10, checkpoint=path)
    rest = solve(faults, rounds=20, checkpoint=path)
    assert np.array_equal(rest.X, whole.X)
    for column in ("vectors_sent", "oracle_calls", "residual"):
        assert list(rest.trace[column]) == list(whole.trace[column])
    with pytest.raises(ew.errors.CheckpointError, match="other faults:"):
        solve(ew.Faults(**{**BUSY, "drop": 0.21}, **EVENTS), rounds=20, checkpoint=path)


@pytest.mark.parametrize("given", [{**BUSY, **EVENTS}, {"bits": 6, "awake": 0.5}])
def test_float32(given):
    with jax.enable_x64(True):
        made, carry = simulator(ew.Faults(**given), dtype="float32")
        for t in range(0, 20, 5):
            carry, _ = made.advance(carry, t, 5)
        kinds = {a.dtype for a in jax.tree.leaves(carry) if a.dtype.kind == "f"}
    assert kinds == {np.dtype("float32")}
    X = solve(ew.Faults(**given), rounds=20).X
    # what float32 leaves out may tip a number to the next multiple of a unit
    assert_allclose(made.view(carry)[0], X, atol=1e-2 if "bits" in given else 1e-5)
