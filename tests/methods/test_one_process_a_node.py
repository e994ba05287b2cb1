"""One process a node: the same method objects, each with its own rows and links only, messages
through a dict as they would go over a wire, give the simulator's iterates."""

from functools import partial

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest
from literal import QUICK, make_case
from program_constants import constants

import edgewise as ew
from edgewise.backend.random_bits import draw_bits
from edgewise.engines.simulator import Simulator, run_rounds
from edgewise.engines.wires import ReceivedMessages
from edgewise.methods.catalogue import make
from edgewise.problem.block import Links
from edgewise.problem.rows import Dense

CLOSE = 1e-12
ROUNDS, STRETCH, SEED = 30, 3, 11
# Degrees 1, 3, 2, 3, 1: nodes of one degree have one size, so that they share a program.
GRAPH = ew.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (1, 3)])
COUNTS = (2, 6, 5, 6, 2)

ESTIMATORS = {
    "full": lambda: ew.Full(),
    "saga": lambda: ew.SAGA(batch=3),
    "svrg": lambda: ew.SVRG(stop=0.6),
    "lsvrg": lambda: ew.LSVRG(),
    "page": lambda: ew.PAGE(batch=2),
    "asvrg": lambda: ew.ASVRG(batch=2, momentum=0.9, floor=0.2, length=3),
    "sega": lambda: ew.SEGA(batch=2),
}


# The others, one of each kind of message and phase.
BASELINES = {
    "d2": lambda: ew.D2(ew.SGD(batch=2)),
    "pg-extra": lambda: ew.EXTRA(ew.LSVRG(), proximal=True),
    "nids": lambda: ew.NIDS(ew.Full()),
    "tracking": lambda: ew.GradientTracking(ew.PlainSVRG(length=4)),
    "network-svrg": lambda: ew.NetworkDane(inner=3, batch=2),
    "pmgt": lambda: ew.PMGT(ew.SAGA(), depth=2),
    "opapc": lambda: ew.APAPC(depth=3),
    "push-saga": lambda: make("push-saga"),
    "acc-vr-extra": lambda: ew.AccVRExtra(batch=2),
    "edge": lambda: make("edge"),
    "sdcs": lambda: make("sdcs"),
    "pdmm": lambda: make("pdmm"),
    "d-admm": lambda: make("d-admm"),
    "local": lambda: ew.PrimalDual(ew.SAGA(batch=2), local="auto"),
    "newton-pd": lambda: make("newton-pd"),
}


def primal_dual(case, gradient, form):
    return ew.PrimalDual(gradient, eta=case.eta, rho=case.rho, form=form)


def simulator(case, method):
    made = Simulator(case.problem, case.graph, method, SEED, np.dtype("float64"))
    made.unroll, made.options = 1, {**made.options, **QUICK}
    return made


def alone(block, i, own, graph):
    """What node i has of the block: its samples `own`, its edges, its penalty, and no more."""
    mine = np.flatnonzero(np.asarray(block.links.owner) == i)
    rho, mixing = (None if w is None else np.asarray(w)[mine] for w in block.links[1:3])
    links = Links(
        owner=np.zeros(len(mine), np.int32),
        rho=rho,
        mixing=mixing,
        total=None if rho is None else np.array([[rho.sum()]]),
        slots=np.arange(len(mine), dtype=np.int32)[None],
    )
    K = own.stop - own.start
    mine = block._replace(
        ids=np.array([i], np.int32),
        first=np.zeros(1, np.int64),
        counts=np.array([K]),
        rows=Dense(block.rows.values[own], K),
        labels=block.labels[own],
        scale=None if block.scale is None else block.scale[own],
        penalty=jax.tree.map(lambda a: a[i : i + 1], block.penalty),
        links=links,
    )
    return jax.tree.map(jnp.asarray, mine)


@partial(jax.jit, compiler_options=QUICK)
def begin(method, p, X):
    return method.init(p, X, None)


@partial(jax.jit, static_argnames="phase", compiler_options=QUICK)
def turn(method, p, state, own, heard, words, phase):
    """One step of one node."""
    inbox = ReceivedMessages(heard).deliver(method.hears, p.links, own)
    return getattr(method, phase)(p, state, inbox, words)


@partial(jax.jit, compiler_options=QUICK)
def look(method, p, state, own, heard):
    inbox = ReceivedMessages(heard).deliver(method.hears, p.links, own)
    duals = method.duals(p.links, state, inbox, own)
    return method.answer(state), duals, state.memory.calls


def split(case, sim, rounds, stretch):
    """{round: {node: (answer, duals, calls)}} of separate nodes."""
    nodes, V = {}, case.graph.nodes
    for i in range(V):
        method = jax.tree.map(lambda a, i=i: a[i : i + 1] if a.ndim else a, sim.method)
        nodes[i] = (method, alone(sim.block, i, case.problem.own(i), case.graph))
    seed = jax.random.key(SEED)
    state, out, wire, kept = {}, {}, {}, {}

    def post(i):
        """An edge's own message to each neighbour, or the same vector to all."""
        for s, j in enumerate(case.graph.neighbours(i).tolist()):
            wire[i, j] = [
                np.array(o[s] if kind == "each" else o[0])
                for kind, o in zip(sim.method.hears, out[i], strict=True)
            ]

    def mail(i):
        vectors = [wire[j, i] for j in case.graph.neighbours(i).tolist()]
        return tuple(np.stack(v) for v in zip(*vectors, strict=True))

    def keep(t):
        kept[t] = {
            i: tuple(np.array(a)[0] for a in look(m, p, state[i], out[i], mail(i)))
            for i, (m, p) in nodes.items()
        }

    for i, (m, p) in nodes.items():
        state[i], out[i] = begin(m, p, jnp.asarray(case.X0[i : i + 1]))
        post(i)
    keep(0)
    phases = sim.method.phases
    for r in range(rounds):
        new = {}
        for i, (m, p) in nodes.items():
            words = draw_bits(seed, p.ids, jnp.array([r]), m.random_draws)[0]
            new[i] = turn(m, p, state[i], out[i], mail(i), words, phases[r % len(phases)])
        for i in nodes:
            state[i], out[i] = new[i]
            post(i)
        if (r + 1) % stretch == 0:
            keep(r + 1)
    return kept


FORMS = [(name, "node") for name in ESTIMATORS] + [("saga", "edge"), ("svrg", "edge")]
# a table, epochs, and momentum; then pulls and messages of an edge's own, one phase and several
QUICK_FORMS = {("saga", "node"), ("svrg", "edge"), ("asvrg", "node")}
QUICK_BASELINES = {"pmgt", "sdcs", "pg-extra", "pdmm"}


@pytest.mark.quick_if(lambda name, form: (name, form) in QUICK_FORMS)
@pytest.mark.parametrize(("name", "form"), FORMS)
def test_nodes_on_their_own_give_the_simulators_iterates(name, form):
    case = make_case(counts=COUNTS, graph=GRAPH, intercept=True, weighted=True)
    agree(case, primal_dual(case, ESTIMATORS[name](), form), ROUNDS, STRETCH)


@pytest.mark.quick_if(lambda name: name in QUICK_BASELINES)
@pytest.mark.parametrize("name", BASELINES)
def test_so_do_those_of_the_other_methods(name):
    method = BASELINES[name]()
    penalty = "l1" if method.takes_penalty else "none"
    case = make_case(counts=COUNTS, graph=GRAPH, intercept=True, weighted=True, penalty=penalty)
    agree(case, method, 12, 4)


def agree(case, method, rounds, stretch):
    with jax.enable_x64(True):
        sim = simulator(case, method)
        kept = split(case, sim, rounds, stretch)
        carry = sim.start(case.X0, None)
        for t in range(0, rounds + 1, stretch):
            if t:
                carry, _ = sim.advance(carry, t - stretch, stretch)
            X, duals, calls = map(np.array, (*sim.view(carry), carry[0].memory.calls))
            for i in range(case.graph.nodes):
                x, dual, called = kept[t][i]
                assert np.abs(x - X[i]).max() <= CLOSE, (t, i)
                assert np.abs(dual - duals[i]).max() <= CLOSE, (t, i)
                assert called == calls[i], (t, i)
    assert np.abs(X - case.X0).max() > 0.05, "nothing moves: this shows nothing"


def test_words_depend_on_seed_node_and_round_alone():
    with jax.enable_x64(True):
        whole = np.asarray(draw_bits(jax.random.key(4), jnp.arange(5), jnp.arange(10), 3))
        for i in (0, 3):
            for r in (0, 7):
                mine = draw_bits(jax.random.key(4), jnp.array([i]), jnp.array([r]), 3)
                assert (np.asarray(mine)[0, 0] == whole[r, i]).all()
        fewer = np.asarray(draw_bits(jax.random.key(4), jnp.arange(5), jnp.arange(10), 1))
        other = np.asarray(draw_bits(jax.random.key(5), jnp.arange(5), jnp.arange(10), 3))
    assert (fewer[..., 0] == whole[..., 0]).all()
    assert len(np.unique(whole)) == whole.size
    assert not np.isin(other, whole).any()


@pytest.mark.parametrize("form", ["node", "edge"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_programs_hold_no_data(name, form):
    case = make_case(counts=COUNTS, graph=GRAPH, penalty="none", features=50)
    with jax.enable_x64(True):
        sim = simulator(case, primal_dual(case, ESTIMATORS[name](), form))
        X = jnp.asarray(case.X0)
        init = jax.make_jaxpr(lambda m, p, X: m.init(p, X, None))(sim.method, sim.block, X)
        carry = jax.eval_shape(lambda m, p, X: m.init(p, X, None), sim.method, sim.block, X)
        noise = jnp.zeros((4, 1, case.graph.nodes, sim.method.random_draws), jnp.uint32)
        steps = jax.make_jaxpr(partial(run_rounds, unroll=1))(
            sim.method, sim.network, sim.block, carry, noise, None
        )
    for program in (init, steps):
        large = [s for s in constants(program, []) if np.prod(s) >= 5]
        assert not large, f"compiled in: {large}"


def test_captured_data_would_be_found():
    data = jnp.zeros((30, 4))
    inner = jax.jit(lambda x: (data @ x).sum())
    program = jax.make_jaxpr(lambda x: jax.lax.fori_loop(0, 3, lambda i, s: s + inner(x), 0.0))
    assert (30, 4) in constants(program(jnp.ones(4)), [])
