"""Nodes spread over several devices: each runs the same steps on a block of its own, and only
what neighbours on other devices need goes from one to another.

Every array has a leading axis of devices here, one entry each; within a program a device sees its
own entry alone, which is a block like any other.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from edgewise.backend.random_bits import draw
from edgewise.backend.threads import on_host
from edgewise.engines.device_layout import AXIS, Crossing, Layout
from edgewise.engines.simulator import Simulator, begin, look, run_rounds
from edgewise.engines.wires import connect, edge_duals
from edgewise.errors import MethodError, whole_number
from edgewise.graph.graph import Graph
from edgewise.methods.contract import Method
from edgewise.running.evaluator import Gauge


@lru_cache(maxsize=64)
def on_each(mesh: Mesh, f: Callable[..., Any]) -> Callable[..., Any]:
    """f as every device runs it on its own entry. Kept, so that programs are found again."""

    def everywhere(*args: Any, **static: Any) -> Any:
        def here(*args: Any) -> Any:
            own = jax.tree.map(lambda a: a[0], args)
            return jax.tree.map(lambda a: a[None], f(*own, **static))

        spec = PartitionSpec(AXIS)
        return jax.shard_map(here, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)(*args)

    return everywhere


@lru_cache(maxsize=64)
def jitted(mesh: Mesh, f: Callable[..., Any], *static: str) -> Callable[..., Any]:
    return jax.jit(on_each(mesh, f), static_argnames=static)


def origin(p: Any, X: Array, eta: Array) -> Array:
    X0: Array = p.penalty.prox(X, eta)
    return X0


class ShardedSimulator(Simulator):
    """The simulator with its nodes in equal stretches over `devices`."""

    def __init__(
        self, problem: Any, graph: Graph, method: Method, seed: int, dtype: Any, devices: list[Any]
    ) -> None:
        self.mesh = Mesh(np.array(devices), (AXIS,))
        self.sharding = NamedSharding(self.mesh, PartitionSpec(AXIS))
        self.layout = Layout(graph, problem.counts, len(devices))
        self.program, self.begin = on_each(self.mesh, run_rounds), on_each(self.mesh, begin)
        super().__init__(problem, graph, method, seed, dtype)

    def lay_out(self, weights: dict[str, np.ndarray]) -> None:
        """Every device its own part, built on the host: the whole is never on one device."""
        layout = self.layout
        with on_host():
            links, _ = jax.tree.map(np.asarray, connect(self.graph, weights, self.dtype))
            whole = self.problem.block(links, self.dtype, rows=())
            self.network: Crossing = self.spread(layout.crossing(k, links) for k in layout.range)
            self.methods = self.spread(layout.of_nodes(k, self.method) for k in layout.range)
            rows = layout.rows(self.problem, self.dtype)
            self.block = self.spread(layout.block(k, whole, rows(k)) for k in layout.range)

    def spread(self, parts: Any) -> Any:
        """One tree per device, alike in shape -> one tree; each part is put where it belongs before
        the next one is made."""
        placed = [
            jax.tree.map(lambda a, device=device: jax.device_put(np.asarray(a)[None], device), part)
            for device, part in zip(self.mesh.devices, parts, strict=True)
        ]

        def join(*leaves: Array) -> Array:
            shape = (len(leaves), *leaves[0].shape[1:])
            return jax.make_array_from_single_device_arrays(shape, self.sharding, list(leaves))

        return jax.tree.map(join, *placed)

    def of_nodes(self, a: np.ndarray) -> Array:
        whole = np.asarray(a, self.dtype)
        out: Array = self.spread(self.layout.of_nodes(k, whole) for k in self.layout.range)
        return out

    def origin(self) -> np.ndarray:
        zero = np.zeros((self.problem.nodes, self.problem.size))
        prox = jitted(self.mesh, origin)
        return self.layout.joined(prox(self.block, self.of_nodes(zero), self.of_nodes(self.eta)))

    def starting(self, X: np.ndarray, duals: np.ndarray | None) -> tuple[Any, ...]:
        D = None
        if duals is not None and "each" in self.method.hears:
            flows = edge_duals(self.graph, duals).astype(self.dtype)
            D = self.spread(self.layout.of_edges(k, flows) for k in self.layout.range)
        elif duals is not None:
            D = self.of_nodes(duals)
        return self.methods, self.block, self.of_nodes(X), D

    def arguments(self, carry: Any, first: int, steps: int) -> tuple[Any, ...]:
        carry = jax.device_put(carry, self.sharding)  # a checkpoint's comes from one device
        return self.methods, *super().arguments(carry, first, steps)[1:]

    def random_bits(self, first: int, steps: int) -> Array:
        """(D, steps, phases, v, draws), each device drawing its own."""
        phases, D = len(self.method.phases), self.layout.devices
        at = jnp.broadcast_to(first + jnp.arange(steps * phases), (D, steps * phases))
        seeds = jnp.broadcast_to(self.seed, (D,))
        draw_each = jitted(self.mesh, draw, "draws")
        noise: Array = draw_each(seeds, self.block.ids, at, draws=self.method.random_draws)
        return noise.reshape(D, steps, phases, *noise.shape[2:])

    def view(self, carry: Any) -> tuple[Any, Any]:
        carry = jax.device_put(carry, self.sharding)
        found = jitted(self.mesh, look)(self.methods, self.network, self.block.links, carry)
        return self.layout.joined(found[0]), self.layout.joined(found[1])

    def per_node(self, a: Any) -> np.ndarray:
        return self.layout.joined(a)

    @property
    def residents(self) -> None:
        return None

    def gauge(self) -> Gauge:
        return HostGauge(self.problem, self.graph)

    @property
    def bytes_between_devices(self) -> float:
        """Of one round, all devices together, padding included."""
        return self.network.rows(self.method.hears) * self.layout.devices * self.message_bytes


class HostGauge(Gauge):
    """Measures on the host, which has all data anyway, where no device may have room for them."""

    def __init__(self, problem: Any, graph: Graph) -> None:
        with on_host():
            super().__init__(problem, graph)
            # committed: what is measured goes there, not these data to some device
            self.block = jax.device_put(self.block, self.block.labels.device)


def choose_devices(devices: Any, problem: Any, faults: Any) -> list[Any]:
    """`devices` as a list, if a run can be spread over them."""
    if faults is not None or problem.stream is not None:
        what = "faults" if faults is not None else "a stream"
        raise MethodError(f"devices={devices!r} with {what}: leave one of them out")
    if isinstance(devices, list | tuple):
        chosen = list(devices)
        if not chosen or not all(isinstance(d, jax.Device) for d in chosen):
            raise MethodError(f"devices={devices!r}: give a number, or a list out of jax.devices()")
        if len(set(chosen)) < len(chosen):
            raise MethodError(f"devices={devices!r}: one of them comes twice")
    else:
        there = jax.local_devices()
        wanted = whole_number("devices", devices, 1, MethodError)
        if wanted > len(there):
            raise MethodError(
                f"devices={wanted}, but JAX has {len(there)}: give at most that many; to try it on "
                f"a CPU, set XLA_FLAGS=--xla_force_host_platform_device_count={wanted} before "
                "Python starts"
            )
        chosen = there[:wanted]
    if len(chosen) > problem.nodes:
        raise MethodError(
            f"{len(chosen)} devices for {problem.nodes} nodes: give at most {problem.nodes}, as "
            "every device has a node at least"
        )
    return chosen
