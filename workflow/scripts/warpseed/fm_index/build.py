"""Building an index: the packed text, and of the parts that are asked for the suffix array, the table, the BWTs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from warpseed.compute.machine import available_memory
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import InputError, MemoryLimitError, check_number
from warpseed.fm_index.bwt import make_bwt
from warpseed.fm_index.layout import Parameters, SeedIndex
from warpseed.fm_index.parts import CORE, DEFAULT_PARTS, Arrays, Sizes, choose_parts, part_bytes
from warpseed.fm_index.suffix_array import MAX_ROWS, SORTING_BYTES, sort_suffixes, sort_with_table
from warpseed.fm_index.table import choose_table_length
from warpseed.fm_index.text import PackedText, find_segments, pack_text, reverse_text

if TYPE_CHECKING:
    from warpseed.sequences.reference import Reference

__all__ = ["LARGEST_OCC_INTERVAL", "LARGEST_SA_INTERVAL", "build_index", "check_memory", "make_parts", "needed_memory"]

LARGEST_OCC_INTERVAL = 1 << 16
LARGEST_SA_INTERVAL = 1 << 16
_LARGE_FILE = 1 << 26
_BASELINE = 200 << 20
"""Bytes that Python, NumPy and Numba hold before any data."""


def needed_memory(bases: int, parts: Iterable[str] = DEFAULT_PARTS, parameters: Parameters | None = None) -> int:
    """Bytes that making some parts of an index takes at its peak.

    While suffixes are sorted these are their rows and a number beside each, the packed text, of which the reversed one
    may be another, and what is finished by then; afterwards what is finished, or the reference that was read.
    """
    chosen = choose_parts(parts)
    sizes = Sizes(bases, 1, parameters or Parameters(128, 32, choose_table_length(bases)))
    core, finished = part_bytes(CORE, sizes), {part: part_bytes(part, sizes) for part in chosen}
    forwards = finished.get("reverse", 0) if {"fast", "forward"} & set(chosen) else 0
    sorting = core + max(SORTING_BYTES * bases + forwards, (SORTING_BYTES * bases + core) * ("reverse" in chosen))
    rows = 4 * bases * ("fast" not in chosen)
    return _BASELINE + max(sorting, core + rows + sum(finished.values()), 2 * bases)


def check_memory(rows: int, parts: Iterable[str], parameters: Parameters | None = None) -> None:
    """MemoryLimitError where parts of an index do not fit."""
    available = available_memory()
    needed = needed_memory(rows, parts, parameters)
    if available < needed:
        raise MemoryLimitError(
            f"Indexing {rows:,} bases needs about {needed / 1e9:.1f} GB of memory, but {available / 1e9:.1f} GB are "
            "available; use a machine with more, or a smaller reference."
        )


def make_parts(
    text: PackedText,
    sizes: Sizes,
    parts: tuple[str, ...],
    *,
    threads: int,
    watch: Stopwatch,
    suffix_array: np.ndarray | None = None,
) -> dict[str, Arrays]:
    """Make parts of an index.

    Parameters
    ----------
    text : PackedText
    parts : names in the order of ALL_PARTS
    threads : int
    watch : takes the seconds of ``suffix_array``, with the table, and ``bwt``
    suffix_array : uint32[n] of the text, where it is known already

    Returns
    -------
    dict from part to its arrays by name
    """
    made: dict[str, Arrays] = {part: {} for part in parts}
    # The reverse direction first: its suffix array is gone before the forward one is made.
    if "reverse" in parts:
        made["reverse"] = _make_reverse(text, sizes, threads, watch)
    if {"fast", "forward"} & set(parts):
        if "fast" in parts:
            with watch.stage("suffix_array"):
                suffix_array, table = sort_with_table(text, sizes.parameters.table_length, threads)
            made["fast"] = {"suffix_array": suffix_array, "table": table}
        elif suffix_array is None:
            with watch.stage("suffix_array"):
                suffix_array = sort_suffixes(text, threads)
        if "forward" in parts:
            with watch.stage("bwt"):
                made["forward"] = make_bwt("forward", text, suffix_array, sizes, threads)
    return made


def _make_reverse(text: PackedText, sizes: Sizes, threads: int, watch: Stopwatch) -> Arrays:
    with watch.stage("suffix_array"):
        backwards = reverse_text(text, threads)
        rows = sort_suffixes(backwards, threads)
    with watch.stage("bwt"):
        return make_bwt("reverse", backwards, rows, sizes, threads)


def build_index(
    reference: str | os.PathLike[str] | Reference,
    *,
    parts: str | Iterable[str] = DEFAULT_PARTS,
    threads: int = 1,
    occ_interval: int = 128,
    sa_interval: int = 32,
    table_length: int | None = None,
) -> SeedIndex:
    """Index a reference.

    Parameters
    ----------
    reference : path of a FASTA file (plain or gzip), or a Reference
    parts : names of what to make beside the packed text: 'fast' (suffix array and table, for the fast tier),
        'paper' (both BWTs, for the paper tier), or one BWT, 'forward' or 'reverse'
    threads : int, CPU threads; the index is the same for every number
    occ_interval : int, distance of ROcc entries in rows, a power of two from 32 to 65,536 (q; paper 000, section
        III.A: 128)
    sa_interval : int, distance of RSA entries in rows, 1 to 65,536 (p; section III.C: 32)
    table_length : int, K of the lookup table, 1 to 15; chosen from the genome's size where None

    Returns
    -------
    SeedIndex, with the seconds of each stage, and in `total` of all

    Raises
    ------
    InputError : not FASTA, no base in it, too long, or a parameter out of its range
    MemoryLimitError : less memory is available than the build needs, said before the work starts
    """
    chosen = choose_parts(parts)
    threads = check_number("threads", threads, 1)
    occ_interval = _parameter("occ_interval", occ_interval, 32, LARGEST_OCC_INTERVAL, power=True)
    sa_interval = _parameter("sa_interval", sa_interval, 1, LARGEST_SA_INTERVAL)
    if table_length is not None:
        table_length = _parameter("table_length", table_length, 1, 15)
    watch, began = Stopwatch(), time.perf_counter()
    with watch.stage("read"):
        reference = _read(reference, chosen)
    with watch.stage("text"):
        segments = find_segments(reference.codes, reference.offsets)
        _check_size(reference, int(reference.lengths.sum()) + len(segments.contig), len(segments.contig))
        names, lengths, digest = reference.names, reference.lengths, reference.digest
        text = pack_text(reference.codes, reference.offsets, segments)
        del reference
    rows = int(segments.text_start[-1])
    parameters = Parameters(occ_interval, sa_interval, table_length or choose_table_length(rows))
    check_memory(rows, chosen, parameters)
    sizes = Sizes(rows, len(segments.contig), parameters)
    arrays = make_parts(text, sizes, chosen, threads=threads, watch=watch)
    seconds = watch.seconds | {"total": time.perf_counter() - began}
    return SeedIndex(names, lengths, digest, parameters, text.words, segments, arrays, seconds)


def _parameter(name: str, value: object, smallest: int, largest: int, *, power: bool = False) -> int:
    """A parameter of an index as int."""
    kind = "a power of two" if power else "a whole number"
    expected = f"{kind} from {smallest} to {largest} was expected"
    number = check_number(name, value, smallest, largest, expected)
    if power and number & (number - 1):
        raise InputError(f"{name} is {number}, but {expected}.")
    return number


def _read(reference: object, parts: tuple[str, ...]) -> Reference:
    from warpseed.sequences.reference import Reference, read_reference

    if isinstance(reference, str | os.PathLike):
        _check_file(reference, parts)
        return read_reference(reference)
    if isinstance(reference, Reference):
        return reference
    raise InputError(
        f"the reference is of type {type(reference).__name__}, but the path of a FASTA file, or a Reference, was "
        "expected."
    )


def _check_file(path: str | os.PathLike[str], parts: tuple[str, ...]) -> None:
    """Say that memory is too little before a large file is read: a base takes a byte, packed half a byte at most."""
    if os.path.isfile(path):
        with open(path, "rb") as handle:
            packed = handle.read(2) == b"\x1f\x8b"
        bases = os.path.getsize(path) * (2 if packed else 1)
        if bases > _LARGE_FILE:
            check_memory(min(bases, MAX_ROWS), parts)


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
