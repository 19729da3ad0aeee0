"""From a reference to the text that is indexed: its segments and its packed words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.bits import reverse_complement_word
from warpseed.compute.compiled import inlined, int64, scalar, uint64
from warpseed.compute.intrinsics import load_word
from warpseed.compute.pipeline import check_wanted, mapped
from warpseed.compute.ranges import borders_of, run_ranges, spans_of
from warpseed.compute.vectors import ALL_BYTES, WIDTH, first_in_mask, mask_outside
from warpseed.fm_index.layout import HINT_SHIFT, PAD_WORDS, Segments
from warpseed.sequences.packed import eight_bases

__all__ = [
    "PackedText",
    "contig_place",
    "find_segments",
    "inside_segment",
    "make_hint",
    "mark_positions",
    "pack_text",
    "reverse_segments",
    "reverse_text",
    "segment_end",
    "segment_of",
    "suffix_start",
    "text_length",
    "unpack_text",
]


_CODES, _WORDS = 1 << 22, 1 << 17
"""Codes that are looked at in one call, and words that are packed."""
_BORDERS = 64
"""Borders of segments for which there is room in a range at first."""


class PackedText(NamedTuple):
    """A text: its segments, each with a separator behind it."""

    words: np.ndarray
    """uint64[n // 32 + PAD_WORDS], 32 bases each, separators as A, zeros behind the end"""
    segments: Segments


@scalar
def _run_end(codes, i, end, of_bases):
    """Where a run that begins at `i` ends, `end` at the latest: one of bases, or one of what is none."""
    flipped = uint64(0) if of_bases else ALL_BYTES
    while i < end and i + WIDTH <= codes.shape[0]:
        others = mask_outside(codes, i, 0, 3) ^ flipped
        if others != 0:
            return min(i + first_in_mask(others), end)
        i += WIDTH
    while i < end and (codes[i] <= 3) == of_bases:
        i += 1
    return min(i, end)


@scalar
def _scan_borders(codes, offsets, contig, first, last, borders):
    """Where runs of ACGT begin and end in ``[first, last)``, or end with a contig at `last`.

    They are written by turns into `borders`, as far as that reaches.

    Parameters
    ----------
    contig : number of the contig that `first` lies in; each contig has runs of its own

    Returns
    -------
    int64, how many there are
    """
    i, found = int64(first), int64(0)
    inside = i > offsets[contig] and codes[i - 1] <= 3
    while i < last:
        end = offsets[contig + 1]
        stop = min(end, int64(last))
        while i < stop:
            i = _run_end(codes, i, stop, inside)
            if i < stop or (inside and i == end):
                if found < borders.shape[0]:
                    borders[found] = i
                found += 1
                inside = not inside
        contig += 1
    return found


def find_segments(codes: np.ndarray, offsets: np.ndarray, threads: int = 1) -> Segments:
    """Cut contigs into maximal runs of ACGT.

    Parameters
    ----------
    codes : uint8[total], 0..3 for ACGT, anything above for the rest, contigs back to back
    offsets : int64[c + 1], where each contig begins in `codes`
    threads : int, the segments are the same for every number

    Returns
    -------
    Segments; with no segment where no contig has an ACGT base.
    """
    codes, offsets = np.ascontiguousarray(codes, np.uint8), np.asarray(offsets, np.int64)

    def borders_in(span: tuple[int, int]) -> np.ndarray:
        check_wanted()
        contig = int(np.searchsorted(offsets, span[0], side="right")) - 1
        borders = np.empty(_BORDERS, np.int64)
        while (found := int(_scan_borders(codes, offsets, contig, *span, borders))) > len(borders):
            borders = np.empty(found, np.int64)
        return borders[:found].copy()

    # Runs may go on from range to range: only what begins or ends there is noted, so that all of it is in turns, too.
    borders = np.concatenate(list(mapped(spans_of(len(codes), threads, _CODES), borders_in, threads)))
    starts, ends = borders[::2], borders[1::2]
    contig = np.searchsorted(offsets, starts, side="right") - 1
    text_start = borders_of(ends - starts + 1)
    return Segments(
        text_start.astype(np.uint32), contig.astype(np.int32), starts - offsets[contig], make_hint(text_start)
    )


def make_hint(text_start: np.ndarray) -> np.ndarray:
    """The segment of every 2**HINT_SHIFT-th text position, uint32; the last segment behind the text's end."""
    blocks = (int(text_start[-1]) >> HINT_SHIFT) + 2
    borders = np.arange(blocks, dtype=np.int64) << HINT_SHIFT
    found = np.searchsorted(text_start, borders, side="right") - 1
    return np.clip(found, 0, max(len(text_start) - 2, 0)).astype(np.uint32)


@scalar
def segment_of(segments, position):
    """Number of the segment that a text position lies in (its own separator counts as in it), int64.

    Any position gives a segment that exists.
    """
    block = min(max(position >> int64(HINT_SHIFT), int64(0)), int64(segments.hint.shape[0]) - int64(2))
    low = int64(segments.hint[block])
    high = int64(segments.hint[block + int64(1)])
    while low < high:
        middle = (low + high + int64(1)) >> int64(1)
        if int64(segments.text_start[middle]) <= position:
            low = middle
        else:
            high = middle - int64(1)
    return low


@inlined
def suffix_start(suffix_array, row):
    """Text position of a row, int64; the last one there is where a damaged entry lies behind it."""
    return min(int64(suffix_array[row]), int64(suffix_array.shape[0]) - int64(1))


@inlined
def text_length(segments):
    """Positions of a text, separators among them, int64."""
    return int64(segments.text_start[segments.contig.shape[0]])


@inlined
def segment_end(segments, position):
    """Where the separator of the segment is that a position lies in, int64."""
    return int64(segments.text_start[segment_of(segments, position) + int64(1)]) - int64(1)


@inlined
def contig_place(segments, position):
    """The contig that a text position lies on, and its place there (0-based): (int64, int64)."""
    segment = segment_of(segments, position)
    place = position - int64(segments.text_start[segment]) + int64(segments.contig_start[segment])
    return int64(segments.contig[segment]), place


@inlined
def inside_segment(segments, position, length):
    """Whether text positions [position, position + length) lie in one segment."""
    if position < int64(0) or position + length > int64(segments.text_start[segments.contig.shape[0]]):
        return False
    if segments.contig.shape[0] == 1:
        return position + length < int64(segments.text_start[1])
    segment = segment_of(segments, position)
    return position + length < int64(segments.text_start[segment + int64(1)])


@inlined
def _source(offsets, segments, segment):
    """Where the separator of a segment is, and what takes a text position of it to its code: (int64, int64)."""
    start = int64(segments.text_start[segment])
    first = offsets[segments.contig[segment]] + segments.contig_start[segment]
    return int64(segments.text_start[segment + int64(1)]) - int64(1), first - start


@scalar
def _pack_words(codes, offsets, segments, first, last, words):
    """Write the words ``[first, last)`` of a text; each begins before its end."""
    position = int64(32) * int64(first)
    segment = segment_of(segments, position)
    separator, ahead = _source(offsets, segments, segment)
    word = int64(first)
    while word < last:
        whole = min(last, word + ((separator - position) >> int64(5)))
        while word < whole:
            packed = uint64(0)
            for eight in range(4):
                packed = (packed << uint64(16)) | eight_bases(load_word(codes, ahead + position + int64(8 * eight)))
            words[word] = packed
            word += 1
            position += int64(32)
        if word == last:
            break
        # A word that segments end in, and others may begin in.
        packed = uint64(0)
        for _ in range(32):
            code = uint64(codes[ahead + position]) if position < separator else uint64(0)
            packed = (packed << uint64(2)) | code
            if position == separator and segment + int64(1) < segments.contig.shape[0]:
                segment += int64(1)
                separator, ahead = _source(offsets, segments, segment)
            position += int64(1)
        words[word] = packed
        word += 1


def pack_text(codes: np.ndarray, offsets: np.ndarray, segments: Segments, threads: int = 1) -> PackedText:
    """The text of contigs that were cut into segments.

    Parameters
    ----------
    codes, offsets, threads : as in `find_segments`
    """
    codes, offsets = np.ascontiguousarray(codes, np.uint8), np.asarray(offsets, np.int64)
    length = int(segments.text_start[-1])
    words = np.zeros(length // 32 + PAD_WORDS, np.uint64)

    def pack(span: tuple[int, int]) -> None:
        check_wanted()
        _pack_words(codes, offsets, segments, *span, words)

    for _ in mapped(spans_of(-(-length // 32), threads, _WORDS), pack, threads):
        pass
    return PackedText(words, segments)


@scalar
def _reverse_words(words, length, first, last, backwards):
    for word in range(first, last):
        backwards[word] = reverse_complement_word(words, int64(0), length, word, uint64(0))


def reverse_text(text: PackedText, threads: int = 1) -> PackedText:
    """The reversed text, its final separator last again.

    The string at ``[i, i + k)`` of the text is, reversed, at ``n - 1 - i - k`` here. The contigs of its segments are
    those of the text's, in that order.
    """
    n = int(text.segments.text_start[-1])
    backwards = np.zeros_like(text.words)
    run_ranges(-(-n // 32), threads, lambda first, last: _reverse_words(text.words, n - 1, first, last, backwards))
    return PackedText(backwards, reverse_segments(text.segments))


def reverse_segments(segments: Segments) -> Segments:
    """Those of the reversed text, but for their contigs."""
    n = int(segments.text_start[-1])
    starts = n - segments.text_start[::-1].astype(np.int64)
    return segments._replace(text_start=starts.astype(np.uint32), hint=make_hint(starts))


@scalar
def _mark(positions, marks):
    for i in range(positions.shape[0]):
        position = int64(positions[i])
        marks[position >> 6] |= uint64(1) << uint64(position & 63)


def mark_positions(positions: np.ndarray, rows: int) -> np.ndarray:
    """uint64[rows // 64 + 2]: a bit for each position of a text, the lowest for the first of 64; 1 for those given."""
    marks = np.zeros(rows // 64 + 2, np.uint64)
    _mark(positions, marks)
    return marks


@scalar
def _unpack(words, text_start, text):
    for i in range(text.shape[0]):
        text[i] = ((words[i >> 5] >> uint64(62 - 2 * (i & 31))) & uint64(3)) + uint64(1)
    for s in range(1, text_start.shape[0]):
        text[int64(text_start[s]) - 1] = 0


def unpack_text(words: np.ndarray, segments: Segments) -> np.ndarray:
    """The text as uint8[n]: 0 for a separator, 1..4 for ACGT."""
    text = np.empty(int(segments.text_start[-1]), np.uint8)
    _unpack(words, segments.text_start, text)
    return text
