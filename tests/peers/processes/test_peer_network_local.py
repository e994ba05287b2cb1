"""`edgewise network local` stops all peers that it started, whatever ends it."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.preprocessing import scale

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from end_with_parent import ending_with_us
from network_calls import call, refused
from peer_process import ENVIRONMENT, PATIENCE, free_ports

import edgewise as ew
from edgewise.peers.config.peer_config import read, save

PEERS = range(3)


@pytest.fixture(autouse=True)
def mesh(tmp_path, monkeypatch):
    """Three peers at ports that are free."""
    monkeypatch.chdir(tmp_path)
    call("init", "--nodes", len(PEERS), "--ridge", 0.03, "--mode", "strict")
    at = [f"127.0.0.1:{port}" for port in free_ports(len(PEERS))]
    for id in PEERS:
        config = read(f"mesh/peer{id}.toml")
        around = tuple(replace(n, address=at[n.id]) for n in config.neighbours)
        save(replace(config, listen=at[id], neighbours=around, metrics=None))


@pytest.fixture
def local():
    words = ["network", "local", "mesh", "--data", "breast_cancer", "--scale"]
    process = subprocess.Popen(
        ending_with_us(sys.executable, "-m", "edgewise", *words),
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()


def until_all_have_a_checkpoint(process):
    end = time.monotonic() + PATIENCE
    while not all(Path(f"mesh/peer{id}/checkpoint.bin").exists() for id in PEERS):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.quick_if(lambda number: number == signal.SIGTERM)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_all_peers_stop_in_order(local, number):
    """A signal to `local` alone: the peers must not depend on a terminal that tells them too."""
    until_all_have_a_checkpoint(local)
    local.send_signal(number)
    out, err = local.communicate(timeout=PATIENCE)
    assert local.returncode == 130, err
    assert err == "stopped: the same command goes on from the checkpoints\n"
    assert "3 starting: rounds 0 to 0" in out
    states = [json.loads(Path(f"mesh/peer{id}/status.json").read_text())["state"] for id in PEERS]
    assert states == ["stopped"] * len(PEERS)
    D, _ = ew.data.dataset("breast_cancer")  # peers were handed it scaled; models take it as it is
    model, x = ew.load_model("mesh/peer1"), np.load("mesh/peer1/model.npz")["x"]
    assert not model.converged
    np.testing.assert_allclose(model.decision_function(D), scale(D) @ x, rtol=1e-8, atol=1e-8)


@pytest.fixture
def readable_key(mesh):
    Path("mesh/peer1.key").chmod(0o644)


def test_one_that_gives_up_ends_the_others(readable_key, local):
    """They would wait for it for ever."""
    _, err = local.communicate(timeout=PATIENCE)
    assert local.returncode == 2
    assert err.startswith("error: peer 1: ")
    assert "peer1.key" in err


def test_a_number_of_nodes_other_than_the_meshs_is_refused():
    assert refused("local", "mesh", "--data", "wine", "--nodes", 5) == (
        "error: mesh has 3 peers: leave --nodes 5 out\n"
    )
