"""What a peer that reads an npz holds in memory: no library that it does not use, and no traces."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from paths import ROOT
from quick_compiles import SETTINGS

# 25 MB (scipy.optimize) to 100 MB each
UNUSED = [
    "IPython",
    "jax.experimental.sparse",
    "matplotlib",
    "narwhals",
    "networkx",
    "onnx",
    "optax",
    "pandas",
    "polars",
    "pyarrow",
    "pydantic",
    "scipy.optimize",
    "scipy.stats",
    "sklearn",
]
PROGRAM = """
import json, sys
from pathlib import Path
from types import SimpleNamespace

import edgewise.cli.app
import edgewise.cli.node
from edgewise.backend.memory import forget_compiling
from edgewise.peers.operations.metrics import Metrics
import memory_peers
import numpy as np
from edgewise.graph.graph import Graph
from edgewise.peers.config.peer_config import Fit
from edgewise.peers.operations import mesh

patch = SimpleNamespace(setattr=setattr)
fit = Fit(ridge=0.1, classes=(-1.0, 1.0), tol=1e-9, rounds=10_000)
folder, rng = Path(sys.argv[1]), np.random.default_rng(0)
made = mesh.create(folder, Graph.complete(3), fit, [()] * 3, lambda i: "127.0.0.1", 40000, 2)
(folder / "data").mkdir()
for i in range(3):
    y = rng.choice([-1.0, 1.0], 9)
    np.savez(folder / "data" / f"peer{i}.npz", X=rng.normal(size=(9, 2)), y=y)
peers, forgotten = memory_peers.MemoryPeers(made, patch), []

async def run():
    peers.start(*range(3))
    peers.peers[0].when_compiled = lambda: (forget_compiling(), forgotten.append(peers.round(0)))
    return await peers.results()

found = memory_peers.run(run())
known = {"met": [r.ending.met for r in found.values()], "forgotten": forgotten}
known["methods"] = [peer.settled_fit.method for peer in peers.peers.values()]
print(json.dumps(known | {"modules": sorted(sys.modules)}))
"""


def test_a_peer_imports_what_it_uses_and_goes_on_when_traces_are_forgotten(tmp_path):
    paths = os.pathsep.join([str(ROOT / "tests" / "helpers"), *sys.path])
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "m")],
        env=dict(os.environ) | SETTINGS | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    known = json.loads(said.stdout.splitlines()[-1])
    assert known["methods"] == ["newton-pd"] * 3
    assert known["forgotten"][:1] == [10]
    assert known["met"] == [True] * 3
    assert sorted(set(UNUSED) & set(known["modules"])) == []
