"""Instructions that Python has no word for: bits counted, words at any byte or that threads share, prefetch, as LLVM's;
and calls of the C library.

`popcount`, `leading_zeros` and `trailing_zeros` are for both targets, of which each has an instruction for the first
two; the others are for CPU code only.
"""

from __future__ import annotations

from llvmlite import ir

from warpseed.compute.compiled import cgutils, intrinsic, types

__all__ = [
    "add_at",
    "are_bytes",
    "atomic_xor",
    "copy_memory",
    "leading_zeros",
    "load_word",
    "popcount",
    "prefetch",
    "read_words",
    "store_word",
    "trailing_zeros",
    "write_words",
]

_I64 = ir.IntType(64)


@intrinsic
def popcount(typing_context, word):
    """Number of one bits of a uint64, as int64."""
    if word != types.uint64:
        return None

    def codegen(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), codegen


def _word_at(context, builder, array_type, array, position):
    """The address of a uint64 at a byte of a uint8 array."""
    data = cgutils.create_struct_proxy(array_type)(context, builder, value=array).data
    return builder.bitcast(builder.gep(data, [position]), ir.IntType(64).as_pointer())


def are_bytes(array, position):
    """Whether these are types of a uint8 array and of a place in it, int64."""
    return isinstance(array, types.Array) and array.dtype == types.uint8 and position == types.int64


@intrinsic
def load_word(typing_context, array, position):
    """The eight bytes of a uint8 array from `position` on as uint64, in the machine's order; nothing is checked."""
    if not are_bytes(array, position):
        return None

    def codegen(context, builder, signature, arguments):
        return builder.load(_word_at(context, builder, signature.args[0], *arguments), align=1)

    return types.uint64(array, position), codegen


@intrinsic
def store_word(typing_context, array, position, word):
    """Write a uint64 to the eight bytes of a uint8 array from `position` on; nothing is checked."""
    if not (are_bytes(array, position) and word == types.uint64):
        return None

    def codegen(context, builder, signature, arguments):
        builder.store(arguments[2], _word_at(context, builder, signature.args[0], *arguments[:2]), align=1)
        return context.get_dummy_value()

    return types.void(array, position, word), codegen


@intrinsic
def atomic_xor(typing_context, array, position, bits):
    """Turn bits of ``array[position]``, a uint64, while other threads may turn others; position is not checked."""
    if not (isinstance(array, types.Array) and array.dtype == bits == types.uint64 and position == types.int64):
        return None

    def codegen(context, builder, signature, arguments):
        data = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0]).data
        builder.atomic_rmw("xor", builder.gep(data, [arguments[1]]), arguments[2], "monotonic")
        return context.get_dummy_value()

    return types.void(array, position, bits), codegen


@intrinsic
def prefetch(typing_context, array, position):
    """Ask for the cache line of ``array[position]`` (read, keep in all levels); position is not checked."""
    if not (isinstance(array, types.Array) and isinstance(position, types.Integer)):
        return None

    def codegen(context, builder, signature, arguments):
        data = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        i32 = ir.IntType(32)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch",
            [ir.IntType(8).as_pointer()],
            ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), i32, i32, i32]),
        )
        builder.call(function, [address, i32(0), i32(3), i32(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen


def _count_zeros(name: str):
    """What makes an instruction that counts the zeros at one end of a uint64; 64 where all are zero."""

    def definition(typing_context, word):
        if word != types.uint64:
            return None

        def codegen(context, builder, signature, arguments):
            return getattr(builder, name)(arguments[0], ir.Constant(ir.IntType(1), 0))

        return types.int64(types.uint64), codegen

    return definition


leading_zeros = intrinsic(_count_zeros("ctlz"))
"""Zero bits of a uint64 above its highest one, as int64; 64 where there is none."""
trailing_zeros = intrinsic(_count_zeros("cttz"))
"""Zero bits of a uint64 below its lowest one, as int64; 64 where there is none."""


@intrinsic
def add_at(typing_context, address, value):
    """Add to the uint64 at an address, while other threads may; returns what was there. What a thread wrote before is
    seen by one that comes later."""
    if not address == value == types.uint64:
        return None

    def codegen(context, builder, signature, arguments):
        place = builder.inttoptr(arguments[0], _I64.as_pointer())
        return builder.atomic_rmw("add", place, arguments[1], "seq_cst")

    return types.uint64(address, value), codegen


@intrinsic
def copy_memory(typing_context, to, of, size):
    """Copy so many bytes from an address to another, as memcpy(3)."""
    if not to == of == size == types.uint64:
        return None

    def codegen(context, builder, signature, arguments):
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_I64, [_I64] * 3), "memcpy")
        builder.call(function, arguments)
        return context.get_dummy_value()

    return types.void(to, of, size), codegen


def _call_on_words(name: str):
    """What makes a call of read(2) or write(2) with a file's number and all bytes of an array, uint64[n]."""

    def definition(typing_context, descriptor, words):
        if not (isinstance(words, types.Array) and words.dtype == types.uint64 and descriptor == types.int64):
            return None

        def codegen(context, builder, signature, arguments):
            held = cgutils.create_struct_proxy(signature.args[1])(context, builder, value=arguments[1])
            size = builder.mul(held.nitems, _I64(8))
            called = ir.FunctionType(_I64, [ir.IntType(32), _I64, _I64])
            function = cgutils.get_or_insert_function(builder.module, called, name)
            number = builder.trunc(arguments[0], ir.IntType(32))
            return builder.call(function, [number, builder.ptrtoint(held.data, _I64), size])

        return types.int64(descriptor, words), codegen

    return definition


read_words = intrinsic(_call_on_words("read"))
"""Read an open file, by its number, int64, into an array, uint64[n]: bytes, int64; 0 at its end, -1 where it fails."""
write_words = intrinsic(_call_on_words("write"))
"""Write an array, uint64[n], to an open file, by its number, int64: bytes, int64; -1 where it fails."""
