"""CUDA kernels compiled for this CPU, in the place of a GPU."""

import ctypes
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from edgewise.engines.native.cuda_device import KERNELS, source

COMPILER = shutil.which("g++")
HERE = Path(__file__).parent
EACH, THREADS, DEGREE = 4, 64, 16  # whatever is asked for: fewer libraries to compile
ENTRY = """
extern "C" int {name}_(int grid, int threads, const void* run) {{
    return launch(grid, threads, [](const void* r) {{ {name}(*(const Run*) r); }}, run);
}}
"""


@functools.cache
def library(**constants):
    """With constants of `device.cu`; kept until the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="edgewise-emulated-"))
    try:
        code = (HERE / "emulated_gpu.hpp").read_text("utf-8") + source("device", *KERNELS)
        code += "".join(ENTRY.format(name=name) for name in KERNELS)
        (folder / "kernels.cpp").write_text(code, "utf-8")
        options = ["-O1", "-std=c++17", "-shared", "-fPIC", "-pthread", "-w"]
        options += [f"-D{k}={v}" for k, v in constants.items()]
        made = [str(folder / "kernels.cpp"), "-o", str(folder / "kernels.so")]
        subprocess.run([COMPILER, *options, *made], check=True, capture_output=True, text=True)
        return ctypes.CDLL(str(folder / "kernels.so"))
    finally:
        shutil.rmtree(folder)


class EmulatedDevice:
    """Of so many multiprocessors, each with room for so many blocks."""

    def __init__(self, multiprocessors=10, room=1):
        self.multiprocessors, self.room = multiprocessors, room
        self.launches = []

    def empty(self, shape, dtype):
        return np.zeros(shape, dtype)

    def borrow(self, a):
        return np.asarray(a)

    def put(self, into, a):
        assert into.shape == np.shape(a)
        into[...] = a

    def zero(self, a):
        a[...] = 0

    def take(self, a):
        return np.array(a)

    def give(self, a):
        assert a.flags.c_contiguous
        return jnp.array(a)

    def settle(self):
        pass

    def address(self, a):
        assert a.flags.c_contiguous
        return a.ctypes.data

    def compiled(self, kernel, **constants):
        assert constants["EACH"] <= EACH
        assert (constants["THREADS"], constants["DEGREE"]) == (THREADS, DEGREE)
        kinds = {k: constants[k] for k in ("REAL", "ROW")}
        made = library(EACH=EACH, THREADS=THREADS, DEGREE=DEGREE, CROWD=1, **kinds)
        room = self.room * constants["CROWD"] * self.multiprocessors
        return getattr(made, f"{kernel}_"), room

    def launch(self, program, grid, threads, words):
        self.launches.append((grid, threads))
        if not program(grid, threads, ctypes.c_void_p(words.ctypes.data)):
            raise RuntimeError("threads of a block part ways at a barrier")
