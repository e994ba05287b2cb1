"""Samples of a stream, drawn for many rounds ahead."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from edgewise.data.stream import StreamReader
from edgewise.problem.block import Block
from edgewise.problem.rows import Dense


class StreamSamples:
    """One batch a node and step, from where the stream was read to."""

    def __init__(self, problem: Any, batch: int, seed: int, dtype: Any) -> None:
        self.problem, self.batch, self.dtype = problem, batch, dtype
        self.reader = StreamReader(problem.stream, batch, seed)

    def block(self, whole: Block) -> Block:
        """A block whose nodes hold one batch each; the samples come step by step."""
        begin = jnp.arange(self.problem.nodes, dtype=jnp.int64) * self.batch
        counts = jnp.full_like(begin, self.batch)
        return whole._replace(first=begin, counts=counts, rows=None, labels=None)

    def samples(self, first: int, steps: int) -> tuple[Dense, Any]:
        """(rows, labels) of the next `steps` steps."""
        nodes, batch = self.problem.nodes, self.batch
        X = np.empty((steps, nodes, batch, self.problem.shards.features), self.dtype)
        y = np.empty((steps, nodes, batch), self.dtype)
        for i in range(nodes):
            X[:, i], labels = self.reader.take(i, first, steps)
            y[:, i] = self.problem.encode(labels)
        rows = Dense(jnp.asarray(X.reshape(steps, nodes * batch, -1)), batch)
        return rows, jnp.asarray(y.reshape(steps, -1))
