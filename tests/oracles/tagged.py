"""Tagged rows as the kernel makes them, made on the host."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from warpseed.fm_index import tagged
from warpseed.fm_index.layout import SeedIndex

from oracles.kmers import reverse_complement

__all__ = ["bases_before", "rows_of_both", "tagged_rows", "with_opposites"]


def tagged_rows(index: SeedIndex) -> tagged.TaggedIndex:
    """The rows of an index with their tags, around the CPU's table."""
    fast, rows = index.fast, np.empty(index.rows, np.uint64)
    for row in range(index.rows):
        position = tagged._position(fast.suffix_array, row)
        behind = tagged._suffix_word(fast.text, fast.segments, position, index.table_length)
        rows[row] = (behind >> np.uint64(32)) << np.uint64(32) | np.uint64(position)
    return tagged.TaggedIndex(fast.text, rows, fast.table, fast.segments, index.table_length, index.rows, 2)


def with_opposites(contigs: Sequence[str]) -> list[str]:
    """Contigs whose text is that of the given ones and, behind it, its reverse complement."""
    return [*contigs, *(reverse_complement(contig) for contig in reversed(contigs))]


def rows_of_both(both: SeedIndex) -> tagged.TaggedIndex:
    """The tagged rows of both strands of contigs, of the index of those and their opposites."""
    return tagged_rows(both)._replace(forward=both.rows // 2, orientations=1)


def bases_before(index: SeedIndex) -> np.ndarray:
    """The bases before each of them, read one by one."""
    fast, before = index.fast, np.zeros(index.rows, np.uint32)
    for row, position in enumerate(fast.suffix_array.tolist()):
        for place in range(max(position - tagged.BASES_BEFORE, 0), position):
            base = int(fast.text[place // 32]) >> (62 - 2 * (place % 32)) & 3
            before[row] |= np.uint32(base << 2 * (position - 1 - place))
    return before
