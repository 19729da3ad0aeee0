"""Building an index: the packed text, and of the parts that are asked for the suffix array, the table, the BWTs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from warpseed.compute.devices import devices_of, target_of
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

__all__ = [
    "LARGEST_OCC_INTERVAL",
    "LARGEST_SA_INTERVAL",
    "build_index",
    "check_memory",
    "make_parts",
    "needed_memory",
    "one_device",
]

LARGEST_OCC_INTERVAL = 1 << 16
LARGEST_SA_INTERVAL = 1 << 16
_LARGE_FILE = 1 << 26
_BASELINE = 200 << 20
"""Bytes that Python, NumPy and Numba hold before any data."""


def needed_memory(
    bases: int, parts: Iterable[str] = DEFAULT_PARTS, parameters: Parameters | None = None, *, device: str = "cpu"
) -> int:
    """Bytes of the host's memory that making some parts of an index takes at its peak.

    While the CPU sorts suffixes these are their rows and a number beside each, the packed text, of which the reversed
    one may be another, and what is finished by then; afterwards what is finished, or the reference that was read.
    """
    chosen = choose_parts(parts)
    sizes = Sizes(bases, 1, parameters or Parameters(128, 32, choose_table_length(bases)))
    core, finished = part_bytes(CORE, sizes), {part: part_bytes(part, sizes) for part in chosen}
    forwards = finished.get("reverse", 0) if {"fast", "forward"} & set(chosen) else 0
    sorting = core + max(SORTING_BYTES * bases + forwards, (SORTING_BYTES * bases + core) * ("reverse" in chosen))
    rows = 4 * bases * ("fast" not in chosen)
    if target_of(device)[0] == "gpu":
        sorting = rows = 0
    return _BASELINE + max(sorting, core + rows + sum(finished.values()), 2 * bases)


def check_memory(rows: int, parts: Iterable[str], parameters: Parameters | None = None, *, device: str = "cpu") -> None:
    """MemoryLimitError where parts of an index do not fit the host's memory."""
    available = available_memory()
    needed = needed_memory(rows, parts, parameters, device=device)
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
    device: int | None = None,
) -> dict[str, Arrays]:
    """Make parts of an index.

    Parameters
    ----------
    text : PackedText
    parts : names in the order of ALL_PARTS
    threads : int
    watch : takes the seconds of ``suffix_array``, with the table, and ``bwt``
    suffix_array : uint32[n] of the text, where it is known already
    device : number of the GPU that makes them, whose stages `warpseed.fm_index.gpu_build.DeviceParts` has; or the CPU

    Returns
    -------
    dict from part to its arrays by name
    """
    if device is not None:
        from warpseed.compute.gpu import on_device
        from warpseed.fm_index.gpu_build import DeviceParts

        with on_device(device):
            return DeviceParts(text, sizes, threads=threads, watch=watch).make(parts, suffix_array)
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
    device: str = "cpu",
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
    device : 'cpu', 'gpu' or one GPU by number, 'gpu:1', which makes the parts; the index is the same. What searches on
        that GPU need stays there

    Returns
    -------
    SeedIndex, with the seconds of each stage, and in `total` of all

    Raises
    ------
    InputError : not FASTA, no base in it, too long, or a parameter out of its range
    MemoryLimitError : less memory is available than the build needs, on the host or on the GPU, said before the work
        starts
    DeviceError : no GPU answers
    """
    chosen, number = choose_parts(parts), one_device(device)
    threads = check_number("threads", threads, 1)
    occ_interval = _parameter("occ_interval", occ_interval, 32, LARGEST_OCC_INTERVAL, power=True)
    sa_interval = _parameter("sa_interval", sa_interval, 1, LARGEST_SA_INTERVAL)
    if table_length is not None:
        table_length = _parameter("table_length", table_length, 1, 15)
    watch, began = Stopwatch(), time.perf_counter()
    genome = _read_genome(reference, chosen, device, threads, watch)
    rows = int(genome.text.segments.text_start[-1])
    parameters = Parameters(occ_interval, sa_interval, table_length or choose_table_length(rows))
    check_memory(rows, chosen, parameters, device=device)
    sizes = Sizes(rows, len(genome.text.segments.contig), parameters)

    def index_of(arrays: dict[str, Arrays]) -> SeedIndex:
        seconds = watch.seconds | {"total": time.perf_counter() - began}
        text = genome.text
        return SeedIndex(
            genome.names, genome.lengths, genome.digest, parameters, text.words, text.segments, arrays, seconds
        )

    if number is None:
        return index_of(make_parts(genome.text, sizes, chosen, threads=threads, watch=watch))
    return _build_on_device(number, genome.text, sizes, chosen, threads, watch, index_of)


class _Genome(NamedTuple):
    """What is indexed."""

    names: tuple[str, ...]
    lengths: np.ndarray
    digest: str
    text: PackedText


def _read_genome(reference: object, parts: tuple[str, ...], device: str, threads: int, watch: Stopwatch) -> _Genome:
    """The reference's text; its codes are gone when this returns."""
    with watch.stage("read"):
        read = _read(reference, parts, device, threads)
    with watch.stage("text"):
        segments = find_segments(read.codes, read.offsets, threads)
        _check_size(read, int(read.lengths.sum()) + len(segments.contig), len(segments.contig))
        text = pack_text(read.codes, read.offsets, segments, threads)
    return _Genome(read.names, read.lengths, read.digest, text)


def _build_on_device(
    number: int,
    text: PackedText,
    sizes: Sizes,
    parts: tuple[str, ...],
    threads: int,
    watch: Stopwatch,
    index_of: Callable[[dict[str, Arrays]], SeedIndex],
) -> SeedIndex:
    """An index whose parts a GPU makes, where it keeps what searches need."""
    from warpseed.compute.gpu import on_device
    from warpseed.fm_index.device import leave_on_device
    from warpseed.fm_index.gpu_build import DeviceParts

    with on_device(number):
        built = DeviceParts(text, sizes, threads=threads, watch=watch)
        index = index_of(built.make(parts))
        leave_on_device(index, built.text, built.suffix_array if "fast" in parts else None)
    return index


def one_device(device: str) -> int | None:
    """The number of the GPU that a device's name stands for; None for the CPU.

    Raises
    ------
    InputError : it is no device's name, or stands for several
    """
    numbers = devices_of(device)
    if len(numbers) > 1:
        raise InputError(f"device is {device!r}, but an index is made by one: 'cpu', 'gpu' or, say, 'gpu:1'.")
    return numbers[0] if numbers else None


def _parameter(name: str, value: object, smallest: int, largest: int, *, power: bool = False) -> int:
    """A parameter of an index as int."""
    kind = "a power of two" if power else "a whole number"
    expected = f"{kind} from {smallest} to {largest} was expected"
    number = check_number(name, value, smallest, largest, expected)
    if power and number & (number - 1):
        raise InputError(f"{name} is {number}, but {expected}.")
    return number


def _read(reference: object, parts: tuple[str, ...], device: str, threads: int) -> Reference:
    from warpseed.sequences.reference import Reference, read_reference

    if isinstance(reference, str | os.PathLike):
        _check_file(reference, parts, device)
        return read_reference(reference, threads)
    if isinstance(reference, Reference):
        return reference
    raise InputError(
        f"the reference is of type {type(reference).__name__}, but the path of a FASTA file, or a Reference, was "
        "expected."
    )


def _check_file(path: str | os.PathLike[str], parts: tuple[str, ...], device: str) -> None:
    """Say that memory is too little before a large file is read: a base takes a byte, packed half a byte at most."""
    if os.path.isfile(path):
        with open(path, "rb") as handle:
            packed = handle.read(2) == b"\x1f\x8b"
        bases = os.path.getsize(path) * (2 if packed else 1)
        if bases > _LARGE_FILE:
            check_memory(min(bases, MAX_ROWS), parts, device=device)


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
