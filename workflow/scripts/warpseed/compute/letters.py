"""Text written by compiled code: bytes and decimal numbers, many letters at once."""

from __future__ import annotations

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint8, uint64
from warpseed.compute.intrinsics import load_word, popcount, store_word
from warpseed.compute.vectors import WIDTH, copy_bytes

__all__ = ["SLACK", "bytes_of", "put_bytes", "put_number", "read_only"]

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


@scalar
def _put_short_number(out, to, number):
    """As `put_number`, for a number below 10^8."""
    digits = _eight_digits(number)
    rest = digits | (uint64(1) << uint64(63))
    zeros = popcount((rest & (~rest + uint64(1))) - uint64(1)) >> int64(3)
    store_word(out, to, (digits + _ZEROS) >> uint64(int64(8) * zeros))
    return to + int64(8) - zeros


@scalar
def _put_long_number(out, to, number):
    """As `put_number`, for a number of nine digits or more."""
    upper = number // _EIGHT_DIGITS
    if upper < _EIGHT_DIGITS:
        to = _put_short_number(out, to, upper)
    else:
        top = upper // _EIGHT_DIGITS
        to = _put_short_number(out, to, top)
        store_word(out, to, _eight_digits(upper - top * _EIGHT_DIGITS) + _ZEROS)
        to += int64(8)
    store_word(out, to, _eight_digits(number - upper * _EIGHT_DIGITS) + _ZEROS)
    return to + int64(8)


@scalar
def put_number(out, to, number):
    """The digits of a uint64; returns the place behind them. Up to eight bytes behind that place are written too."""
    if number < uint64(10):
        out[to] = uint8(uint64(48) + number)
        return to + int64(1)
    if number < _EIGHT_DIGITS:
        return _put_short_number(out, to, number)
    return _put_long_number(out, to, number)


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
