"""What the values of an index must satisfy, so that compiled code, which checks nothing, stays within its arrays.

What is small, or leads from one array into another, is checked at every opening. What takes a pass over the large
arrays is part of the thorough check; without it, compiled code keeps what it reads from them within bounds itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warpseed.compute.bits import mismatch_bits
from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.compute.intrinsics import popcount
from warpseed.fm_index.bwt import longest_walk
from warpseed.fm_index.layout import Segments
from warpseed.fm_index.parts import Arrays, Sizes
from warpseed.fm_index.search import EVERY_BASE
from warpseed.fm_index.text import make_hint

__all__ = ["wrong_in_bwt", "wrong_in_segments"]


def _ascending(values: np.ndarray, by: int) -> bool:
    """Whether each value is at least `by` above the one before it."""
    wide = values.astype(np.int64)
    return bool((wide[1:] - wide[:-1] >= by).all())


def wrong_in_segments(segments: Segments, sizes: Sizes, lengths: np.ndarray) -> Iterator[str]:
    """Names of arrays of the core whose values cannot be right; `lengths` int64[c] of the contigs."""
    start = segments.text_start.astype(np.int64)
    if start[0] != 0 or start[-1] != sizes.rows or not _ascending(start, 2):
        yield "text_start"
        return
    if segments.contig[0] < 0 or segments.contig[-1] >= len(lengths) or not _ascending(segments.contig, 0):
        yield "contig"
        return
    bases = start[1:] - start[:-1] - 1
    begin = segments.contig_start
    same = segments.contig[1:] == segments.contig[:-1]
    # Compared without adding, as a damaged start may be near the end of 64 bits.
    fits = (begin >= 0) & (begin <= lengths[segments.contig] - bases)
    if not fits.all() or not (begin[1:] > begin[:-1] + bases[:-1])[same].all():
        yield "contig_start"
    if not np.array_equal(segments.hint, make_hint(start)):
        yield "hint"


@scalar
def _separators_agree(separators, separator_row, occ_interval):
    """Whether every entry of `separators` is the number of separator rows below its block."""
    found = int64(0)
    for block in range(separators.shape[0]):
        while found < separator_row.shape[0] and int64(separator_row[found]) < int64(block) * occ_interval:
            found += int64(1)
        if int64(separators[block]) != found:
            return False
    return True


@scalar
def _counts_agree(rocc, bwt, separators, rows, occ_interval, total):
    """Whether ROcc is what the bases of B add up to; `total` int64[4], the rows of each base."""
    words = occ_interval >> int64(5)
    blocks = separators.shape[0]
    for base in range(4):
        pattern = uint64(base) * EVERY_BASE
        count = int64(0)
        for block in range(blocks):
            if int64(rocc[int64(4) * block + base]) != count:
                return False
            if block + 1 == blocks:
                break
            for word in range(block * words, (block + 1) * words):
                count += popcount(EVERY_BASE & ~mismatch_bits(bwt[word], pattern))
            if base == 0:
                # Separators are stored as A, and so are the rows behind the last.
                count -= int64(separators[block + 1]) - int64(separators[block])
                count -= max(
                    int64(0), (int64(block) + int64(1)) * occ_interval - max(rows, int64(block) * occ_interval)
                )
        if count != total[base]:
            return False
    return True


def wrong_in_bwt(part: str, arrays: Arrays, sizes: Sizes, segments: Segments, *, thorough: bool) -> Iterator[str]:
    """Names of arrays of `forward` or `reverse` whose values cannot be right.

    Parameters
    ----------
    thorough : bool, whether to count all bases of B and to derive the longest walk anew, one pass over both
    """
    rows, interval = sizes.rows, sizes.parameters.occ_interval
    first = arrays["first_row"].astype(np.int64)
    if first[0] != sizes.segments or first[4] != rows or not _ascending(first, 0):
        yield "first_row"
        return
    if arrays["separator_row"][-1] >= rows or not _ascending(arrays["separator_row"], 1):
        yield "separator_row"
        return
    if not _separators_agree(arrays["separators"], arrays["separator_row"], interval):
        yield "separators"
        return
    # They precede the first bases of the segments; in the reversed text, those are the last ones.
    start = segments.text_start
    begins = start[:-1] if part == "forward" else np.uint32(rows) - start[:0:-1]
    if not np.array_equal(np.sort(arrays["separator_position"]), begins):
        yield "separator_position"
        return
    if int(arrays["longest_walk"][0]) >= rows:
        yield "longest_walk"
    if not thorough:
        return
    if not _counts_agree(arrays["rocc"], arrays["bwt"], arrays["separators"], rows, interval, first[1:] - first[:-1]):
        yield "rocc"
    if int(arrays["rsa"].max()) >= rows:
        yield "rsa"
    elif int(arrays["longest_walk"][0]) != longest_walk(arrays["rsa"], arrays["separator_position"], rows):
        yield "longest_walk"
