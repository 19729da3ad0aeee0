"""The kernels that measure how fast a device fetches sectors that nothing predicts, and writes them; used by floors.py
alone."""

from __future__ import annotations

from warpseed.compute.compiled import int64, scalar, uint32, uint64
from warpseed.compute.gpu import cuda, kernel
from warpseed.sequences.draws import GOLDEN

__all__ = ["add_to_sectors", "gather_sectors", "touch_sectors"]


@scalar
def _first_draw(thread):
    """Where the random numbers of a thread begin."""
    return (uint64(thread) + uint64(1)) * uint64(GOLDEN)


@scalar
def _next_draw(state):
    state ^= state << uint64(13)
    state ^= state >> uint64(7)
    state ^= state << uint64(17)
    return state


@scalar
def _word_of(state, sectors):
    """The first word of one of `sectors` sectors."""
    return int64(((state >> uint64(32)) * sectors >> uint64(32)) << uint64(3))


@kernel
def gather_sectors(words, reads, sums):
    """Every thread reads `reads` random 32-byte sectors of uint32[] `words`, none depending on another."""
    t = int64(cuda.grid(1))
    if t >= int64(sums.shape[0]):
        return
    sectors = uint64(words.shape[0]) >> uint64(3)
    state = _first_draw(t)
    total = uint32(0)
    for _ in range(reads):
        state = _next_draw(state)
        total += words[_word_of(state, sectors)]
    sums[t] = total


@kernel
def touch_sectors(words, reads, threads):
    """Every thread reads and writes `reads` random 32-byte sectors of uint32[] `words`."""
    t = int64(cuda.grid(1))
    if t >= int64(threads):
        return
    sectors = uint64(words.shape[0]) >> uint64(3)
    state = _first_draw(t)
    for _ in range(reads):
        state = _next_draw(state)
        words[_word_of(state, sectors)] += uint32(1)


@kernel
def add_to_sectors(words, reads, threads):
    """As `touch_sectors`, but that no thread waits for what it reads: it is read and written where the cache is."""
    t = int64(cuda.grid(1))
    if t >= int64(threads):
        return
    sectors = uint64(words.shape[0]) >> uint64(3)
    state = _first_draw(t)
    for _ in range(reads):
        state = _next_draw(state)
        cuda.atomic.add(words, _word_of(state, sectors), uint32(1))
