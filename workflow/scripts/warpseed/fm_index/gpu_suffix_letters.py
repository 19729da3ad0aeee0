"""Kernels that sort the suffixes of a packed text: dealt out by their first bases, sorted by the next, told apart.

Suffixes are in the order of `suffix_letters.py`. A *bucket* holds those that begin with the same few bases, where A
stands for what lies behind a segment's end. The *element* of a suffix is what a bucket is sorted by: 15 bases behind
those that the bucket shares, whether the suffix has all of these, and its position.
"""

from __future__ import annotations

from warpseed.compute.bits import fetch_word, prefix_mask
from warpseed.compute.compiled import int64, scalar, uint32, uint64
from warpseed.compute.gpu import cuda, kernel
from warpseed.fm_index.suffix_letters import sort_few
from warpseed.fm_index.text import segment_end, text_length

__all__ = [
    "ELEMENT_BASES",
    "MOST_PREFIX",
    "deal_out_suffixes",
    "ended_keys",
    "make_elements",
    "settle_few",
    "take_rows",
]

ELEMENT_BASES = 15
"""Bases of an element, behind those that its bucket shares."""
MOST_PREFIX = 5
"""Bases that a bucket shares, at most."""
_BUCKETS = 4**MOST_PREFIX
_TIE_SHIFT = 33
"""Suffixes are tied by an element whose bits from here on are equal."""
_FEW = 8
"""Tied suffixes that one thread compares with each other."""
_WORDS = 48
"""Words that it compares for that, at most."""


@scalar
def _bucket_of(text, prefix, position, end):
    return int64((fetch_word(text.words, position) & prefix_mask(end - position)) >> uint64(64 - 2 * prefix))


@kernel
def deal_out_suffixes(text, prefix, cursors, rows):
    """Deal out the suffixes that are not empty, a thread those that begin in a word of the text, in any order.

    Parameters
    ----------
    prefix : int, bases that buckets share, 1 to MOST_PREFIX
    cursors : uint64[4**prefix], the place of each bucket's next suffix; it moves on
    rows : uint32[n], filled with positions; uint32[0] only counts
    """
    counts = cuda.shared.array(_BUCKETS, uint32)
    places = cuda.shared.array(_BUCKETS, uint64)
    me, size, buckets = int64(cuda.threadIdx.x), int64(cuda.blockDim.x), int64(1) << int64(2 * prefix)
    for bucket in range(me, buckets, size):
        counts[bucket] = uint32(0)
    cuda.syncthreads()
    length = text_length(text.segments)
    begin = int64(cuda.grid(1)) << int64(5)
    stop = min(begin + int64(32), length)
    end = segment_end(text.segments, begin) if begin < length else int64(0)
    position, first_end = begin, end
    while position < stop:
        if position == end:
            end = segment_end(text.segments, position + int64(1)) if position + int64(1) < stop else end
        else:
            cuda.atomic.add(counts, _bucket_of(text, prefix, position, end), uint32(1))
        position += int64(1)
    cuda.syncthreads()
    for bucket in range(me, buckets, size):
        if counts[bucket] > uint32(0):
            places[bucket] = cuda.atomic.add(cursors, bucket, uint64(counts[bucket]))
            counts[bucket] = uint32(0)
    cuda.syncthreads()
    if rows.shape[0] == 0:
        return
    position, end = begin, first_end
    while position < stop:
        if position == end:
            end = segment_end(text.segments, position + int64(1)) if position + int64(1) < stop else end
        else:
            bucket = _bucket_of(text, prefix, position, end)
            rows[int64(places[bucket]) + int64(cuda.atomic.add(counts, bucket, uint32(1)))] = uint32(position)
        position += int64(1)


@kernel
def make_elements(text, prefix, rows, elements):
    """A thread a suffix of a bucket: its element.

    rows : uint32[m], positions
    elements : uint64[m]
    """
    i = cuda.grid(1)
    if i >= rows.shape[0]:
        return
    position = int64(rows[i])
    left = segment_end(text.segments, position) - position
    word = (fetch_word(text.words, position) & prefix_mask(left)) << uint64(2 * prefix)
    whole = uint64(1) if left >= int64(prefix) + int64(ELEMENT_BASES) else uint64(0)
    elements[i] = ((word >> uint64(34)) << uint64(34)) | (whole << uint64(_TIE_SHIFT)) | uint64(position)


@kernel
def take_rows(elements, rows, heads, ended):
    """A thread a sorted element: the position that comes there, whether a group of tied ones begins with it, and
    whether the suffix ends before it has all bases of an element."""
    i = cuda.grid(1)
    if i >= elements.shape[0]:
        return
    element = elements[i]
    rows[i] = uint32(element)
    head = i == 0 or (elements[i - 1] ^ element) >> uint64(_TIE_SHIFT) != uint64(0)
    heads[i] = uint32(1) if head else uint32(0)
    ended[i] = (element >> uint64(_TIE_SHIFT)) & uint64(1) == uint64(0)


@kernel
def ended_keys(text, elements, ended, keys):
    """A thread a suffix that ended: what those of its bucket are in the order of, of equal ones that of positions.

    ended : int64[m], their places in the bucket
    keys : uint64[m], bases above the length
    """
    i = cuda.grid(1)
    if i >= ended.shape[0]:
        return
    element = elements[ended[i]]
    position = int64(element & uint64(0xFFFFFFFF))
    left = segment_end(text.segments, position) - position
    keys[i] = ((element >> uint64(34)) << uint64(5)) | uint64(left)


@kernel
def settle_few(text, depth, heads, rows, settled):
    """A thread a group of a few tied suffixes: they are compared, and a group each where that told them apart.

    Parameters
    ----------
    depth : int, bases by which they are tied
    heads : uint32[m], of the groups; other threads read them, so they stay
    rows : uint32[m], changed
    settled : uint32[m], the same heads, to which those of settled groups are added
    """
    i = int64(cuda.grid(1))
    count = int64(rows.shape[0])
    if i + int64(1) >= count or heads[i] == uint32(0) or heads[i + int64(1)] != uint32(0):
        return
    last = i + int64(2)
    while last < count and last - i <= int64(_FEW) and heads[last] == uint32(0):
        last += int64(1)
    if last - i > int64(_FEW):
        return
    if sort_few(text, int64(depth), (i, last), rows, int64(_WORDS)) > int64(0):
        for row in range(i + int64(1), last):
            settled[row] = uint32(1)
