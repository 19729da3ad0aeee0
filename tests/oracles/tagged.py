"""Tagged rows as the kernels make them, made on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from warpseed.fm_index import tagged
from warpseed.fm_index.layout import SeedIndex

from oracles.kmers import reverse_complement

__all__ = ["Far", "bases_before", "far_away", "rows_of_both", "tagged_rows", "with_opposites"]

_POSITION = (1 << tagged.POSITION_BITS) - 1


def _row(bases: str, table_length: int, position: int, whole: bool | None = None) -> int:
    """A row, of a suffix's bases, with A where there are none."""
    tag = bases[table_length : table_length + tagged.TAG_BASES].ljust(tagged.TAG_BASES, "A")
    whole = len(bases) >= table_length + tagged.TAG_BASES if whole is None else whole
    return sum("ACGT".index(base) << (62 - 2 * i) for i, base in enumerate(tag)) | whole << tagged.WHOLE | position


def _segments_of(index: SeedIndex) -> list[tuple[int, str]]:
    """Where each segment begins in the text, and its bases."""
    starts, words = index.segments.text_start.tolist(), index.fast.text.tolist()
    return [
        (start, "".join("ACGT"[words[i // 32] >> (62 - 2 * (i % 32)) & 3] for i in range(start, end - 1)))
        for start, end in zip(starts, starts[1:], strict=False)
    ]


def tagged_rows(index: SeedIndex) -> tagged.TaggedIndex:
    """The rows of an index with their tags, around the CPU's table."""
    fast, rows = index.fast, np.empty(index.rows, np.uint64)
    suffixes = {start + i: bases[i:] for start, bases in _segments_of(index) for i in range(len(bases) + 1)}
    for row, position in enumerate(fast.suffix_array.tolist()):
        rows[row] = _row(suffixes[position], index.table_length, position)
    arrays = fast.text, rows, fast.table, fast.segments
    return tagged.TaggedIndex(*arrays, index.table_length, index.rows, 2, len(fast.table))


def with_opposites(contigs: Sequence[str]) -> list[str]:
    """Contigs whose text is that of the given ones and, behind it, its reverse complement."""
    return [*contigs, *(reverse_complement(contig) for contig in reversed(contigs))]


def rows_of_both(index: SeedIndex, both: SeedIndex, table_length: int | None = None) -> tagged.TaggedIndex:
    """The tagged rows of both strands of an index, sorted as strings; `both` is the index of its contigs and their
    opposites, of which the text is taken."""
    length, n, suffixes = table_length or index.table_length, index.rows, []
    seen = length + tagged.TAG_BASES
    for segment, (start, bases) in enumerate(_segments_of(index)):
        for i in range(len(bases)):
            of_strands = (bases[i:], start + i), (reverse_complement(bases[: i + 1]), 2 * n - 2 - (start + i))
            for strand, (suffix, position) in enumerate(of_strands):
                ended = len(suffix) < seen
                # A stands behind the end; of equal ones those that end come first, the shortest before the others.
                key = min(len(suffix), seen), 2 * segment + strand if ended else position
                suffixes.append((suffix[:seen].ljust(seen, "A"), key, position))
    suffixes.sort()
    codes = [sum("ACGT".index(base) * 4**i for i, base in enumerate(reversed(bases[:length])))
             for bases, _, _ in suffixes]  # fmt: skip
    table = np.searchsorted(np.array(codes), np.arange(4**length + 1)).astype(np.uint32)
    rows = np.array([_row(bases, length, position, key[0] == seen) for bases, key, position in suffixes], np.uint64)
    return tagged.TaggedIndex(both.fast.text, rows, table, index.segments, length, n, 1, len(table))


def bases_before(index: tagged.TaggedIndex) -> np.ndarray:
    """The bases before each row, read one by one."""
    before = np.zeros(len(index.rows), np.uint32)
    for row, word in enumerate(index.rows.tolist()):
        position = word & _POSITION
        for place in range(max(position - tagged.BASES_BEFORE, 0), position):
            base = int(index.text[place // 32]) >> (62 - 2 * (place % 32)) & 3
            before[row] |= np.uint32(base << 2 * (position - 1 - place))
    return before


class Far:
    """An array whose places are numbered from `first` on; with `lenient`, from 0 on, too."""

    def __init__(self, rows: np.ndarray, first: int, lenient: bool = True) -> None:
        self.rows, self.first, self.shape, self.lenient = rows, first, rows.shape, lenient

    def __len__(self) -> int:
        return len(self.rows)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.rows

    def _at(self, row: Any) -> int:
        assert int(row) - self.first < len(self.rows) and (self.lenient or row >= self.first)
        return int(row) - self.first if row >= self.first else int(row)

    def __getitem__(self, row: Any) -> Any:
        return self.rows[self._at(row)]

    def __setitem__(self, row: Any, value: Any) -> None:
        self.rows[self._at(row)] = value


def far_away(index: tagged.TaggedIndex, first: int) -> tagged.TaggedIndex:
    """The same rows with numbers from `first` on, some of which may be 2^32 and more."""
    numbers = index.table.astype(np.int64) + first
    return index._replace(
        rows=Far(index.rows, first, lenient=False),
        table=(numbers % tagged.TABLE_MODULUS).astype(np.uint32),
        first_beyond=int(np.searchsorted(numbers, tagged.TABLE_MODULUS)),
    )
