"""Two generations of a checkpoint, and sums that are taken anew: no flipped bit is believed."""

import logging
import os

import jax
import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from uneven import problem_of

from edgewise.errors import CheckpointError
from edgewise.methods.catalogue import make
from edgewise.peers.node.generations import CHECKPOINT, PREVIOUS, read_newest, write_next
from edgewise.peers.node.stepper import SUMS_EVERY, Stepper, facts_of
from edgewise.peers.transport.edge_facts import EdgeFacts

FLIPS = 100
THIS = {"seed": 0}


def contents(round):
    numbers = np.random.default_rng(round).standard_normal((2, 20))
    return {"fit": THIS, "round": round}, {"leaf0": numbers}


@pytest.fixture
def folder(tmp_path):
    """Where rounds 10 and 20 were saved."""
    for round in (10, 20):
        write_next(tmp_path, *contents(round))
    return tmp_path


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at % len(data)] ^= 0x40
    path.write_bytes(data)


def test_the_newest_serves_where_it_is_whole(folder):
    head, arrays = read_newest(folder, THIS)
    assert head["round"] == 20
    assert np.array_equal(arrays["leaf0"], contents(20)[1]["leaf0"])


def test_wherever_a_byte_is_flipped_the_one_before_serves_and_that_is_said(folder, caplog):
    whole = (folder / CHECKPOINT).read_bytes()
    for at in np.random.default_rng(0).permutation(len(whole))[:FLIPS]:
        (folder / CHECKPOINT).unlink()  # it and the one before are one file where one has served
        (folder / CHECKPOINT).write_bytes(whole)
        flip(folder / CHECKPOINT, at)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            head, arrays = read_newest(folder, THIS)
        assert head["round"] == 10
        assert np.array_equal(arrays["leaf0"], contents(10)[1]["leaf0"])
        assert f"{CHECKPOINT} is damaged" in caplog.text
        assert "the one before it serves, of round 10" in caplog.text


def test_a_damaged_one_is_never_kept_as_the_one_before(folder):
    flip(folder / CHECKPOINT, 3)
    read_newest(folder, THIS)
    write_next(folder, *contents(30))
    flip(folder / CHECKPOINT, 3)
    assert read_newest(folder, THIS)[0]["round"] == 10


def test_where_both_are_damaged_both_are_named(folder):
    flip(folder / CHECKPOINT, 3)
    flip(folder / PREVIOUS, -3)
    with pytest.raises(CheckpointError, match=rf"{CHECKPOINT} is no .*{PREVIOUS} \(leaf0 is dam"):
        read_newest(folder, THIS)


def test_whoever_deletes_the_newest_starts_anew(folder):
    (folder / CHECKPOINT).unlink()
    assert read_newest(folder, THIS) is None
    assert not (folder / PREVIOUS).exists()


def test_of_another_fit_neither_serves(folder):
    with pytest.raises(CheckpointError, match="another fit, with seed = 0, and here 1: delete"):
        read_newest(folder, {"seed": 1})


def test_where_there_are_no_second_names_a_copy_serves(tmp_path, monkeypatch):
    def none(*_):
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", none)
    for round in (10, 20):
        write_next(tmp_path, *contents(round))
    flip(tmp_path / CHECKPOINT, 3)
    assert read_newest(tmp_path, THIS)[0]["round"] == 10


# --- sums that go on from step to step ------------------------------------------------------------


def alone(method):
    """A stepper with one neighbour that says what it says, and the carry of some rounds."""
    problem = problem_of(7, 1)
    own = facts_of(problem, 1)
    stepper = Stepper(problem, 0, make(method), 0, np.dtype(float), own).among(
        [EdgeFacts(own, own)]
    )
    carry = stepper.start()
    for round in range(20):
        carry = step(stepper, carry, round)
    return stepper, carry


def step(stepper, carry, round):
    heard = stepper.gathered([stepper.outgoing(carry[1], 0)])
    return stepper.step(carry, round, heard)[0]


def damaged(carry):
    """As one flipped bit in the exponent leaves it."""
    memory = carry[0].memory
    mean = memory.mean.at[0, 3].add(1.07)
    return carry[0]._replace(memory=memory._replace(mean=mean)), carry[1]


def test_a_sound_state_goes_on_bit_by_bit():
    with jax.enable_x64(True):
        stepper, carry = alone("saga-pd")
        same, mended = stepper.mended(carry)
    assert not mended
    assert all(a is b for a, b in zip(*map(jax.tree.leaves, (carry, same)), strict=True))


@pytest.mark.parametrize("method", ["saga-pd", "lt-saga-pd"])
def test_a_running_mean_that_is_not_that_of_its_table_is_taken_anew(method):
    """On load, and in rounds that are multiples of a number, whoever was killed when."""
    with jax.enable_x64(True):
        stepper, carry = alone(method)
        good = np.asarray(carry[0].memory.mean)
        again, mended = stepper.mended(damaged(carry))
        assert mended
        np.testing.assert_allclose(again[0].memory.mean, good, atol=1e-14)
        assert off(stepper, step(stepper, damaged(carry), SUMS_EVERY + 1)) > 1  # it stays
        assert off(stepper, step(stepper, damaged(carry), SUMS_EVERY)) < 1e-12


def off(stepper, carry):
    """How far the running mean is from that of its table."""
    anew = stepper.with_sums_anew(carry)
    return np.abs(np.asarray(carry[0].memory.mean) - np.asarray(anew[0].memory.mean)).max()


def test_methods_without_such_sums_are_left_alone():
    with jax.enable_x64(True):
        stepper, carry = alone("pdmm")
        assert stepper.with_sums_anew(carry) is carry
