"""Compiled programs are found again by later processes, and the user's own setting wins."""

import os
import subprocess
import sys

PROGRAM = """
import sys, jax
if len(sys.argv) > 1:
    jax.config.update("jax_compilation_cache_dir", sys.argv[1])
import edgewise as ew
from edgewise.backend import cache
cache.WORTH_KEEPING = 0  # or a machine's mood decides which programs are worth it
X, y = ew.data.dataset("wine")
shards = ew.split((X - X.mean(0)) / X.std(0), y == 1, nodes=3)
problem = ew.Problem(shards, ew.Logistic())
r = ew.solve(problem, ew.Graph.ring(3), "saga-pd", rounds=20, record_every=20, reference=False)
print(repr(float(r.x.sum())))
"""


def run(cache, *args, **more):
    usual = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    environment = usual | {"EDGEWISE_CACHE": str(cache)} | more
    made = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, args)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(made.stdout)


def files(folder):
    return {p: p.stat().st_mtime_ns for p in folder.rglob("*-cache")}


def test_programs_are_kept_and_found_again(tmp_path):
    on = {"JAX_ENABLE_COMPILATION_CACHE": "1"}
    first = run(tmp_path / "ours", **on)
    kept = files(tmp_path / "ours")
    assert kept
    assert run(tmp_path / "ours", **on) == first
    assert files(tmp_path / "ours") == kept  # nothing was compiled that was not there


def test_a_folder_of_the_users_is_used_instead(tmp_path):
    theirs = tmp_path / "theirs"
    run(tmp_path / "ours", theirs, JAX_ENABLE_COMPILATION_CACHE="1")
    assert not files(tmp_path / "ours")


def test_it_can_be_turned_off(tmp_path):
    run(tmp_path / "ours", JAX_ENABLE_COMPILATION_CACHE="0")
    assert not files(tmp_path / "ours")
