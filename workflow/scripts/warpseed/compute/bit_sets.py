"""Sets of numbers below 512, a bit each, in a CPU's vector registers, and counts of how often each number was in one.

A set is a value of compiled functions, and SET uint64 of an array. Counts are *planes*: plane k has the bits 2^k of all
of them and is a set too, so that a set is added to them as a carry. Arrays begin at multiples of 64 bytes, as do sets
in them. Nothing is checked: the arrays must be so long.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import ir

from warpseed.compute.compiled import cgutils, extending, inlined, int64, intrinsic, types

__all__ = [
    "IN_SET", "PLANES", "SET", "added", "both", "empty_set", "place_of", "put_set", "set_at", "take_counts",
    "with_number",
]  # fmt: skip

SET = 8
"""Numbers of 64 bits in a set: a cache line."""
IN_SET = 64 * SET
PLANES = 8

_LANE = ir.IntType(64)
_VECTOR = ir.VectorType(_LANE, SET)
_TRANSPOSED = ((1, 0x5555555555555555), (2, 0x3333333333333333), (4, 0x0F0F0F0F0F0F0F0F))
"""Steps that turn squares of 8 x 8 bits over, and what stays where it is in each."""


@cache
def _set() -> Any:
    """The type of a set in Numba."""

    class Set(types.Type):
        pass

    @extending.register_model(Set)
    class _(extending.models.PrimitiveModel):
        def __init__(self, manager: Any, kind: Any) -> None:
            super().__init__(manager, kind, _VECTOR)

    return Set("Set")


def _are_words(array: Any, position: Any) -> bool:
    return isinstance(array, types.Array) and array.dtype == types.uint64 and position == types.int64


def _all(number: int) -> ir.Constant:
    return ir.Constant(_VECTOR, [number] * SET)


def _filled(builder: Any, number: Any) -> Any:
    """A number in all lanes."""
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    one = builder.insert_element(undefined, number, ir.IntType(32)(0))
    return builder.shuffle_vector(one, undefined, ir.Constant(ir.VectorType(ir.IntType(32), SET), [0] * SET))


def _addresses(context: Any, builder: Any, kind: Any, place: Any, count: int, vector: Any = _VECTOR) -> list[Any]:
    """Of `count` vectors that follow each other from a place on: an array of some kind, and a position in it."""
    data = cgutils.create_struct_proxy(kind)(context, builder, value=place[0]).data
    first = builder.bitcast(builder.gep(data, [place[1]]), vector.as_pointer())
    return [builder.gep(first, [ir.IntType(32)(number)]) for number in range(count)]


def _added(builder: Any, a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """The sum of three bits, and what is carried."""
    carried = builder.or_(builder.and_(a, b), builder.and_(builder.or_(a, b), c))
    return builder.xor(builder.xor(a, b), c), carried


@inlined
def place_of(number):
    """Where the count of a number, int64, stands among the IN_SET of `take_counts`."""
    return (number & int64(7)) * int64(8 * SET) + (number >> int64(3))


@intrinsic
def empty_set(typing_context):
    """A set of nothing."""
    return _set()(), lambda context, builder, signature, arguments: _all(0)


@intrinsic
def set_at(typing_context, array, position):
    """The set from a place of an array on."""
    if not _are_words(array, position):
        return None

    def codegen(context, builder, signature, arguments):
        return builder.load(_addresses(context, builder, signature.args[0], arguments, 1)[0], align=64)

    return _set()(array, position), codegen


@intrinsic
def put_set(typing_context, some, array, position):
    """Write a set to a place of an array."""
    if not (some == _set() and _are_words(array, position)):
        return None

    def codegen(context, builder, signature, arguments):
        address = _addresses(context, builder, signature.args[1], arguments[1:], 1)[0]
        builder.store(arguments[0], address, align=64)
        return context.get_dummy_value()

    return types.void(some, array, position), codegen


@intrinsic
def both(typing_context, one, other):
    """What is in one of two sets."""
    if not one == other == _set():
        return None
    return _set()(one, other), lambda context, builder, signature, arguments: builder.or_(*arguments)


@intrinsic
def with_number(typing_context, some, number):
    """A set, and a number, uint64: nothing where it is not below IN_SET."""
    if not (some == _set() and number == types.uint64):
        return None

    def codegen(context, builder, signature, arguments):
        number = arguments[1]
        lanes = ir.Constant(_VECTOR, list(range(SET)))
        lane = builder.icmp_unsigned("==", _filled(builder, builder.lshr(number, _LANE(6))), lanes)
        bit = _filled(builder, builder.shl(_LANE(1), builder.and_(number, _LANE(63))))
        return builder.or_(arguments[0], builder.select(lane, bit, _all(0)))

    return _set()(some, number), codegen


@intrinsic
def added(typing_context, a, b, c):
    """The sum of three bits, and what is carried, of each number: two sets."""
    if not a == b == c == _set():
        return None
    pair = types.UniTuple(_set(), 2)

    def codegen(context, builder, signature, arguments):
        return context.make_tuple(builder, pair, _added(builder, *arguments))

    return pair(a, b, c), codegen


@intrinsic
def take_counts(typing_context, planes, position, counts, place):
    """Add what planes count to uint32[IN_SET] from a place on, in the order of `place_of`; the planes are 0 then."""
    known = isinstance(counts, types.Array) and counts.dtype == types.uint32 and place == types.int64
    if not (known and _are_words(planes, position)):
        return None
    eights, totals = ir.VectorType(ir.IntType(8), 8 * SET), ir.VectorType(ir.IntType(32), 8 * SET)

    def codegen(context, builder, signature, arguments):
        addresses = _addresses(context, builder, signature.args[0], arguments[:2], PLANES)
        rows = [builder.load(address, align=64) for address in addresses]
        for address in addresses:
            builder.store(_all(0), address, align=64)
        for shift, kept in _TRANSPOSED:
            for low in (row for row in range(PLANES) if not row & shift):
                one, other = rows[low], rows[low | shift]
                rows[low] = builder.or_(
                    builder.and_(one, _all(kept)), builder.shl(builder.and_(other, _all(kept)), _all(shift))
                )
                rows[low | shift] = builder.or_(
                    builder.and_(builder.lshr(one, _all(shift)), _all(kept)), builder.and_(other, _all(~kept % 2**64))
                )
        ends = _addresses(context, builder, signature.args[2], arguments[2:], PLANES, totals)
        for row, address in zip(rows, ends, strict=True):
            more = builder.zext(builder.bitcast(row, eights), totals)
            builder.store(builder.add(builder.load(address, align=64), more), address, align=64)
        return context.get_dummy_value()

    return types.void(planes, position, counts, place), codegen
