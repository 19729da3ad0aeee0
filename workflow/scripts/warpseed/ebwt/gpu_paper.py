"""The paper tier on a GPU: a block a word, a thread a conjugate, a thread two pointers of a bitonic step, a thread a
pair of words (paper 004, sections VI and VII)."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpseed.compute.compiled import int64, uint32
from warpseed.compute.device_marks import time_on_device
from warpseed.compute.gpu import argsort, cuda, cupy, free_memory, kernel, launch, on_device, synchronize, to_device
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt.paper import (
    EMPTY,
    NO_PAIRS,
    Compared,
    Written,
    all_pairs,
    bitonic_steps,
    distance_matrix,
    exchange,
    letters_at,
    pair_distance,
    prefix_length_that_fits,
    room_for_pointers,
    write_conjugate,
)
from warpseed.ebwt.words import Words
from warpseed.errors import InputError

__all__ = [
    "BLOCK",
    "SORTS",
    "colour_ranks",
    "compare",
    "distances",
    "exchange_pointers",
    "load_keys",
    "measure_pairs",
    "number_conjugates",
    "order_conjugates",
    "write_conjugates",
]

SORTS = ("bitonic", "radix")
"""The sort of Table 1, and the library's of Tables 2 and 3."""
BLOCK = 256
_WARP, _MOST_THREADS = 32, 1024
_KEY_LETTERS = 8
_BESIDE = 64
"""Bytes a conjugate that the library's sort takes."""


@kernel
def write_conjugates(codes, offsets, written):
    """A block a word, a thread a conjugate: copies the letters behind its begin, then those before it. Threads of a
    block that are fewer than the letters take several."""
    word = int64(cuda.blockIdx.x)
    if word >= int64(offsets.shape[0]) - int64(1):
        return
    span = int64(offsets[word]), int64(offsets[word + int64(1)])
    for position in range(span[0] + int64(cuda.threadIdx.x), span[1], int64(cuda.blockDim.x)):
        write_conjugate(codes, span, int64(position), written, word)


@kernel
def number_conjugates(count, pointers):
    """A thread a pointer: to a conjugate each, as long as there are some."""
    i = int64(cuda.grid(1))
    if i < int64(pointers.shape[0]):
        pointers[i] = uint32(i) if i < int64(count) else EMPTY


@kernel
def exchange_pointers(written, pointers, size, stride):
    """A thread two pointers of one step of the bitonic sort."""
    thread = int64(cuda.grid(1))
    if thread < int64(pointers.shape[0]) // int64(2):
        exchange(written, pointers, thread, int64(size), int64(stride))


@kernel
def load_keys(prefixes, order, first, keys):
    """A thread a rank: eight letters of its conjugate, from the `first` on."""
    i = int64(cuda.grid(1))
    if i < int64(order.shape[0]):
        keys[i] = letters_at(prefixes, order[i], int64(first))


@kernel
def colour_ranks(words, order, colours):
    """A thread a rank: the word of its conjugate."""
    i = int64(cuda.grid(1))
    if i < int64(order.shape[0]):
        colours[i] = words[order[i]]


@kernel
def measure_pairs(colours, pairs, measured):
    """A thread a pair of words: reads all colours."""
    i = int64(cuda.grid(1))
    if i < int64(pairs.shape[0]):
        measured[i] = pair_distance(colours, pairs[i, 0], pairs[i, 1])


# ---- the host's side; arrays are CuPy's, on the current device


def _write(words: Words, letters: int, codes: Any, offsets: Any) -> Written:
    """All conjugates."""
    xp, count, longest = cupy(), len(words.codes), int(words.lengths.max())
    parts = xp.empty((count, letters), xp.uint8), xp.empty(count, xp.uint32), xp.empty(count, xp.uint32)
    written = Written(*parts)
    block = min(-(-longest // _WARP) * _WARP, _MOST_THREADS)
    launch(write_conjugates, block * (len(words.offsets) - 1), block, codes, offsets, written)
    return written


def _sort_bitonically(words: Words, written: Written) -> Any:
    """One launch a step."""
    pointers = cupy().empty(room_for_pointers(words), cupy().uint32)
    launch(number_conjugates, len(pointers), BLOCK, len(words.codes), pointers)
    for size, stride in bitonic_steps(len(pointers)):
        launch(exchange_pointers, len(pointers) // 2, BLOCK, written, pointers, size, stride)
    return pointers[: len(words.codes)]


def _sort_by_library(words: Words, written: Written) -> Any:
    """Stable radix sorts: by lengths, then by eight letters at a time, the last ones first."""
    xp, letters = cupy(), written.prefixes.shape[1]
    order = argsort(written.lengths)
    keys = xp.empty(len(words.codes), xp.uint64)
    for first in range((letters - 1) // _KEY_LETTERS * _KEY_LETTERS, -1, -_KEY_LETTERS):
        launch(load_keys, len(keys), BLOCK, written.prefixes, order, first, keys)
        order = order[argsort(keys)]
    return order.astype(xp.uint32)


def _distances(colours: Any, pairs: Any) -> Any:
    measured = cupy().empty(len(pairs), cupy().int64)
    launch(measure_pairs, len(pairs), BLOCK, colours, pairs, measured)
    return measured


def compare(
    words: Words, pairs: np.ndarray, sort: str = "bitonic", *, device: int = 0, watch: Stopwatch | None = None
) -> Compared:
    """As `warpseed.ebwt.cpu_paper.compare`, on a GPU by its number.

    Parameters
    ----------
    sort : one of SORTS
    watch : takes the seconds of ``host_to_device``, ``conjugates``, ``sort``, where there are pairs ``distance``, and
        ``device_to_host``

    Raises
    ------
    MemoryLimitError : there is no memory for all conjugates
    DeviceError : the device does not answer
    """
    watch = watch or Stopwatch()
    if sort not in SORTS:
        raise InputError(f"sort is {sort!r}, but 'bitonic' or 'radix' was expected on a GPU.")
    with on_device(device):
        letters = prefix_length_that_fits(words, free_memory() - _BESIDE * len(words.codes))
        with watch.stage("host_to_device", synchronise=synchronize):
            codes, offsets, asked = map(to_device, (words.codes, words.offsets, pairs))
        with time_on_device(watch, "conjugates"):
            written = _write(words, letters, codes, offsets)
        with time_on_device(watch, "sort"):
            order = {"bitonic": _sort_bitonically, "radix": _sort_by_library}[sort](words, written)
        measured = cupy().empty(0, cupy().int64)
        if len(pairs):
            with time_on_device(watch, "distance"):
                colours = cupy().empty(len(order), cupy().uint32)
                launch(colour_ranks, len(order), BLOCK, written.words, order, colours)
                measured = _distances(colours, asked)
        with watch.stage("device_to_host", synchronise=synchronize):
            return Compared(order.get(), measured.get())


def order_conjugates(
    words: Words, *, sort: str = "bitonic", device: int = 0, watch: Stopwatch | None = None
) -> np.ndarray:
    """The position of the conjugate of each rank, in ω-order: uint32[N]; parameters and errors as of `compare`."""
    return compare(words, NO_PAIRS, sort, device=device, watch=watch).order


def distances(words: Words, order: np.ndarray, *, device: int = 0, watch: Stopwatch | None = None) -> np.ndarray:
    """δ of all pairs of words whose conjugates are in order (as `order_conjugates` gives it): int64[m, m]."""
    watch = watch or Stopwatch()
    count = len(words.offsets) - 1
    colours = np.repeat(np.arange(count, dtype=np.uint32), words.lengths)[order]
    with on_device(device):
        with watch.stage("host_to_device", synchronise=synchronize):
            there, asked = to_device(colours), to_device(all_pairs(count))
        with time_on_device(watch, "distance"):
            measured = _distances(there, asked)
        with watch.stage("device_to_host", synchronise=synchronize):
            return distance_matrix(count, measured.get())
