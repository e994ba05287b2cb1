"""Standard errors at peers: the same table at all of them, as statsmodels has it."""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

import statsmodels.api as sm
from memory_peers import MemoryPeers, run

import edgewise as ew
from edgewise.errors import DisclosureError, InputError
from edgewise.peers.config.peer_config import Fit, read, save
from edgewise.peers.operations import mesh

SIZES = (30, 12, 20)
RNG = np.random.default_rng(6)
X = RNG.normal(size=(sum(SIZES), 2)) * [1, 4] + [0, 9]
Y = (RNG.random(len(X)) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
NODE = np.repeat(range(3), SIZES)


def mesh_of(tmp_path, **more):
    fit = Fit(tol=1e-9, intercept=True, classes=(0, 1), standardize=True, mode="strict", **more)
    made = mesh.create(
        tmp_path / "m", ew.Graph.ring(3), fit, [()] * 3, lambda i: "127.0.0.1", 40000, 2
    )
    (tmp_path / "m" / "data").mkdir()
    for i in range(3):
        np.savez(tmp_path / "m" / "data" / f"peer{i}.npz", X=X[i == NODE], y=Y[i == NODE])
    return made


def test_all_peers_write_the_table_of_all(tmp_path, monkeypatch):
    peers = MemoryPeers(mesh_of(tmp_path, summary="cluster"), monkeypatch)

    async def work():
        peers.start(0, 1, 2)
        results = await peers.results()
        peers.start(1)  # when all have gone
        again = await peers.tasks[1]
        assert again.summary.covariance.tolist() == results[1].summary.covariance.tolist()
        return results

    results = run(work())
    model = sm.GLM(Y, sm.add_constant(X), sm.families.Binomial())
    groups = {"groups": NODE}
    theirs = model.fit(tol=1e-14, cov_type="cluster", cov_kwds=groups)
    kept = {(peers.configs[i].out / "summary.json").read_text() for i in range(3)}
    assert len(kept) == 1
    found = json.loads(kept.pop())["coefficients"]
    assert [a["coef"] for a in found.values()] == pytest.approx(theirs.params, rel=1e-6)
    assert [a["std_err"] for a in found.values()] == pytest.approx(theirs.bse, rel=1e-6)
    for i, result in results.items():
        usual = result.summary.robust("model")
        assert usual.std_err == pytest.approx(model.fit(tol=1e-14).bse, rel=1e-6)
        assert result.summary.nodes == 3
        text = (peers.configs[i].out / "summary.txt").read_text()
        assert "Logistic: 62 samples at 3 nodes" in text


def test_a_peer_says_before_the_fit_what_it_does_not_tell(tmp_path):
    config = mesh_of(tmp_path, summary="auto").peers[1]
    save(replace(config, least_count=13))
    assert read(config.path).least_count == 13
    with pytest.raises(DisclosureError, match="12 samples, and tells no matrix of fewer than 13"):
        ew.Peer(config.path).fit(tmp_path / "m" / "data" / "peer1.npz")
    save(replace(config, penalty=("l1:0.1",)))
    with pytest.raises(InputError, match=r"fit\.summary: L1\(lam=0\.1\) picks"):
        ew.Peer(config.path).fit(tmp_path / "m" / "data" / "peer1.npz")
