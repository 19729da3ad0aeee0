"""Text written by compiled code: bytes and decimal numbers, many letters at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpseed.compute.compiled import inlined, int64, scalar, uint64
from warpseed.compute.intrinsics import load_word, popcount, store_word
from warpseed.compute.vectors import WIDTH, copy_bytes

__all__ = ["SLACK", "bytes_of", "number_putter", "put_bytes", "put_number", "put_word", "read_only"]

SLACK = WIDTH
"""Bytes behind what is written that are written too, at most."""

_ZEROS = np.uint64(0x3030_3030_3030_3030)
_EIGHT_DIGITS = np.uint64(100_000_000)


def read_only(array: np.ndarray) -> np.ndarray:
    """A view that cannot be written, as arrays made of bytes are: one type, so one compilation."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def bytes_of(array: np.ndarray) -> np.ndarray:
    """The bytes of an array; at least eight, so that a whole word can be read."""
    flat = np.ascontiguousarray(array).view(np.uint8)
    return read_only(flat if len(flat) >= 8 else np.concatenate([flat, np.zeros(8, np.uint8)]))


@scalar
def _eight_digits(number):
    """Decimal digits of a number below 10^8, a byte each, the first in the lowest byte: pairs, then digits, at once."""
    upper = number // uint64(10_000)
    merged = upper | ((number - upper * uint64(10_000)) << uint64(32))
    hundreds = ((merged * uint64(10_486)) >> uint64(20)) & uint64(0x7F_0000_007F)
    pairs = ((merged - uint64(100) * hundreds) << uint64(16)) + hundreds
    tens = ((pairs * uint64(103)) >> uint64(10)) & uint64(0xF_000F_000F_000F)
    return tens + ((pairs - uint64(10) * tens) << uint64(8))


@inlined
def put_word(out, to, word, size):
    """Write the first `size` bytes of a word; all eight are written, of which the others are overwritten later."""
    store_word(out, to, word)


def number_putter(put_word: Any) -> Any:
    """What writes numbers in decimal where `put_word`, a function of (out, to, word, size), writes bytes: a function of
    (out, to, number) that puts the digits of a uint64 from `to` on and returns the place behind them."""

    @inlined
    def put_short(out, to, number):
        """As `put`, for a number below 10^8."""
        digits = _eight_digits(number)
        rest = digits | (uint64(1) << uint64(63))
        zeros = popcount((rest & (~rest + uint64(1))) - uint64(1)) >> int64(3)
        size = int64(8) - zeros
        put_word(out, to, (digits + _ZEROS) >> uint64(int64(8) * zeros), size)
        return to + size

    @scalar
    def put_long(out, to, number):
        """As `put`, for a number of nine digits or more."""
        upper = number // _EIGHT_DIGITS
        if upper < _EIGHT_DIGITS:
            to = put_short(out, to, upper)
        else:
            top = upper // _EIGHT_DIGITS
            to = put_short(out, to, top)
            put_word(out, to, _eight_digits(upper - top * _EIGHT_DIGITS) + _ZEROS, int64(8))
            to += int64(8)
        put_word(out, to, _eight_digits(number - upper * _EIGHT_DIGITS) + _ZEROS, int64(8))
        return to + int64(8)

    @scalar
    def put(out, to, number):
        """The digits of a uint64; returns the place behind them."""
        if number < uint64(10):
            put_word(out, to, uint64(48) + number, int64(1))
            return to + int64(1)
        if number < _EIGHT_DIGITS:
            return put_short(out, to, number)
        return put_long(out, to, number)

    return put


put_number = number_putter(put_word)
"""Writes numbers on the CPU: up to eight bytes behind a number are written too."""


@scalar
def put_bytes(out, to, source, first, last):
    """Copy bytes, 32 or eight at once; up to SLACK behind are written too. The source has at least eight."""
    end = to + last - first
    while first < last and first + int64(WIDTH) <= int64(source.shape[0]):
        copy_bytes(source, first, out, to)
        first += int64(WIDTH)
        to += int64(WIDTH)
    while first < last:
        # The last word of the source may begin up to seven bytes further on than a whole one can.
        at = min(first, int64(source.shape[0]) - int64(8))
        store_word(out, to, load_word(source, at) >> uint64(int64(8) * (first - at)))
        first += int64(8)
        to += int64(8)
    return end
