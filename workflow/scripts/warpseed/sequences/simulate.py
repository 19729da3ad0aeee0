"""Genomes and reads made of random numbers, so that a first run needs no network.

All random numbers come from a counter: number i of a stream is a mix of the seed, the stream and i. What is
made depends on the seed and the parameters alone, not on the order or the size of the pieces it is made in.
This module imports numba: import it where it is used.
"""

from __future__ import annotations

import os

import numpy as np

from warpseed.compute.compiled import scalar
from warpseed.errors import InputError
from warpseed.sequences.alphabet import DECODE
from warpseed.sequences.files import atomic_path, open_for_writing
from warpseed.sequences.queries import Queries, numbered_names
from warpseed.sequences.reference import Reference

__all__ = ["simulate_reads", "simulate_reference"]

LINE_BASES = 60
_PIECE_LINES = 1 << 16

# Streams of random numbers: each purpose has its own, so that a change of one parameter leaves the rest.
BACKGROUND, CONTIGS, FAMILIES, COPIES, DIVERGENCE, TANDEMS, N_RUNS, READS, ERRORS = range(1, 10)

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)


@scalar
def _mix(x):
    """SplitMix64's output function: a bijection of uint64 whose values look random."""
    x = (x ^ (x >> np.uint64(30))) * _MULTIPLIER_1
    x = (x ^ (x >> np.uint64(27))) * _MULTIPLIER_2
    return x ^ (x >> np.uint64(31))


@scalar
def _stream_key(seed, stream):
    return _mix(_mix(np.uint64(seed) + _GOLDEN) + np.uint64(stream))


@scalar
def _uniform(key, i):
    """Number i of a stream, uniform in [0, 1)."""
    return np.float64(_mix(key + np.uint64(i) * _GOLDEN) >> np.uint64(11)) * 2.0**-53


@scalar
def _below(key, i, n):
    """Number i of a stream, uniform in 0 .. n - 1."""
    return min(np.int64(_uniform(key, i) * n), n - 1)


@scalar
def _random_base(key, i, gc):
    u = _uniform(key, i)
    if u < gc:
        return 1 if u < 0.5 * gc else 2
    return 0 if u - gc < 0.5 * (1.0 - gc) else 3


@scalar
def _other_base(code, draw):
    """One of the three bases that are not `code`, for a draw of 0, 1 or 2."""
    return (code + 1 + draw) & 3


@scalar
def _fill_background(codes, seed, gc):
    key = _stream_key(seed, BACKGROUND)
    for i in range(codes.size):
        codes[i] = _random_base(key, i, gc)


@scalar
def _place_repeats(codes, seed, gc, families, length, copies, divergence):
    """Overwrite random places with copies of each family's sequence, either way round, bases substituted."""
    family_key = _stream_key(seed, FAMILIES)
    copy_key = _stream_key(seed, COPIES)
    divergence_key = _stream_key(seed, DIVERGENCE)
    for copy in range(families * copies):
        first = (copy // copies) * length
        start = _below(copy_key, 2 * copy, codes.size - length + 1)
        reverse = _uniform(copy_key, 2 * copy + 1) < 0.5
        for i in range(length):
            code = _random_base(family_key, first + i, gc)
            draw = copy * length + i
            u = _uniform(divergence_key, draw)
            if u < divergence:  # u / divergence is uniform again: it chooses the base
                code = _other_base(code, min(np.int64(3.0 * u / divergence), 2))
            if reverse:
                codes[start + length - 1 - i] = 3 - code
            else:
                codes[start + i] = code


@scalar
def _place_tandems(codes, seed, count, length, longest_unit):
    """Overwrite random places with a unit of 1 to `longest_unit` bases, again and again."""
    key = _stream_key(seed, TANDEMS)
    numbers = 2 + longest_unit
    for tandem in range(count):
        start = _below(key, tandem * numbers, codes.size - length + 1)
        unit = 1 + _below(key, tandem * numbers + 1, longest_unit)
        for i in range(length):
            codes[start + i] = _below(key, tandem * numbers + 2 + i % unit, 4)


@scalar
def _place_n_runs(codes, seed, count, length):
    key = _stream_key(seed, N_RUNS)
    for run in range(count):
        start = _below(key, run, codes.size - length + 1)
        codes[start : start + length] = 4


def simulate_reference(
    path: str | os.PathLike[str],
    *,
    size: int,
    contigs: int = 1,
    gc: float = 0.5,
    repeat_families: int = 20,
    repeat_length: int = 1000,
    repeat_copies: int = 20,
    repeat_divergence: float = 0.05,
    tandem_repeats: int = 50,
    tandem_length: int = 200,
    n_runs: int = 5,
    n_length: int = 1000,
    seed: int,
) -> None:
    """Write a random genome with what makes real ones hard: repeats, tandem repeats, Ns, several contigs.

    Parameters
    ----------
    path : path-like
        FASTA with 60 bases a line, compressed when it ends in ``.gz``; written under a temporary name and
        renamed.
    size : int
        Bases of all contigs together. Takes one byte of memory a base.
    contigs : int
        Contigs, of random lengths of at least one base, named ``sim1``, ``sim2``, ….
    gc : float
        Share of G and C in the background and in the families' sequences, 0 to 1.
    repeat_families, repeat_length, repeat_copies : int
        How many different sequences are repeated, their bases, and the copies of each, placed at random and
        in random orientation. A later copy may overwrite part of an earlier one, and a contig's end may cut
        one.
    repeat_divergence : float
        Probability that a base of a copy is substituted, 0 to 1.
    tandem_repeats, tandem_length : int
        How many stretches are one unit of 1 to 12 bases again and again, and the bases of each stretch.
    n_runs, n_length : int
        How many stretches are unknown (N), placed last, and the bases of each.
    seed : int
        0 to 2**63 - 1. The same seed and parameters give the same file.

    Raises
    ------
    InputError
        When a parameter is out of its range, or a stretch is longer than the genome.
    """
    counts = {
        "repeat_families": repeat_families,
        "repeat_copies": repeat_copies,
        "tandem_repeats": tandem_repeats,
        "n_runs": n_runs,
    }
    lengths = {"repeat_length": repeat_length, "tandem_length": tandem_length, "n_length": n_length}
    used = (repeat_families * repeat_copies, tandem_repeats, n_runs)
    _check_seed(seed)
    _check_range("size", size, 1, None)
    _check_range("contigs", contigs, 1, size)
    _check_range("gc", gc, 0, 1)
    _check_range("repeat_divergence", repeat_divergence, 0, 1)
    for name, count in counts.items():
        _check_range(name, count, 0, None)
    for (name, length), count in zip(lengths.items(), used, strict=True):
        if count:
            _check_range(name, length, 1, size)

    codes = np.empty(size, np.uint8)
    _fill_background(codes, seed, float(gc))
    if used[0]:
        _place_repeats(codes, seed, float(gc), repeat_families, repeat_length, repeat_copies, float(repeat_divergence))
    if tandem_repeats:
        _place_tandems(codes, seed, tandem_repeats, tandem_length, 12)
    if n_runs:
        _place_n_runs(codes, seed, n_runs, n_length)

    borders = _contig_borders(size, contigs, seed)
    with atomic_path(path) as temporary, open_for_writing(temporary) as handle:
        for number, (start, stop) in enumerate(zip(borders[:-1], borders[1:], strict=True), 1):
            handle.write(b">sim%d\n" % number)
            for first in range(start, stop, LINE_BASES * _PIECE_LINES):
                handle.write(_lines(codes[first : min(first + LINE_BASES * _PIECE_LINES, stop)]))


def simulate_reads(reference: Reference, *, count: int, length: int, error_rate: float = 0.01, seed: int) -> Queries:
    """Draw reads from both strands of a reference and substitute bases.

    Parameters
    ----------
    reference : Reference
    count : int
        How many reads.
    length : int
        Bases of each.
    error_rate : float
        Probability that a base is substituted by one of the three others, 0 to 1.
    seed : int
        0 to 2**63 - 1. The same seed, reference and parameters give the same reads.

    Returns
    -------
    Queries
        Named ``r0``, ``r1``, …. Places are uniform over all windows of `length` bases that hold no N; only
        when the reference has no such window, over all windows of its contigs.

    Raises
    ------
    InputError
        When no contig is as long as a read, or a parameter is out of its range.
    """
    _check_seed(seed)
    _check_range("count", count, 1, None)
    _check_range("length", length, 1, None)
    _check_range("error_rate", error_rate, 0, 1)
    starts, windows = _clean_runs(reference, length)
    if not len(starts):
        long_enough = reference.lengths >= length
        starts, windows = reference.offsets[:-1][long_enough], (reference.lengths - length + 1)[long_enough]
    if not len(starts):
        raise InputError(
            f"{reference.path}: reads of {length} bases were asked for, but the longest contig has "
            f"{reference.lengths.max()}; ask for shorter reads."
        )
    borders = np.concatenate(([0], np.cumsum(windows)))
    codes = np.empty(count * length, np.uint8)
    _draw_reads(reference.codes, starts, borders, codes, length, float(error_rate), seed)
    names = numbered_names(b"r", count)
    return Queries(codes, np.arange(count + 1, dtype=np.int64) * length, *names, f"reads of {reference.path}")


@scalar
def _draw_reads(reference, starts, borders, codes, length, error_rate, seed):
    """Fill `codes` with reads; `borders` (int64[runs + 1]) counts the windows before each run of `starts`."""
    read_key = _stream_key(seed, READS)
    error_key = _stream_key(seed, ERRORS)
    for read in range(codes.size // length):
        window = _below(read_key, 2 * read, borders[-1])
        reverse = _uniform(read_key, 2 * read + 1) < 0.5
        run = np.searchsorted(borders, window, side="right") - 1
        start = starts[run] + window - borders[run]
        for i in range(length):
            code = reference[start + length - 1 - i] if reverse else reference[start + i]
            if code < 4:
                if reverse:
                    code = 3 - code
                u = _uniform(error_key, read * length + i)
                if u < error_rate:
                    code = _other_base(code, min(np.int64(3.0 * u / error_rate), 2))
            codes[read * length + i] = code


@scalar
def _scan_runs(codes, offsets, length, starts, windows):
    """Find the runs of at least `length` known bases; fill the arrays as far as they go; return how many."""
    found = 0
    for contig in range(offsets.size - 1):
        first = offsets[contig]
        for i in range(offsets[contig], offsets[contig + 1] + 1):
            if i == offsets[contig + 1] or codes[i] > 3:
                if i - first >= length:
                    if found < starts.size:
                        starts[found] = first
                        windows[found] = i - first - length + 1
                    found += 1
                first = i + 1
    return found


def _clean_runs(reference: Reference, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the start of each run of known bases and its number of windows of `length`, both int64."""
    nothing = np.empty(0, np.int64)
    found = _scan_runs(reference.codes, reference.offsets, length, nothing, nothing)
    starts, windows = np.empty(found, np.int64), np.empty(found, np.int64)
    _scan_runs(reference.codes, reference.offsets, length, starts, windows)
    return starts, windows


def _contig_borders(size: int, contigs: int, seed: int) -> list[int]:
    """Return where contigs begin and end: `contigs` + 1 increasing numbers from 0 to `size`."""
    generator = np.random.default_rng([seed, CONTIGS])
    # Random cuts among size - contigs + 1 places, then one base added to each contig: none is empty.
    shares = generator.random(contigs - 1)
    extra = np.sort(np.floor(shares * (size - contigs + 1)).astype(np.int64))
    return [0, *(int(e) + i for i, e in enumerate(extra, 1)), size]


def _lines(codes: np.ndarray) -> bytes:
    """Return codes as letters with a newline after every 60, and after the last."""
    letters = DECODE[codes]
    whole = len(letters) // LINE_BASES
    block = np.full((whole, LINE_BASES + 1), ord("\n"), np.uint8)
    block[:, :LINE_BASES] = letters[: whole * LINE_BASES].reshape(whole, LINE_BASES)
    rest = letters[whole * LINE_BASES :].tobytes()
    return block.tobytes() + (rest + b"\n" if rest else b"")


def _check_seed(seed: int) -> None:
    _check_range("seed", seed, 0, 2**63 - 1)


def _check_range(name: str, value: float, low: float, high: float | None) -> None:
    if value < low or (high is not None and not value <= high):
        limits = f"at least {low}" if high is None else f"from {low} to {high}"
        raise InputError(f"{name} = {value} was asked for the simulation; it must be {limits}.")
