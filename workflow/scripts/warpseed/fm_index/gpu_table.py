"""The kernel that makes a lookup table of sorted suffixes."""

from __future__ import annotations

from warpseed.compute.compiled import int64, uint32, uint64
from warpseed.compute.gpu import cuda, kernel

__all__ = ["fill_table"]


@kernel
def fill_table(elements, bucket, prefix, first_row, length, table):
    """A thread a sorted element, and one behind them: the entries of the table between it and the one before.

    Parameters
    ----------
    bucket, prefix : int, number of the bucket, and the bases that it shares
    first_row : int, its first row
    length : int, bases of the table's strings, from `prefix` to prefix + gpu_suffix_letters.ELEMENT_BASES
    table : uint32[4**length + 1]
    """
    i = int64(cuda.grid(1))
    count = int64(elements.shape[0])
    if i > count:
        return
    bits = uint64(2) * uint64(length - prefix)
    begin = int64(uint64(bucket) << bits)
    first, last = begin, int64(uint64(bucket + 1) << bits)
    if i > int64(0):
        # (Of no bits it is 0: a shift by 64 is none.)
        first = begin + int64((elements[i - int64(1)] >> uint64(1)) >> (uint64(63) - bits)) + int64(1)
    if i < count:
        last = begin + int64((elements[i] >> uint64(1)) >> (uint64(63) - bits))
    for code in range(first, last + int64(1)):
        table[code] = uint32(int64(first_row) + i)
