"""Backward search and locating on bins: counts and bases of a stretch of the BWT lie side by side (paper 002, 4.1).

Intervals of rows are half-open: [low, high) here is [l, u] of Equations 1 and 2 with high = u + 1. Both borders are
counted from one bin where both lie in it.
"""

from __future__ import annotations

from llvmlite import ir

from warpseed.compute.compiled import cgutils, inlined, int64, intrinsic, scalar, types, uint64
from warpseed.compute.intrinsics import popcount
from warpseed.fm_index.locate import sample_of

__all__ = ["BASES_A_PLANE", "GROUP_BITS", "HEADER_WORDS", "locate_row", "narrowed", "pre_calculated"]

BASES_A_PLANE = 64
"""Bases whose low bits, and whose high bits, are a word each."""
GROUP_BITS = 6
"""log2 of that."""
HEADER_WORDS = 2
"""Words of a bin before its bases."""


@intrinsic
def _load_pair(typing_context, words, position):
    """Two neighbouring words of a uint64 array by one load of 16 bytes; `position` (int64) is even."""
    if not (isinstance(words, types.Array) and words.dtype == types.uint64 and position == types.int64):
        return None
    pair = types.UniTuple(types.uint64, 2)

    def codegen(context, builder, signature, arguments):
        data = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0]).data
        vector = ir.VectorType(ir.IntType(64), 2)
        address = builder.bitcast(builder.gep(data, [arguments[1]]), vector.as_pointer())
        # What a device allocates begins at a multiple of 256; NumPy promises 8 bytes, which are all the CPU needs.
        loaded = builder.load(address, align=16 if builder.module.triple.startswith("nvptx") else 8)
        parts = [builder.extract_element(loaded, ir.IntType(32)(i)) for i in range(2)]
        return context.make_tuple(builder, signature.return_type, parts)

    return pair(words, position), codegen


@inlined
def _first_rows(rows):
    """One bit for each of the first `rows` of 64, which may be fewer than none or more than all."""
    if rows <= int64(0):
        return uint64(0)
    return ~uint64(0) if rows >= int64(BASES_A_PLANE) else (uint64(1) << uint64(rows)) - uint64(1)


@inlined
def _separators_before(header):
    """Separators of the BWT before a bin, int64; `header` is the first word of it."""
    return int64((header & uint64(0xFFFF_FFFF)) >> uint64(1))


@inlined
def _holds_separator(header):
    """Whether a bin holds a separator."""
    return header & uint64(1) != uint64(0)


@scalar
def _separators_until(index, header, row):
    """Separators of the BWT before a row of the bin whose first word is `header`, int64."""
    number = _separators_before(header)
    while number < int64(index.separator_row.shape[0]) and int64(index.separator_row[number]) < row:
        number += int64(1)
    return number


@scalar
def _counts(index, base, number, first, second):
    """Occurrences of `base` in the BWT before row `first` of a bin, and before its row `second`, which is not before.

    Two loads where a bin has 64 bases: the counts before it, then the low and the high bits of its bases.

    Parameters
    ----------
    number : int64, the bin
    first, second : int64, rows of the bin, from 0 on

    Returns
    -------
    (int64, int64)
    """
    at = number * int64(index.bin_words)
    header, rest = _load_pair(index.bins, at)
    separators = _separators_before(header)
    c, g, t = int64(header >> uint64(32)), int64(rest & uint64(0xFFFF_FFFF)), int64(rest >> uint64(32))
    begin = number << index.bin_shift
    count = begin - separators - c - g - t
    if base == int64(1):
        count = c
    elif base == int64(2):
        count = g
    elif base == int64(3):
        count = t
    low_bits = uint64(0) - uint64(base & int64(1))
    high_bits = uint64(0) - uint64(base >> int64(1))
    before_first = before_second = count
    left, right = first, second
    plane = at + int64(HEADER_WORDS)
    while True:
        lows, highs = _load_pair(index.bins, plane)
        equal = ~((lows ^ low_bits) | (highs ^ high_bits))
        before_first += popcount(equal & _first_rows(left))
        before_second += popcount(equal & _first_rows(right))
        if right <= int64(BASES_A_PLANE):
            break
        left -= int64(BASES_A_PLANE)
        right -= int64(BASES_A_PLANE)
        plane += int64(2)
    if base == int64(0) and _holds_separator(header):
        # They are stored as A.
        before_first -= _separators_until(index, header, begin + first) - separators
        before_second -= _separators_until(index, header, begin + second) - separators
    return before_first, before_second


@scalar
def narrowed(index, base, low, high):
    """Equations 1 and 2: the rows that begin with `base` and then as [low, high) do, (int64, int64).

    They are none where the second is not above the first.
    """
    shift = index.bin_shift
    inside = (int64(1) << shift) - int64(1)
    number, other = low >> shift, high >> shift
    first = low & inside
    # As an interval gets smaller its borders come to lie in one bin.
    begin, end = _counts(index, base, number, first, high & inside if number == other else first)
    if number != other:
        end, _ = _counts(index, base, other, high & inside, high & inside)
    smaller = int64(index.first_row[base])
    return smaller + begin, smaller + end


@inlined
def pre_calculated(index, code):
    """The rows [low, high) that begin with the `pre_calc_length` bases of a number of twice as many bits, int64."""
    interval = index.intervals[code]
    return int64(interval >> uint64(32)), int64(interval & uint64(0xFFFF_FFFF))


@scalar
def locate_row(index, row):
    """Algorithm 2: the text position of a row, int64, from the next row whose position is kept.

    As printed a step would lead to the row before the right one (docs/mems.md), and has none where the BWT has a
    separator: the positions of those rows are kept, too. In a damaged index a walk may find neither, and ends.
    """
    last = int64(index.first_row[4]) - int64(1)
    kept = int64(index.sampled.shape[0])
    inside = (int64(1) << index.bin_shift) - int64(1)
    steps = int64(0)
    while steps <= int64(index.longest_walk):
        entry = sample_of(index, row)
        if entry < kept:
            return min(int64(index.sampled[entry]) + steps, last)
        number, place = row >> index.bin_shift, row & inside
        at = number * int64(index.bin_words)
        lows, highs = _load_pair(
            index.bins, at + int64(HEADER_WORDS) + int64(2) * (place >> int64(GROUP_BITS))
        )  # fmt: skip
        bit = uint64(place & int64(BASES_A_PLANE - 1))
        base = int64((lows >> bit) & uint64(1)) | (int64((highs >> bit) & uint64(1)) << int64(1))
        if base == int64(0):
            header, _ = _load_pair(index.bins, at)
            if _holds_separator(header):
                found = _separators_until(index, header, row)
                if found < int64(index.separator_row.shape[0]) and int64(index.separator_row[found]) == row:
                    return min(int64(index.separator_position[found]) + steps, last)
        before, _ = _counts(index, base, number, place, place)
        row = int64(index.first_row[base]) + before
        steps += int64(1)
    return int64(0)
