"""From a reference to the text that is indexed: its segments, its bytes for sorting, its packed words."""

from __future__ import annotations

import numpy as np

from warpseed.compute.compiled import inlined, int64, scalar, uint8, uint64
from warpseed.fm_index.layout import HINT_SHIFT, PAD_WORDS, Segments

__all__ = [
    "contig_place",
    "find_segments",
    "inside_segment",
    "make_hint",
    "pack_text",
    "reverse_text",
    "segment_of",
    "text_bytes",
    "unpack_text",
]


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
def _fill_text(codes, offsets, segments, text):
    for s in range(segments.contig.shape[0]):
        source = offsets[segments.contig[s]] + segments.contig_start[s]
        first = int64(segments.text_start[s])
        last = int64(segments.text_start[s + 1]) - 1
        for i in range(last - first):
            text[first + i] = codes[source + i] + 1
        text[last] = 0


def text_bytes(codes: np.ndarray, offsets: np.ndarray, segments: Segments) -> np.ndarray:
    """The text as uint8[n]: 0 for a separator, 1..4 for ACGT; what the suffix sorter takes."""
    text = np.empty(int(segments.text_start[-1]), np.uint8)
    _fill_text(codes, offsets, segments, text)
    return text


def reverse_text(text: np.ndarray) -> np.ndarray:
    """The reversed text, its final separator last again: uint8[n].

    The string at ``[i, i + k)`` of the text is, reversed, at ``n - 1 - i - k`` here.
    """
    reverse = np.empty_like(text)
    reverse[:-1] = text[-2::-1]
    reverse[-1] = 0
    return reverse


@scalar
def _pack(text, words):
    for first in range(0, text.shape[0], 32):
        word = uint64(0)
        for i in range(first, min(first + 32, text.shape[0])):
            word |= uint64(max(text[i], uint8(1)) - uint8(1)) << uint64(62 - 2 * (i - first))
        words[first >> 5] = word


def pack_text(text: np.ndarray) -> np.ndarray:
    """The text in 2-bit words, uint64[n // 32 + PAD_WORDS], separators as A, zeros behind the end."""
    words = np.zeros(text.shape[0] // 32 + PAD_WORDS, np.uint64)
    _pack(text, words)
    return words


@scalar
def _unpack(words, text_start, text):
    for i in range(text.shape[0]):
        text[i] = ((words[i >> 5] >> uint64(62 - 2 * (i & 31))) & uint64(3)) + uint64(1)
    for s in range(1, text_start.shape[0]):
        text[int64(text_start[s]) - 1] = 0


def unpack_text(words: np.ndarray, segments: Segments) -> np.ndarray:
    """What `text_bytes` gave before it was packed, uint8[n]."""
    text = np.empty(int(segments.text_start[-1]), np.uint8)
    _unpack(words, segments.text_start, text)
    return text
