"""Peers as processes of their own on this machine."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
from end_with_parent import ending_with_us

from edgewise.peers.config.peer_config import save
from edgewise.peers.coupled_mesh import create_coupled
from edgewise.peers.operations import mesh

PATIENCE = 400  # seconds that anything may take: the machine may be busy with other things
ENVIRONMENT = dict(os.environ) | {
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_cpu_multi_thread_eigen=false",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


def free_ports(count):
    """Not of those that systems give to outgoing connections: these come and go."""
    found = []
    for port in random.SystemRandom().sample(range(15_000, 32_000), 50 * count):
        with socket.socket() as trial, suppress(OSError):
            trial.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            return found
    raise OSError("no ports are free")


class Peers:
    """A mesh and its processes; leaving the block ends them all, whatever became of them."""

    def __init__(self, folder, problem, graph, fit, penalties=None, between=None, **options):
        self.folder = Path(folder)
        penalties = penalties or [()] * graph.nodes
        if between is None:
            made = mesh.create(self.folder, graph, fit, penalties, lambda i: "127.0.0.1", 40000, 2)
        else:
            made = create_coupled(self.folder, problem, graph, between, fit, port=40000)
        self.addresses = [f"127.0.0.1:{port}" for port in free_ports(graph.nodes)]
        self.configs = {}
        for i, config in made.peers.items():
            around = [replace(n, address=self.addresses[n.id]) for n in config.neighbours]
            own = {"listen": self.addresses[i], "neighbours": tuple(around), "metrics": None}
            self.change(replace(config, **own, **options))
            if between is None:
                X, y = problem.shards[i]
                np.savez(self.folder / f"data{i}.npz", X=X, y=y)
        self.running = {}

    def change(self, config):
        self.configs[config.id] = config
        save(config)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.running.values():
            process.kill()  # ends those that are stopped by a signal, too
            process.wait()

    def start(self, *ids):
        for i in ids:
            files = self.folder / f"data{i}.npz", self.folder / "data" / f"peer{i}.npz"
            shard = [word for file in files if file.exists() for word in ("--shard", str(file))]
            words = [str(self.configs[i].path), *shard]
            with (self.folder / f"said{i}.txt").open("a") as said:
                self.running[i] = subprocess.Popen(
                    ending_with_us(sys.executable, "-m", "edgewise", "node", *words),
                    env=ENVIRONMENT,
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=subprocess.STDOUT,
                )

    def said(self, i):
        return (self.folder / f"said{i}.txt").read_text()

    def until(self, holds, what):
        end = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > end:
                logs = "\n".join(f"--- {i}\n{self.said(i)[-1500:]}" for i in self.running)
                raise AssertionError(f"{what}: not in {PATIENCE} s\n{logs}")
            time.sleep(0.02)

    def status(self, i):
        path = self.configs[i].out / "status.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def until_round(self, i, round):
        def came():
            assert self.running[i].poll() in (None, 0), self.said(i)
            return self.status(i).get("rounds", 0) >= round

        self.until(came, f"peer {i} at round {round}")

    def until_still(self, *ids, seconds=2.0):
        """These have told of no new round for so long, and of which they told last."""
        seen, since = None, time.monotonic()

        def still():
            nonlocal seen, since
            if seen != (seen := [self.status(i)["rounds"] for i in ids]):
                since = time.monotonic()
            return time.monotonic() - since > seconds

        self.until(still, "peers that stand still")
        return seen

    def kill(self, i):
        """While it runs: killing one that has ended shows nothing."""
        assert self.running[i].poll() is None
        self.running[i].send_signal(signal.SIGKILL)
        assert self.running[i].wait() == -signal.SIGKILL

    def ended(self):
        """The exit status of all."""
        self.until(
            lambda: all(p.poll() is not None for p in self.running.values()), "the end of all"
        )
        return [self.running[i].returncode for i in sorted(self.running)]

    def models(self):
        """(V, n), and the round of each."""
        files = [np.load(self.configs[i].out / "model.npz") for i in sorted(self.configs)]
        return np.stack([f["x"] for f in files]), [int(f["round"]) for f in files]
