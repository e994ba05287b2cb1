"""The sums of a fit under masks: the same answers, nothing to see on the way, and all or none."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from memory_peers import MemoryPeers, run

import edgewise as ew
from edgewise.errors import InputError
from edgewise.peers.config.peer_config import Fit, read, save
from edgewise.peers.node import masked_stages, scores
from edgewise.peers.node.agreement import SAMPLES, SPREAD
from edgewise.peers.node.masked_stages import KEYS, MaskedSumFailed, StageMasks
from edgewise.peers.node.masks import Masker
from edgewise.peers.node.own_data import own_data
from edgewise.peers.node.own_problem import problem_of
from edgewise.peers.node.peer import Peer
from edgewise.peers.node.result import PeerError
from edgewise.peers.node.scores import HELD_OUT
from edgewise.peers.operations import mesh
from edgewise.peers.transport.links import Link
from edgewise.peers.transport.reports import UNIT, exact

SIZES = (30, 12, 20)
RNG = np.random.default_rng(6)
X = RNG.normal(size=(sum(SIZES), 2)) * [1, 4] + [0, 9]
Y = (RNG.random(len(X)) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
NODE = np.repeat(range(3), SIZES)
FIT = Fit(tol=1e-8, intercept=True, classes=(0, 1), standardize=True, mode="strict", holdout=0.3)


def peers_of(folder, monkeypatch, **more):
    made = mesh.create(
        folder, ew.Graph.ring(3), replace(FIT, **more), [()] * 3, lambda i: "127.0.0.1", 40000, 2
    )
    (folder / "data").mkdir()
    for i in range(3):
        np.savez(folder / "data" / f"peer{i}.npz", X=X[i == NODE], y=Y[i == NODE])
    return MemoryPeers(made, monkeypatch)


def start(peers):
    for i, config in peers.configs.items():
        data = own_data(config, peers.folder / "data" / f"peer{i}.npz")
        peers.start_with(i, problem_of(config, data.shards), data.held)


def ended(peers):
    async def work():
        start(peers)
        return await asyncio.gather(*peers.tasks.values(), return_exceptions=True)

    return run(work())


def test_a_masked_fit_is_the_fit_and_nobody_sees_a_part(tmp_path, monkeypatch):
    told = {}
    tell = Link.tell

    def seen(link, report):
        if report.sums and not report.total:
            told.setdefault((report.stage, link.me), []).append(report.sums)
        return tell(link, report)

    monkeypatch.setattr(Link, "tell", seen)
    plain = ended(peers_of(tmp_path / "plain", monkeypatch, summary="HC0"))
    open_parts = {k: sums for k, sums in told.items() if k[0] == SAMPLES}
    told.clear()
    masked = ended(peers_of(tmp_path / "masked", monkeypatch, summary="HC0", masked=True))
    for a, b in zip(plain, masked, strict=True):
        np.testing.assert_allclose(a.x, b.x, rtol=1e-7)
        np.testing.assert_allclose(b.summary.covariance, a.summary.covariance, rtol=1e-6)
        assert {k: pytest.approx(v, rel=1e-6) for k, v in b.scores.items()} == a.scores
    # what a leaf tells is its own numbers without masks, and with them unlike any sum of parts
    assert (SAMPLES, 1) in open_parts
    assert exact([SIZES[1] - round(0.3 * SIZES[1])])[0] in {
        sums[0] for sums in open_parts[SAMPLES, 1]
    }
    stages = {stage for stage, _ in told}
    assert {SAMPLES, SPREAD, HELD_OUT, "summary model", "summary 1"} <= stages
    for (stage, _), parts in told.items():
        if not stage.endswith(KEYS):
            size = [abs(n) / UNIT for sums in parts for n in sums]
            assert min(size) > 2**80, stage  # of 2^128; a number as it is would be below 2^72


@pytest.mark.parametrize("stage", [SPREAD, "summary 1"])
def test_where_one_cannot_go_on_all_give_the_sum_up_and_say_why(
    tmp_path, monkeypatch, stage, caplog
):
    """Before the fit there is no fit without it; after it there is, without that sum."""
    numbers = StageMasks.numbers

    def fails(masks, *given):
        if masks.me == 2 and masks.stage == stage:
            raise MaskedSumFailed("peer 0 was started anew")
        return numbers(masks, *given)

    monkeypatch.setattr(StageMasks, "numbers", fails)
    monkeypatch.setattr(masked_stages, "LAST_WORDS", 0.1)
    results = ended(peers_of(tmp_path / "m", monkeypatch, summary="HC0", masked=True))
    if stage == SPREAD:
        assert all(isinstance(result, PeerError) for result in results)
        assert all("start the fit anew at all peers" in str(result) for result in results)
        assert "peer 0 was started anew" in str(results[2])
        assert "has given the masked sum of spread up" in str(results[0])
    else:
        assert all(result.summary is None for result in results)
        assert all(result.ending.met for result in results)
        assert caplog.text.count("with masks nobody can be left out") == 3


def test_who_goes_after_the_fit_takes_the_scores_along_and_no_model(tmp_path, monkeypatch, caplog):
    """Without masks the others would be scored without it."""
    scored = Peer.scored

    async def goes(peer, *given):
        if peer.config.id == 2:
            raise asyncio.CancelledError
        return await scored(peer, *given)

    monkeypatch.setattr(Peer, "scored", goes)
    monkeypatch.setattr(scores, "GIVEN_UP", 0.3)
    peers = peers_of(tmp_path / "m", monkeypatch, masked=True)

    async def work():
        start(peers)
        async with asyncio.timeout(120):
            while not all(getattr(peers.peers[i], "state", "") == "lingering" for i in (0, 1)):
                await asyncio.sleep(0.05)
        for task in peers.tasks.values():
            task.cancel()
        await asyncio.gather(*peers.tasks.values(), return_exceptions=True)

    run(work())
    assert peers.peers[0].scores is None is peers.peers[1].scores
    assert all((peers.configs[i].out / "model.npz").exists() for i in (0, 1))
    assert "no held-out sums: peers [2] are away; with masks nobody can be left out" in caplog.text


def test_masks_are_made_once_and_of_the_neighbours_that_were_there():
    def key(me):
        return tuple(n * UNIT for n in Masker(me, "m/fit/samples").public)

    masks, plain, keys = StageMasks(1, "m", SAMPLES), exact([3.0, -0.5]), {0: key(0), 2: key(2)}
    assert masks.numbers(plain, {**keys, 2: None}, 3) is None
    told = masks.numbers(plain, keys, 3)
    assert masks.numbers(plain, keys, 3) == told != plain
    for changed in ({**keys, 2: key(2)}, {0: keys[0]}, {**keys, 2: None}):
        with pytest.raises(MaskedSumFailed, match=r"peer 2 was started anew, or has gone"):
            masks.numbers(plain, changed, 3)
    with pytest.raises(MaskedSumFailed, match="neighbours have come"):
        masks.numbers(plain, {**keys, 4: key(4)}, 3)
    for bad, why in ((exact([1e30]), "larger units"), (exact([1.0]), "no usable key")):
        given = keys if "units" in why else {**keys, 0: (UNIT,)}
        with pytest.raises(MaskedSumFailed, match=why):
            StageMasks(1, "m", SAMPLES).numbers(bad, given, 3)


def test_masks_that_would_hide_nothing_are_refused(tmp_path):
    made = mesh.create(
        tmp_path / "m", ew.Graph.path(3), Fit(), [()] * 3, lambda i: "127.0.0.1", 40000, 2
    )
    ends, middle = made.peers[0], made.peers[1]
    for config, why in (
        (replace(ends, fit=Fit(masked=True)), "peer 0 has one neighbour, whom no mask hides"),
        (replace(middle, fit=Fit(masked=True, weights="node")), "this fit takes none"),
    ):
        save(config)
        with pytest.raises(InputError, match=why):
            read(config.path)
    save(replace(middle, fit=Fit(masked=True)))
    assert read(middle.path).fit.masked
