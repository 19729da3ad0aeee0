"""Building an index: the packed text, and the parts that are asked for.

`cpu_build.py` and `gpu_build.py` make the parts, of what `suffix_array.py`, `table.py`, `bwt.py` and the files of these
names with `gpu_` before them make: the suffix array, the lookup table, a BWT.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from warpseed.compute.devices import devices_of, target_of
from warpseed.compute.machine import available_memory, return_freed_memory
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import InputError, MemoryLimitError, check_number
from warpseed.fm_index.cpu_build import HostParts
from warpseed.fm_index.layout import LIMITS, Parameters, SeedIndex
from warpseed.fm_index.parts import (
    CORE,
    DEFAULT_PARTS,
    Arrays,
    Keep,
    Sizes,
    Work,
    choose_parts,
    kept_in_memory,
    part_bytes,
)
from warpseed.fm_index.suffix_array import MAX_ROWS, SORTING_BYTES
from warpseed.fm_index.table import choose_table_length
from warpseed.fm_index.tags import make_tags
from warpseed.fm_index.text import PackedText, find_segments, pack_text
from warpseed.sequences.bgzf_format import is_gzip

if TYPE_CHECKING:
    from warpseed.sequences.reference import Reference

__all__ = [
    "PartMaker",
    "Plan",
    "build_index",
    "build_planned",
    "check_memory",
    "make_parts",
    "maker_on",
    "needed_memory",
    "one_device",
    "plan_index",
]

_LARGE_FILE = 1 << 26
_BASELINE = 200 << 20
"""Bytes that Python, NumPy and Numba hold before any data, and what the C library keeps for threads, unless the process
has called `return_what_is_freed`."""


def needed_memory(
    bases: int, parts: Iterable[str] = DEFAULT_PARTS, parameters: Parameters | None = None, *, device: str = "cpu"
) -> int:
    """Bytes of the host's memory that making some parts of an index takes at its peak.

    While the CPU sorts suffixes these are at most their rows and a number beside each, the packed text, of which the
    reversed one may be another, and what is finished by then; afterwards what is finished, or the reference that was
    read.
    """
    chosen = choose_parts(parts)
    sizes = Sizes(bases, 1, parameters or Parameters(128, 32, choose_table_length(bases)))
    core, finished = part_bytes(CORE, sizes), {part: part_bytes(part, sizes) for part in chosen}
    forwards = finished.get("reverse", 0) if {"fast", "forward"} & set(chosen) else 0
    rows_in_work = int(SORTING_BYTES * bases)
    sorting = core + max(rows_in_work + forwards, (rows_in_work + core) * ("reverse" in chosen))
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


class PartMaker(Protocol):
    """Makes parts of the index of one text, on the CPU or on a GPU: the same ones."""

    def make(self, parts: tuple[str, ...], suffix_array: np.ndarray | None = None) -> dict[str, Arrays]:
        """Make parts.

        Parameters
        ----------
        parts : names in the order of ALL_PARTS, without `tags`
        suffix_array : uint32[n] of the text, where it is known already

        Returns
        -------
        dict from part to its arrays by name, on the host

        Raises
        ------
        MemoryLimitError : a GPU's memory does not suffice
        """

    def leave(self, index: SeedIndex) -> None:
        """Let searches of the index that was made find what they need where it was made."""


@contextmanager
def maker_on(device: int | None, work: Work) -> Iterator[PartMaker]:
    """What makes parts on a GPU, by its number, or on the CPU."""
    if device is None:
        yield HostParts(work)
        return
    from warpseed.compute.gpu import on_device
    from warpseed.fm_index.gpu_build import DeviceParts

    with on_device(device):
        yield DeviceParts(work)


@contextmanager
def make_parts(
    device: int | None, work: Work, parts: tuple[str, ...], suffix_array: np.ndarray | None = None
) -> Iterator[tuple[PartMaker, dict[str, Arrays]]]:
    """Make parts on a GPU, by its number, or on the CPU, and beside them tags, which the CPU's threads gather.

    Parameters
    ----------
    parts : names in the order of ALL_PARTS; with `tags`, `fast` is among them or `suffix_array` is given
    suffix_array : uint32[n] of the text, where it is known already

    Yields
    ------
    (PartMaker, dict from part to its arrays by name, on the host)
    """
    with maker_on(device, work) as maker:
        made = maker.make(tuple(part for part in parts if part != "tags"), suffix_array)
        if "tags" in parts:
            rows = made["fast"]["suffix_array"] if "fast" in made else suffix_array
            assert rows is not None
            with work.watch.stage("tags"):
                tags = make_tags(work.text, rows, work.sizes.parameters.table_length, work.threads)
            made["tags"] = work.kept("tags", tags._asdict())
        yield maker, {part: made[part] for part in parts}


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
    parts : names of what to make beside the packed text: 'fast' (suffix array and table, for the fast tier), 'tags'
        (with 'fast', two bytes a base more, for k-mers on the CPU), 'paper' (both BWTs, for the paper tier), or one
        BWT, 'forward' or 'reverse'
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
    plan = plan_index(
        reference,
        parts=parts,
        threads=threads,
        occ_interval=occ_interval,
        sa_interval=sa_interval,
        table_length=table_length,
        device=device,
    )
    index = build_planned(plan)
    index.seconds["total"] = time.perf_counter() - plan.began
    return index


class Plan(NamedTuple):
    """An index that can be built: its reference has been read, and memory suffices."""

    genome: _Genome
    parts: tuple[str, ...]
    work: Work
    device: int | None
    """the GPU's number"""
    began: float
    """when, by the clock that stages are timed with"""

    @property
    def bytes(self) -> int:
        """What its arrays take."""
        return sum(part_bytes(part, self.work.sizes) for part in (CORE, *self.parts))


def plan_index(
    reference: str | os.PathLike[str] | Reference,
    *,
    parts: str | Iterable[str],
    threads: int,
    occ_interval: int,
    sa_interval: int,
    table_length: int | None,
    device: str,
) -> Plan:
    """Read a reference, and check all that `build_index` is given, whose parameters and errors these are."""
    chosen, number = choose_parts(parts), one_device(device)
    threads = check_number("threads", threads, 1)
    occ_interval = _parameter("occ_interval", occ_interval, *LIMITS["occ_interval"], power=True)
    sa_interval = _parameter("sa_interval", sa_interval, *LIMITS["sa_interval"])
    if table_length is not None:
        table_length = _parameter("table_length", table_length, *LIMITS["table_length"])
    watch, began = Stopwatch(), time.perf_counter()
    require_room = partial(check_memory, parts=chosen, device=device)
    genome, text = _read_genome(reference, require_room, threads, watch)
    segments = text.segments
    rows = int(segments.text_start[-1])
    parameters = Parameters(occ_interval, sa_interval, table_length or choose_table_length(rows))
    require_room(rows, parameters=parameters)
    work = Work(text, Sizes(rows, len(segments.contig), parameters), threads, watch)
    return Plan(genome, chosen, work, number, began)


def build_planned(plan: Plan, keep: Keep = kept_in_memory, folder: str = "") -> SeedIndex:
    """Build an index; it has the seconds of the plan's stopwatch, which may go on.

    Parameters
    ----------
    keep : takes each array as soon as it is made, and returns the one that the index has
    folder : where the index will be on disk, if it will
    """
    work = plan.work._replace(keep=keep)
    with make_parts(plan.device, work, plan.parts) as (maker, arrays):
        genome, text = plan.genome, plan.work.text
        with work.watch.stage("read"):
            digest = genome.wait_for_digest()
        index = SeedIndex(
            genome.names,
            genome.lengths,
            digest,
            work.sizes.parameters,
            text.words,
            text.segments,
            arrays,
            work.watch.seconds,
            folder,
        )
        maker.leave(index)
    return index


class _Genome(NamedTuple):
    """What is indexed."""

    names: tuple[str, ...]
    lengths: np.ndarray
    wait_for_digest: Callable[[], str]
    """of the reference"""


def _read_genome(
    reference: object, require_room: Callable[[int], None], threads: int, watch: Stopwatch
) -> tuple[_Genome, PackedText]:
    """The reference and its text; its codes, and what reading took, are gone when this returns."""
    with watch.stage("read"):
        read = _read(reference, require_room, threads)
    with watch.stage("text"):
        segments = find_segments(read.codes, read.offsets, threads)
        _check_size(read, int(read.lengths.sum()) + len(segments.contig), len(segments.contig))
        text = pack_text(read.codes, read.offsets, segments, threads)
    genome = _Genome(read.names, read.lengths, read.wait_for_digest)
    del read
    return_freed_memory()
    return genome, text


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


def _read(reference: object, require_room: Callable[[int], None], threads: int) -> Reference:
    from warpseed.sequences.reference import Reference, read_reference

    if isinstance(reference, str | os.PathLike):
        _check_file(reference, require_room)
        return read_reference(reference, threads)
    if isinstance(reference, Reference):
        return reference
    raise InputError(
        f"the reference is of type {type(reference).__name__}, but the path of a FASTA file, or a Reference, was "
        "expected."
    )


def _check_file(path: str | os.PathLike[str], require_room: Callable[[int], None]) -> None:
    """Say that memory is too little before a large file is read: a base takes a byte, packed half a byte at most."""
    if os.path.isfile(path):
        bases = os.path.getsize(path) * (2 if is_gzip(path) else 1)
        if bases > _LARGE_FILE:
            require_room(min(bases, MAX_ROWS))


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
