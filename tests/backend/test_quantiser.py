"""Rounding to few bits: near, in range, and to the same bits by NumPy and by compiled programs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from edgewise.backend.quantiser import hold, nearer, quantise, restore, take

BITS = [2, 3, 8, 16, 31, 32]


def rows(seed, scale=1.0):
    """Of several sizes in one block, one of them zero, one on halves of a unit."""
    V = (
        scale
        * np.random.default_rng(seed).standard_normal((5, 40))
        * np.logspace(-6, 6, 5)[:, None]
    )
    V[2] = 0
    V[3] = np.arange(-20, 20) * scale
    return V


@pytest.mark.parametrize("bits", BITS)
def test_numbers_are_rounded_to_the_nearest_multiple_in_reach(bits):
    V = rows(bits)
    codes, exponents = quantise(V, bits)
    units = np.ldexp(1.0, exponents)
    assert np.abs(codes).max() <= 2 ** (bits - 1) - 1
    assert np.array_equal(codes, np.rint(codes))
    assert (np.abs(restore(codes, exponents) - V) <= units / 2).all()
    # half of the unit would not do
    reach = (2 ** (bits - 1) - 1) * units / 2
    assert ((np.abs(V).max(1, keepdims=True) > reach) | (V == 0).all(1, keepdims=True)).all()


def test_zero_and_next_to_zero_are_zero():
    codes, exponents = quantise(np.array([[0.0, 0.0], [5e-324, -1e-320]]), 8)
    assert not codes.any()
    assert not exponents.any()


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("scale", [1e-290, 1e-20, 1.0, 1e90])
def test_numpy_and_compiled_programs_come_to_the_same_bits(bits, scale):
    """Also where a product is fused with a sum: held + code * unit."""

    def message(out, first, second, xp):
        held = take(hold(first, xp), np.zeros((5, 1), bool), second, xp)
        from_other, base = nearer(held, out, xp)
        codes, exponents = quantise(out - base, bits, xp)
        return codes, exponents, *take(held, from_other, base + restore(codes, exponents, xp), xp)

    given = [rows(seed, scale) for seed in (1, 2, 3)]
    with jax.enable_x64(True):
        compiled = jax.jit(lambda *a: message(*a, jnp))(*map(jnp.asarray, given))
    for ours, theirs in zip(message(*given, np), compiled, strict=True):
        assert np.array_equal(ours, theirs)
