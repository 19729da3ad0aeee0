"""The kernel that measures how fast a device fetches sectors that nothing predicts; used by floors.py alone."""

from __future__ import annotations

from warpseed.compute.compiled import int64, uint32, uint64
from warpseed.compute.gpu import cuda, kernel

__all__ = ["gather_sectors"]


@kernel
def gather_sectors(words, reads, sums):
    """Every thread reads `reads` random 32-byte sectors of uint32[] `words`, none depending on another."""
    t = int64(cuda.grid(1))
    if t >= int64(sums.shape[0]):
        return
    sectors = uint64(words.shape[0]) >> uint64(3)
    state = (uint64(t) + uint64(1)) * uint64(0x9E3779B97F4A7C15)
    total = uint32(0)
    for _ in range(reads):
        state ^= state << uint64(13)
        state ^= state >> uint64(7)
        state ^= state << uint64(17)
        total += words[int64(((state >> uint64(32)) * sectors >> uint64(32)) << uint64(3))]
    sums[t] = total
