"""Programs that NumPy runs, held to what JAX's compiler makes of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import edgewise as ew
from edgewise.backend import programs
from edgewise.backend.numpy_program import NumpyProgram
from edgewise.backend.numpy_rules import Unknown
from edgewise.backend.random_bits import draw_bits, draw_by_numpy, seed_key
from edgewise.engines import early_rounds
from edgewise.running import evaluator

RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((2, 4, 3))
S = RNG.standard_normal((2, 3, 3))
S = S @ S.transpose(0, 2, 1) + np.eye(3)
AT = np.array([[3, 0], [-1, 9], [2, 2]])


def elementwise(A, B):
    k = (A * 7).astype(int)
    return (
        *(jnp.sign(A) + jax.nn.sigmoid(B), jnp.where(A > B, A**3, A**-2), jnp.log1p(jnp.exp(A))),
        *(k // 3, k % 5, lax.div(k, 3), lax.rem(k, 3), k << 2, lax.shift_right_logical(k, 5)),
        *(jnp.round(A, 1), jnp.clip(A, -0.5, B), (A * jnp.inf).astype(jnp.int32), ~(A > 0)),
        *(jax.scipy.special.erf(A), lax.rsqrt(jnp.abs(B)), jnp.hypot(A, B), A.astype(jnp.float32)),
    )


def shapes(A, B):
    return (
        *(A.T[::-1], A[1:, ::2], A[:, None] + B[None], jnp.pad(A, ((1, 0), (0, 2)))),
        *(jnp.concatenate([A, B], 1), jnp.stack([A, B], 1), jnp.split(A, [1], 1)[1]),
        lax.dynamic_slice(A, (3, 1), (2, 2)),
        lax.dynamic_update_slice(A, B[:2, :2], (3, -4)),
        lax.pad(A, 0.5, ((1, 0, 2), (0, 1, 0))),
    )


def sums(A, B):
    return (
        *(A.sum(0), A.max(1), A.min(), jnp.prod(A, 1), (A > 0).any(0), (A > B).all(), A.argmax(0)),
        *(jnp.cumsum(A, 1), lax.cummax(A, 0, reverse=True), jnp.sort(A, 0), jnp.argsort(A, 1)),
        *(jnp.einsum("vp,wp->vw", A, B), jnp.einsum("vp,vp->v", A, B), A @ B.T, A[0] @ B[1]),
        jnp.einsum("vij,vdi->vdj", A[:, :, None], B[:, :, None]),
        jnp.searchsorted(jnp.sort(A[0]), B[0]),
    )


def indexing(A, B):
    at = jnp.asarray(AT)
    out = [A.at[at].get(mode=m) for m in ("clip", "promise_in_bounds")]
    out += [A.at[at].get(mode="fill", fill_value=0), A.at[at].get(mode="fill"), A[:, at[0, 1]]]
    out += [A[at[:, 0], at[:, 1] % 3], jax.vmap(lambda a, k: a[k])(A, at[jnp.array([0, 1, 2, 0])])]
    for mode in ("drop", "clip"):
        put = A.at[at[:, 1]]
        out += [put.add(B[:3], mode=mode), put.max(B[:3], mode=mode), put.multiply(2.0, mode=mode)]
        out += [A.at[at[:2, 0], 1].set(B[:2, 0], mode=mode)]
    return (*out, jax.ops.segment_sum(B, np.array([0, 2, 2, 7]), 4), A.at[1].set(B[2]))


def loops(A, B):
    def body(carry, a):
        return jnp.tanh(carry + a), carry[0] * a

    carried = lax.scan(body, A[0], B)
    back = lax.scan(body, A[0], B, reverse=True)
    halved = lax.while_loop(lambda c: c[1] > 1e-2, lambda c: (c[0] + 1, c[1] / 2), (0, A[0, 0] + 9))
    summed = lax.fori_loop(0, 4, lambda k, s: s + A[k] * k, A[0])
    branch = lax.cond(A.sum() > 0, lambda a: a + 1, lambda a: a * 2, A)
    chosen = lax.switch(jnp.int32(7), [jnp.sin, jnp.cos, jnp.negative], A)
    return carried, back, halved, summed, branch, chosen


def systems(S, B):
    L = jnp.linalg.cholesky(S)
    solve = [
        lax.linalg.triangular_solve(
            L, B[:2, :, None] + S, left_side=left, lower=True, transpose_a=t
        )
        for left in (True, False)
        for t in (True, False)
    ]
    return (
        L,
        jnp.linalg.cholesky(S - 3 * jnp.eye(3)),
        jax.scipy.linalg.cho_solve((L[0], True), B[0]),
        solve,
    )


def random(A, B):
    key = jax.random.fold_in(jax.random.key(5), 7)
    few = jax.vmap(lambda i: jax.random.bits(jax.random.fold_in(key, i), (3,)))(jnp.arange(3))
    return few, jax.random.normal(key, (2, 3)), jax.random.bits(key, (2,), "uint64")


@pytest.fixture(autouse=True)
def _by_numpy(monkeypatch):
    monkeypatch.setenv("EDGEWISE_NUMPY", "1")


@pytest.mark.parametrize("f", [elementwise, shapes, sums, indexing, loops, random])
@pytest.mark.parametrize("x64", [True, False])
def test_every_primitive_gives_what_the_compiler_gives(f, x64):
    with jax.enable_x64(x64):
        args = (A, B) if x64 else (A.astype(np.float32), B.astype(np.float32))
        held(f, args, 1e-13 if x64 else 1e-5)


def test_systems():
    with jax.enable_x64(True):
        held(systems, (S, B), 1e-12)


def held(f, args, rounding):
    expected, found = jax.jit(f)(*args), NumpyProgram(f, args)(*args)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert isinstance(a, np.ndarray)
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rounding, rounding)


def test_no_argument_is_changed():
    with jax.enable_x64(True):
        given = A.copy()
        program = NumpyProgram(lambda a: a.at[0].set(1.0).at[1].add(2.0), (given,))
        program(given)
    assert np.array_equal(given, A)


def test_a_primitive_that_numpy_is_not_told_of_is_left_to_the_compiler():
    with jax.enable_x64(True):
        with pytest.raises(Unknown, match="eig"):
            NumpyProgram(jnp.linalg.eigh, (S,))
        assert programs.interpreted(jnp.linalg.eigh, (S,)) is None


def test_large_arguments_are_left_to_the_compiler():
    assert programs.interpreted(jnp.sin, (np.ones(10),)) is not None
    assert programs.interpreted(jnp.sin, (np.ones(programs.SMALL // 8 + 1),)) is None


@pytest.mark.parametrize("seed", [0, 7, 2**40 + 3])
def test_numpy_draws_the_same_bits(seed):
    with jax.enable_x64(True):
        ids, rounds = np.arange(3, dtype=np.int32), np.arange(5, 9)
        expected = draw_bits(jax.random.key(seed), ids, rounds, 5)
        assert np.array_equal(draw_by_numpy(seed_key(seed), ids, rounds, 5), expected)


X = RNG.standard_normal((60, 3))
Y = np.where(X @ [1.0, -2.0, 0.5] + 0.3 * RNG.standard_normal(60) > 0, 1, -1)


def run(monkeypatch, by_numpy, method, **options):
    monkeypatch.setenv("EDGEWISE_NUMPY", "1" if by_numpy else "0")
    penalty = None if method.startswith("gt") else ew.L1(0.01)
    problem = ew.Problem(ew.split(X, Y, nodes=4), ew.Logistic(ridge=0.1), penalty=penalty)
    given = {"rounds": 40, "record_every": 10, **options}
    return ew.solve(problem, ew.Graph.ring(4), method, **given)


@pytest.mark.parametrize("method", ["newton-pd", "saga-pd", "gt-saga"])
def test_early_rounds_are_those_of_the_compiled_program(monkeypatch, method):
    found, expected = (run(monkeypatch, by_numpy, method) for by_numpy in (True, False))
    size = np.abs(expected.X).max()
    np.testing.assert_allclose(found.X, expected.X, atol=1e-6 * size)  # matrices go in 32 bits
    for column in ("oracle_calls", "vectors_sent", "bytes_sent", "rounds"):
        assert np.array_equal(found.trace[column], expected.trace[column])
    for column in ("residual", "objective_gap", "consensus"):
        first = np.abs(expected.trace[column]).max()
        np.testing.assert_allclose(found.trace[column], expected.trace[column], atol=1e-5 * first)


@pytest.mark.parametrize("method", ["auto", "saga-pd"])
def test_a_small_run_compiles_nothing(monkeypatch, method):
    said = []

    def hear(name, *_, **__):
        said.append(name)

    jax.clear_caches()
    jax.monitoring.register_event_duration_secs_listener(hear)
    try:
        run(monkeypatch, True, method)
    finally:
        jax.monitoring.unregister_event_duration_listener(hear)
    assert any("jaxpr_trace" in name for name in said)
    assert not [name for name in said if "backend_compile" in name]


def test_a_run_goes_on_from_early_rounds_to_later_ones(monkeypatch, tmp_path):
    """To the identical result, wherever it was stopped."""
    for module in (early_rounds, evaluator):
        monkeypatch.setattr(module, "EARLY_ROUNDS", 400)
    options = {"rounds": 500, "record_every": 50}
    whole = run(monkeypatch, True, "saga-pd", **options)
    for stop in (300, 450):
        path = tmp_path / f"{stop}.ckpt"
        run(monkeypatch, True, "saga-pd", checkpoint=path, **{**options, "rounds": stop})
        again = run(monkeypatch, True, "saga-pd", checkpoint=path, **options)
        assert np.array_equal(again.X, whole.X)
        assert np.array_equal(again.trace["residual"], whole.trace["residual"])
