"""Memory that a process needs for compiling alone, and gives back when that is done."""

import ctypes
import gc
import sys
from contextlib import suppress

import jax

LIBRARY = "libjax_common.so"  # JAX's compiler, and much else
DONT_NEED = 4  # of madvise


def forget_compiling() -> None:
    """Traces, what the allocator keeps, and pages of the compiler's own code. Programs that were
    compiled ahead go on as they are; whatever else JAX runs is compiled again."""
    jax.clear_caches()
    gc.collect()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library, or no /proc
            C = ctypes.CDLL(None)
            C.malloc_trim(ctypes.c_size_t(0))
            C.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
            for start, end in code_of(LIBRARY):
                C.madvise(start, end - start, DONT_NEED)


def code_of(library: str) -> list[tuple[int, int]]:
    """Where a library's code is in memory: as in its file, from which the system reads again what
    is needed after all."""
    found, here = [], None
    with open("/proc/self/smaps") as maps:
        for line in maps:
            first, *rest = line.split()
            if not first.endswith(":"):
                code = rest[0] == "r-xp" and rest[-1].endswith("/" + library)
                here = tuple(int(end, 16) for end in first.split("-")) if code else None
            elif first == "Anonymous:" and here is not None and rest[0] == "0":  # unchanged
                found.append((here[0], here[1]))
    return found
