"""Few words on a GPU, where it is beginnings that take time: words go there in one copy, what is wanted of their order
is made in one launch to four, and comes back in one copy. The host waits once, at the end.

What that takes of the device, and of the host in pinned memory, is made at the first use and kept.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

import numpy as np

from warpseed.compute.device_marks import marked_on_device
from warpseed.compute.gpu import cupy, launch, multiprocessors
from warpseed.compute.locked_memory import pinned
from warpseed.compute.resident import resident
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt import gpu_few
from warpseed.ebwt.fast import Found
from warpseed.ebwt.gpu_few import Layout
from warpseed.ebwt.transform import Transform
from warpseed.ebwt.words import Words
from warpseed.errors import say

__all__ = ["MOST_WORDS", "are_few", "bits_for", "came_together", "find_few", "together"]

MOST_WORDS = 1 << 10
"""Words whose distances are asked for, at most."""
_BLOCK = 128
_PIECES = 1 << 20
"""Threads of a device that measure pairs, at least, where there are so many ranks."""
_LEAST_STRETCH = 1 << 10


class _Owner:
    """Of what is kept, on each device."""


_OWNER = _Owner()


class _Room:
    """What few words take of the current device and of the host."""

    numbers_at_most = Layout.of(gpu_few.MOST_FEW, gpu_few.MOST_FEW, transform=True).end + MOST_WORDS**2

    def __init__(self) -> None:
        xp = cupy()
        self.letters = xp.empty(4 * self.numbers_at_most, np.uint8)
        self.numbers = self.letters.view(np.uint32)
        self.keys = xp.empty((2, gpu_few.MOST_FEW), np.uint64)
        self.work = xp.empty((gpu_few.ROWS, gpu_few.MOST_FEW), np.uint32)
        self.here = pinned(4 * self.numbers_at_most, np.uint8)[: 4 * self.numbers_at_most]
        self.multiprocessors = multiprocessors()  # takes longer to ask for than a launch
        self.lock = Lock()


def are_few(words: Words, distances: bool) -> bool:
    """Whether words, and their distances, are so few."""
    return len(words.codes) <= gpu_few.MOST_FEW and (not distances or len(words.offsets) - 1 <= MOST_WORDS)


def bits_for(letters: int) -> int:
    """Bits that tell so many letters apart."""
    return max(1, (letters - 1).bit_length())


def together(count: int, most: int) -> tuple[int, int]:
    """Threads, and those of a block, of kernels whose blocks wait for each other: one for each of `count` conjugates,
    but no more than `most` blocks."""
    block = gpu_few.TILE // 2
    return min(-(-count // block), most) * block, block


def stretches_for(count: int, words: int) -> int:
    """Stretches that each pair of words is measured in, of so many ranks."""
    pairs = max(1, words * (words - 1) // 2)
    return max(1, min(_PIECES // pairs, count // _LEAST_STRETCH))


def came_together(state: np.ndarray) -> bool:
    """Whether no block of `order_few` and `group_few` was waited for in vain; where one was, a line says so."""
    if not (state[gpu_few.ORDER_GAVE_UP] or state[gpu_few.GROUP_GAVE_UP]):
        return True
    say("Note: the GPU did not run all of a small kernel at once; words are sorted in several steps instead.")
    return False


def find_few(words: Words, *, order: bool, transform: bool, distances: bool, watch: Stopwatch) -> Found | None:
    """Order the conjugates of few words on the current device, on this thread's stream, which is the same in each call.

    Parameters
    ----------
    words : Words, of which `are_few`
    order, transform, distances : what is wanted
    watch : takes the seconds of ``host_to_device``, ``order``, ``transform``, ``distances`` and ``device_to_host``

    Returns
    -------
    Found; None, and a line that says so, where the blocks of a kernel did not run at once

    Raises
    ------
    MemoryLimitError : the device's memory is full
    """
    room = resident(_OWNER, "few words", _Room)
    layout = Layout.of(len(words.codes), len(words.offsets) - 1, transform=transform, distances=distances)
    with room.lock:
        with marked_on_device(watch) as mark:
            stream = cupy().cuda.get_current_stream()
            head, tail = slice(4 * layout.order), slice(4 * layout.state, 4 * layout.end)
            _pack(words, layout, room.here)
            room.letters[head].set(room.here[head], stream=stream)
            mark("host_to_device")
            _launch(room, layout, transform, distances, mark)
            room.letters[tail].get(out=room.here[tail], stream=stream, blocking=False)
            mark("device_to_host")
        numbers = room.here.view(np.uint32)
        if not came_together(numbers[layout.state :]):
            return None
        # Copies, as what is kept is written anew by the next call.
        found = Found(numbers[layout.order : layout.distances].copy() if order else None, None, None)
        if transform:
            last = room.here[4 * layout.last : 4 * layout.last + layout.conjugates].copy()
            indices = numbers[layout.indices : layout.last].astype(np.int64)
            found = found._replace(transform=Transform(last, indices, words.letters))
        if distances:
            pairs = numbers[layout.distances : layout.indices].astype(np.int32)  # (few letters)
            found = found._replace(distances=pairs.reshape(layout.words, layout.words))
        return found


def _pack(words: Words, layout: Layout, here: np.ndarray) -> None:
    """Put what goes to the device where it begins."""
    numbers, longest = here.view(np.uint32), int(words.lengths.max())
    stretches = stretches_for(layout.conjugates, layout.words)
    numbers[: layout.offsets] = layout.header(bits_for(len(words.letters)), longest, stretches)
    numbers[layout.offsets : layout.codes] = words.offsets
    here[4 * layout.codes : 4 * layout.codes + layout.conjugates] = words.codes
    numbers[layout.state : layout.order] = 0


def _launch(room: _Room, layout: Layout, transform: bool, distances: bool, mark: Callable[[str], None]) -> None:
    shape = together(layout.conjugates, room.multiprocessors)
    launch(gpu_few.order_few, *shape, room.letters, room.numbers, room.keys, room.work)
    mark("order")
    if transform:
        launch(gpu_few.put_few_letters, layout.conjugates, _BLOCK, room.letters, room.numbers, room.work)
        mark("transform")
    if distances:
        launch(gpu_few.group_few, *shape, room.numbers, room.keys, room.work)
        pieces = layout.words**2 * stretches_for(layout.conjugates, layout.words)
        launch(gpu_few.measure_few, pieces, _BLOCK, room.numbers, room.work)
        mark("distances")
