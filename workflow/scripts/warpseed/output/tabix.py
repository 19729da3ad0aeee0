"""The index of a sorted BGZF file, as htslib reads it, worked out from the lines' keys while they are written.

Intervals are put into the bins of the SAM specification (section 5.3), by which all kinds of index look them up: .tbi
of text and .bai of BAM, for contigs of up to 2^29 bases, and .csi, for longer ones.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from warpseed.output.sorting import SortedLines, contig_places
from warpseed.sequences.bgzf import BLOCK_BYTES, pack_blocks
from warpseed.sequences.bgzf_format import END_BLOCK

__all__ = ["LONGEST_IN_TBI", "BamIndex", "Entries", "TabixIndex"]

LONGEST_IN_TBI = 1 << 29
"""Bases of a contig that a .tbi index has bins for."""
_WINDOW_BITS = 14
"""The smallest bins, and the windows of the linear index, have 16,384 bases."""
_TBI_DEPTH, _CSI_DEPTH = 5, 6
"""Levels of bins below the one of everything, each eight times as fine as the one above."""
_CONTIG_SHIFT = 32
"""A contig has fewer windows than this many bits count."""
_INTERVALS: dict[str | None, tuple[int, int, int]] = {"bed": (1, 2, 3), "paf": (6, 8, 9)}
"""Of text by its preset: the columns of contig, start and end."""


def _settings(preset: str | None) -> bytes:
    """What an index says of the text: intervals are half-open, comments begin with #, and no line is skipped."""
    return struct.pack("<6i", 0x10000, *_INTERVALS[preset], ord("#"), 0)


class _Chunks(NamedTuple):
    """Stretches of the text, each with lines of one bin."""

    contig: np.ndarray
    bin: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    lines: np.ndarray

    def joined(self) -> _Chunks:
        """By contig and bin; those whose compressed blocks touch are one."""
        order = np.lexsort((self.begin, self.bin, self.contig))
        contig, bins, begin, end, lines = (column[order] for column in self)
        first = np.ones(len(order), bool)
        first[1:] = (
            (contig[1:] != contig[:-1]) | (bins[1:] != bins[:-1]) | (begin[1:] // BLOCK_BYTES > end[:-1] // BLOCK_BYTES)
        )
        firsts = np.flatnonzero(first)
        lasts = np.append(firsts[1:], len(order))[: len(firsts)] - 1
        counts = np.add.reduceat(lines, firsts) if len(firsts) else lines
        return _Chunks(contig[firsts], bins[firsts], begin[firsts], end[lasts], counts)


class _Windows(NamedTuple):
    """Lines that reach a window which no line before them reached."""

    reached: np.ndarray
    """the contig's number, shifted, and the line's last window"""
    first: np.ndarray
    """the line's first window"""
    begin: np.ndarray
    """where the line begins in the text"""

    def linear(self) -> np.ndarray:
        """Of one contig: where the first line that overlaps each window begins, int64[w].

        A window that none overlaps has what the one before it has, or the first one has.
        """
        last = self.reached & ((1 << _CONTIG_SHIFT) - 1)
        linear = np.zeros(int(last[-1]) + 1, np.int64)
        linear[np.maximum(self.first, np.append(-1, last[:-1]) + 1)] = self.begin
        linear[0] = self.begin[0]
        return np.maximum.accumulate(linear)


class Entries(NamedTuple):
    """What an index takes of lines that follow each other."""

    chunks: _Chunks
    windows: _Windows


def _bins_of(start: np.ndarray, last: np.ndarray, depth: int) -> np.ndarray:
    """The smallest bin that holds the bases from `start` to `last`, int64[n]."""
    bins = np.zeros(len(start), np.int64)
    for level in range(1, depth + 1):
        shift = _WINDOW_BITS + 3 * (depth - level)
        inside = (start >> shift) == (last >> shift)
        bins = np.where(inside, ((1 << 3 * level) - 1) // 7 + (start >> shift), bins)
    return bins


def _first_base(bins: np.ndarray, depth: int) -> np.ndarray:
    """Where bins begin, int64[n]."""
    base = np.zeros(len(bins), np.int64)
    for level in range(1, depth + 1):
        first = ((1 << 3 * level) - 1) // 7
        base = np.where(bins >= first, (bins - first) << (_WINDOW_BITS + 3 * (depth - level)), base)
    return base


class TabixIndex:
    """An index of text in the making.

    Parameters
    ----------
    names : of the contigs
    lengths : int64[c], their lengths
    preset : that of the text's format; None where no file is made of it

    Attributes
    ----------
    is_wide : bool, whether it is a .csi, for the sake of a long contig
    unplaced : int, lines behind those of the contigs, which only BAM has
    """

    unplaced = 0

    def __init__(self, names: Sequence[str], lengths: np.ndarray, preset: str | None = None) -> None:
        self._preset = preset
        self.is_wide = int(lengths.max(initial=0)) > LONGEST_IN_TBI
        self._depth = _CSI_DEPTH if self.is_wide else _TBI_DEPTH
        self._names = names
        self._begins = contig_places(lengths)
        self._reached = -1
        self._chunks: list[_Chunks] = []
        self._windows: list[_Windows] = []

    def entries(self, lines: SortedLines, begin: int) -> Entries:
        """What there is to enter of some lines, from any thread.

        Parameters
        ----------
        lines : at least one, none of them empty
        begin : where the first of them begins in the file, in bytes that are not packed
        """
        contig = np.searchsorted(self._begins, lines.place, "right").astype(np.int64) - 1
        start = (lines.place - self._begins[contig]).astype(np.int64)
        last = start + np.maximum((lines.shape >> np.uint64(1)).astype(np.int64) - 1, 0)
        at = lines.offsets + (begin - lines.offsets[0])
        bins = _bins_of(start, last, self._depth)
        firsts = np.flatnonzero(np.append(True, (bins[1:] != bins[:-1]) | (contig[1:] != contig[:-1])))
        ends = np.append(firsts[1:], len(lines))
        chunks = _Chunks(contig[firsts], bins[firsts], at[firsts], at[ends], ends - firsts)
        reached = (contig << _CONTIG_SHIFT) | (last >> _WINDOW_BITS)
        further = np.flatnonzero(reached > np.append(-1, np.maximum.accumulate(reached)[:-1]))
        windows = _Windows(reached[further], start[further] >> _WINDOW_BITS, at[further])
        return Entries(chunks.joined(), windows)

    def add(self, entries: Entries) -> None:
        """Enter lines, behind those before them."""
        chunks, windows = entries
        self._chunks.append(chunks)
        news = windows.reached > self._reached
        self._windows.append(_Windows(*(column[news] for column in windows)))
        self._reached = max(self._reached, int(windows.reached[-1]))

    def finished(self, block_offsets: np.ndarray) -> bytes:
        """The index as a file's bytes.

        Parameters
        ----------
        block_offsets : int64[b], where each block of the compressed file begins, the one that ends it included
        """
        chunks = _Chunks(*_columns(self._chunks, 5)).joined()
        windows = _Windows(*_columns(self._windows, 3))

        def places(at: np.ndarray) -> np.ndarray:
            """Places in the text as htslib has them: where the block begins, and the place in the block."""
            return (block_offsets[at // BLOCK_BYTES] << 16) | (at % BLOCK_BYTES)

        contigs = []
        for number in np.unique(chunks.contig).tolist():
            first, last = np.searchsorted(chunks.contig, [number, number + 1])
            low, high = np.searchsorted(windows.reached >> _CONTIG_SHIFT, [number, number + 1])
            linear = places(_Windows(*(column[low:high] for column in windows)).linear())
            own = _Chunks(*(column[first:last] for column in chunks))
            own = own._replace(begin=places(own.begin), end=places(own.end))
            contigs.append((number, self._contig(own, linear)))
        return self._file(contigs)

    def _file(self, contigs: Sequence[tuple[int, bytes]]) -> bytes:
        """The file, of what it holds of the contigs that have lines."""
        names = b"".join(self._names[number].encode() + b"\0" for number, _ in contigs)
        about = _settings(self._preset) + struct.pack("<i", len(names)) + names
        if self.is_wide:
            head = self._csi_head(about, len(contigs))
        else:
            head = b"TBI\1" + struct.pack("<i", len(contigs)) + about
        behind = struct.pack("<Q", self.unplaced)
        return pack_blocks(b"".join([head, *(content for _, content in contigs), behind])) + END_BLOCK

    def _csi_head(self, about: bytes, contigs: int) -> bytes:
        return b"CSI\1" + struct.pack("<3i", _WINDOW_BITS, self._depth, len(about)) + about + struct.pack("<i", contigs)

    def _contig(self, chunks: _Chunks, linear: np.ndarray) -> bytes:
        """What an index holds of one contig, of whose chunks the places are as htslib has them."""
        numbers, firsts, counts = np.unique(chunks.bin, return_index=True, return_counts=True)
        places = np.stack([chunks.begin, chunks.end], axis=1).astype("<u8")
        lowest = linear[_first_base(numbers, self._depth) >> _WINDOW_BITS]
        bins = [
            self._bin(number, low, places[first : first + count].tobytes())
            for number, first, count, low in zip(
                numbers.tolist(), firsts.tolist(), counts.tolist(), lowest.tolist(), strict=True
            )
        ]
        parts = [struct.pack("<i", len(bins) + 1), *bins, self._numbers(chunks)]
        if not self.is_wide:
            parts += [struct.pack("<i", len(linear)), linear.astype("<u8").tobytes()]
        return b"".join(parts)

    def _bin(self, number: int, lowest: int, places: bytes) -> bytes:
        """A bin and the places of its chunks, 16 bytes each."""
        count = len(places) // 16
        head = struct.pack("<IQi", number, lowest, count) if self.is_wide else struct.pack("<Ii", number, count)
        return head + places

    def _numbers(self, chunks: _Chunks) -> bytes:
        """The bin behind the last one: where the contig's lines begin and end, and how many there are."""
        last = ((1 << 3 * (self._depth + 1)) - 1) // 7
        numbers = (int(chunks.begin.min()), int(chunks.end.max()), int(chunks.lines.sum()), 0)
        return self._bin(last + 1, 0, struct.pack("<4Q", *numbers))


class BamIndex(TabixIndex):
    """The index of a BAM file in the making, .bai or .csi, with the numbers that ``samtools idxstats`` tells."""

    def _file(self, contigs: Sequence[tuple[int, bytes]]) -> bytes:
        # Every contig has its place, those without records too: no bins, and in a .bai no windows.
        parts = [bytes(4 if self.is_wide else 8)] * len(self._names)
        for number, content in contigs:
            parts[number] = content
        parts.append(struct.pack("<Q", self.unplaced))
        if self.is_wide:
            return pack_blocks(self._csi_head(b"", len(self._names)) + b"".join(parts)) + END_BLOCK
        return b"BAI\1" + struct.pack("<i", len(self._names)) + b"".join(parts)


def _columns(parts: Sequence[tuple[np.ndarray, ...]], count: int) -> list[np.ndarray]:
    if not parts:
        return [np.empty(0, np.int64)] * count
    return [np.concatenate(column) for column in zip(*parts, strict=True)]
