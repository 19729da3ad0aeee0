"""From a reference to the text that is indexed: its segments and its packed words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.bits import reverse_complement_word
from warpseed.compute.compiled import inlined, int64, scalar, uint64
from warpseed.compute.ranges import run_ranges
from warpseed.fm_index.layout import HINT_SHIFT, PAD_WORDS, Segments

__all__ = [
    "PackedText",
    "contig_place",
    "find_segments",
    "inside_segment",
    "make_hint",
    "mark_positions",
    "pack_text",
    "reverse_text",
    "segment_end",
    "segment_of",
    "unpack_text",
]


class PackedText(NamedTuple):
    """A text: its segments, each with a separator behind it."""

    words: np.ndarray
    """uint64[n // 32 + PAD_WORDS], 32 bases each, separators as A, zeros behind the end"""
    segments: Segments


@scalar
def _scan_segments(codes, offsets, contig, contig_start, length):
    """Write the segments into the three arrays as far as these reach; return how many there are."""
    found = 0
    for c in range(offsets.shape[0] - 1):
        i = offsets[c]
        end = offsets[c + 1]
        while i < end:
            while i < end and codes[i] > 3:
                i += 1
            first = i
            while i < end and codes[i] <= 3:
                i += 1
            if i > first:
                if found < contig.shape[0]:
                    contig[found] = c
                    contig_start[found] = first - offsets[c]
                    length[found] = i - first
                found += 1
    return found


def find_segments(codes: np.ndarray, offsets: np.ndarray) -> Segments:
    """Cut contigs into maximal runs of ACGT.

    Parameters
    ----------
    codes : uint8[total], 0..3 for ACGT, anything above for the rest, contigs back to back
    offsets : int64[c + 1], where each contig begins in `codes`

    Returns
    -------
    Segments; with no segment where no contig has an ACGT base.
    """
    room = offsets.shape[0] + 63
    while True:
        contig = np.empty(room, np.int32)
        contig_start = np.empty(room, np.int64)
        length = np.empty(room, np.int64)
        found = int(_scan_segments(codes, offsets, contig, contig_start, length))
        if found <= room:
            break
        room = found
    text_start = np.zeros(found + 1, np.int64)
    np.cumsum(length[:found] + 1, out=text_start[1:])
    return Segments(
        text_start.astype(np.uint32),
        contig[:found].copy(),
        contig_start[:found].copy(),
        make_hint(text_start),
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


@scalar
def _pack(codes, offsets, segments, words):
    for s in range(segments.contig.shape[0]):
        source = offsets[segments.contig[s]] + segments.contig_start[s]
        first = int64(segments.text_start[s])
        for i in range(int64(segments.text_start[s + 1]) - int64(1) - first):
            position = uint64(first + i)
            base = uint64(codes[uint64(source + i)])
            words[position >> uint64(5)] |= base << (uint64(62) - uint64(2) * (position & uint64(31)))


def pack_text(codes: np.ndarray, offsets: np.ndarray, segments: Segments) -> PackedText:
    """The text of contigs that were cut into segments.

    Parameters
    ----------
    codes, offsets : as in `find_segments`
    """
    words = np.zeros(int(segments.text_start[-1]) // 32 + PAD_WORDS, np.uint64)
    _pack(codes, offsets, segments, words)
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
    words, segments = text
    n = int(segments.text_start[-1])
    backwards = np.zeros_like(words)
    run_ranges(-(-n // 32), threads, lambda first, last: _reverse_words(words, n - 1, first, last, backwards))
    starts = n - segments.text_start[::-1].astype(np.int64)
    return PackedText(backwards, segments._replace(text_start=starts.astype(np.uint32), hint=make_hint(starts)))


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
