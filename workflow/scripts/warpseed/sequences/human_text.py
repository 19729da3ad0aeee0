"""Human-like text, compiled: any stretch of a genome from the plan of its features, and the lines of a FASTA.

A base follows from the seed, its position and the plan alone: nothing has to be made before it, no genome is held, and
threads take what stretches they like. Random numbers are those of a counter (draws.py), a word for several bases: eight
of the background, four of a copy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import inlined, int64, scalar, uint64
from warpseed.compute.intrinsics import load_word, store_word
from warpseed.sequences.draws import GOLDEN, mix, stream_key, uniform

__all__ = [
    "MARGIN",
    "ONE",
    "Arrays",
    "Copies",
    "Duplications",
    "Plan",
    "make_bases",
    "put_lines",
]

MARGIN = 64
"""Bases before and behind what is copied: so far may insertions and deletions move a copy against what it is of."""
ONE = 1 << 15
"""What stands for 1 where a probability is a whole number."""

# Streams of random numbers, beyond those of draws.py; what each feature is planned with stands in human_like.py.
_BACKGROUND, _ISOCHORES, _COPIES, _ARRAYS, _DUPLICATIONS = map(np.uint64, range(32, 37))

_EACH_BYTE = np.uint64(0x0101010101010101)
_HIGH_OF_BYTE = np.uint64(0x8080808080808080)
_EACH_LANE = np.uint64(0x0001000100010001)
_HIGH_OF_LANE = np.uint64(0x8000800080008000)


class Copies(NamedTuple):
    """Copies of families and microsatellites, by their starts; none overlap."""

    starts: np.ndarray
    """int64[n], first base of each"""
    lengths: np.ndarray
    """int32[n], bases of each"""
    sources: np.ndarray
    """int16[n], sub-family that each is a copy of, -1 for a microsatellite"""
    sequences: np.ndarray
    """uint8[…], codes of the sub-families' sequences, each with MARGIN bases before and a tail of A behind"""
    ends: np.ndarray
    """int64[sub-families], where in `sequences` each ends, and its tail begins"""
    changes: np.ndarray
    """int64[sub-families + 1], probability in ONEths that a base of a copy is changed; the last for microsatellites"""


class Arrays(NamedTuple):
    """Satellite arrays, by their starts."""

    starts: np.ndarray
    """int64[n], first base of each"""
    stops: np.ndarray
    """int64[n], the base behind each"""
    repeats: np.ndarray
    """uint8[chromosomes, 2 * MARGIN + bases], the higher-order repeat of each two arrays, on both sides continued"""
    change: int
    """probability in ONEths that a base of a copy of it is changed"""


class Duplications(NamedTuple):
    """Segmental duplications, by their starts. None overlaps another, its own origin or that of another."""

    starts: np.ndarray
    """int64[n], first base of each"""
    lengths: np.ndarray
    """int64[n], bases of each"""
    origins: np.ndarray
    """int64[n], first base of what each is a copy of"""
    reverse: np.ndarray
    """bool[n], whether it is the reverse complement"""
    changes: np.ndarray
    """int64[n], probability in ONEths that a base is changed"""


class Plan(NamedTuple):
    """Where the features of a genome lie."""

    seed: int
    isochore: int
    """bases of a region of one share of G and C"""
    gc_low: float
    gc_high: float
    """the smallest and the largest share of G and C of a region"""
    indels: int
    """probability in ONEths that a change is an insertion or a deletion"""
    copies: Copies
    arrays: Arrays
    duplications: Duplications
    gap_starts: np.ndarray
    """int64[n], first base of each run of N, ascending"""
    gap_stops: np.ndarray
    """int64[n], the base behind each"""


class _Stretch(NamedTuple):
    """Where a copy lies."""

    start: int
    length: int
    reverse: bool


class _Changes(NamedTuple):
    """What is changed in a copy."""

    key: int
    """of its random numbers"""
    change: int
    """probability in ONEths that a base is changed"""
    indels: int
    """probability in ONEths that a change is an insertion or a deletion"""


@scalar
def make_bases(codes, first, plan, scratch):
    """Bases of a genome from `first` on, as many as `codes` (uint8) has; `scratch`: uint8[codes.size + 2 * MARGIN]."""
    _make_unique(codes, first, plan)
    duplications, end = plan.duplications, first + codes.size
    key = stream_key(plan.seed, _DUPLICATIONS)
    for i in range(_place(duplications.starts, first), duplications.starts.size):
        if duplications.starts[i] >= end:
            break
        stretch = _Stretch(duplications.starts[i], duplications.lengths[i], duplications.reverse[i])
        begin, stop = _part_within(stretch, first, codes.size)
        if begin < stop:
            origin = scratch[: stop - begin + 2 * MARGIN]
            _make_unique(origin, duplications.origins[i] + begin - MARGIN, plan)
            changes = _Changes(mix(key + uint64(i) * GOLDEN), duplications.changes[i], plan.indels)
            _put_copy(codes, first, stretch, origin, MARGIN - begin, changes)
    for i in range(_place(plan.gap_starts, first), plan.gap_starts.size):
        if plan.gap_starts[i] >= end:
            break
        for position in range(max(plan.gap_starts[i], first), min(plan.gap_stops[i], end)):
            codes[position - first] = 4


@scalar
def _make_unique(codes, first, plan):
    """All but duplications and runs of N, which lie above the rest."""
    _fill_background(codes, first, plan)
    _put_copies(codes, first, plan)
    _put_arrays(codes, first, plan)


@scalar
def _place(starts, position):
    """The last of ascending starts that is not behind a position, or 0."""
    low, high = int64(0), int64(starts.size)
    while high - low > 1:
        middle = (low + high) // 2
        if starts[middle] <= position:
            low = middle
        else:
            high = middle
    return low


# ----------------------------------------------------------------------------------------------------------- background


@inlined
def _eight_bases(bits, no_gc):
    """Codes of eight bases, a byte each, of random bits. `no_gc` has in each byte 128 less what of 128 are G or C."""
    # Seven bits say whether it is G or C (1 or 2), the eighth which of the two, or which of A and T (0 or 3).
    choice = (bits >> uint64(7)) & _EACH_BYTE
    is_gc = ~(((bits & ~_HIGH_OF_BYTE) + no_gc) >> uint64(7)) & _EACH_BYTE
    return (choice << uint64(1)) | (choice ^ is_gc)


@scalar
def _fill_background(codes, first, plan):
    """Random bases; the share of G and C is that of the region, of which there are more with a low one than a high."""
    key, region_key = stream_key(plan.seed, _BACKGROUND), stream_key(plan.seed, _ISOCHORES)
    at = int64(0)
    while at < codes.size:
        region = (first + at) // plan.isochore
        end = min((region + 1) * plan.isochore - first, codes.size)
        u = uniform(region_key, region)
        gc = plan.gc_low + (plan.gc_high - plan.gc_low) * (u * u)
        no_gc = _EACH_BYTE * uint64(int64(128) - int64(128.0 * gc + 0.5))
        while at < end:
            position = first + at
            bases = _eight_bases(mix(key + uint64(position >> 3) * GOLDEN), no_gc)
            lane = position & 7
            if lane == 0 and at + 8 <= end:
                store_word(codes, at, bases)
                at += 8
            else:
                bases >>= uint64(8 * lane)
                for _ in range(lane, min(int64(8), lane + end - at)):
                    codes[at] = bases & uint64(3)
                    bases >>= uint64(8)
                    at += 1


# --------------------------------------------------------------------------------------------------------------- copies


@scalar
def _part_within(stretch, first, size):
    """Which bases of a copy, in its own direction, lie among `size` from `first` on: the first, and the one behind."""
    begin, end = first - stretch.start, first + size - stretch.start
    if stretch.reverse:
        begin, end = stretch.length - end, stretch.length - begin
    return max(begin, int64(0)), min(end, stretch.length)


@inlined
def _moved(drift, draw):
    """Where a copy is against its source after an insertion (of what stands before it once more) or a deletion."""
    size = int64(1) + int64(draw & uint64(3))
    to = drift - size if draw & uint64(4) else drift + size
    return to if -MARGIN <= to <= MARGIN else drift


@scalar
def _put_copy(codes, first, stretch, source, at, changes):
    """Copy `source` from `at` on, with changes, over what lies of the stretch in `codes`, which begins at `first`."""
    begin, end = _part_within(stretch, first, codes.size)
    step, flip = (int64(-1), uint64(3)) if stretch.reverse else (int64(1), uint64(0))
    place = stretch.start - first
    if stretch.reverse:
        place += stretch.length - 1
    moved = (changes.change * changes.indels + ONE // 2) // ONE
    substituted = changes.change - moved
    factor = int64(3 << 16) // max(substituted, int64(1))
    unmoved = _EACH_LANE * uint64(int64(ONE) - moved)
    drift = int64(0)
    # From the copy's first base on: where it is in its source follows from all insertions and deletions before.
    for j in range(0, end, 4):
        word = mix(changes.key + uint64(j) * GOLDEN)
        if j + 4 <= begin and ((word & ~_HIGH_OF_LANE) + unmoved) & _HIGH_OF_LANE == _HIGH_OF_LANE:
            continue
        for i in range(j, min(j + 4, end)):
            draw = int64(word & uint64(ONE - 1))
            word >>= uint64(16)
            if draw < moved:
                drift = _moved(drift, mix(changes.key ^ uint64(i)))
            if i >= begin:
                # What is substituted has draws from `moved` on, of which each third stands for one of the other bases.
                over = draw - moved
                added = int64(1) + ((over * factor) >> 16) if 0 <= over < substituted else int64(0)
                code = (uint64(source[uint64(at + drift + i)]) + uint64(added)) & uint64(3)
                codes[uint64(place + step * i)] = code ^ flip


@scalar
def _put_copies(codes, first, plan):
    """Copies of families, which end where the family's sequence does, and microsatellites."""
    copies, end = plan.copies, first + codes.size
    key = stream_key(plan.seed, _COPIES)
    for i in range(_place(copies.starts, first), copies.starts.size):
        if copies.starts[i] >= end:
            break
        source, length = int64(copies.sources[i]), int64(copies.lengths[i])
        draw = mix(key + uint64(i) * GOLDEN)
        changes = _Changes(mix(draw), copies.changes[source], plan.indels)
        stretch = _Stretch(copies.starts[i], length, bool(draw & uint64(1)))
        if source >= 0:
            _put_copy(codes, first, stretch, copies.sequences, copies.ends[source] - length, changes)
        else:
            _put_microsatellite(codes, first, stretch, draw >> uint64(1), changes)


@scalar
def _put_microsatellite(codes, first, stretch, draw, changes):
    """A unit of 1 to 6 bases again and again, some bases substituted."""
    unit = int64(1) + int64((draw & uint64(0xFFFF)) % uint64(6))
    bases = draw >> uint64(16)
    begin, end = _part_within(stretch, first, codes.size)
    for i in range(begin, end):
        code = (bases >> uint64(2 * (i % unit))) & uint64(3)
        word = mix(changes.key + uint64(i) * GOLDEN)
        if int64(word >> uint64(49)) < changes.change:
            code = (code + uint64(1) + (word & uint64(0xFFFF)) % uint64(3)) & uint64(3)
        if stretch.reverse:
            codes[stretch.start + stretch.length - 1 - i - first] = code ^ uint64(3)
        else:
            codes[stretch.start + i - first] = code


@scalar
def _put_arrays(codes, first, plan):
    """Satellites: copies of a higher-order repeat one behind the other, each with changes of its own."""
    arrays, end = plan.arrays, first + codes.size
    length = int64(arrays.repeats.shape[1]) - 2 * MARGIN
    key = stream_key(plan.seed, _ARRAYS)
    for i in range(_place(arrays.starts, first), arrays.starts.size):
        start, stop = arrays.starts[i], arrays.stops[i]
        if start >= end:
            break
        copy = max(first - start, int64(0)) // length
        copy_start = start + copy * length
        while copy_start < min(stop, end):
            stretch = _Stretch(copy_start, min(length, stop - copy_start), False)
            changes = _Changes(mix(mix(key + uint64(i) * GOLDEN) + uint64(copy)), arrays.change, plan.indels)
            _put_copy(codes, first, stretch, arrays.repeats[i // 2], int64(MARGIN), changes)
            copy += 1
            copy_start += length


# ---------------------------------------------------------------------------------------------------------------- lines


@inlined
def _eight_letters(codes):
    """A C G T N for the codes 0 to 4 in the bytes of a word."""
    low, high = codes & _EACH_BYTE, (codes >> uint64(1)) & _EACH_BYTE
    known = uint64(0x41) * _EACH_BYTE + uint64(2) * low + uint64(6) * high + uint64(11) * (low & high)
    return known + uint64(13) * ((codes >> uint64(2)) & _EACH_BYTE)


@scalar
def put_lines(codes, bases, width, lines):
    """Write bases as lines of `width`, and return their bytes.

    `codes`: uint8[bases + 8], of which the last are not looked at; `lines`: uint8 with room for so many lines and 8.
    """
    to = int64(0)
    for begin in range(0, bases, width):
        end = min(begin + width, bases)
        for i in range(begin, end, 8):
            store_word(lines, to + i - begin, _eight_letters(load_word(codes, i)))
        to += end - begin
        lines[to] = 10
        to += 1
    return to
