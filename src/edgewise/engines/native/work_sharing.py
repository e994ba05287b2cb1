"""Work shared out over threads, in code compiled by Numba: its own atomic words, no library's pool.

A job is a number of pieces. The thread that leads takes them from the front, helpers from the back,
so that a thread mostly meets the columns that it had the round before. The leader waits only for
pieces that somebody is at work on, so with no helper, or one that comes late, it does them all.
Helpers look for pieces until they are told to stop.
"""

# mypy: ignore-errors
# (Numba has types of its own.)
import sys

from llvmlite import ir
from numba import int64, njit, types
from numba.extending import intrinsic

from edgewise.engines.native.vectors import address

WORD = ir.IntType(64)
# where in the words that threads share, each on a cache line of its own: pieces not yet taken, from
# first to last; pieces done; whether all is over. Then what kind of piece they are, in which round
UNTAKEN, DONE, STOP, KIND, ROUND, WORDS = 0, 8, 16, 24, 25, 32
PATIENCE = 2000  # looks, before a thread offers its core to others
give_way = types.ExternalFunction(
    "SwitchToThread" if sys.platform == "win32" else "sched_yield", types.int32()
)


@intrinsic
def read(context, address):
    """The word at an address that other threads change."""

    def code(context, builder, signature, args):
        return builder.load_atomic(builder.inttoptr(args[0], WORD.as_pointer()), "acquire", 8)

    return types.int64(types.int64), code


@intrinsic
def write(context, address, value):
    """A word for other threads, after all that was written before it."""

    def code(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], WORD.as_pointer())
        builder.store_atomic(args[1], pointer, "release", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), code


@intrinsic
def add(context, address, more):
    """To the word at an address; what was there before."""

    def code(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], WORD.as_pointer())
        return builder.atomic_rmw("add", pointer, args[1], "acq_rel")

    return types.int64(types.int64, types.int64), code


@intrinsic
def replace(context, address, old, new):
    """Whether the word at an address was `old`, and is `new` now."""

    def code(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], WORD.as_pointer())
        both = builder.cmpxchg(pointer, args[1], args[2], "acq_rel", "acquire")
        return builder.extract_value(both, 1)

    return types.boolean(types.int64, types.int64, types.int64), code


@njit
def word(shared, k):
    """The address of one of the words."""
    return address(shared) + 8 * k


@njit
def offer(shared, kind, now, pieces):
    """A job, to whoever looks for pieces; none of the last one's is left."""
    shared[KIND], shared[ROUND] = kind, now
    write(word(shared, DONE), int64(0))
    write(word(shared, UNTAKEN), int64(pieces))


@njit
def take(shared, helping):
    """A piece that nobody has had, or -1. Once it is taken the job stays until it is done."""
    while True:
        now = read(word(shared, UNTAKEN))
        first, last = now >> 32, now & 0xFFFFFFFF
        if first >= last:
            return int64(-1)
        if replace(word(shared, UNTAKEN), now, now - 1 if helping else now + (int64(1) << 32)):
            return last - 1 if helping else first


@njit
def finish(shared):
    """A piece is done."""
    add(word(shared, DONE), int64(1))


@njit
def wait(shared, pieces):
    looks = 0
    while read(word(shared, DONE)) < pieces:
        looks += 1
        if looks > PATIENCE:
            give_way()


@njit
def stop(shared):
    write(word(shared, STOP), int64(1))


@njit
def stopped(shared):
    return read(word(shared, STOP)) != 0
