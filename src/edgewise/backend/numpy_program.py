"""Programs that NumPy runs at once, where the compiler would take seconds: what JAX traces becomes
a Python function, a line per primitive."""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from edgewise.backend import numpy_indexing, numpy_random, numpy_shapes, numpy_sums  # noqa: F401
from edgewise.backend.numpy_rules import RULES, Unknown, dtype_of

CALLS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "remat2": "jaxpr",
    "checkpoint": "jaxpr",
}
MOST_FOLDED = 1 << 16  # numbers of a constant that is worked out ahead


class Known:
    """A value that is known when the function is written."""

    def __init__(self, value: Any) -> None:
        self.value = value


class NumpyProgram:
    """f of these arguments, or of others of their shapes; leaves come back as NumPy arrays.

    A scan goes on for as long as what it scans: of a program whose other shapes do not depend on
    that, the same one serves for any length. Raises Unknown where NumPy lacks a primitive.
    """

    def __init__(self, f: Callable[..., Any], args: tuple[Any, ...], **static: Any) -> None:
        jitted: Any = f if hasattr(f, "trace") else jax.jit(f, static_argnames=tuple(static))
        traced = jitted.trace(*args, **static)
        self.tree = jax.tree.structure(traced.out_info)
        self.function = function_of(traced.jaxpr)

    def __call__(self, *args: Any) -> Any:
        leaves = [array_of(a) for a in jax.tree.leaves(args)]
        with np.errstate(all="ignore"):
            made = self.function(*leaves)
        return jax.tree.unflatten(self.tree, [np.asarray(a) for a in made])


def array_of(a: Any) -> Any:
    if isinstance(a, np.ndarray):
        return a
    if isinstance(a, jax.Array) and is_key(a):
        return np.asarray(jax.random.key_data(a))
    return np.asarray(a)


def is_key(a: Any) -> bool:
    return jnp.issubdtype(a.dtype, jax.dtypes.prng_key)


def function_of(closed: Any) -> Callable[..., Sequence[Any]]:
    return Writer().written(closed)


class Writer:
    """Writes one function."""

    def __init__(self) -> None:
        self.lines: list[tuple[list[str], list[str], str]] = []
        self.names: dict[str, Any] = {}
        self.numbers = count()

    def written(self, closed: Any) -> Callable[..., Sequence[Any]]:
        given = [f"a{k}" for k in range(len(closed.jaxpr.invars))]
        found = self.emit(closed, given)
        ends = [self.named(a) for a in found]
        source = [f"def run({', '.join(given)}):"]
        source += [f"    {line}" for line in self.needed(ends)]
        source.append(f"    return [{', '.join(ends)}]")
        exec("\n".join(source), self.names)
        run: Callable[..., Sequence[Any]] = self.names["run"]
        return run

    def needed(self, ends: list[str]) -> list[str]:
        """The lines whose outcome somebody reads."""
        wanted, kept = set(ends), []
        for outs, ins, line in reversed(self.lines):
            if wanted.intersection(outs):
                wanted.update(ins)
                kept.append(line)
        return kept[::-1]

    def emit(self, closed: Any, given: Sequence[Any]) -> list[Any]:
        """Names, or what is Known, of the outcome."""
        jaxpr = closed.jaxpr
        env: dict[Any, Any] = dict(zip(jaxpr.invars, given, strict=True))
        env.update(
            (v, Known(array_of(c))) for v, c in zip(jaxpr.constvars, closed.consts, strict=True)
        )

        def read(atom: Any) -> Any:
            if isinstance(atom, Literal):
                return Known(dtype_of(atom).type(atom.val))
            return env[atom]

        for eqn in jaxpr.eqns:
            name, ins = eqn.primitive.name, [read(a) for a in eqn.invars]
            if name in CALLS:
                made = self.emit(as_closed(eqn.params[CALLS[name]]), ins)
            else:
                made = self.line(eqn, ins)
            env.update(zip(eqn.outvars, made, strict=True))
        return [read(a) for a in jaxpr.outvars]

    def line(self, eqn: Any, ins: list[Any]) -> list[Any]:
        function = rule_of(eqn)
        several = eqn.primitive.multiple_results
        size = sum(int(np.prod(v.aval.shape)) for v in eqn.outvars)
        if all(isinstance(a, Known) for a in ins) and size <= MOST_FOLDED:
            with np.errstate(all="ignore"):
                made = function(*(a.value for a in ins))
            return [Known(a) for a in (made if several else [made])]
        outs = [f"v{next(self.numbers)}" for _ in eqn.outvars]
        called, named = f"f{next(self.numbers)}", [self.named(a) for a in ins]
        self.names[called] = function
        left = ", ".join(outs) + ("," if several and outs else "")
        self.lines.append((outs, named, f"{left or '_'} = {called}({', '.join(named)})"))
        return list(outs)

    def named(self, a: Any) -> str:
        if isinstance(a, str):
            return a
        name = f"k{next(self.numbers)}"
        self.names[name] = a.value
        return name


def as_closed(jaxpr: Any) -> Any:
    return jaxpr if hasattr(jaxpr, "consts") else ClosedJaxpr(jaxpr, [])


def rule_of(eqn: Any) -> Callable[..., Any]:
    name = eqn.primitive.name
    if name in CONTROL:
        return CONTROL[name](eqn)
    known = name.startswith("random_") or not any(
        jnp.issubdtype(v.aval.dtype, jax.dtypes.extended) for v in (*eqn.invars, *eqn.outvars)
    )
    if name not in RULES or not known or eqn.effects:
        raise Unknown(name)
    return RULES[name](eqn)


def while_loop(eqn: Any) -> Callable[..., Any]:
    p = eqn.params
    goes_on, body = function_of(p["cond_jaxpr"]), function_of(p["body_jaxpr"])
    first, second = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]

    def run(*args: Any) -> Any:
        of_condition, of_body = args[:first], args[first:second]
        carry: Sequence[Any] = args[second:]
        while goes_on(*of_condition, *carry)[0]:
            carry = body(*of_body, *carry)
        return carry

    return run


def scan(eqn: Any) -> Callable[..., Any]:
    p = eqn.params
    body, constants = function_of(p["jaxpr"]), p["num_consts"]
    begin, length, reverse = constants + p["num_carry"], p["length"], p["reverse"]
    kinds = [(v.aval.shape[1:], np.dtype(v.aval.dtype)) for v in eqn.outvars[p["num_carry"] :]]

    def run(*args: Any) -> Any:
        fixed, scanned = args[:constants], args[begin:]
        carry: Sequence[Any] = args[constants:begin]
        many = len(scanned[0]) if scanned else length
        kept = [np.empty((many, *shape), dtype) for shape, dtype in kinds]
        for k in range(many)[:: -1 if reverse else 1]:
            made = body(*fixed, *carry, *(a[k] for a in scanned))
            carry = made[: len(carry)]
            for a, new in zip(kept, made[len(carry) :], strict=True):
                a[k] = new
        return [*carry, *kept]

    return run


def cond(eqn: Any) -> Callable[..., Any]:
    branches = [function_of(b) for b in eqn.params["branches"]]
    last = len(branches) - 1

    def run(which: Any, *args: Any) -> Any:
        return branches[min(max(int(which), 0), last)](*args)

    return run


CONTROL: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "while": while_loop,
    "scan": scan,
    "cond": cond,
}
