"""Peers as processes over lines that go dead, are cut, or take less than what is sent."""

import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from four_peers import FIT, GRAPH, PENALTIES, RIDGE, penalised, simulated
from line import lay
from peer_process import Peers
from uneven import problem_of

import edgewise as ew

# Seconds. Systems at both ends see that bytes arrive, and only the peers that nobody answers, which
# they bear for 6 s. A network that is dead for the systems too is in test_peer_emulated_network.py.
BLACK_HOLES = [6.0, pytest.param(20.0, marks=pytest.mark.soak)]


@contextmanager
def four(folder, **fit):
    """Peers that run, and both lines of peer 3."""
    with ExitStack() as opened:
        peers = opened.enter_context(
            Peers(folder, penalised(), GRAPH, replace(FIT, **fit), PENALTIES)
        )
        lines = [opened.enter_context(lay(peers, i, 3)) for i in (0, 2)]
        peers.start(0, 1, 2, 3)
        yield peers, lines


@contextmanager
def held(lines):
    with ExitStack() as all_of_them:
        for line in lines:
            all_of_them.enter_context(line.held())
        yield


@pytest.mark.exhaustive  # test_peer_processes.py has a peer that is stopped
@pytest.mark.parametrize("seconds", BLACK_HOLES)
def test_tolerant_peers_go_on_around_a_black_hole_and_come_to_the_optimum(seconds, tmp_path):
    fit = {"mode": "tolerant", "patience": 0.1, "tol": 1e-7, "rounds": 10**8}
    with four(tmp_path / "mesh", **fit) as (peers, lines):
        peers.until_round(0, 20)
        peers.until_round(3, 20)
        with held(lines):
            over = time.monotonic() + seconds
            peers.until_round(0, peers.status(0)["rounds"] + 30)
            time.sleep(max(0.0, over - time.monotonic()))
            assert peers.status(0)["neighbours"]["3"]["silent_seconds"] > seconds / 2
            assert [process.poll() for process in peers.running.values()] == [None] * 4
        assert peers.ended() == [0] * 4
        models, rounds = peers.models()
    assert max(rounds) < 10**8
    assert np.abs(models - ew.reference(penalised()).x).max() < 1e-6


@pytest.mark.parametrize("seconds", BLACK_HOLES)
def test_strict_peers_bear_a_cut_and_a_black_hole_and_end_at_the_simulators_models(
    seconds, tmp_path
):
    rounds = 1500  # so many that they are not over when the line is dead
    with four(tmp_path / "mesh", mode="strict", rounds=rounds) as (peers, lines):
        peers.until_round(0, 50)
        for line in lines:
            line.cut()

        def back():
            return min(peers.status(0)["neighbours"]["3"]["streams"], lines[1].calls) >= 2

        peers.until(back, "new streams")
        peers.until_round(0, peers.status(0)["rounds"] + 50)
        with held(lines):
            waits_at = peers.until_still(*range(4))  # first comes what is on its way
            assert max(waits_at) < rounds
            time.sleep(seconds - 2.0)
            assert [peers.status(i)["rounds"] for i in range(4)] == waits_at
        assert peers.ended() == [0] * 4
        models, ended = peers.models()
    assert ended == [rounds] * 4
    np.testing.assert_allclose(models, simulated(penalised(), GRAPH, rounds), rtol=0, atol=1e-10)


# --- a slow reader --------------------------------------------------------------------------------

SIZE = 200_000
MESSAGE = 8 * SIZE  # bytes
SECONDS_EACH = 4.0  # that a message takes on the slow line


def resident(process):
    """Bytes of memory that it holds."""
    said = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    (kilobytes,) = [line.split()[1] for line in said if line.startswith("VmRSS:")]
    return 1024 * int(kilobytes)


@pytest.mark.exhaustive
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize(
    ("rounds", "end"),
    [
        (100, {"tol": 1e-6, "rounds": 10**8}),
        pytest.param(1000, {"rounds": 1500}, marks=pytest.mark.soak),  # tol is met meanwhile
    ],
    ids=["100", "1000"],
)
def test_a_slow_reader_costs_neither_memory_nor_the_others_time_nor_the_answer(
    rounds, end, tmp_path
):
    problem = problem_of(SIZE, 3, loss=ew.Logistic(ridge=RIDGE))
    fit = replace(FIT, mode="tolerant", patience=0.05, **end)
    seldom = {"checkpoint_every": 50}  # or the disk would be what is slow
    with (
        Peers(tmp_path / "mesh", problem, ew.Graph.ring(3), fit, **seldom) as peers,
        lay(peers, 0, 1) as line,
    ):
        peers.start(0, 1, 2)
        for i in range(3):
            peers.until_round(i, 20)
        line.pace = MESSAGE / SECONDS_EACH
        began_at = [peers.status(i)["rounds"] for i in range(3)]
        passed, sizes = line.passed, []

        def went_on():
            assert [process.poll() for process in peers.running.values()] == [None] * 3
            sizes.append(resident(peers.running[0]))
            here = [peers.status(i)["rounds"] for i in range(3)]
            return all(now >= then + rounds for now, then in zip(here, began_at, strict=True))

        peers.until(went_on, f"{rounds} rounds beside a slow line")
        assert line.passed - passed < rounds * MESSAGE / 5
        assert max(sizes) - sizes[0] < 40 * MESSAGE
        line.pace = None
        assert peers.ended() == [0] * 3
        models, _ = peers.models()
    assert np.abs(models - ew.reference(problem).x).max() < 1e-5
