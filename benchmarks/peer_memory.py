"""Memory of a peer: of one process alone, stage by stage, and of five that run on one machine.

    python benchmarks/peer_memory.py            one peer's stages; Linux only
    python benchmarks/peer_memory.py --five     five processes too

RSS is all that is resident. PSS counts a page that k processes share as 1/k. Anonymous is what a
process has for itself; the rest are pages of files, above all of JAX's library.
Peers have breast cancer data (569 x 30, rows normalised) and the default method.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

STAGES = """
import sys
from pathlib import Path

def say(stage):
    lines = [line.split() for line in open("/proc/self/smaps_rollup")]
    held = {line[0]: int(line[1]) >> 10 for line in lines if len(line) == 3}
    print(f"{stage:30} {held['Rss:']:6} {held['Anonymous:']:9}", flush=True)

print(f"{'MB after':30} {'RSS':>6} {'anonymous':>9}")
say("Python")
import numpy
say("import numpy")
import jax
say("import jax")
jax.config.update("jax_cpu_enable_async_dispatch", False)
jax.jit(lambda a: a + 1)(1.0)
say("the smallest program compiled")
import edgewise.cli.app, edgewise.cli.node
from edgewise.backend.memory import forget_compiling
from edgewise.peers.config.peer_config import load
from edgewise.peers.node.own_problem import one_node
from edgewise.peers.node.peer import Peer
from edgewise.peers.node.stepper import Stepper, facts_of
from edgewise.peers.node.supported_methods import method_of, settled
from edgewise.peers.operations.metrics import Metrics
from edgewise.peers.transport.edge_facts import EdgeFacts
say("import of a peer")
config = load(sys.argv[1])
with jax.enable_x64(True):
    problem = one_node(config, sys.argv[2])
    fit, _ = settled(config.fit, problem)
    own = facts_of(problem, 4)
    stepper = Stepper(problem, 0, method_of(fit, False), 0, numpy.float64, own)
    stepper = stepper.among([EdgeFacts(own, own)] * 4)
    carry = stepper.start()

    def rounds(first, last):
        global carry
        for round in range(first, last):
            sent = [stepper.outgoing(carry[1], k) for k in range(4)]
            heard = stepper.gathered(sent, [stepper.outgoing_news(carry[1])] * 4)
            carry, _ = stepper.step(carry, round, heard)
            stepper.look(carry, heard)

    rounds(0, 1)
    say("its programs compiled")
    forget_compiling()
    rounds(1, 300)
    say("300 rounds, traces forgotten")
peak = [int(l.split()[1]) >> 10 for l in open("/proc/self/status") if l.startswith("VmHWM")]
print(f"{'at most':30} {peak[0]:6}")
"""


def made(folder: Path) -> None:
    import numpy as np

    import edgewise as ew
    from edgewise.peers.config.peer_config import Fit, save
    from edgewise.peers.operations import mesh

    fit = Fit(ridge=0.03, intercept=True, classes=(0, 1), rounds=10**6)
    graph = ew.Graph.circulant(5)
    peers = mesh.create(folder, graph, fit, [()] * 5, lambda i: "127.0.0.1", 28_960, 2).peers
    X, y = ew.data.dataset("breast_cancer")
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    for i, config in peers.items():
        save(replace(config, metrics=None))
        np.savez(folder / f"data{i}.npz", X=X[i::5], y=y[i::5])


def five(folder: Path, environment: dict[str, str]) -> None:
    """MB of each, once all have taken some rounds."""
    from edgewise.cli.peer_status import status_of
    from edgewise.peers.config.peer_config import load

    configs = [load(folder / f"peer{i}.toml") for i in range(5)]
    words = [sys.executable, "-m", "edgewise", "node", "--json", "--log-level", "error"]
    crew = [
        subprocess.Popen(
            [*words, str(folder / f"peer{i}.toml"), "--shard", str(folder / f"data{i}.npz")],
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        for i in range(5)
    ]
    try:
        while any(status_of(config).get("rounds", 0) < 300 for config in configs):
            time.sleep(0.5)
        for i, one in enumerate(crew):
            lines = Path(f"/proc/{one.pid}/smaps_rollup").read_text().splitlines()[1:]
            held = {line.split()[0]: int(line.split()[1]) >> 10 for line in lines}
            told = (f"{name[:-1]} {held[name]}" for name in ("Rss:", "Pss:", "Anonymous:"))
            print(f"peer {i} of five:", ", ".join(told))
    finally:
        for one in crew:
            one.kill()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--five", action="store_true", help="five processes too")
    options = parser.parse_args()
    from edgewise.cli.network_local import ONE_THREAD

    environment = ONE_THREAD | {"JAX_PLATFORMS": "cpu"} | dict(os.environ)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "mesh"
        made(folder)
        words = [str(folder / "peer0.toml"), str(folder / "data0.npz")]
        subprocess.run([sys.executable, "-c", STAGES, *words], env=environment, check=True)
        if options.five:
            five(folder, environment)


if __name__ == "__main__":
    main()
