"""What CUDA kernels are held to: problems, methods, and the plain rounds' state."""

import jax
import numpy as np
from uneven import problem_of as uneven_problem

import edgewise as ew

GRAPH = ew.Graph.random(5, 7, seed=1)


def problem_of(n=150, nodes=5, **options):
    return uneven_problem(n, nodes, **{"penalty": ew.L1(1e-3), **options})


def alike(plain, ours, tolerance=1e-12):
    assert np.abs(plain[0].X).max() > 1e-3  # it moved
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=tolerance), plain, ours)
    kinds = (jax.tree.map(lambda a: a.dtype, end) for end in (plain, ours))
    assert next(kinds) == next(kinds)


METHODS = {
    "saga": ew.PrimalDual(ew.SAGA()),
    "saga of more than some have, edge": ew.PrimalDual(ew.SAGA(batch=5), form="edge"),
    "svrg of 2, may stop": ew.PrimalDual(ew.SVRG(batch=2, stop=0.3)),
    "svrg, edge": ew.PrimalDual(ew.SVRG(first=3, longest=9), form="edge"),
    "plain svrg": ew.PrimalDual(ew.gradients.PlainSVRG()),
    "loopless": ew.PrimalDual(ew.LSVRG(batch=2)),
    "local saga": ew.PrimalDual(ew.SAGA(), local="auto"),
    "local svrg, may stop": ew.PrimalDual(ew.SVRG(stop=0.6, first=3), local=9),
}


def rounds_of(method):
    return 24 if method.local is None else 6
