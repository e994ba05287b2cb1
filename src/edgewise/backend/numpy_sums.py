"""How NumPy adds up, sorts and solves what JAX's primitives do."""

from math import prod
from typing import Any

import numpy as np

from edgewise.backend.numpy_rules import Unknown, dtype_of, rule, shape_of

REDUCTIONS: dict[str, Any] = {
    "reduce_sum": np.add,
    "reduce_prod": np.multiply,
    "reduce_and": np.bitwise_and,
    "reduce_or": np.bitwise_or,
    "reduce_max": np.maximum,
    "reduce_min": np.minimum,
}


@rule(*REDUCTIONS)
def reduce(eqn: Any) -> Any:
    ufunc, axes = REDUCTIONS[eqn.primitive.name], tuple(eqn.params["axes"])
    dtype = dtype_of(eqn.invars[0])
    if ufunc in (np.maximum, np.minimum):
        if 0 in eqn.invars[0].aval.shape:
            raise Unknown(eqn.primitive.name)
        return lambda a: ufunc.reduce(a, axes)
    return lambda a: ufunc.reduce(a, axes, dtype)


@rule("argmax", "argmin")
def argmax(eqn: Any) -> Any:
    find, (axis,) = getattr(np, eqn.primitive.name), eqn.params["axes"]
    dtype = np.dtype(eqn.params["index_dtype"])
    return lambda a: find(a, axis).astype(dtype)


CUMULATIVE: dict[str, Any] = {
    "cumsum": np.add,
    "cumprod": np.multiply,
    "cummax": np.maximum,
    "cummin": np.minimum,
}


@rule(*CUMULATIVE)
def cumulate(eqn: Any) -> Any:
    ufunc, axis = CUMULATIVE[eqn.primitive.name], eqn.params["axis"]
    dtype = dtype_of(eqn.invars[0])
    if eqn.params["reverse"]:
        return lambda a: np.flip(ufunc.accumulate(np.flip(a, axis), axis, dtype), axis)
    return lambda a: ufunc.accumulate(a, axis, dtype)


@rule("sort")
def sort(eqn: Any) -> Any:
    axis, keys = eqn.params["dimension"], eqn.params["num_keys"]

    def sorted_by(*each: Any) -> Any:
        if len(each) == 1:
            return (np.sort(each[0], axis, kind="stable"),)
        if keys == 1:
            order = np.argsort(each[0], axis, kind="stable")
        else:
            order = np.lexsort(each[:keys][::-1], axis)
        return [np.take_along_axis(a, order, axis) for a in each]

    return sorted_by


@rule("dot_general")
def dot_general(eqn: Any) -> Any:
    """As a product of stacked matrices."""
    (left, right), (many, others) = eqn.params["dimension_numbers"]
    a, b = (v.aval for v in eqn.invars)
    rows = [d for d in range(len(a.shape)) if d not in (*left, *many)]
    columns = [d for d in range(len(b.shape)) if d not in (*right, *others)]
    lead = [a.shape[d] for d in many]
    inner = prod(a.shape[d] for d in left)
    first = (*lead, prod(a.shape[d] for d in rows), inner)
    second = (*lead, inner, prod(b.shape[d] for d in columns))
    one, two = (*many, *rows, *left), (*others, *right, *columns)
    shape, dtype = shape_of(eqn), dtype_of(eqn.outvars[0])

    def product(a: Any, b: Any) -> Any:
        a, b = a.transpose(one).reshape(first), b.transpose(two).reshape(second)
        return np.matmul(a, b).reshape(shape).astype(dtype, copy=False)

    return product


@rule("cholesky")
def cholesky(eqn: Any) -> Any:
    def factor(A: Any) -> Any:
        try:
            return np.linalg.cholesky(A)
        except np.linalg.LinAlgError:  # not of all of them
            flat = A.reshape(-1, *A.shape[-2:])
            return np.stack([factor_or_none(M) for M in flat]).reshape(A.shape)

    return factor


def factor_or_none(M: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        return np.full_like(M, np.nan)


@rule("triangular_solve")
def triangular_solve(eqn: Any) -> Any:
    p = eqn.params
    if p["conjugate_a"] or dtype_of(eqn.invars[0]).kind != "f":
        raise Unknown("triangular_solve")
    from scipy.linalg.blas import dtrsm, strsm

    trsm = dtrsm if dtype_of(eqn.invars[0]) == np.float64 else strsm
    how = {
        "side": 0 if p["left_side"] else 1,
        "lower": p["lower"],
        "trans_a": int(p["transpose_a"]),
        "diag": p["unit_diagonal"],
    }

    def solve(A: Any, B: Any) -> Any:
        out = np.empty_like(B)
        flat = out.reshape(-1, *B.shape[-2:])
        pairs = zip(A.reshape(-1, *A.shape[-2:]), B.reshape(flat.shape), strict=True)
        for k, (a, b) in enumerate(pairs):
            flat[k] = trsm(1.0, a, b, **how) if b.size else b
        return out

    return solve
