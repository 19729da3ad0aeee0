"""What simulations draw, compiled: genomes and reads, base by base.

All random numbers come from a counter: number i of a stream is a mix of the seed, the stream and i. What is made
depends on the seed and the parameters alone, not on the order or the size of the pieces it is made in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import scalar

__all__ = [
    "CONTIGS",
    "GOLDEN",
    "ErrorModel",
    "MadeReads",
    "Places",
    "Runs",
    "copy_reads",
    "draw_places",
    "fill_background",
    "fill_uniform",
    "measure_reads",
    "mix",
    "place_n_runs",
    "place_repeats",
    "place_tandems",
    "scan_runs",
    "stream_key",
    "uniform",
]

# Streams of random numbers: each purpose has its own, so that a change of one parameter leaves the rest.
# They are no plain numbers: what is called with one of those is compiled for each of them.
BACKGROUND, CONTIGS, FAMILIES, COPIES, DIVERGENCE, TANDEMS, N_RUNS = map(np.uint64, range(1, 8))
READS, SUBSTITUTIONS, LENGTHS, INSERTIONS, DELETIONS, QUALITIES = map(np.uint64, range(8, 14))

_ATTEMPTS = 64
"""Draws of a length before the last one is cut to what is allowed."""

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""What keys of numbers side by side differ by before they are mixed."""
_MULTIPLIER_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)


@scalar
def mix(x):
    """SplitMix64's output function: a bijection of uint64 whose values look random."""
    x = (x ^ (x >> np.uint64(30))) * _MULTIPLIER_1
    x = (x ^ (x >> np.uint64(27))) * _MULTIPLIER_2
    return x ^ (x >> np.uint64(31))


@scalar
def stream_key(seed, stream):
    """Key of a stream, uint64: what `uniform` and `_below` take."""
    return mix(mix(np.uint64(seed) + GOLDEN) + stream)


@scalar
def uniform(key, i):
    """Number i of a stream, uniform in [0, 1)."""
    return np.float64(mix(key + np.uint64(i) * GOLDEN) >> np.uint64(11)) * 2.0**-53


@scalar
def fill_uniform(values, seed, stream):
    """Numbers 0, 1, … of a stream, float64, uniform in [0, 1)."""
    key = stream_key(seed, stream)
    for i in range(values.size):
        values[i] = uniform(key, i)


@scalar
def _below(key, i, n):
    """Number i of a stream, uniform in 0 .. n - 1."""
    return min(np.int64(uniform(key, i) * n), n - 1)


@scalar
def _random_base(key, i, gc):
    """Code of a base that is G or C with probability `gc`."""
    u = uniform(key, i)
    if u < gc:
        return 1 if u < 0.5 * gc else 2
    return 0 if u - gc < 0.5 * (1.0 - gc) else 3


@scalar
def _other_base(code, draw):
    """One of the three bases that are not `code`, for a draw of 0, 1 or 2."""
    return (code + 1 + draw) & 3


@scalar
def fill_background(codes, seed, gc):
    key = stream_key(seed, BACKGROUND)
    for i in range(codes.size):
        codes[i] = _random_base(key, i, gc)


@scalar
def place_repeats(codes, seed, gc, families, length, copies, divergence):
    """Overwrite random places with copies of each family's sequence, either way round, bases substituted."""
    family_key = stream_key(seed, FAMILIES)
    copy_key = stream_key(seed, COPIES)
    divergence_key = stream_key(seed, DIVERGENCE)
    for copy in range(families * copies):
        first = (copy // copies) * length
        start = _below(copy_key, 2 * copy, codes.size - length + 1)
        reverse = uniform(copy_key, 2 * copy + 1) < 0.5
        for i in range(length):
            code = _random_base(family_key, first + i, gc)
            draw = copy * length + i
            u = uniform(divergence_key, draw)
            if u < divergence:  # u / divergence is uniform again: it chooses the base
                code = _other_base(code, min(np.int64(3.0 * u / divergence), 2))
            if reverse:
                codes[start + length - 1 - i] = 3 - code
            else:
                codes[start + i] = code


@scalar
def place_tandems(codes, seed, count, length, longest_unit):
    """Overwrite random places with a unit of 1 to `longest_unit` bases, again and again."""
    key = stream_key(seed, TANDEMS)
    numbers = 2 + longest_unit
    for tandem in range(count):
        start = _below(key, tandem * numbers, codes.size - length + 1)
        unit = 1 + _below(key, tandem * numbers + 1, longest_unit)
        for i in range(length):
            codes[start + i] = _below(key, tandem * numbers + 2 + i % unit, 4)


@scalar
def place_n_runs(codes, seed, count, length):
    key = stream_key(seed, N_RUNS)
    for run in range(count):
        start = _below(key, run, codes.size - length + 1)
        codes[start : start + length] = 4


# ---------------------------------------------------------------------------------------------------------------- reads


class Runs(NamedTuple):
    """Pieces of the reference that reads are drawn from; a read lies in one of them."""

    starts: np.ndarray
    """int64[runs], first base of each; the longest run first, unless all reads are of one length"""
    borders: np.ndarray
    """int64[runs + 1], bases of all runs before each"""
    lengths: np.ndarray
    """int64[runs], bases of each"""


class Places(NamedTuple):
    """The piece of the reference of each read."""

    offsets: np.ndarray
    """int64[n + 1], bases of all pieces before each"""
    starts: np.ndarray
    """int64[n], first base of each"""
    reverse: np.ndarray
    """bool[n], whether the read is of the reverse strand"""


class ErrorModel(NamedTuple):
    """Probabilities of errors, and what qualities are made of."""

    substitution: float
    insertion: float
    deletion: float
    low_if_right: float
    """probability that a right base has the low quality; for a wrong one it is 1/2"""
    low: int
    """the low quality's character"""
    high: int
    """the high quality's character"""


class MadeReads(NamedTuple):
    """Reads to be filled in."""

    codes: np.ndarray
    """uint8[total]"""
    offsets: np.ndarray
    """int64[n + 1]"""
    qualities: np.ndarray
    """uint8[total], or uint8[0] where none are made"""
    edits: np.ndarray
    """int32[n]"""


@scalar
def _runs_of_length(lengths, length):
    """How many of `lengths` (descending, or all long enough) are at least `length`."""
    low, high = 0, lengths.size
    while low < high:
        middle = (low + high) // 2
        if lengths[middle] >= length:
            low = middle + 1
        else:
            high = middle
    return low


@scalar
def _draw_length(key, read, lengths):
    """Length of a read: every one as likely, or with a mean that of a gamma distribution of shape 2, which long reads
    resemble; drawn again where it is too short or too long."""
    shortest, mean, longest = lengths
    if mean == 0:
        return shortest + _below(key, read, longest - shortest + 1) if longest > shortest else np.int64(shortest)
    length = np.int64(0)
    for attempt in range(_ATTEMPTS):
        number = 2 * (read * _ATTEMPTS + attempt)
        both = (1.0 - uniform(key, number)) * (1.0 - uniform(key, number + 1))
        length = np.int64(np.round(-0.5 * mean * np.log(both)))
        if shortest <= length <= longest:
            return length
    return min(max(length, np.int64(shortest)), np.int64(longest))


@scalar
def draw_places(runs, lengths, seed, places):
    """Draw length, strand and place of every read: each window of its length in `runs` is as likely.

    `lengths`: the shortest, their mean before what is too short or too long is drawn again, or 0 where every length is
    as likely, and the longest.
    """
    read_key = stream_key(seed, READS)
    length_key = stream_key(seed, LENGTHS)
    starts, borders = runs.starts, runs.borders
    places.offsets[0] = 0
    for read in range(places.starts.size):
        length = _draw_length(length_key, read, lengths)
        # Run j has as many windows as bases but length - 1: borders[j] - j * (length - 1) windows come before it.
        lost = length - 1
        stop = _runs_of_length(runs.lengths, length)
        window = _below(read_key, 2 * read, borders[stop] - stop * lost)
        run = 0
        while stop - run > 1:
            middle = (run + stop) // 2
            if borders[middle] - middle * lost <= window:
                run = middle
            else:
                stop = middle
        places.starts[read] = starts[run] + window - (borders[run] - run * lost)
        places.reverse[read] = uniform(read_key, 2 * read + 1) < 0.5
        places.offsets[read + 1] = places.offsets[read] + length


@scalar
def _inserted_base(key, number, rate):
    """Code of the base inserted before base `number` of all pieces, or -1."""
    if rate > 0.0:
        u = uniform(key, number)
        if u < rate:
            return min(np.int64(4.0 * u / rate), 3)
    return np.int64(-1)


@scalar
def measure_reads(places, errors, seed, offsets):
    """Fill `offsets` (int64[n + 1]) with where the reads begin that `copy_reads` makes with the same arguments."""
    insertion_key = stream_key(seed, INSERTIONS)
    deletion_key = stream_key(seed, DELETIONS)
    offsets[0] = 0
    for read in range(offsets.size - 1):
        length = 0
        for number in range(places.offsets[read], places.offsets[read + 1]):
            if _inserted_base(insertion_key, number, errors.insertion) >= 0:
                length += 1
            if uniform(deletion_key, number) >= errors.deletion:
                length += 1
        offsets[read + 1] = offsets[read] + max(length, 1)


@scalar
def copy_reads(reference, places, errors, seed, reads):
    """Copy the pieces, base by base in the reads' direction, with errors."""
    substitution_key = stream_key(seed, SUBSTITUTIONS)
    insertion_key = stream_key(seed, INSERTIONS)
    deletion_key = stream_key(seed, DELETIONS)
    quality_key = stream_key(seed, QUALITIES)
    for read in range(places.starts.size):
        first, end = places.offsets[read], places.offsets[read + 1]
        w = reads.offsets[read]
        edits = 0
        for number in range(first, end):
            inserted = _inserted_base(insertion_key, number, errors.insertion)
            if inserted >= 0:
                reads.codes[w] = inserted
                _set_quality(reads.qualities, quality_key, w, inserted, np.bool_(True), errors)
                w += 1
                edits += 1
            nothing_yet = number == end - 1 and w == reads.offsets[read]
            if errors.deletion > 0.0 and uniform(deletion_key, number) < errors.deletion and not nothing_yet:
                edits += 1
                continue
            i = number - first
            wrong = False
            code = np.int64(reference[places.starts[read] + (end - 1 - number if places.reverse[read] else i)])
            if code < 4:
                if places.reverse[read]:
                    code = 3 - code
                u = uniform(substitution_key, number)
                if u < errors.substitution:
                    code = _other_base(code, min(np.int64(3.0 * u / errors.substitution), 2))
                    wrong = True
                    edits += 1
            reads.codes[w] = code
            _set_quality(reads.qualities, quality_key, w, code, wrong, errors)
            w += 1
        reads.edits[read] = edits


@scalar
def _set_quality(qualities, key, i, code, wrong, errors):
    if qualities.size > 0:
        low = uniform(key, i) < (0.5 if wrong else errors.low_if_right)
        qualities[i] = 33 if code > 3 else (errors.low if low else errors.high)


@scalar
def scan_runs(codes, offsets, length, starts, lengths):
    """Find the runs of at least `length` known bases; fill the arrays as far as they go; return how many."""
    found = 0
    for contig in range(offsets.size - 1):
        first = offsets[contig]
        for i in range(offsets[contig], offsets[contig + 1] + 1):
            if i == offsets[contig + 1] or codes[i] > 3:
                if i - first >= length:
                    if found < starts.size:
                        starts[found] = first
                        lengths[found] = i - first
                    found += 1
                first = i + 1
    return found
