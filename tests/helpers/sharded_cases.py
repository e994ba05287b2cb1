"""Runs on 8 host devices, which must be asked for before JAX starts: test_devices.py does, and
reads what this prints, a line of JSON per case."""

import json
import re
import sys
from pathlib import Path

import jax
import numpy as np
import scipy.sparse as sp
from coupled_grid import coupled_parts
from news_method import Bulletin

import edgewise as ew
from edgewise.engines.devices import SeveralDevices, bytes_between_devices
from edgewise.engines.simulator import Simulator
from edgewise.methods.catalogue import make

FLOAT64 = np.dtype("float64")
RANDOM, RING, GRID = ew.Graph.random(11, 20, seed=1), ew.Graph.ring(9), ew.Graph.grid(3, 4)
STAR = ew.Graph.from_edges([(0, i) for i in range(1, 70)])  # too many neighbours for slots
MIXED = [ew.L1(0.02), ew.NonNegative(), None, ew.Box(-0.1, 0.3)] * 3


def saga(form="node"):
    return ew.PrimalDual(ew.SAGA(batch=2), form=form)


# name: method, graph, devices, and what is special about the problem
CASES = {
    "saga-pd": (saga(), RANDOM, 8, {"penalty": ew.L1(0.02)}),
    "svr-pd": (make("svr-pd"), GRID, 4, {"penalty": MIXED}),
    "svr-pd-es": (make("svr-pd-es"), RING, 2, {"sparse": True}),
    "lsvr-pd": (make("lsvr-pd"), RANDOM, 8, {"sparse": True}),
    "asvr-pd": (make("asvr-pd"), RANDOM, 4, {"intercept": True, "offset": True}),
    "edge form": (saga("edge"), RANDOM, 8, {"penalty": MIXED[:11]}),
    "edge form, warm": (saga("edge"), GRID, 2, {"warm": True}),
    "radius": (ew.PrimalDual(ew.SAGA(batch=2), radius=0.05), RANDOM, 8, {"intercept": True}),
    "star": (saga(), STAR, 4, {}),
    "star, edge form": (saga("edge"), STAR, 4, {"equal": True}),
    "pg-extra": (make("pg-extra"), RANDOM, 2, {"penalty": ew.L1(0.02), "equal": True}),
    "gt-saga": (make("gt-saga"), RING, 4, {}),
    "pmgt, several phases": (ew.PMGT(ew.SAGA(), depth=2), RANDOM, 8, {"penalty": ew.L1(0.02)}),
    "network-dane": (make("network-dane"), RANDOM, 1, {}),
    "news": (Bulletin(), RANDOM, 8, {}),
    "newton-pd": (make("newton-pd"), RING, 2, {"penalty": ew.L1(0.02)}),
    "couplings": ("pdmm", GRID, 4, {"coupled": True}),
}


def build(graph, sparse=False, equal=False, warm=False, n=5, offset=False, **options):
    rng = np.random.default_rng(0)
    counts = np.full(graph.nodes, 6) if equal else rng.integers(2, 9, graph.nodes)
    X = rng.standard_normal((counts.sum(), n))
    y = np.sign(X @ rng.standard_normal(n) + 0.3 * rng.standard_normal(len(X)))
    if sparse:
        X = sp.csr_array(X * (rng.random(X.shape) < 0.4))
    if offset:
        options |= {"offset": rng.standard_normal(len(X)), "weights": "sample"}
    return ew.Problem(ew.Shards(X, y, counts), ew.Logistic(ridge=0.05), **options)


def spread(problem, graph, method, seed, devices):
    layout = SeveralDevices(problem, graph, FLOAT64, devices)
    return Simulator(problem, graph, method, seed, FLOAT64, layout)


def compare(method, graph, devices, special):
    """The largest difference from one device, in models, duals, oracle calls and bodies of news,
    how far the models went, and what was sent."""
    if special.get("coupled"):
        problem, method = coupled_parts(method)
    else:
        problem = build(graph, **special)
    rounds = 4 * len(method.phases)
    one = Simulator(problem, graph, method, 3, FLOAT64)
    several = spread(problem, graph, method, 3, jax.devices()[:devices])
    rng = np.random.default_rng(1)
    X, D = np.zeros((graph.nodes, problem.size)), None
    if special.get("warm"):
        X, D = rng.standard_normal((2, *X.shape))
        D -= D.mean(0)
    found = []
    for engine in (one, several):
        engine.unroll = 1
        carry = engine.start(X, D)
        for first in (0, rounds):
            carry, _ = engine.advance(carry, first, rounds)
        counts = engine.counts(carry, 2 * rounds)
        models, duals = map(np.array, engine.view(carry))
        if problem.couples:
            duals = np.asarray(engine.edge_report(carry).duals)
        found.append((models, duals, counts.oracle_calls, counts.bodies))
    apart = [float(np.abs(a - b).max()) for a, b in zip(*found, strict=True)]
    moved = float(np.abs(found[0][0] - X).max())
    return {"apart": apart, "moved": moved, **sent(several, carry, rounds // len(method.phases))}


def sent(engine, carry, steps):
    """Bytes that the engine says it sends in a step, and that its program's collectives carry."""
    program = engine.compiled_for(engine.arguments(carry, 0, steps), steps).as_text()
    shapes = re.findall(r"= f(32|64)\[(\d+),(\d+)\]\S* collective-permute\(", program)
    others = re.findall(r"all-to-all|all-gather|all-reduce|reduce-scatter", program)
    of_one = sum(int(m) * int(n) * int(bits) // 8 for bits, m, n in shapes)
    said = bytes_between_devices(engine) * len(engine.method.phases)
    return {"said": said, "carried": of_one * engine.layout.placement.devices, "others": others}


def placed():
    """Whether every device has its own nodes' rows, and no others."""
    problem = build(RANDOM)
    engine = spread(problem, RANDOM, saga(), 0, jax.devices()[:4])
    rows = engine.block.rows.values
    found = []
    for k, piece in enumerate(rows.addressable_shards):
        low, high = problem.shards.first[[0, 2, 5, 8]], [*problem.shards.first[[2, 5, 8]], None]
        own = problem.shards.X[low[k] : high[k]]
        here = np.asarray(piece.data)[0]
        found.append(bool((here[: len(own)] == own).all() and piece.device == jax.devices()[k]))
    return {
        "own": found,
        "most": max(np.add.reduceat(problem.counts, [0, 2, 5, 8])),
        "N": rows.shape[1],
    }


def whole_runs(folder):
    """`solve` with devices, in two parts, against `solve` without."""
    problem, path = build(RANDOM, penalty=MIXED[:11]), Path(folder) / "run.npz"
    settings = {"method": saga(), "record_every": 5, "reference": False}
    one = ew.solve(problem, RANDOM, rounds=20, **settings)
    ew.solve(problem, RANDOM, rounds=10, devices=4, checkpoint=path, **settings)
    settings["tol"] = float(one.trace["residual"][-1])
    several = ew.solve(problem, RANDOM, rounds=99, devices=4, checkpoint=path, **settings)
    assert one.trace["residual"].argmin() == len(one.trace["residual"]) - 1
    columns = ["rounds", "oracle_calls", "bytes_sent", "consensus", "residual"]
    return {
        "models": float(np.abs(one.X - several.X).max()),
        "steps": float(np.abs(one.method.eta - several.method.eta).max()),
        "duals": float(np.abs(one.duals - several.duals).max()),
        "trace": {c: [list(one.trace[c]), list(several.trace[c])] for c in columns},
    }


def main(part):
    """One half of it all: two processes share two cores better than one uses them."""

    def say(name, **found):
        print(json.dumps({"name": name, **found}, default=float), flush=True)

    with jax.enable_x64(True):
        for name in list(CASES)[part::2]:
            say(name, **compare(*CASES[name]))
        if part == 0:
            say("placed", **placed())
    if part == 1:
        say("whole runs", **whole_runs(sys.argv[2]))


if __name__ == "__main__":
    main(int(sys.argv[1]))
