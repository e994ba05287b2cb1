"""Vectors of numbers for Numba: values that stay in registers.

Loops over slices of arrays vectorise too, but load and store every intermediate result and check
for overlaps before each loop: three times slower where neighbours are summed. `like` is a value of
the type that is wanted.
"""

# mypy: ignore-errors
# (Numba has types of its own.)
import operator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

WIDTH = 32  # four of the widest registers, so that sums need not wait for each other
NARROW = 16  # two of them: of vectors that are hardly longer
FLAGS = ("contract", "nsz")
FLOATS = {32: ir.FloatType(), 64: ir.DoubleType()}


class Vector(types.Type):
    """So many numbers of so many bits."""

    def __init__(self, bits, width):
        self.bitwidth, self.width = bits, width
        super().__init__(name=f"edgewise.Vector{bits}x{width}")


VECTORS = {(bits, width): Vector(bits, width) for bits in FLOATS for width in (NARROW, WIDTH)}


def machine_type(kind):
    number = FLOATS[kind.bitwidth]
    return ir.VectorType(number, kind.width) if isinstance(kind, Vector) else number


@register_model(Vector)
class VectorModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, machine_type(kind))


def arithmetic(function, instruction):
    @infer_global(function)
    class Typing(AbstractTemplate):
        def generic(self, args, kws):
            if len(args) == 2 and isinstance(args[0], Vector) and args[0] == args[1]:
                return signature(args[0], *args)
            return None

    @lower_builtin(function, Vector, Vector)
    def lower(context, builder, signature, args):
        return getattr(builder, instruction)(*args, flags=FLAGS)


arithmetic(operator.add, "fadd")
arithmetic(operator.iadd, "fadd")
arithmetic(operator.sub, "fsub")
arithmetic(operator.mul, "fmul")
arithmetic(operator.truediv, "fdiv")


@intrinsic
def bytes_each(context, like):
    """Bytes of one of its numbers."""

    def code(context, builder, signature, args):
        return ir.Constant(ir.IntType(64), like.bitwidth // 8)

    return types.int64(like), code


@intrinsic
def load(context, address, like):
    def code(context, builder, signature, args):
        return builder.load(pointer(builder, args[0], machine_type(like)), align=like.bitwidth // 8)

    return like(types.int64, like), code


@intrinsic
def load_first(context, address, live, like):
    """As `load`, but zero from the `live`-th number on, and nothing is read there."""

    def code(context, builder, signature, args):
        kind, index = machine_type(like), ir.VectorType(ir.IntType(64), like.width)
        lane = ir.Constant(index, list(range(like.width)))
        mask = builder.icmp_signed("<", lane, repeated(builder, args[1], index))
        align = ir.Constant(ir.IntType(32), like.bitwidth // 8)
        zeros = ir.Constant(kind, [0.0] * like.width)
        given = [pointer(builder, args[0], kind), align, mask, zeros]
        load = ir.FunctionType(kind, [a.type for a in given])
        name = f"llvm.masked.load.v{like.width}f{like.bitwidth}.p0"
        return builder.call(cgutils.get_or_insert_function(builder.module, load, name), given)

    return like(types.int64, types.int64, like), code


def pointer(builder, address, kind):
    return builder.inttoptr(address, kind.as_pointer())


def repeated(builder, number, kind):
    empty, index = ir.Constant(kind, ir.Undefined), ir.IntType(32)
    first = builder.insert_element(empty, number, ir.Constant(index, 0))
    return builder.shuffle_vector(
        first, empty, ir.Constant(ir.VectorType(index, kind.count), [0] * kind.count)
    )


def halves(builder, value, width):
    """The first `width` numbers, and as many after them."""
    kind = ir.VectorType(ir.IntType(32), width)
    low, high = (ir.Constant(kind, list(range(k, k + width))) for k in (0, width))
    return builder.shuffle_vector(value, value, low), builder.shuffle_vector(value, value, high)


@intrinsic
def store_first(context, address, live, value):
    """The first `live` numbers, fewer than there are. In halves, not with a mask: a core takes
    what lies beyond for written too, and has the next load wait for it."""

    def code(context, builder, signature, args):
        begin, live, rest = args
        size, width = value.bitwidth // 8, value.width
        while width > 1:
            width //= 2
            some = builder.and_(live, ir.Constant(live.type, width))
            full = builder.icmp_unsigned("!=", some, ir.Constant(live.type, 0))
            low, high = halves(builder, rest, width)
            with builder.if_then(full):
                builder.store(low, pointer(builder, begin, low.type), align=size)
            begin = builder.add(begin, builder.mul(some, ir.Constant(live.type, size)))
            rest = builder.select(full, high, low)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, value), code


@intrinsic
def store(context, address, value):
    def code(context, builder, signature, args):
        builder.store(args[1], pointer(builder, args[0], args[1].type), align=value.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(types.int64, value), code


@intrinsic
def filled(context, number, like):
    """The same number throughout."""

    def code(context, builder, signature, args):
        one = args[0] if like.bitwidth == 64 else builder.fptrunc(args[0], FLOATS[32])
        return repeated(builder, one, machine_type(like))

    return like(types.float64, like), code


@intrinsic
def widened(context, value, like):
    """Numbers of 32 bits as 64, where that is what the others have."""

    def code(context, builder, signature, args):
        if value.bitwidth == like.bitwidth:
            return args[0]
        return builder.fpext(args[0], machine_type(like))

    return like(value, like), code


@intrinsic
def clip(context, value, most):
    """Within -most and most."""

    def code(context, builder, signature, args):
        value, most = args
        least = builder.fneg(most)
        risen = builder.select(builder.fcmp_ordered("<", value, least), least, value)
        return builder.select(builder.fcmp_ordered(">", risen, most), most, risen)

    return value(value, most), code


@intrinsic
def sum_of(context, value):
    """The sum of a value's numbers, in 64 bits."""

    def code(context, builder, signature, args):
        parts = args[0]
        if value.bitwidth == 32:
            parts = builder.fpext(parts, machine_type(VECTORS[64, value.width]))
        width = value.width
        while width > 1:
            width //= 2
            parts = builder.fadd(*halves(builder, parts, width))
        return builder.extract_element(parts, ir.Constant(ir.IntType(32), 0))

    return types.float64(value), code


@intrinsic
def vector_like(context, array):
    """A value of the type that the array's numbers make."""
    return value_of(VECTORS[array.dtype.bitwidth, WIDTH], array)


@intrinsic
def narrow_like(context, array):
    """The same, of few numbers."""
    return value_of(VECTORS[array.dtype.bitwidth, NARROW], array)


def value_of(kind, array):
    def code(context, builder, signature, args):
        return ir.Constant(machine_type(kind), ir.Undefined)

    return kind(array), code


@intrinsic
def width_of(context, like):
    """How many numbers it is."""

    def code(context, builder, signature, args):
        return ir.Constant(ir.IntType(64), like.width)

    return types.int64(like), code


@intrinsic
def prefetch(context, address):
    """Have what is at an address brought near, without waiting for it."""

    def code(context, builder, signature, args):
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        instruction = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        how = [ir.Constant(number, k) for k in (0, 3, 1)]  # to be read, often, as data
        builder.call(instruction, [builder.inttoptr(args[0], byte), *how])
        return context.get_dummy_value()

    return types.void(types.int64), code


@intrinsic
def address(context, array):
    """Of an array's first number. (`array.ctypes.data` would count references.)"""

    def code(context, builder, signature, args):
        data = context.make_array(array)(context, builder, args[0]).data
        return builder.ptrtoint(data, ir.IntType(64))

    return types.int64(array), code


@intrinsic
def unowned(context, arrays):
    """An array, or a tuple with arrays, without reference counts: else each use of one would count,
    in a loop too, and threads would wait for each other's counts."""

    def code(context, builder, signature, args):
        return without_owner(context, builder, arrays, args[0])

    return arrays(arrays), code


def without_owner(context, builder, kind, value):
    if isinstance(kind, types.Array):
        made = context.make_array(kind)(context, builder, value)
        made.meminfo = cgutils.get_null_value(made.meminfo.type)
        made.parent = cgutils.get_null_value(made.parent.type)
        return made._getvalue()
    if isinstance(kind, types.BaseTuple):
        for k, part in enumerate(kind):
            kept = without_owner(context, builder, part, builder.extract_value(value, k))
            value = builder.insert_value(value, kept, k)
    return value


@intrinsic
def keep_apart(context):
    """The function that says this is never inlined: within a large one LLVM made of the same loops
    code that took twice as long."""

    def code(context, builder, signature, args):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), code
