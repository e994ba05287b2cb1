"""Functions of vectors, number by number, that LLVM has no instructions for; and losses of margins.

The formulas of losses are those of `problem.losses`, which the tests hold them to.
"""

# mypy: ignore-errors
# (Numba has types of its own.)
import math

from llvmlite import ir
from numba import njit
from numba.extending import intrinsic

from edgewise.engines.native.estimators import HUBER, LOGISTIC, SQUARED
from edgewise.engines.native.kernels import FAST
from edgewise.engines.native.vectors import VECTORS, WIDTH, clip, filled, machine_type

LEAST, MOST = -708.0, 709.0  # of arguments of exp: beyond, it is as good as zero, or infinite
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
WHOLE = 1.5 * 2.0**52  # added to a number it leaves no digits behind the point
TAYLOR = 13  # of exp within ln(2) / 2: terms beyond are less than rounding
ATANH = 16  # of log(1 + u), u up to 1


@intrinsic
def smaller(context, a, b):
    def code(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered("<", *args), *args)

    return a(a, b), code


@intrinsic
def larger(context, a, b):
    def code(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">", *args), *args)

    return a(a, b), code


WIDE = machine_type(VECTORS[64, WIDTH])


def number(a):
    return ir.Constant(WIDE, [a] * WIDTH)


def added(builder, a, b, c):
    """a b + c"""
    return builder.fadd(builder.fmul(a, b, flags=["contract"]), c, flags=["contract"])


def polynomial(builder, x, terms):
    made = number(terms[-1])
    for term in terms[-2::-1]:
        made = added(builder, made, x, number(term))
    return made


def in_64_bits(make):
    """`make` of a value's numbers, which may have 32 bits."""

    def typed(context, value):
        def code(context, builder, signature, args):
            x = args[0] if value.bitwidth == 64 else builder.fpext(args[0], WIDE)
            made = make(builder, x)
            return made if value.bitwidth == 64 else builder.fptrunc(made, machine_type(value))

        return value(value), code

    return intrinsic(typed)


@in_64_bits
def exp_of(builder, x):
    """2^k times a polynomial."""
    bits = ir.VectorType(ir.IntType(64), WIDTH)
    x = builder.select(builder.fcmp_ordered("<", x, number(LEAST)), number(LEAST), x)
    x = builder.select(builder.fcmp_ordered(">", x, number(MOST)), number(MOST), x)
    shifted = added(builder, x, number(1 / math.log(2)), number(WHOLE))
    k = builder.fsub(shifted, number(WHOLE))
    r = added(builder, k, number(-LN2_HIGH), x)
    r = added(builder, k, number(-LN2_LOW), r)
    made = polynomial(builder, r, [1 / math.factorial(n) for n in range(TAYLOR + 1)])
    # the last digits of `shifted` are k: they make the exponent of 2^k
    power = builder.shl(builder.bitcast(shifted, bits), ir.Constant(bits, [52] * WIDTH))
    power = builder.add(power, ir.Constant(bits, [1023 << 52] * WIDTH))
    return builder.fmul(made, builder.bitcast(power, WIDE))


@in_64_bits
def log1p_of(builder, u):
    """log(1 + u) = 2 atanh(s), s = u / (2 + u), for u within 0 and 1."""
    s = builder.fdiv(u, builder.fadd(u, number(2.0)))
    squared = builder.fmul(s, s)
    series = polynomial(builder, squared, [2 / (2 * k + 1) for k in range(ATANH + 1)])
    return builder.fmul(s, series)


@njit(fastmath=FAST, forceinline=True)
def slopes_of(loss, of_loss, z, y, like):
    """Of the losses of many samples, at margins z."""
    if loss == LOGISTIC:
        return (filled(0.0, like) - y) / (filled(1.0, like) + exp_of(y * z))
    if loss == SQUARED:
        return z - y
    bound = filled(of_loss, like)
    if loss == HUBER:
        return clip(z - y, bound)
    short = larger(filled(1.0, like) - y * z, filled(0.0, like))
    return (filled(0.0, like) - y) * smaller(short, bound) / bound


@njit(fastmath=FAST, forceinline=True)
def values_of(loss, of_loss, z, y, like):
    """The losses of many samples, at margins z."""
    nothing = filled(0.0, like)
    if loss == LOGISTIC:
        t = nothing - y * z
        return larger(t, nothing) + log1p_of(exp_of(smaller(t, nothing - t)))
    half, off, bound = filled(0.5, like), z - y, filled(of_loss, like)
    if loss == SQUARED:
        return half * (off * off)
    if loss == HUBER:
        near = clip(off, bound)
        return near * off - half * (near * near)
    short = larger(filled(1.0, like) - y * z, nothing)
    near = smaller(short, bound)
    return near * (short - half * near) / bound
