"""What NumPy does for each of JAX's primitives: a rule makes, of an equation, a function of arrays.

A rule that raises Unknown, or a primitive without one, leaves its program to the compiler.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

Rule = Callable[[Any], Callable[..., Any]]
RULES: dict[str, Rule] = {}


class Unknown(Exception):
    """NumPy is not told what this primitive does."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    def add(made: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, made))
        return made

    return add


def shape_of(eqn: Any) -> tuple[int, ...]:
    return tuple(map(int, eqn.outvars[0].aval.shape))


def dtype_of(atom: Any) -> np.dtype[Any]:
    return np.dtype(atom.aval.dtype)


SAME: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "add_any": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "neg": np.negative,
    "max": np.maximum,
    "min": np.minimum,
    "rem": np.fmod,
    "pow": np.power,
    "abs": np.absolute,
    "sign": np.sign,
    "sqrt": np.sqrt,
    "square": np.square,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "tanh": np.tanh,
    "sin": np.sin,
    "cos": np.cos,
    "atan2": np.arctan2,
    "floor": np.floor,
    "ceil": np.ceil,
    "is_finite": np.isfinite,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "shift_left": np.left_shift,
    "shift_right_arithmetic": np.right_shift,
}
for name, function in SAME.items():
    RULES[name] = lambda eqn, function=function: function  # type: ignore[misc]


@rule("copy", "copy_p", "stop_gradient")
def itself(eqn: Any) -> Any:
    return lambda a: a


@rule("optimization_barrier")
def themselves(eqn: Any) -> Any:
    return lambda *each: each


@rule("div")
def divide(eqn: Any) -> Any:
    if dtype_of(eqn.invars[0]).kind == "f":
        return np.true_divide
    return lambda a, b: (a - np.fmod(a, b)) // b


@rule("integer_pow")
def integer_pow(eqn: Any) -> Any:
    y = eqn.params["y"]
    if y == 2:
        return np.square
    return lambda a: np.power(a, y) if y > 0 else 1 / np.power(a, -y)


@rule("rsqrt")
def rsqrt(eqn: Any) -> Any:
    return lambda a: 1 / np.sqrt(a)


@rule("logistic")
def logistic(eqn: Any) -> Any:
    return lambda a: 1 / (1 + np.exp(-a))


@rule("round")
def rounded(eqn: Any) -> Any:
    if int(eqn.params["rounding_method"]) == 1:
        return np.rint
    return lambda a: np.copysign(np.floor(np.abs(a) + 0.5), a)


@rule("erf", "erfc", "erf_inv", "lgamma", "digamma")
def special(eqn: Any) -> Any:
    from scipy import special as functions

    name = {"erf_inv": "erfinv", "lgamma": "gammaln", "digamma": "psi"}
    return getattr(functions, name.get(eqn.primitive.name, eqn.primitive.name))


@rule("le_to")
def le_in_order(eqn: Any) -> Any:
    return lambda a, b: (a <= b) | (b != b)


@rule("lt_to")
def lt_in_order(eqn: Any) -> Any:
    return lambda a, b: (a < b) | ((b != b) & (a == a))


@rule("shift_right_logical")
def shift_right(eqn: Any) -> Any:
    dtype = dtype_of(eqn.invars[0])
    if dtype.kind == "u":
        return np.right_shift
    unsigned = np.dtype(f"u{dtype.itemsize}")
    return lambda a, b: np.right_shift(
        np.asarray(a).view(unsigned), np.asarray(b).view(unsigned)
    ).view(dtype)


@rule("bitcast_convert_type")
def bitcast(eqn: Any) -> Any:
    dtype = np.dtype(eqn.params["new_dtype"])
    if dtype.itemsize != dtype_of(eqn.invars[0]).itemsize:
        raise Unknown("bitcast_convert_type")
    return lambda a: np.ascontiguousarray(a).view(dtype).reshape(np.shape(a))


@rule("convert_element_type")
def convert(eqn: Any) -> Any:
    old, new = dtype_of(eqn.invars[0]), np.dtype(eqn.params["new_dtype"])
    if old.kind == "f" and new.kind in "iu":  # XLA's are nearest, and zero where there is none
        least, most = (np.asarray(b, old) for b in (np.iinfo(new).min, np.iinfo(new).max))

        def nearest(a: Any) -> Any:
            inside = np.where(a == a, a, 0).astype(new)
            inside = np.where(a >= most, np.iinfo(new).max, inside)
            return np.where(a <= least, np.iinfo(new).min, inside).astype(new)

        return nearest
    return lambda a: a.astype(new)


@rule("select_n")
def select(eqn: Any) -> Any:
    if dtype_of(eqn.invars[0]).kind == "b" and not eqn.invars[0].aval.shape:
        return lambda which, no, yes: yes if which else no
    if dtype_of(eqn.invars[0]).kind == "b":
        return lambda which, no, yes: np.where(which, yes, no)
    return lambda which, *cases: np.choose(which, cases)


@rule("clamp")
def clamp(eqn: Any) -> Any:
    return lambda low, a, high: np.minimum(np.maximum(a, low), high)
