"""Peers with tables of counts, an offset and case weights, against statsmodels."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

import jax
from memory_peers import MemoryPeers, run

import edgewise as ew
from edgewise.peers.config.peer_config import Fit
from edgewise.peers.node.own_data import own_data
from edgewise.peers.node.own_problem import problem_of
from edgewise.peers.operations import mesh

NODES = 3
RNG = np.random.default_rng(1)
TABLE = pd.DataFrame({"a": RNG.normal(size=90), "b": RNG.normal(size=90)})
TABLE["log_exposure"] = RNG.normal(size=90)
TABLE["times"] = RNG.integers(1, 4, 90)
MEAN = np.exp(0.4 * TABLE["a"] - 0.3 * TABLE["b"] + TABLE["log_exposure"] + 0.5)
TABLE["claims"] = RNG.poisson(MEAN)
CUTS = [0, 28, 60, 90]


@pytest.mark.parametrize("holdout", [None, 0.2])
def test_their_model_is_that_of_all_tables_together(tmp_path, monkeypatch, holdout):
    fit = Fit(loss="poisson", tol=1e-8, intercept=True, mode="strict", holdout=holdout,
              offset="log_exposure", case_weight="times")  # fmt: skip
    ring = ew.Graph.ring(NODES)
    made = mesh.create(tmp_path / "m", ring, fit, [()] * NODES, lambda i: "127.0.0.1", 40000, 2)
    peers = MemoryPeers(made, monkeypatch)
    kept = []

    def start(i):
        file = tmp_path / f"claims{i}.csv"
        TABLE[CUTS[i] : CUTS[i + 1]].to_csv(file, index=False)
        data = own_data(peers.configs[i], file)
        kept.append(data)
        with jax.enable_x64(True):
            problem = problem_of(peers.configs[i], data.shards)
        peers.start_with(i, problem, data.held)

    async def work():
        for i in range(NODES):
            start(i)
        return await peers.results()

    results = run(work())
    parts = [data.shards for data in kept]
    rows = sm.add_constant(np.concatenate([s.X for s in parts]))
    theirs = sm.GLM(
        np.concatenate([s.y for s in parts]), rows, sm.families.Poisson(),
        offset=np.concatenate([s.offset for s in parts]),
        freq_weights=np.concatenate([s.weight for s in parts]),
    ).fit(tol=1e-13)  # fmt: skip
    a, *w = theirs.params
    for i, result in results.items():
        assert result.converged, result.message
        assert result.x == pytest.approx([*w, a], abs=1e-6)
        model = ew.load_model(peers.configs[i].out)
        means = model.predict(TABLE[["a", "b", "log_exposure"]])
        z = TABLE[["a", "b"]].to_numpy() @ w + a + TABLE["log_exposure"]
        assert means == pytest.approx(np.exp(z), rel=1e-5)
    if holdout is None:
        assert len(rows) == len(TABLE)
        return
    held = [data.held for data in kept]
    y = np.concatenate([s.y for s in held])
    margins = np.concatenate([s.X @ w + a + s.offset for s in held])
    deviance = ew.Poisson().deviance(margins, y).mean()
    for result in results.values():
        assert result.scores["rows"] == len(y)
        assert result.scores["deviance"] == pytest.approx(deviance, rel=1e-5)
        assert result.scores["mse"] == pytest.approx(((y - np.exp(margins)) ** 2).mean(), rel=1e-5)
