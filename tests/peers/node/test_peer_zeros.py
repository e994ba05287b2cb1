"""A peer's own model at the end of a fit, with the zeros that it can tell by itself."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("cryptography", reason="peers need cryptography: pip install 'edgewise[peers]'")

from edgewise.peers.node.peer import Peer

X = np.array([1.0, 1e-11, 2e-11, 1e-5, 3e-11])
MEASURED = {
    "settled": np.array([1.0, 0, 2e-11, 1e-5, 3e-11]),  # a step takes the second to zero
    "shrunk": np.array([0.9, 0, 0, 0, 3e-11]),  # the penalty alone these three, not the last
}


@pytest.mark.parametrize(
    ("penalised", "tol", "residual", "zeros"),
    [
        (True, 1e-6, 1e-7, [False, True, True, False, False]),  # 1e-5 is more than tol * step
        (True, 1e-6, 1e-5, [False] * 5),  # it has not converged
        (True, None, 1e-9, [False] * 5),
        (False, 1e-6, 1e-7, [False] * 5),
    ],
)
def test_zeros_of_a_peer(penalised, tol, residual, zeros):
    peer = SimpleNamespace(
        problem=SimpleNamespace(penalised=penalised),
        config=SimpleNamespace(fit=SimpleNamespace(tol=tol)),
        stepper=SimpleNamespace(step_length=np.full((1, 1), 0.1)),
        residual=residual,
    )
    x = Peer.with_zeros(peer, X, MEASURED)
    np.testing.assert_array_equal(x == 0, zeros)
    np.testing.assert_array_equal(x[x != 0], X[x != 0])
