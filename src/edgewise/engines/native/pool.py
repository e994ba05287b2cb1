"""Work shared out over XLA's own threads, in code compiled by Numba.

A call is a number of pieces. The thread that was called takes them from the front, helpers that
XLA's pool lends take them from the back, so that a thread mostly meets the columns that it had the
round before. Whoever comes late finds nothing and leaves; the caller waits only for pieces that
somebody is at work on, so with no helper it does them all.

The layouts are those of XLA's C interface (xla/ffi/api/c_api.h), in words of eight bytes.
"""

# mypy: ignore-errors
# (Numba has types of its own.)
from llvmlite import ir
from numba import carray, int64, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

WORD = ir.IntType(64)
EXTENSION, API, CONTEXT, ARGUMENTS, RESULTS = 8, 16, 24, 72, 112  # in a call frame
VERSION, SCHEDULE, THREADS = 32, 17 * 8, 18 * 8  # in the interface
KIND, DATA, SIZES = 16, 24, 40  # in a buffer
FLOAT32 = 11
METADATA, ANSWERED = 24, 3  # in an enquiry, in what it wants filled in
# in a job: pieces not yet taken, from first to last; pieces done; threads that know of it
RANGE, DONE, OWNERS, FRAME, REQUEST, JOB = 0, 8, 16, 24, 32, 128


@intrinsic
def at(context, address):
    """An address as a pointer."""

    def code(context, builder, signature, args):
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), code


@intrinsic
def word(context, address):
    """The word at an address."""

    def code(context, builder, signature, args):
        return builder.load(builder.inttoptr(args[0], WORD.as_pointer()))

    return types.int64(types.int64), code


@intrinsic
def latest(context, address):
    """The word at an address that other threads change."""

    def code(context, builder, signature, args):
        return builder.load_atomic(builder.inttoptr(args[0], WORD.as_pointer()), "acquire", 8)

    return types.int64(types.int64), code


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


@intrinsic
def call(context, function, argument):
    """A C function of one word, by its address."""

    def code(context, builder, signature, args):
        kind = ir.FunctionType(WORD, [WORD])
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), [args[1]])

    return types.int64(types.int64, types.int64), code


@intrinsic
def fetch(context, address):
    """Have what is at an address brought near, without waiting for it."""

    def code(context, builder, signature, args):
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        name = "llvm.prefetch.p0"
        prefetch = cgutils.get_or_insert_function(builder.module, kind, name)
        how = [ir.Constant(number, k) for k in (0, 3, 1)]  # to be read, often, as data
        builder.call(prefetch, [builder.inttoptr(args[0], byte), *how])
        return context.get_dummy_value()

    return types.void(types.int64), code


@intrinsic
def allocate(context, size):
    def code(context, builder, signature, args):
        kind = ir.FunctionType(WORD, [WORD])
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, "malloc"), args)

    return types.int64(types.int64), code


@intrinsic
def free(context, address):
    def code(context, builder, signature, args):
        kind = ir.FunctionType(ir.VoidType(), [WORD])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, "free"), args)
        return context.get_dummy_value()

    return types.void(types.int64), code


@njit(forceinline=True)
def operand(frame, k):
    """(address, the address of its sizes) of the k-th argument."""
    buffer = word(word(frame + ARGUMENTS) + 8 * k)
    return word(buffer + DATA), word(buffer + SIZES)


@njit
def arguments(frame):
    """How many."""
    return word(frame + ARGUMENTS - 16)


@njit(forceinline=True)
def last_result(frame):
    count = word(frame + RESULTS - 16)
    return word(word(word(frame + RESULTS) + 8 * (count - 1)) + DATA)


@njit
def single(frame, k):
    """Whether the k-th argument is in float32."""
    return word(word(word(frame + ARGUMENTS) + 8 * k) + KIND) & 0xFFFFFFFF == FLOAT32


@njit
def only_asked(frame):
    """Whether XLA wants no more than to know for which interface this was made: its own."""
    extension = word(frame + EXTENSION)
    if extension == 0:
        return False
    answer = carray(at(word(extension + METADATA)), (8,), int64)
    answer[ANSWERED] = word(word(frame + API) + VERSION)
    return True


@njit
def share(frame, pieces, work):
    """A job of so many pieces, offered to XLA's threads: they are told its address plus one."""
    job = allocate(JOB)
    words = carray(at(job), (JOB // 8,), int64)
    words[RANGE // 8], words[DONE // 8], words[FRAME // 8] = pieces, 0, frame
    interface, request, threads = word(frame + API), job + REQUEST, job + JOB - 8
    words[REQUEST // 8 : REQUEST // 8 + 4] = (32, 0, word(frame + CONTEXT), threads)
    words[JOB // 8 - 1] = 1
    call(word(interface + THREADS), request)
    helpers = max(min(words[JOB // 8 - 1], pieces) - 1, 0)
    words[REQUEST // 8 : REQUEST // 8 + 5] = (40, 0, word(frame + CONTEXT), work, job + 1)
    words[OWNERS // 8] = 1 + helpers
    for _ in range(helpers):
        call(word(interface + SCHEDULE), request)
    return job


@njit
def take(job, helping):
    """A piece that nobody has had, or -1."""
    while True:
        now = latest(job + RANGE)
        first, last = now >> 32, now & 0xFFFFFFFF
        if first >= last:
            return int64(-1)
        if replace(job + RANGE, now, now - 1 if helping else now + (int64(1) << 32)):
            return last - 1 if helping else first


@njit
def leave(job):
    if add(job + OWNERS, -1) == 1:
        free(job)
