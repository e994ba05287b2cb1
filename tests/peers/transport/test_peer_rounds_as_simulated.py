"""Messages of few bits: what a peer makes of them is what the simulator says, bit for bit."""

import jax
import numpy as np
import pytest
from uneven import problem_of

import edgewise as ew
from edgewise.engines.faulty_executor import FaultyExecutor
from edgewise.methods.catalogue import make
from edgewise.peers.transport.delta_encoding import DeltaCodec
from edgewise.peers.transport.frames import MessageFormat

GRAPH = ew.Graph.ring(4)
ROUNDS = 24


@pytest.mark.parametrize("bits", [3, 8])
@pytest.mark.parametrize("awake", [1.0, 0.6])
def test_a_simulated_message_and_a_peers_are_the_same_bits(bits, awake):
    problem = problem_of(7, 4)
    method = ew.PrimalDual(make("saga-pd").gradient, form="edge")
    format = MessageFormat(1, problem.size, "float64", bits)
    ways = range(2 * GRAPH.edge_count)
    sender, receiver = [[DeltaCodec(format) for _ in ways] for _ in range(2)]
    compared = 0
    with jax.enable_x64(True):
        faults = ew.Faults(bits=bits, awake=awake)
        made = FaultyExecutor(problem, GRAPH, method, 0, np.dtype("float64"), faults)
        carry = made.start(np.zeros((4, problem.size)), None)
        other_way = np.asarray(made.wires.reverse)
        for t in range(ROUNDS):
            _, (outbox,), mail = jax.tree.map(np.array, carry)
            carry, _ = made.advance(carry, t, 1)
            (heard,) = jax.tree.map(np.array, carry[2].heard)
            for way in ways:
                if not mail.fresh[made.graph.directed.owner[way]]:
                    continue
                if sender[way].held is None:
                    got = outbox[way][None]
                    sender[way].whole(got)
                    receiver[way].whole(got)
                else:
                    body = sender[way].encode(outbox[way][None])
                    assert len(body) == made.message_bytes == format.delta_bytes
                    got = receiver[way].decode(body)
                assert np.array_equal(got[0], heard[other_way[way]])
                compared += 1
    assert compared > 0.4 * ROUNDS * len(ways)
