"""What parsing text, searching sets and comparing numbers or tags need of a CPU's vector registers, in LLVM intrinsics.

Text is handled 32 bytes of a uint8 array at once, words eight of a uint64 array, from a position on. Nothing is
checked: the arrays must be so long. A mask has one bit for each of the bytes or words, the lowest for the first.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir

from warpseed.compute.compiled import cgutils, intrinsic, types
from warpseed.compute.intrinsics import are_bytes

__all__ = [
    "ALL_BYTES", "LANES", "WIDTH", "WORDS", "agreeing_bytes", "aligned_zeros", "copy_bytes", "copy_codes",
    "count_above", "equal_words", "first_in_mask", "mask_outside",
]  # fmt: skip

WIDTH = 32
"""Bytes that are handled at once."""
ALL_BYTES = np.uint64((1 << WIDTH) - 1)
"""The mask of all of them."""
WORDS = 8
"""Words that are: a cache line."""

LANES = 64
"""Numbers that are compared at once."""

_BYTE = ir.IntType(8)
_BYTES = ir.VectorType(_BYTE, WIDTH)
_MASK = ir.IntType(WIDTH)


def aligned_zeros(size: int, kind: np.dtype) -> np.ndarray:
    """Zeros from a multiple of 64 bytes on."""
    room = np.zeros(size * kind.itemsize + 64, np.uint8)
    first = -room.ctypes.data % 64
    return room[first : first + size * kind.itemsize].view(kind)


def _all(byte: int) -> ir.Constant:
    return ir.Constant(_BYTES, [byte] * WIDTH)


def _address(context, builder, array_type, array, position):
    data = cgutils.create_struct_proxy(array_type)(context, builder, value=array).data
    return builder.bitcast(builder.gep(data, [position]), _BYTES.as_pointer())


def _mask(builder, lanes):
    """A mask of the lanes that are true, as uint64."""
    return builder.zext(builder.bitcast(lanes, _MASK), ir.IntType(64))


@intrinsic
def first_in_mask(typing_context, mask):
    """Number of the lowest one bit of a mask, uint64, which is not 0, as int64."""
    if mask != types.uint64:
        return None

    def codegen(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), codegen


@intrinsic
def mask_outside(typing_context, array, position, low, high):
    """Mask (uint64) of the bytes that are below `low` or above `high`, two literal numbers."""
    if not (are_bytes(array, position) and all(isinstance(each, types.IntegerLiteral) for each in (low, high))):
        return None
    first, last = low.literal_value, high.literal_value

    def codegen(context, builder, signature, arguments):
        found = builder.load(_address(context, builder, signature.args[0], *arguments[:2]), align=1)
        outside = builder.icmp_unsigned(">", builder.sub(found, _all(first)), _all(last - first))
        return _mask(builder, outside)

    return types.uint64(array, position, low, high), codegen


@intrinsic
def agreeing_bytes(typing_context, array, position, bases, sure, compared, allowed):
    """Mask (uint64) of those of 32 bytes from ``array[position]`` on whose four bases agree with the four of `bases`.

    None of those in `sure` may differ, and at most `allowed` of those in `compared`. All four are uint64, of which the
    lowest byte counts; in the two masks the low bit of each of the four bases stands for it.
    """
    if not (are_bytes(array, position) and all(each == types.uint64 for each in (bases, sure, compared, allowed))):
        return None

    def codegen(context, builder, signature, arguments):
        undefined = ir.Constant(_BYTES, ir.Undefined)
        first = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)

        def all_of(byte):
            one = builder.insert_element(undefined, builder.trunc(byte, _BYTE), ir.IntType(32)(0))
            return builder.shuffle_vector(one, undefined, first)

        def added(counts, bits, mask):
            shifted = builder.lshr(counts, _all(bits))
            return builder.add(builder.and_(counts, _all(mask)), builder.and_(shifted, _all(mask)))

        found = builder.load(_address(context, builder, signature.args[0], *arguments[:2]), align=1)
        differ = builder.xor(found, all_of(arguments[2]))
        differ = builder.or_(differ, builder.lshr(differ, _all(1)))
        none = builder.icmp_unsigned("==", builder.and_(differ, all_of(arguments[3])), _all(0))
        number = added(added(builder.and_(differ, all_of(arguments[4])), 2, 0x33), 4, 0x0F)
        return _mask(builder, builder.and_(none, builder.icmp_unsigned("<=", number, all_of(arguments[5]))))

    return types.uint64(array, position, *[types.uint64] * 4), codegen


@intrinsic
def copy_bytes(typing_context, source, position, target, place):
    """Copy bytes from ``source[position]`` on to ``target[place]`` on."""
    if not (are_bytes(source, position) and are_bytes(target, place)):
        return None

    def codegen(context, builder, signature, arguments):
        found = builder.load(_address(context, builder, signature.args[0], *arguments[:2]), align=1)
        builder.store(found, _address(context, builder, signature.args[2], *arguments[2:]), align=1)
        return context.get_dummy_value()

    return types.void(source, position, target, place), codegen


@intrinsic
def copy_codes(typing_context, source, position, target, place):
    """Write the codes 0-3 of the letters A, C, G, T of either case; the mask (uint64) is of all other bytes.

    What is written for these is undefined.
    """
    if not (are_bytes(source, position) and are_bytes(target, place)):
        return None

    def codegen(context, builder, signature, arguments):
        found = builder.load(_address(context, builder, signature.args[0], *arguments[:2]), align=1)
        letters = builder.and_(found, _all(0xDF))
        known = [builder.icmp_unsigned("==", letters, _all(letter)) for letter in b"ACGT"]
        # Bits 1 and 2 of the four letters are 00, 01, 11, 10.
        low, high = (builder.lshr(found, _all(bit)) for bit in (1, 2))
        codes = builder.and_(builder.xor(low, high), _all(3))
        builder.store(codes, _address(context, builder, signature.args[2], *arguments[2:]), align=1)
        any_known = builder.or_(builder.or_(known[0], known[1]), builder.or_(known[2], known[3]))
        return _mask(builder, builder.not_(any_known))

    return types.uint64(source, position, target, place), codegen


@intrinsic
def equal_words(typing_context, array, position, word):
    """Mask (uint64) of the eight words from ``array[position]`` on that equal a uint64."""
    if not (isinstance(array, types.Array) and array.dtype == types.uint64 and position == types.int64):
        return None
    words = ir.VectorType(ir.IntType(64), WORDS)

    def codegen(context, builder, signature, arguments):
        data = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), words.as_pointer())
        wanted = ir.Constant(words, ir.Undefined)
        for lane in range(WORDS):
            wanted = builder.insert_element(wanted, arguments[2], ir.IntType(32)(lane))
        equal = builder.icmp_unsigned("==", builder.load(address, align=8), wanted)
        return builder.zext(builder.bitcast(equal, ir.IntType(WORDS)), ir.IntType(64))

    return types.uint64(array, position, types.uint64), codegen


@intrinsic
def count_above(typing_context, values, position, bound, counts, place):
    """Add 1 to those of LANES bytes from ``counts[place]`` on whose partners from ``values[position]`` on are above a
    bound; these are uint16 or uint32, and both arrays begin at multiples of 64 bytes, as do the positions in them."""
    numbers = isinstance(values, types.Array) and values.dtype == bound and bound in (types.uint16, types.uint32)
    if not (numbers and position == types.int64 and are_bytes(counts, place)):
        return None
    number = ir.IntType(bound.bitwidth)
    vector, counters = ir.VectorType(number, LANES), ir.VectorType(_BYTE, LANES)

    def codegen(context, builder, signature, arguments):
        data = [
            cgutils.create_struct_proxy(signature.args[i])(context, builder, value=arguments[i]).data for i in (0, 3)
        ]
        partners = builder.bitcast(builder.gep(data[0], [arguments[1]]), vector.as_pointer())
        counted = builder.bitcast(builder.gep(data[1], [arguments[4]]), counters.as_pointer())
        one = builder.insert_element(ir.Constant(vector, ir.Undefined), arguments[2], ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        bounds = builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), zeros)
        above = builder.icmp_unsigned(">", builder.load(partners, align=64), bounds)
        builder.store(builder.sub(builder.load(counted, align=64), builder.sext(above, counters)), counted, align=64)
        return context.get_dummy_value()

    return types.void(values, position, bound, counts, place), codegen
