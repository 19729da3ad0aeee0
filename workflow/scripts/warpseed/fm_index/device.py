"""The parts of an index on the current GPU, each brought or made there once, for all searches of all systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpseed.compute.gpu import cuda, cupy, free_memory, launch, resident, to_device, view
from warpseed.compute.stopwatch import Stopwatch
from warpseed.compute.warp import BLOCK
from warpseed.errors import IndexFormatError
from warpseed.fm_index.binned import BinnedIndex, BinParameters, binned_index
from warpseed.fm_index.layout import FastIndex, PaperIndex, SeedIndex, Segments
from warpseed.fm_index.tagged import TaggedIndex, fill_device_table, fill_tagged_rows

__all__ = ["binned_on_device", "bwt_on_device", "table_length_for", "tagged_on_device", "text_on_device"]


def table_length_for(rows: int, free: int) -> int:
    """K of the device's table, 4 to 16: up to 4 entries a base, 64 where no table fits a cache; a quarter of memory."""
    by_size = (max((64 if rows > 1 << 24 else 4) * rows, 2).bit_length() - 1) // 2
    by_memory = (max(free // 16, 2).bit_length() - 1) // 2
    return max(4, min(16, by_size, by_memory))


def _bytes(*arrays: Any) -> int:
    return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))


def text_on_device(index: SeedIndex, watch: Stopwatch) -> tuple[Any, Segments]:
    """Packed text and segments, which every part that needs them shares; stage index_to_device."""
    text, segments = index.text, index.segments

    def bring() -> tuple[Any, Segments]:
        with watch.stage("index_to_device", synchronise=cuda.synchronize):
            return to_device(text), to_device(segments)

    return resident(index, "text", bring, _bytes(text, *segments))


def tagged_on_device(index: SeedIndex, watch: Stopwatch) -> TaggedIndex:
    """The fast tier's index: text, tagged rows and a longer table than the CPU's; stage index_to_device."""
    text, segments = text_on_device(index, watch)
    length = table_length_for(index.rows, free_memory())

    def bring() -> TaggedIndex:
        with watch.stage("index_to_device", synchronise=cuda.synchronize):
            return _tag(index.fast, text, segments, length)

    # Twelve bytes a row while the tagged rows are made, eight afterwards.
    return resident(index, "tagged rows", bring, 12 * index.rows + 4 * 4**length, shares=("text",))


def _tag(fast: FastIndex, text: Any, segments: Segments, table_length: int) -> TaggedIndex:
    xp = cupy()
    rows = fast.suffix_array.shape[0]
    suffix_array = to_device(fast.suffix_array)
    table, disorder = xp.zeros(4**table_length + 1, xp.uint32), xp.zeros(2, xp.uint64)
    tagged = TaggedIndex(text, view(xp.empty(rows, xp.uint64)), view(table), segments, table_length)
    read = (text, segments, suffix_array, table_length)
    launch(fill_device_table, rows + 1, BLOCK, *read, tagged.table, view(disorder))
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

    def bring() -> PaperIndex:
        with watch.stage("index_to_device", synchronise=cuda.synchronize):
            return to_device(part)

    return resident(index, direction, bring, _bytes(*part))


def binned_on_device(index: SeedIndex, min_length: int, parameters: BinParameters, watch: Stopwatch) -> BinnedIndex:
    """The index of paper 002, as `warpseed.fm_index.binned.binned_index` makes it; stage index_to_device."""
    made = binned_index(index, min_length, parameters)

    def bring() -> BinnedIndex:
        with watch.stage("index_to_device", synchronise=cuda.synchronize):
            return to_device(made)

    name = f"bins of {parameters.bin_size}, {parameters.sa_ratio}, {made.pre_calc_length}"
    return resident(index, name, bring, _bytes(*made))
