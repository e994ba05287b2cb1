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
from edgewise.engines.device_placement import AXIS, DevicePlacement
from edgewise.engines.simulator import Simulator
from edgewise.engines.wires import connect, rows_sent
from edgewise.errors import MethodError, whole_number
from edgewise.graph.graph import Graph
from edgewise.methods.contract import Method
from edgewise.problem.block import Block


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


class SeveralDevices:
    """The layout of nodes in equal stretches over devices."""

    nodes = None  # rows of silent nodes are in between

    def __init__(self, problem: Any, graph: Graph, dtype: Any, devices: list[Any]) -> None:
        self.problem, self.graph, self.dtype = problem, graph, dtype
        self.mesh = Mesh(np.array(devices), (AXIS,))
        self.sharding = NamedSharding(self.mesh, PartitionSpec(AXIS))
        self.placement = DevicePlacement(graph, problem.counts, len(devices))

    def lay_out(self, method: Method, weights: dict[str, np.ndarray]) -> tuple[Any, Any, Block]:
        """Every device its own part, built on the host: the whole is never on one device."""
        at = self.placement
        with on_host():
            links, _ = jax.tree.map(np.asarray, connect(self.graph, weights, self.dtype))
            whole = self.problem.block(links, self.dtype, rows=())
            wires = self.spread(at.wires(k, links) for k in at.range)
            methods = self.spread(at.of_nodes(k, method) for k in at.range)
            rows = at.rows(self.problem, self.dtype)
            block: Block = self.spread(at.block(k, whole, rows(k)) for k in at.range)
        return methods, wires, block

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

    def own(self, a: Any) -> Any:
        return a

    def place(self, a: Any) -> Array:
        whole = np.asarray(a, self.dtype)
        out: Array = self.spread(self.placement.of_nodes(k, whole) for k in self.placement.range)
        return out

    def place_edges(self, a: np.ndarray) -> Array:
        whole = a.astype(self.dtype)
        out: Array = self.spread(self.placement.of_edges(k, whole) for k in self.placement.range)
        return out

    def place_carry(self, carry: Any) -> Any:
        return jax.device_put(carry, self.sharding)  # a checkpoint's comes from one device

    def join(self, a: Array) -> np.ndarray:
        return self.placement.joined(a)

    @property
    def edges(self) -> np.ndarray:
        return np.arange(len(self.graph.directed.owner))

    def join_edges(self, a: Array) -> np.ndarray:
        return self.placement.joined_edges(a)

    def random_bits(
        self, seed: Any, ids: Array, first: int, steps: int, phases: int, draws: int
    ) -> Array:
        """(D, steps, phases, v, draws), each device drawing its own."""
        D = self.placement.devices
        at = jnp.broadcast_to(first + jnp.arange(steps * phases), (D, steps * phases))
        draw_each = jitted(self.mesh, draw, "draws")
        bits: Array = draw_each(jnp.broadcast_to(seed, (D,)), ids, at, draws=draws)
        return bits.reshape(D, steps, phases, *bits.shape[2:])

    def program(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return on_each(self.mesh, f)

    def call(self, f: Callable[..., Any], *args: Any) -> Any:
        return jitted(self.mesh, f)(*args)

    def evaluation_block(self, rows: Any) -> Block:
        """On the host, which has all data anyway, where no device may have room for them."""
        with on_host():
            block: Block = self.problem.block(None, np.float64)
            # committed: what is measured goes there, not these data to some device
            return jax.device_put(block, block.labels.device)


def bytes_between_devices(executor: Simulator) -> float:
    """Of one round, all devices together, padding and all news included."""
    devices, method = executor.block.ids.shape[0], executor.method
    rows = executor.network.rows(method.hears)
    sizes = rows_sent(method, executor.problem.size, executor.problem.loss.outputs, executor.dtype)
    of_one = (m * row.size for m, row in zip(rows, sizes, strict=True))
    return float(devices * sum(of_one))


def choose_devices(devices: Any, problem: Any, faults: Any) -> list[Any]:
    """`devices` as a list, if a run can be spread over them."""
    if faults is not None or problem.stream is not None:
        varying = faults is not None and faults.links is not None
        what = "a time-varying graph" if varying else "a stream" if faults is None else "faults"
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
