"""The index of paper 002, section 4.1: BWT in bins, sampled suffix positions, pre-calculated intervals.

It is made from what the fast tier's index holds, when a search first asks for it, and stays with that index in memory:
a pass over the suffix array makes the bins, one over the lookup table the intervals.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint32, uint64
from warpseed.compute.ranges import run_ranges
from warpseed.errors import IndexFormatError, InputError, check_number
from warpseed.fm_index.bins import BASES_A_PLANE, HEADER_WORDS
from warpseed.fm_index.bwt import longest_walk
from warpseed.fm_index.layout import LIMITS, SeedIndex, inverse_of
from warpseed.fm_index.text import unpack_text

__all__ = ["PAPER_PARAMETERS", "BinnedIndex", "BinParameters", "binned_index", "binned_report"]

LARGEST_BIN = 1024
_Made = TypeVar("_Made")


class BinParameters(NamedTuple):
    """What the index of paper 002 is made with; as its section 5 has it where not said otherwise."""

    bin_size: int = 64
    """rows of a bin, a power of two from 16 to 1,024"""
    sa_ratio: int = 7
    """rows from one whose position is kept to the next, 1 to 65,536"""
    pre_calc_length: int = 13
    """bases of the strings whose intervals are pre-calculated, at most: no more than a match has at least, or the
    lookup table, which is as long as the text is large"""


PAPER_PARAMETERS = BinParameters()


class BinnedIndex(NamedTuple):
    """What backward search by bins reads, on both targets."""

    bins: np.ndarray
    """uint64[(n // bin_size + 1) · bin_words]. A bin has the separators before it, twice, plus 1 where it holds one, in
    32 bits, and above them the C before it; the G and the T before it; then of 64 rows a word of the low bits of their
    bases and one of the high bits, the first row in the lowest, and so on. A separator is stored as A"""
    separator_row: np.ndarray
    """uint32[m], the rows whose BWT character is a separator, ascending"""
    separator_position: np.ndarray
    """uint32[m], the text position of these rows"""
    first_row: np.ndarray
    """uint32[5], C: rows that start with something smaller than base c; the last entry is n"""
    sampled: np.ndarray
    """uint32[ceil(n / sa_ratio)], SP: the suffix array at every row that is a multiple of sa_ratio"""
    intervals: np.ndarray
    """uint64[4**pre_calc_length], the first row that begins with a string, above the row behind the last"""
    longest_walk: int
    """the most steps from a row to one whose position is kept"""
    bin_shift: int
    """log2 of the rows of a bin"""
    bin_words: int
    """words of a bin"""
    sa_inverse: int
    """inverse modulo 2**32 of the odd factor of sa_ratio; see `locate.sample_of`"""
    sa_shift: int
    """how often 2 divides sa_ratio"""
    pre_calc_length: int


_made: WeakKeyDictionary[SeedIndex, dict[tuple[Any, ...], Any]] = WeakKeyDictionary()
"""What was made of each index."""
_making = threading.Lock()


# ---- bins


@scalar
def _fill_bins(text, suffix_array, shift, first, last, into):
    """Fill the bins [first, last); what is before a bin is counted from the first of them on.

    Parameters
    ----------
    text : uint8[n], 0 for a separator, 1..4 for ACGT
    into : (bins, words of a bin, int64[5] that takes the separators, A, C, G and T of all)

    Returns
    -------
    int64, rows whose position is not in the text
    """
    bins, words, counts = into
    rows, wrong = int64(suffix_array.shape[0]), int64(0)
    for number in range(first, last):
        at, begin = number * words, number << shift
        end = min(begin + (int64(1) << shift), rows)
        separators = counts[0]
        bins[at] = (uint64(separators) << uint64(1)) | (uint64(counts[2]) << uint64(32))
        bins[at + 1] = uint64(counts[3]) | (uint64(counts[4]) << uint64(32))
        for row in range(begin, end):
            position = int64(suffix_array[row])
            if position >= rows:
                wrong += int64(1)
                continue
            symbol = int64(text[position - int64(1)]) if position > int64(0) else int64(0)
            counts[symbol] += 1
            base = uint64(max(symbol - int64(1), int64(0)))
            plane = at + HEADER_WORDS + 2 * ((row - begin) // BASES_A_PLANE)
            bit = uint64((row - begin) % BASES_A_PLANE)
            bins[plane] |= (base & uint64(1)) << bit
            bins[plane + 1] |= (base >> uint64(1)) << bit
        if counts[0] != separators:
            bins[at] |= uint64(1)
    return wrong


@scalar
def _add_before(bins, words, first, last, before):
    """Add what is before the first of the bins [first, last), int64[5], to what was counted from there on."""
    for number in range(first, last):
        at = number * words
        bins[at] += (uint64(before[0]) << uint64(1)) + (uint64(before[2]) << uint64(32))
        bins[at + 1] += uint64(before[3]) + (uint64(before[4]) << uint64(32))


@scalar
def _collect_separators(text, suffix_array, shift, bins, words, into):
    """The rows whose BWT character is a separator, and their positions, from the bins that hold one."""
    row_of, position_of = into
    rows, found = int64(suffix_array.shape[0]), int64(0)
    for number in range(bins.shape[0] // words):
        if bins[number * words] & uint64(1) == uint64(0):
            continue
        for row in range(number << shift, min((number + 1) << shift, rows)):
            position = int64(suffix_array[row])
            if position == int64(0) or text[position - int64(1)] == 0:
                row_of[found] = uint32(row)
                position_of[found] = uint32(position)
                found += int64(1)


def _make_bins(
    index: SeedIndex, shift: int, words: int, threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """bins, separator_row, separator_position and first_row of a BinnedIndex."""
    text, suffix_array = unpack_text(index.text, index.segments), index.fast.suffix_array
    count = (index.rows >> shift) + 1
    bins = np.zeros(count * words, np.uint64)

    def fill(first: int, last: int) -> tuple[int, int, np.ndarray, int]:
        counts = np.zeros(5, np.int64)
        return first, last, counts, _fill_bins(text, suffix_array, shift, first, last, (bins, words, counts))

    filled = run_ranges(count, threads, fill)
    before = np.zeros(5, np.int64)
    for first, last, counts, _ in filled:
        _add_before(bins, words, first, last, before)
        before += counts
    separators = len(index.segments.contig)
    if any(wrong for *_, wrong in filled) or before[0] != separators:
        raise IndexFormatError(
            "The index is damaged: its suffix array is not that of the text; make it again with 'python -m warpseed "
            "index'."
        )
    row_of, position_of = np.empty(separators, np.uint32), np.empty(separators, np.uint32)
    _collect_separators(text, suffix_array, shift, bins, words, (row_of, position_of))
    return bins, row_of, position_of, np.cumsum(before).astype(np.uint32)


# ---- intervals


@scalar
def _fill_intervals(table, shift, rows, texts, length, intervals):
    """Intervals of all strings of `length` bases from a table of longer ones, 4**shift times as many.

    In the table a suffix that ends before it has so many bases counts as if A followed, and stands at the head of its
    bucket: it does not begin with the string. `texts`: (text, text_start), as an index has them.
    """
    text, text_start = texts
    for code in range(intervals.shape[0]):
        low = min(int64(table[code << shift]), rows)
        high = max(low, min(int64(table[(code + 1) << shift]), rows))
        intervals[code] = (uint64(low) << uint64(32)) | uint64(high)
    for segment in range(text_start.shape[0] - 1):
        end, code = int64(text_start[segment + 1]) - int64(1), int64(0)
        for position in range(end, max(int64(text_start[segment]), end - length + int64(1)) - 1, -1):
            if position < end:
                base = int64((text[position >> 5] >> uint64(62 - 2 * (position & 31))) & uint64(3))
                code = (code >> int64(2)) | (base << (int64(2) * length - int64(2)))
            low, high = intervals[code] >> uint64(32), intervals[code] & uint64(0xFFFF_FFFF)
            intervals[code] = (min(low + uint64(1), high) << uint64(32)) | high


def _make_intervals(index: SeedIndex, length: int) -> np.ndarray:
    """The rows of every string of `length` bases, of which the lookup table has at least as many."""
    intervals = np.empty(4**length, np.uint64)
    shift = 2 * (index.table_length - length)
    _fill_intervals(index.fast.table, shift, index.rows, (index.text, index.segments.text_start), length, intervals)
    return intervals


# ---- all of it


def _kept(index: SeedIndex, key: tuple[Any, ...], make: Callable[[], _Made]) -> _Made:
    """What was made of an index, or is made now."""
    made = _made.setdefault(index, {})
    if key not in made:
        made[key] = make()
    return made[key]


def _checked(parameters: BinParameters) -> BinParameters:
    bin_size = check_number("bin_size", parameters.bin_size, 16, LARGEST_BIN)
    if bin_size & (bin_size - 1):
        raise InputError(f"bin_size is {bin_size}, but a power of two from 16 to {LARGEST_BIN} was expected.")
    sa_ratio = check_number("sa_ratio", parameters.sa_ratio, *LIMITS["sa_interval"])
    longest = check_number("pre_calc_length", parameters.pre_calc_length, *LIMITS["table_length"])
    return BinParameters(bin_size, sa_ratio, longest)


def binned_index(
    index: SeedIndex, min_length: int, parameters: BinParameters = PAPER_PARAMETERS, *, threads: int = 1
) -> BinnedIndex:
    """The index of paper 002 for matches of at least `min_length` bases, made once of an index with the fast part.

    Raises
    ------
    InputError : a parameter out of its range
    IndexFormatError : the index has no fast part, or a damaged one
    """
    bin_size, ratio, longest = _checked(parameters)
    length = min(longest, min_length, index.table_length)
    shift, words = bin_size.bit_length() - 1, HEADER_WORDS + 2 * -(-bin_size // BASES_A_PLANE)
    with _making:
        made = _kept(index, ("bins", bin_size), lambda: _make_bins(index, shift, words, threads))
        position_of = made[2]
        sampled = _kept(index, ("sampled", ratio), lambda: np.array(index.fast.suffix_array[::ratio]))
        walk = _kept(index, ("walk", ratio), lambda: longest_walk(sampled, position_of, index.rows))
        intervals = _kept(index, ("intervals", length), lambda: _make_intervals(index, length))
    return BinnedIndex(*made, sampled, intervals, walk, shift, words, *inverse_of(ratio), length)


def binned_report(index: BinnedIndex) -> list[dict[str, Any]]:
    """Size of each part, as `SeedIndex.report` has it: part, bytes, bytes_per_base and formula_bytes, section 4.1's.

    The paper prints 1.6 GB, 20 bytes, 1.8 GB and 512 MB for the human genome.
    """
    rows, bin_size = int(index.first_row[4]), 1 << index.bin_shift
    bases = rows - len(index.separator_row)
    ratio = -(-rows // max(1, len(index.sampled)))
    parts: list[tuple[str, tuple[np.ndarray, ...], float]] = [
        (f"BWT in bins of {bin_size}", (index.bins,), bases * (16 / bin_size + 1 / 4)),
        ("C", (index.first_row,), 20),
        (f"SP, every {ratio}", (index.sampled,), 4 * bases / ratio),
        (f"intervals of {index.pre_calc_length} bases", (index.intervals,), 8 * 4**index.pre_calc_length),
        ("separators", (index.separator_row, index.separator_position), 0.0),
    ]
    return [
        {"part": name, "bytes": (size := sum(each.nbytes for each in arrays)), "bytes_per_base": size / bases,
         "formula_bytes": formula}
        for name, arrays, formula in parts
    ]  # fmt: skip
