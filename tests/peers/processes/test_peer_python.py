"""Peers from Python, also from inside an event loop, as a notebook has one."""

import asyncio
import json
import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from peer_process import PATIENCE, Peers
from uneven import problem_of

import edgewise as ew
from edgewise.peers.config.certificates import certificate_in
from edgewise.peers.config.peer_config import Fit
from edgewise.peers.operations.audit import verified
from edgewise.peers.transport.frames import HEADER
from edgewise.running.trace import COLUMNS

pytestmark = pytest.mark.filterwarnings("ignore:peer . has one neighbour")
FIT = Fit(
    "saga-pd", weights="node", ridge=1e-3, rounds=120, tol=1e-12, mode="strict", classes=(-1.0, 1.0)
)


@pytest.fixture
def problem():
    return problem_of(7, 2)


def fitted(peers, problem, **more):
    return ew.Peer(peers.configs[0].path).fit(problem.shards[0], **more)


def plainly(work):
    return work()


def inside_a_loop(work):
    async def cell():
        return work()

    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(cell())
    finally:
        loop.close()


@pytest.mark.quick_if(lambda call: call is plainly)
@pytest.mark.parametrize("call", [plainly, inside_a_loop])
def test_one_from_python_and_one_from_the_command_line(tmp_path, problem, call):
    rows = []
    with Peers(tmp_path, problem, ew.Graph.path(2), FIT) as peers:
        peers.start(1)
        result = call(lambda: fitted(peers, problem, callback=rows.append))
        assert peers.ended() == [1], "tol is out of reach in so few rounds"
        models, rounds = peers.models()
    method = ew.PrimalDual(ew.SAGA(), form="edge")
    same = ew.solve(problem, ew.Graph.path(2), method, rounds=120, reference=False).X
    np.testing.assert_allclose(models, same, rtol=0, atol=1e-10)
    assert rounds == [120, 120]
    assert np.array_equal(result.x, models[0])
    X, _ = problem.shards[0]
    kept = ew.load_model(peers.configs[1].out)
    np.testing.assert_array_equal(kept.predict(X), np.where(X @ models[1] > 0, 1.0, -1.0))
    assert kept.provenance["peer"] == 1
    assert kept.provenance["rounds"] == 120
    assert result.rounds == 120
    assert result.message.startswith("ended with the last of its rounds after 120 rounds")
    assert "tol 1e-12 NOT met" in result.message
    assert not result.converged
    assert json.loads(str(np.load(peers.configs[0].out / "model.npz")["ending"]))["met"] is False
    assert '"exit_code": 1' in (peers.configs[1].out / "log.jsonl").read_text()
    assert isinstance(result.trace, ew.Trace)
    told = {"method": "saga-pd", "method_note": ""}
    assert result.trace.meta == {**told, "peer": 0, "size": problem.size}
    assert list(result.trace["rounds"]) == list(range(10, 121, 10))
    assert result.residual == result.trace["residual"][-1]
    kept = ew.Trace.load(peers.configs[0].out / "trace.csv")
    for column in COLUMNS:
        told = [row[column] for row in rows[: len(result.trace)]]
        np.testing.assert_array_equal(result.trace[column], told)
        np.testing.assert_array_equal(result.trace[column], kept[column])
    # one vector a round to one neighbour; the last may still be on its way out
    assert (np.abs(result.trace["rounds"] - result.trace["vectors_sent"]) <= 2).all()
    assert np.isnan(result.trace["bregman"]).all()
    for i in range(2):
        trail = verified(peers.configs[i].out)
        assert trail.wrong == ""
        frames, rest = divmod(trail.left["vectors"], HEADER.size + 8 * problem.size)
        assert rest == 0
        assert 119 <= frames <= 121
        counted = peers.status(i)["neighbours"][str(1 - i)]["bytes_sent"]
        assert counted <= sum(trail.left.values()) <= counted + HEADER.size, "but for a farewell"
        lines = (peers.configs[i].out / "audit.jsonl").read_text().splitlines()
        events = [json.loads(line) for line in lines]
        assert [e["event"] for e in events] == ["start", "neighbour", "sent", "end"]
        certificate = certificate_in(peers.configs[1 - i].certificate.read_bytes())
        assert int(events[1]["certificate"], 16) == certificate.serial_number


@pytest.mark.quick_if(lambda mode: mode == "strict")
@pytest.mark.parametrize("mode", ["strict", "tolerant"])
def test_with_more_rounds_they_go_on_from_where_they_had_ended(tmp_path, problem, mode):
    with Peers(tmp_path, problem, ew.Graph.path(2), replace(FIT, mode=mode, rounds=60)) as peers:
        for more in ({}, {"rounds": 120, "tol": 1e-13}):
            for config in peers.configs.values():
                peers.change(replace(config, fit=replace(config.fit, **more)))
            peers.start(1)
            result = fitted(peers, problem)
            assert peers.ended() == [1], "tol is out of reach in so few rounds"
        models, rounds = peers.models()
        assert rounds == [120, 120]
        assert result.trace["rounds"][0] == 10  # one trace of both
        if mode == "strict":
            method = ew.PrimalDual(ew.SAGA(), form="edge")
            same = ew.solve(problem, ew.Graph.path(2), method, rounds=120, reference=False).X
            np.testing.assert_allclose(models, same, rtol=0, atol=1e-10)
        peers.change(replace(peers.configs[0], fit=replace(FIT, mode=mode, seed=5)))
        with pytest.raises(ew.errors.CheckpointError, match="seed = 0, and here 5: delete it"):
            fitted(peers, problem)


@pytest.mark.parametrize("call", [plainly, inside_a_loop])
def test_ctrl_c_stops_it_in_order(tmp_path, problem, call):
    with Peers(tmp_path, problem, ew.Graph.path(2), FIT) as peers:  # nobody else ever comes

        def interrupt():
            end = time.monotonic() + PATIENCE
            while peers.status(0).get("state") != "waiting" and time.monotonic() < end:
                time.sleep(0.1)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

        other = threading.Thread(target=interrupt)
        other.start()
        result = call(lambda: fitted(peers, problem))
        other.join()
        assert result.message.startswith("stopped after 0 rounds")
        assert peers.status(0)["state"] == "stopped"
