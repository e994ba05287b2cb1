"""An estimator asked with every draw that there is, from a memory that has been along a trail."""

from functools import cache, partial
from math import lcm, prod

import jax
import jax.numpy as jnp
import literal
import numpy as np
from literal import make_case

import edgewise as ew
from edgewise.backend.random_bits import draw_bits
from edgewise.engines.wires import connect

COUNTS = (3, 4, 6)  # small enough to enumerate
NEVER = 2**32 - 1  # a coin word that is heads only for a probability of one

PROBLEMS = {
    "logistic": {"loss": "logistic", "weighted": True, "intercept": True},
    "multinomial": {"loss": "multinomial", "weighted": True, "intercept": True},
    "custom": {"loss": "bilinear", "weighted": True},
}
KINDS = [(name, kind, b) for name in PROBLEMS for kind, b in (("dense", 1), ("sparse", 2))]


@cache
def setting(name, kind):
    """A problem, its literal nodes, and its block of three nodes."""
    case = make_case(
        **PROBLEMS[name],
        sparse=kind == "sparse",
        counts=COUNTS,
        graph=ew.Graph.path(3),
        penalty="none",
        features=3,
    )
    with jax.enable_x64(True):
        links, _ = connect(case.graph, {"rho": case.rho}, np.float64)
        return case, case.problem.block(links, np.float64)


def word(k, bound):
    """The least word that draws k from 0..bound-1."""
    return -(-k * 2**32 // bound)


def every_draw(counts, batch):
    """(D, v, b) words: all equally likely draws at each node, repeated to a common number."""
    bounds = [[K - min(batch, K) + j + 1 for j in range(min(batch, K))] for K in counts]
    D = lcm(*(prod(b) for b in bounds))
    words = np.zeros((D, len(counts), batch), np.uint32)
    for i, bound in enumerate(bounds):
        for at in range(D):
            rest = at
            for j, b in enumerate(bound):
                rest, digit = divmod(rest, b)
                words[at, i, j] = word(digit, b)
    return words


def models(case, seed):
    return 0.5 * np.random.default_rng(seed).normal(size=case.X0.shape)


def exact(case, X):
    return np.array([case.node(i).uncounted(x) for i, x in enumerate(X)])


@partial(jax.jit, compiler_options=literal.QUICK)
def visit(gradient, p, start, trail, noise, X, words):
    """Gradients at X for each of many words, from a memory that has been along a trail: some
    slopes stale, some epochs under way."""

    def step(memory, now):
        return gradient(p, now[0], memory, now[1])[1], None

    memory = jax.lax.scan(step, gradient.init(p, start), (trail, noise))[0]
    return jax.lax.map(lambda w: gradient(p, X, memory, w), words), memory


def over_all(gradient, p, case, words, steps=3, trail=None):
    """(D, v, n) gradients at models(case, 1), the memories after them, and the one before."""
    with jax.enable_x64(True):
        if trail is None:
            trail = np.array([models(case, 20 + t) for t in range(steps)])
        noise = draw_bits(jax.random.key(9), p.ids, jnp.arange(len(trail)), gradient.random_draws)
        args = (p, models(case, 7), trail, noise, models(case, 1), words)
        (G, after), before = visit(gradient, *jax.tree.map(jnp.asarray, args))
        return jax.tree.map(np.asarray, (G, after, before))
