"""Nodes over several devices: the iterates of one device, and no more sent than is said.

The devices are the CPU's, in a process of their own: sharded_cases.py has what runs there.
"""

import json
import os
import subprocess
import sys

import jax
import numpy as np
import pytest
from end_with_parent import ending_with_us
from paths import HELPERS
from sharded_cases import CASES, GRID, build

import edgewise as ew
from edgewise.engines.device_placement import DevicePlacement
from edgewise.engines.devices import choose_devices

CLOSE = 1e-10
FLAGS = "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    script = HELPERS / "sharded_cases.py"
    settings = {**os.environ, "XLA_FLAGS": FLAGS, "JAX_PLATFORMS": "cpu"}
    folder, pipe = str(tmp_path_factory.mktemp("run")), subprocess.PIPE
    halves = [
        subprocess.Popen(
            ending_with_us(sys.executable, script, half, folder),
            env=settings,
            stdout=pipe,
            stderr=pipe,
            text=True,
        )
        for half in ("0", "1")
    ]
    lines = []
    for half in halves:
        out, err = half.communicate()
        assert half.returncode == 0, err[-3000:]
        lines.extend(map(json.loads, out.splitlines()))
    return {line["name"]: line for line in lines}


@pytest.mark.parametrize("name", CASES)
def test_several_devices_give_the_iterates_of_one(found, name):
    models, duals, calls, bodies = found[name]["apart"]
    assert models <= CLOSE
    assert duals <= CLOSE
    assert calls == bodies == 0
    assert found[name]["moved"] > 0.02, "nothing moves: this shows nothing"


@pytest.mark.parametrize("name", CASES)
def test_the_bytes_said_are_those_of_the_programs_collectives(found, name):
    assert found[name]["said"] == found[name]["carried"]
    assert (found[name]["carried"] > 0) == (CASES[name][2] > 1)
    assert not found[name]["others"]


def test_every_device_has_its_own_rows_alone(found):
    assert found["placed"]["own"] == [True] * 4
    assert found["placed"]["N"] <= found["placed"]["most"] + 1


def test_solve_records_resumes_and_stops_as_on_one_device(found):
    case = found["whole runs"]
    assert max(case["models"], case["duals"], case["steps"]) <= CLOSE
    for one, several in case["trace"].values():
        assert np.allclose(one, several, rtol=0, atol=CLOSE)


@pytest.mark.parametrize("devices", [2, 3, 4])
def test_a_grid_in_stretches_sends_its_boundary_only(devices):
    graph = ew.Graph.grid(12, 5)
    placement = DevicePlacement(graph, np.ones(60, int), devices)
    rows = [placement.vectors[k].rows for k in range(devices)]
    assert rows == [5 if devices == 2 else 10] * devices  # a row of the grid to either side
    assert placement.crossing_share == 2 * 5 * (devices - 1) / (2 * graph.edge_count)


def test_what_cannot_be_is_said():
    problem = build(GRID)
    with pytest.raises(ew.errors.MethodError, match=r"JAX has .*xla_force_host_platform"):
        ew.solve(problem, GRID, devices=99)
    with pytest.raises(ew.errors.MethodError, match="whole number"):
        ew.solve(problem, GRID, devices=0)
    with pytest.raises(ew.errors.MethodError, match=r"jax\.devices"):
        ew.solve(problem, GRID, devices=["cpu"])
    with pytest.raises(ew.errors.MethodError, match="twice"):
        ew.solve(problem, GRID, devices=2 * jax.devices()[:1])
    with pytest.raises(ew.errors.MethodError, match="faults"):
        ew.solve(problem, GRID, devices=1, faults=ew.Faults(drop=0.1))
    pair = ew.Graph.from_edges([(0, 1)])
    stream = ew.Stream(lambda node, size, rng: None, build(pair).shards)
    with pytest.raises(ew.errors.MethodError, match="a stream"):
        ew.solve(ew.Problem(stream, ew.Logistic()), pair, "spd", devices=1)


def test_devices_that_are_named_are_taken():
    assert choose_devices(jax.devices()[:1], build(GRID), None) == jax.devices()[:1]
