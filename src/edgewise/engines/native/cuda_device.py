"""The GPU that CUDA kernels run on, and how their blocks of threads are dealt out."""

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np
from jax import Array

LEAST_COLUMNS = 256  # of a block of threads, where a node has several
LEAST_THREADS, MOST_THREADS, WARP = 64, 256, 32
MOST_EACH = 8  # columns of a thread; beyond that there are twice as many threads
LEAST_EDGES, MOST_EDGES = 16, 1024  # of a node, that a block has in shared memory
KERNELS = "primal_dual", "local_training"


def source(*files: str) -> str:
    folder = Path(__file__).parent
    return "".join((folder / f"{file}.cu").read_text("utf-8") for file in files)


class Device(Protocol):
    """What has the memory and runs the kernels. Its arrays are as NumPy's, but nothing is reckoned
    with them here: for that its library would compile kernels of its own."""

    multiprocessors: int

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Zeros."""

    def borrow(self, a: Any) -> Any:
        """An array of JAX's as the device's own, without a copy; one of NumPy's copied there."""

    def put(self, into: Any, a: Any) -> None:
        """The numbers of an array of JAX's or NumPy's, of the same shape."""

    def zero(self, a: Any) -> None: ...

    def take(self, a: Any) -> np.ndarray: ...

    def give(self, a: Any) -> Array:
        """A copy of the device's array, to JAX; it is there after `settle`."""

    def settle(self) -> None: ...

    def address(self, a: Any) -> int: ...

    def compiled(self, kernel: str, **constants: Any) -> Any:
        """A kernel with these constants of `device.cu`, and how many of its blocks there may be."""

    def launch(self, program: Any, grid: int, threads: int, words: np.ndarray) -> None:
        """Returns when all is done."""


class CudaDevice:
    """The GPU that JAX takes by itself, through CuPy: its arrays are JAX's, by DLPack."""

    def __init__(self) -> None:
        import cupy

        self.cupy = cupy
        self.device = cupy.cuda.Device(jax.devices()[0].local_hardware_id)
        self.device.use()
        self.multiprocessors = int(self.device.attributes["MultiProcessorCount"])

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return self.cupy.zeros(shape, dtype)

    def borrow(self, a: Any) -> Any:
        if isinstance(a, jax.Array):
            return self.cupy.from_dlpack(jax.block_until_ready(a))
        return self.cupy.asarray(a)

    def put(self, into: Any, a: Any) -> None:
        if isinstance(a, jax.Array) and a.dtype == into.dtype:
            into.data.copy_from_device_async(self.borrow(a).data, into.nbytes)
        else:
            into.set(np.ascontiguousarray(a, into.dtype))

    def zero(self, a: Any) -> None:
        a.data.memset_async(0, a.nbytes)

    def take(self, a: Any) -> np.ndarray:
        return np.array(a.get())

    def give(self, a: Any) -> Array:
        made = self.cupy.empty(a.shape, a.dtype)
        made.data.copy_from_device_async(a.data, a.nbytes)
        return jax.dlpack.from_dlpack(made)

    def settle(self) -> None:
        self.cupy.cuda.get_current_stream().synchronize()

    def address(self, a: Any) -> int:
        return int(a.data.ptr)

    def compiled(self, kernel: str, **constants: Any) -> Any:
        self.device.use()
        options = ("-std=c++17", *(f"-D{k}={v}" for k, v in constants.items()))
        module = self.cupy.RawModule(code=source("words", "device", kernel), options=options)
        function = module.get_function(kernel).kernel
        resident = self.cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
            function.ptr, constants["THREADS"], 0
        )
        return function, int(resident) * self.multiprocessors

    def launch(self, program: Any, grid: int, threads: int, words: np.ndarray) -> None:
        # cooperative: refused unless all blocks are resident at once, as they wait for each other
        program((grid,), (threads,), (words,), enable_cooperative_groups=True)
        self.settle()


@cache
def this_gpu() -> Device:
    return CudaDevice()


class Shape(NamedTuple):
    """How columns are dealt out to blocks and threads."""

    crowd: int  # blocks of a multiprocessor

    blocks: int  # of a node
    width: int  # columns of a block
    threads: int
    each: int  # columns of a thread


def shape_of(
    nodes: int, columns: int, multiprocessors: int, together: bool, crowd: int = 1
) -> Shape:
    """together: all columns of a node in one block."""
    room = crowd * multiprocessors // nodes
    blocks = 1 if together else min(room, -(-columns // LEAST_COLUMNS))
    width = columns
    if blocks > 1:
        width = WARP * -(-columns // (WARP * blocks))
    blocks = -(-columns // width)
    most = MOST_THREADS if width <= MOST_EACH * MOST_THREADS else 2 * MOST_THREADS
    threads = min(max(WARP * -(-width // WARP), LEAST_THREADS), most)
    return Shape(crowd, blocks, width, threads, -(-width // threads))


def room_for(edges: int) -> int:
    """A power of two, so that few programs are compiled; what `AT_ONCE` in `device.cu` divides."""
    if edges > MOST_EDGES:
        raise RuntimeError(
            f"a node has {edges} neighbours, these kernels have room for {MOST_EDGES} of one"
        )
    return max(LEAST_EDGES, 1 << (edges - 1).bit_length())
