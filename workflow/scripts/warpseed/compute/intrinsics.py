"""Instructions that Python has no word for: bits counted, words at any byte or that threads share, prefetch, as LLVM's.

`popcount`, `leading_zeros` and `trailing_zeros` are for both targets, of which each has an instruction for the first
two; the others are for CPU code only.
"""

from __future__ import annotations

from llvmlite import ir

from warpseed.compute.compiled import cgutils, intrinsic, types

__all__ = ["atomic_xor", "leading_zeros", "load_word", "popcount", "prefetch", "store_word", "trailing_zeros"]


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


def _are_bytes(array, position):
    return isinstance(array, types.Array) and array.dtype == types.uint8 and position == types.int64


@intrinsic
def load_word(typing_context, array, position):
    """The eight bytes of a uint8 array from `position` on as uint64, in the machine's order; nothing is checked."""
    if not _are_bytes(array, position):
        return None

    def codegen(context, builder, signature, arguments):
        return builder.load(_word_at(context, builder, signature.args[0], *arguments), align=1)

    return types.uint64(array, position), codegen


@intrinsic
def store_word(typing_context, array, position, word):
    """Write a uint64 to the eight bytes of a uint8 array from `position` on; nothing is checked."""
    if not (_are_bytes(array, position) and word == types.uint64):
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
