"""Placements of reads as lines of a BAM file, whatever batches they come in.

Records of a batch are planned and encoded in compiled code, and sorted as lines of text are. A read whose placements
come in several batches is primary where it is best, which only the last one decides: the best so far is held back.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from warpseed.compute.letters import SLACK, bytes_of, read_only
from warpseed.compute.pipeline import mapped
from warpseed.errors import InputError
from warpseed.one_error.bam_records import (
    HIDDEN,
    MOST_IN_XA,
    PLANNED,
    PRIMARY,
    SECONDARY,
    Contigs,
    Reads,
    choose,
    encode,
    map_quality,
    plan,
    room_for,
)
from warpseed.one_error.output import EDITED_ROW
from warpseed.output.bam import check_contigs, check_names
from warpseed.output.lines import Format
from warpseed.output.sorted_lines import LINES_AT_ONCE
from warpseed.output.sorting import SortedLines, arrange, contig_places, unplaced
from warpseed.sequences.names import Names

if TYPE_CHECKING:
    from warpseed.output.hits import Hits
    from warpseed.sequences.queries import Queries

__all__ = ["MULTIPLE", "BamRecords", "bam_format"]

MULTIPLE = ("secondary", "xa")
"""Where placements beside a read's primary one go: records of their own, or the tag XA of its record."""


def bam_format(multiple: str = "secondary") -> Format:
    """The format of a BAM file.

    Raises
    ------
    InputError : `multiple` is none of `MULTIPLE`
    """
    if multiple not in MULTIPLE:
        raise InputError(f"multiple is {multiple!r}, but {' or '.join(map(repr, MULTIPLE))} was expected.")
    return Format((), preset="bam", maker=partial(BamRecords, multiple == "xa"))


@lru_cache(maxsize=2)
def _contigs_of(names: tuple[str, ...], lengths: bytes) -> Contigs:
    text, offsets = Names.of(names)
    bases = np.frombuffer(lengths, np.int64)
    places = np.append(contig_places(bases), unplaced(bases))
    return Contigs(bytes_of(text), read_only(offsets), read_only(places))


def _reads_of(queries: Queries) -> Reads:
    """The reads as records take them.

    Raises
    ------
    InputError : a name is none for BAM
    """
    check_names(queries)
    qualities = np.empty(0, np.uint8) if queries.qualities is None else queries.qualities
    names = (bytes_of(queries.name_bytes), read_only(queries.name_offsets))
    return Reads(read_only(queries.codes), read_only(queries.offsets), read_only(qualities), *names)


def _kept(hits: Hits) -> Queries:
    if hits.queries is None:
        raise InputError(
            "these hits come without their reads, which BAM needs: give placements from find_reads or iter_read_hits, "
            "found with keep_reads=True."
        )
    return hits.queries


def _lines(rows: np.ndarray, records: np.ndarray, reads: Reads, contigs: Contigs) -> SortedLines:
    count = len(records)
    place, shape = np.empty((2, count), np.uint64)
    query, sizes = np.empty((2, count), np.int64)
    out = np.empty(room_for(records, reads, contigs) + SLACK, np.uint8)
    used = encode(rows, records, reads, contigs, (place, shape, query, sizes), out)
    return arrange(place, shape, query, sizes, out[:used])


class _Begun:
    """A read of which not all placements have come.

    Parameters
    ----------
    reads : Reads, this one alone
    contigs : Contigs
    in_xa : bool
    query : its number in the batch that is being put
    """

    def __init__(self, reads: Reads, contigs: Contigs, in_xa: bool, query: int) -> None:
        self.query = query
        self._reads = reads
        self._contigs = contigs
        self._in_xa = in_xa
        self._best = self._listed = np.empty(0, EDITED_ROW)
        self._placements = 0
        self._next_distance = -1

    def more(self, rows: np.ndarray) -> SortedLines:
        """The lines of the placements that come next, at least one, or come before these; the best one waits."""
        self._placements += len(rows)
        rows = np.concatenate([self._best, rows])
        best, next_distance = choose(rows, 0, len(rows), int(self._reads.offsets[1]))
        if next_distance >= 0:
            self._next_distance = min(next_distance, self._next_distance if self._next_distance >= 0 else next_distance)
        self._best = rows[best : best + 1].copy()
        records = np.zeros(len(rows) - 1, PLANNED)
        records["row"] = np.delete(np.arange(len(rows)), best)
        records["flag"] = HIDDEN if self._in_xa else SECONDARY
        if self._in_xa:
            others = rows[records["row"][: MOST_IN_XA + 1]]
            self._listed = np.concatenate([self._listed, others])[: MOST_IN_XA + 1]
        return self._sorted(rows, records)

    @property
    def has_placements(self) -> bool:
        """Whether any has come."""
        return self._placements > 0

    def last(self) -> SortedLines:
        """The line of the best placement, after all have come."""
        listed = self._listed if len(self._listed) <= MOST_IN_XA else self._listed[:0]
        # In output order, as those of a read that comes at once.
        listed = listed[np.lexsort([listed[name] for name in ("end", "strand", "start", "contig")])]
        rows = np.concatenate([self._best, listed])
        quality = map_quality(int(self._best["distance"][0]), self._next_distance)
        last = len(rows) if len(listed) else 0
        records = np.array([(0, 0, PRIMARY, quality, self._placements, 0, last)], PLANNED)
        return self._sorted(rows, records)

    def _sorted(self, rows: np.ndarray, records: np.ndarray) -> SortedLines:
        lines = _lines(rows, records, self._reads, self._contigs)
        lines.query[:] = self.query
        return lines


class BamRecords:
    """A `warpseed.output.sorted_lines.LineMaker` of BAM records.

    Parameters
    ----------
    in_xa : bool, whether placements beside a read's primary one are listed in its tag XA, and have no records
    """

    def __init__(self, in_xa: bool) -> None:
        self._in_xa = in_xa
        self._begun: _Begun | None = None

    def check(self, hits: Hits) -> None:
        """Refuse contigs that BAM cannot have."""
        check_contigs(hits.contig_names, hits.contig_lengths, self._in_xa)

    def make(self, hits: Hits) -> SortedLines:
        """The records of a batch, as if all its reads were whole; queries are numbered from its first one."""
        return self._whole(hits, 0, len(hits.counts), 0, len(hits))

    def parts(self, hits: Hits, made: SortedLines | None, threads: int) -> Iterator[SortedLines]:
        """The records of the next batch. A read with very many placements is worked on part by part."""
        if made is not None and self._begun is None and not hits.continues:
            return iter([made])
        return self._in_parts(hits, threads)

    def _contigs(self, hits: Hits) -> Contigs:
        return _contigs_of(hits.contig_names, hits.contig_lengths.tobytes())

    def _whole(self, hits: Hits, first: int, last: int, begin: int, end: int) -> SortedLines:
        """The records of the reads [first, last) of a batch, whose placements are its [begin, end)."""
        rows, counts = hits.rows_of(begin, end), hits.counts[first:last]
        reads = _reads_of(_kept(hits).slice(first, last))
        records = np.empty(len(rows) + int(np.count_nonzero(counts == 0)), PLANNED)
        plan(rows, read_only(counts), reads.offsets, self._in_xa, records)
        lines = _lines(rows, records, reads, self._contigs(hits))
        lines.query[:] += first
        return lines

    def _in_parts(self, hits: Hits, threads: int) -> Iterator[SortedLines]:
        ends = np.cumsum(hits.counts)
        whole: list[tuple[int, int]] = []

        def done() -> Iterator[SortedLines]:
            """What is whole and waits."""

            def lines(task: tuple[int, int]) -> SortedLines:
                first, last = task
                return self._whole(hits, first, last, int(ends[first] - hits.counts[first]), int(ends[last - 1]))

            yield from mapped(whole, lines, threads)
            whole.clear()

        first = 0
        while first < len(ends):
            begin = int(ends[first] - hits.counts[first])
            is_open = hits.continues and first + 1 == len(ends)
            if self._begun is not None or is_open or int(ends[first]) - begin > LINES_AT_ONCE:
                yield from done()
                yield from self._partly(hits, first, begin, int(ends[first]), is_open)
                first += 1
                continue
            last = int(np.searchsorted(ends, begin + LINES_AT_ONCE, "right"))
            last = min(max(last, first + 1), first + LINES_AT_ONCE, len(ends) - hits.continues)
            whole.append((first, last))
            first = last
        yield from done()

    def _partly(self, hits: Hits, number: int, begin: int, end: int, is_open: bool) -> Iterator[SortedLines]:
        """The records of one read of a batch, whose placements there are [begin, end); with `is_open` more of them come
        in the next batch."""
        if self._begun is None:
            reads = _reads_of(_kept(hits).slice(number, number + 1))
            self._begun = _Begun(reads, self._contigs(hits), self._in_xa, number)
        begun = self._begun
        begun.query = number
        for at in range(begin, end, LINES_AT_ONCE):
            yield begun.more(hits.rows_of(at, min(at + LINES_AT_ONCE, end)))
        if not is_open:
            self._begun = None
            yield begun.last() if begun.has_placements else self._whole(hits, number, number + 1, end, end)
