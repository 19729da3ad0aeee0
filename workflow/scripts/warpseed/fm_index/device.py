"""The parts of an index on the current GPU, each brought or made there once, for all searches of all systems."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from warpseed.compute.device_copies import copied_from_host, from_device
from warpseed.compute.gpu import (
    cupy,
    current_device,
    free_memory,
    give_back_memory,
    is_out_of_memory,
    launch,
    synchronize,
)
from warpseed.compute.machine import usable_cores
from warpseed.compute.resident import copies_of, release, resident
from warpseed.compute.stopwatch import Stopwatch
from warpseed.compute.warp import BLOCK
from warpseed.errors import IndexFormatError
from warpseed.fm_index.binned import BinnedIndex, BinParameters, binned_index
from warpseed.fm_index.gpu_rows import MOST_SEGMENTS, bytes_for_rows, rows_of_both_strands
from warpseed.fm_index.layout import PaperIndex, SeedIndex, Segments
from warpseed.fm_index.tagged import (
    MOST_TABLE_LENGTH,
    TaggedIndex,
    fill_bases_before,
    fill_device_table,
    fill_tagged_rows,
)
from warpseed.fm_index.text import PackedText

__all__ = [
    "bases_before_on_device",
    "binned_on_device",
    "bwt_on_device",
    "kmer_rows_on_device",
    "leave_on_device",
    "table_length_for",
    "tagged_on_device",
    "text_on_device",
]

_Part = TypeVar("_Part")
_SUFFIX_ARRAY = "suffix array"
"""The part that a build leaves, until tagged rows are made of it."""
_BOTH = "rows of both strands"
_bringing: WeakKeyDictionary[SeedIndex, dict[str, threading.Lock]] = WeakKeyDictionary()
_lock = threading.Lock()


def table_length_for(rows: int, free: int) -> int:
    """K of the device's table, 4 to 16: up to 4 entries a row, 64 where no table fits a cache; a quarter of memory."""
    by_size = (max((64 if rows > 1 << 24 else 4) * rows, 2).bit_length() - 1) // 2
    by_memory = (max(free // 16, 2).bit_length() - 1) // 2
    return max(4, min(MOST_TABLE_LENGTH, by_size, by_memory))


def _bytes(*arrays: Any) -> int:
    return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))


def _bring(
    index: SeedIndex, part: str, make: Callable[[], _Part], needed: int, watch: Stopwatch, shares: tuple[str, ...] = ()
) -> _Part:
    """A part of an index on the current device, copied from another where it lies there; stage index_to_device."""

    def bring() -> _Part:
        with _one_by_one(index, part), watch.stage("index_to_device", synchronise=synchronize):
            others = copies_of(index, part)
            return from_device(next(iter(others.values()))) if others else make()

    return resident(index, part, bring, needed, shares)


def _from_host(value: _Part) -> _Part:
    """As `to_device`, by all cores that help: it is done once, for all searches, whatever threads they are given."""
    return copied_from_host(value, usable_cores())


def _one_by_one(index: SeedIndex, part: str) -> threading.Lock:
    """Devices that need a part at the same time: the first makes it, and the others copy it."""
    with _lock:
        return _bringing.setdefault(index, {}).setdefault(part, threading.Lock())


def text_on_device(index: SeedIndex, watch: Stopwatch) -> PackedText:
    """Packed text and segments, which every part that needs them shares; stage index_to_device."""
    text = PackedText(index.text, index.segments)
    return _bring(index, "text", lambda: _from_host(text), _bytes(text.words, *text.segments), watch)


def tagged_on_device(index: SeedIndex, watch: Stopwatch) -> TaggedIndex:
    """Text, its tagged rows and a longer table than the CPU's: the index of reads and matches, and of k-mers where rows
    of both strands do not fit; stage index_to_device."""
    text, segments = text_on_device(index, watch)
    length = table_length_for(index.rows, free_memory())

    def make() -> TaggedIndex:
        built = copies_of(index, _SUFFIX_ARRAY).get(current_device())
        return _tag(_from_host(index.fast.suffix_array) if built is None else built, text, segments, length)

    # Twelve bytes a row while the tagged rows are made, eight afterwards.
    tagged = _bring(index, "tagged rows", make, 12 * index.rows + 4 * 4**length, watch, shares=("text", _SUFFIX_ARRAY))
    release(index, _SUFFIX_ARRAY)
    return tagged


def kmer_rows_on_device(index: SeedIndex, watch: Stopwatch) -> TaggedIndex:
    """The index of the k-mers' fast tier: tagged rows of both strands, so that a string is looked up once; those of the
    text alone where two thirds of the free memory do not hold them, or where segments are too many. Stage
    index_to_device.

    They are made on the device, of the text: its suffix array need not come there.
    """
    text = text_on_device(index, watch)
    if current_device() not in copies_of(index, _BOTH) and not _has_room_for_both(index):
        return tagged_on_device(index, watch)
    both = _bring(index, _BOTH, lambda: _tag_both(index, text), 0, watch, shares=("text",))
    if both is None:
        return tagged_on_device(index, watch)
    release(index, _SUFFIX_ARRAY)
    return both


def _has_room_for_both(index: SeedIndex) -> bool:
    free = free_memory()  # a third is left for queries, hits and the bases before rows
    needed = bytes_for_rows(index.rows, table_length_for(2 * index.rows, free))
    return needed <= 2 * free // 3 and len(index.segments.contig) <= MOST_SEGMENTS


def _tag_both(index: SeedIndex, text: PackedText) -> TaggedIndex | None:
    """None where they cannot be sorted: those of a text of few strings lie in long buckets, which take more memory."""
    try:
        return rows_of_both_strands(text, index.segments, table_length_for(2 * index.rows, free_memory()))
    except Exception as error:
        if not is_out_of_memory(error):
            raise
    give_back_memory()
    return None


def bases_before_on_device(index: SeedIndex, tagged: TaggedIndex, watch: Stopwatch) -> Any | None:
    """The bases before each tagged row, uint32[rows]; None where half of the free memory does not hold them. Stage
    index_to_device."""
    count = len(tagged.rows)
    part, needed = f"bases before {count} rows", 4 * count
    if current_device() not in copies_of(index, part) and needed > free_memory() // 2:
        return None

    def make() -> Any:
        before = cupy().empty(count, np.uint32)
        launch(fill_bases_before, count, BLOCK, tagged.text, tagged.rows, before)
        return before

    return _bring(index, part, make, needed, watch, shares=("text", "tagged rows", _BOTH))


def leave_on_device(index: SeedIndex, text: PackedText, suffix_array: Any) -> None:
    """Let searches of an index find there what was made of it on the current device.

    suffix_array : uint32[n]; None where the index has no fast part
    """
    resident(index, "text", lambda: text)
    if suffix_array is not None:
        resident(index, _SUFFIX_ARRAY, lambda: suffix_array)


def _tag(suffix_array: Any, text: Any, segments: Segments, table_length: int) -> TaggedIndex:
    xp = cupy()
    rows = suffix_array.shape[0]
    table, disorder = xp.zeros(4**table_length + 1, xp.uint32), xp.zeros(2, xp.uint64)
    tagged = TaggedIndex(text, xp.empty(rows, xp.uint64), table, segments, table_length, rows, 2, len(table))
    read = (text, segments, suffix_array, table_length)
    launch(fill_device_table, rows + 1, BLOCK, *read, tagged.table, disorder)
    launch(fill_tagged_rows, rows, BLOCK, *read, tagged.rows)
    if int(disorder[0]):
        raise IndexFormatError(
            "The index is damaged: its suffix array is not in the order of the text; "
            "make it again with 'python -m warpseed index'."
        )
    return tagged


def bwt_on_device(index: SeedIndex, direction: str, watch: Stopwatch) -> PaperIndex:
    """One BWT of the paper tier, `direction` 'forward' or 'reverse'; stage index_to_device."""
    part: PaperIndex = getattr(index, direction)
    return _bring(index, direction, lambda: _from_host(part), _bytes(*part), watch)


def binned_on_device(index: SeedIndex, min_length: int, parameters: BinParameters, watch: Stopwatch) -> BinnedIndex:
    """The index of paper 002, as `warpseed.fm_index.binned.binned_index` makes it; stage index_to_device."""
    made = binned_index(index, min_length, parameters)
    name = f"bins of {parameters.bin_size}, {parameters.sa_ratio}, {made.pre_calc_length}"
    return _bring(index, name, lambda: _from_host(made), _bytes(*made), watch)
