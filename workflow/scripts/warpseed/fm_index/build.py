"""Building an index: both suffix arrays, both BWTs in the paper's layout, the packed text and the k-mer table."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
from numba import int64, uint32, uint64

from warpseed.compute.compiled import scalar
from warpseed.compute.machine import available_memory
from warpseed.errors import InputError, MemoryLimitError
from warpseed.fm_index.layout import FastIndex, PaperIndex, SeedIndex
from warpseed.fm_index.suffix_array import MAX_ROWS, sort_suffixes
from warpseed.fm_index.text import find_segments, pack_text, reverse_text, text_bytes

if TYPE_CHECKING:
    from warpseed.sequences.reference import Reference

__all__ = ["build_index", "choose_table_length", "needed_memory"]

_WIDEST = 1 << 16
_LARGE_FILE = 1 << 26
_BASELINE = 200 << 20
"""Bytes that Python, NumPy and Numba hold before any data."""


def choose_table_length(rows: int) -> int:
    """K of the lookup table: the longest strings of which a genome of `rows` has at least one each, 4 to 14.

    Four bytes an entry, so at most 4 bytes a base from 256 bases on; longer tables cost more than the shorter
    buckets save (docs/decisions.md has the figures).
    """
    return max(4, min(14, (max(rows, 2).bit_length() - 1) // 2))


def needed_memory(bases: int, *, both_at_once: bool, table_length: int) -> int:
    """Bytes a build holds at its peak.

    Texts 2, one suffix array 4 and the sorter's own share; with both directions at once 4 more; then the table.
    """
    # Above 2**31 rows the sorter's are 64-bit, and stand beside the 32-bit ones that they become.
    row = 4 if bases < 1 << 31 else 12
    sorting = (2 + row + (row if both_at_once else 0)) * bases
    finished = 6 * bases + 4 * 4**table_length
    return _BASELINE + max(sorting, finished) + bases // 2


@scalar
def _fill_blocks(text, suffix_array, q_shift, p_shift, arrays, counts):
    """B, ROcc, the separators before each block and RSA in one pass over the suffix array."""
    rocc, bwt, separators, rsa = arrays
    rows = suffix_array.shape[0]
    q = int64(1) << q_shift
    sampled = (int64(1) << p_shift) - int64(1)
    for block in range(separators.shape[0]):
        for c in range(4):
            rocc[4 * block + c] = uint32(counts[c + 1])
        separators[block] = uint32(counts[0])
        for first in range(block * q, min((block + 1) * q, rows), 32):
            word = uint64(0)
            for row in range(first, min(first + 32, rows)):
                position = int64(suffix_array[row])
                if row & sampled == 0:
                    rsa[row >> p_shift] = uint32(position)
                symbol = int64(0) if position == 0 else int64(text[position - 1])
                counts[symbol] += 1
                word |= uint64(max(symbol - 1, 0)) << uint64(62 - 2 * (row - first))
            bwt[first >> 5] = word


@scalar
def _collect_separators(text, suffix_array, separators, q_shift, row_of, position_of):
    """The rows whose BWT character is a separator, from the blocks that hold one."""
    rows = suffix_array.shape[0]
    found = 0
    for block in range(separators.shape[0] - 1):
        if separators[block] == separators[block + 1]:
            continue
        for row in range(block << q_shift, min((block + 1) << q_shift, rows)):
            position = int64(suffix_array[row])
            if position == 0 or text[position - 1] == 0:
                row_of[found] = uint32(row)
                position_of[found] = uint32(position)
                found += 1


def _paper_index(text: np.ndarray, suffix_array: np.ndarray, segments: int, q_shift: int, p_shift: int) -> PaperIndex:
    rows = text.shape[0]
    blocks = (rows >> q_shift) + 2
    rocc = np.zeros(4 * blocks, np.uint32)
    bwt = np.zeros(blocks << q_shift >> 5, np.uint64)
    separators = np.zeros(blocks, np.uint32)
    rsa = np.empty(-(-rows >> p_shift), np.uint32)
    counts = np.zeros(5, np.int64)
    _fill_blocks(text, suffix_array, q_shift, p_shift, (rocc, bwt, separators, rsa), counts)
    separator_row = np.empty(segments, np.uint32)
    separator_position = np.empty(segments, np.uint32)
    _collect_separators(text, suffix_array, separators, q_shift, separator_row, separator_position)
    first_row = np.cumsum(counts).astype(np.uint32)
    return PaperIndex(rocc, bwt, separators, separator_row, separator_position, first_row, rsa, q_shift, p_shift)


@scalar
def _fill_table(text, table_length, table):
    """Count every suffix under its first K bases, then sum up.

    A suffix that ends (in a separator) before it has K bases counts as if A followed. There it stands at the head
    of its bucket, so that the bucket of any string, shorter ones included, holds all suffixes that begin with it.
    """
    mask = (int64(1) << (int64(2) * table_length)) - int64(1)
    top = int64(2) * (table_length - int64(1))
    code = int64(0)
    for i in range(text.shape[0] - 1, -1, -1):
        symbol = int64(text[i])
        code = int64(0) if symbol == 0 else ((code >> int64(2)) | ((symbol - int64(1)) << top)) & mask
        table[code + 1] += uint32(1)
    total = uint32(0)
    for m in range(table.shape[0]):
        total = uint32(total + table[m])
        table[m] = total


def _table(text: np.ndarray, table_length: int) -> np.ndarray:
    table = np.zeros(4**table_length + 1, np.uint32)
    _fill_table(text, table_length, table)
    return table


def _power_of_two(value: int, name: str, smallest: int) -> int:
    if not smallest <= value <= _WIDEST or value & (value - 1):
        raise InputError(f"{name} is {value}, but a power of two from {smallest} to {_WIDEST} was expected.")
    return value.bit_length() - 1


def _check_size(reference: Reference, rows: int, segments: int) -> None:
    if segments == 0:
        raise InputError(
            f"{reference.path}: none of its {len(reference.names)} contigs has a base A, C, G or T, "
            "so there is nothing to index; give a DNA reference in FASTA."
        )
    if rows > MAX_ROWS:
        raise InputError(
            f"{reference.path}: {rows:,} bases and separators, but an index holds at most {MAX_ROWS:,}; "
            "split the reference."
        )


def build_index(
    reference: str | os.PathLike[str] | Reference,
    *,
    threads: int = 1,
    q: int = 128,
    p: int = 32,
    table_length: int | None = None,
) -> SeedIndex:
    """Index a reference for both tiers.

    Parameters
    ----------
    reference : path of a FASTA file (plain or gzip), or a Reference
    threads : int, with 2 or more both directions are sorted at once where memory allows
    q : int, distance of ROcc entries in rows, a power of two from 32 on (paper 000, section III.A: 128)
    p : int, distance of RSA entries in rows, a power of two (section III.C: 32)
    table_length : int, K of the lookup table, 1 to 15; chosen from the genome's size where None

    Returns
    -------
    SeedIndex, with the seconds of each stage.

    Raises
    ------
    InputError : not FASTA, no base in it, too long, or a parameter out of its range
    MemoryLimitError : less memory is available than the build needs, said before the work starts
    """
    from warpseed.sequences.reference import read_reference

    if threads < 1:
        raise InputError(f"threads is {threads}, but 1 or more was expected.")
    q_shift = _power_of_two(q, "q", 32)
    p_shift = _power_of_two(p, "p", 1)
    if table_length is not None and not 1 <= table_length <= 15:
        raise InputError(f"table_length is {table_length}, but 1 to 15 was expected.")
    seconds: dict[str, float] = {}
    began = mark = time.perf_counter()

    def lap(stage: str) -> None:
        nonlocal mark
        now = time.perf_counter()
        seconds[stage] = now - mark
        mark = now

    if isinstance(reference, str | os.PathLike):
        _check_file(reference)
        reference = read_reference(reference)
    lap("read")
    segments = find_segments(reference.codes, reference.offsets)
    _check_size(reference, int(reference.lengths.sum()) + len(segments.contig), len(segments.contig))
    names, lengths, digest = reference.names, reference.lengths, reference.digest
    text = text_bytes(reference.codes, reference.offsets, segments)
    del reference
    lap("text")

    if table_length is None:
        table_length = choose_table_length(text.shape[0])
    both = _enough_memory(text.shape[0], table_length) and threads > 1
    count = len(segments.contig)

    def reverse_direction() -> PaperIndex:
        backwards = reverse_text(text)
        return _paper_index(backwards, sort_suffixes(backwards), count, q_shift, p_shift)

    def forward_direction() -> tuple[PaperIndex, np.ndarray]:
        rows = sort_suffixes(text)
        return _paper_index(text, rows, count, q_shift, p_shift), rows

    # The reverse direction first: its suffix array is gone before the forward one is made, or needs room beside it.
    with ThreadPoolExecutor(2 if both else 1) as pool:
        reverse_job, forward_job = pool.submit(reverse_direction), pool.submit(forward_direction)
        reverse = reverse_job.result()
        table = _table(text, table_length) if both else None
        packed = pack_text(text)
        forward, suffix_array = forward_job.result()
    lap("sort")
    if table is None:
        table = _table(text, table_length)
    lap("table")
    seconds["total"] = time.perf_counter() - began
    fast = FastIndex(packed, suffix_array, table, segments)
    return SeedIndex(names, lengths, digest, fast, forward, reverse, seconds)


def _check_file(path: str | os.PathLike[str]) -> None:
    """Say that memory is too little before a large file is read: a base takes a byte, packed half a byte at most."""
    if os.path.isfile(path):
        with open(path, "rb") as handle:
            packed = handle.read(2) == b"\x1f\x8b"
        bases = os.path.getsize(path) * (2 if packed else 1)
        if bases > _LARGE_FILE:
            _enough_memory(min(bases, MAX_ROWS), choose_table_length(bases))


def _enough_memory(rows: int, table_length: int) -> bool:
    """Whether both directions fit at once; MemoryLimitError where not even one does."""
    available = available_memory()
    needed = needed_memory(rows, both_at_once=False, table_length=table_length)
    if available < needed:
        raise MemoryLimitError(
            f"Indexing {rows:,} bases needs about {needed / 1e9:.1f} GB of memory, but {available / 1e9:.1f} GB are "
            "available; use a machine with more, or a smaller reference."
        )
    return available >= needed_memory(rows, both_at_once=True, table_length=table_length)
