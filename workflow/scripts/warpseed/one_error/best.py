"""One placement a locus: of placements of a read that lie within a few bases of each other, the better ones.

A placement goes if a better one of the same read and strand is near it: on the same contig, with starts that differ by
at most `max_edits`, and ends that do. *Better* has fewer edits; of equal ones, as many bases as the read; then the
smaller start; then the smaller end. So whether a placement stays is decided by those near it alone, those that go
themselves included, and in no order. A read that occurs once has one placement there. A repeat whose unit has no more
bases than `max_edits`, such as a run of one base, is one locus, however long.
"""

from __future__ import annotations

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.compute.ranges import borders_of
from warpseed.compute.sink import WHOLE_TEXT
from warpseed.fm_index.layout import Segments
from warpseed.fm_index.text import contig_place
from warpseed.one_error.reads import placement_of
from warpseed.output.rows import Found, join_found

__all__ = ["BestInOrder", "best_of", "widened"]


@scalar
def _are_near(segments, first, first_length, second, second_length, most):
    """Whether two placements, by text position and bases, begin and end within `most` bases on one contig. In the text
    there is one position between two segments: as many bases as there are between them on a contig, or fewer."""
    ends = second + second_length - first - first_length
    if abs(second - first) > most or abs(ends) > most:
        return False
    if first < second + second_length and second < first + first_length:
        return True  # they share bases
    contig, start = contig_place(segments, first)
    other_contig, other_start = contig_place(segments, second)
    apart = other_start - start
    return contig == other_contig and abs(apart) <= most and abs(apart + second_length - first_length) <= most


@scalar
def _is_better(word, other):
    """Whether a placement of a read is better than another one on its strand."""
    place, _, extra, distance, _, _ = placement_of(word)
    other_place, _, other_extra, other_distance, _, _ = placement_of(other)
    if distance != other_distance:
        return distance < other_distance
    if (extra == int64(0)) != (other_extra == int64(0)):
        return extra == int64(0)
    return place < other_place or (place == other_place and extra < other_extra)


@scalar
def _is_best(packed, i, first, last, length, segments, most):
    """Whether no placement of [first, last), those of a read, is near placement i and better."""
    word = packed[i]
    place, strand, extra, _, _, _ = placement_of(word)
    for step in range(-1, 2, 2):
        j = i + int64(step)
        while j >= first and j < last:
            other = packed[j]
            other_place, other_strand, other_extra, _, _, _ = placement_of(other)
            if abs(other_place - place) > most:
                break
            if other_strand == strand and _is_better(other, word):
                lengths = (length + extra, length + other_extra)
                if _are_near(segments, place, lengths[0], other_place, lengths[1], most):
                    return False
            j += int64(step)
    return True


@scalar
def _keep_best(packed, counts, lengths, segments, most, window, kept):
    """Copy the best placements that begin in a window of the text, and set the counts to theirs; returns their number.

    Parameters
    ----------
    packed, counts : of each read its placements, ascending
    window : (int64, int64)
    kept : uint64[], filled
    """
    stored = int64(0)
    first = int64(0)
    for read in range(counts.shape[0]):
        last = first + int64(counts[read])
        before = stored
        for i in range(first, last):
            place = int64(packed[i] >> uint64(32))
            inside = place >= window[0] and place < window[1]
            if inside and _is_best(packed, int64(i), first, last, int64(lengths[read]), segments, most):
                kept[stored] = packed[i]
                stored += int64(1)
        counts[read] = stored - before
        first = last
    return stored


def widened(text: tuple[int, int], max_edits: int) -> tuple[int, int]:
    """The part of the text whose placements decide on those that begin in a part."""
    return text if text == WHOLE_TEXT else (max(0, text[0] - max_edits), text[1] + max_edits)


def best_of(
    found: Found, lengths: np.ndarray, segments: Segments, max_edits: int, text: tuple[int, int] = WHOLE_TEXT
) -> Found:
    """What stays of packed placements; see the module.

    Parameters
    ----------
    found : every placement, or those that begin in the part of the text that `widened` says
    lengths : uint32[n], bases of the reads, or of more behind them
    text : the part of the text in which those begin that are wanted
    """
    kept, counts = np.empty(len(found.hits), np.uint64), found.counts.copy()
    stored = _keep_best(found.hits, counts, lengths, segments, max_edits, text, kept)
    return found._replace(hits=kept[:stored] if 2 * stored > len(kept) else kept[:stored].copy(), counts=counts)


class BestInOrder:
    """The best of placements that come part by part, ascending, where a part may end within those of a read.

    What is near a part's end waits for the next part.

    Parameters
    ----------
    segments : Segments
    max_edits : int
    """

    def __init__(self, segments: Segments, max_edits: int) -> None:
        self._segments = segments
        self._max_edits = max_edits
        self._seen = np.empty(0, np.uint64)
        self._from: int | None = None

    def take(self, found: Found, lengths: np.ndarray, continues: bool) -> Found:
        """What stays of the next part, and of what waited.

        Parameters
        ----------
        found : placements of consecutive reads, the first of which the part before may have begun
        lengths : uint32[n], bases of these reads
        continues : whether the next part has more placements of the last read
        """
        count, begun = len(found.counts), self._from is not None
        if not begun and not continues:
            return best_of(found, lengths, self._segments, self._max_edits)
        ends = borders_of(found.counts)
        borders = sorted({0, int(begun), max(count - continues, int(begun and count > 1)), count})
        parts = []
        for first, last in zip(borders, borders[1:], strict=False):
            hits = found.hits[ends[first] : ends[last]]
            part = Found(hits, found.counts[first:last], 0, 0)
            is_first, is_open = begun and first == 0, continues and last == count
            parts.append(self._part(part, lengths[first:last], is_first, is_open))
        joined = join_found(parts)
        return joined._replace(dropped_queries=found.dropped_queries, dropped_hits=found.dropped_hits)

    def _part(self, part: Found, lengths: np.ndarray, is_first: bool, is_open: bool) -> Found:
        """Some reads; only one where they were begun, or are not at their end."""
        if not is_first and not is_open:
            return best_of(part, lengths, self._segments, self._max_edits)
        low = (self._from or 0) if is_first else 0
        hits = np.concatenate([self._seen, part.hits]) if is_first else part.hits
        high = WHOLE_TEXT[1]
        if is_open:
            # Those that come begin at the last one's place, or behind it.
            high = max(low, int(hits[-1] >> np.uint64(32)) - self._max_edits) if len(hits) else low
            near = np.uint64(max(0, high - self._max_edits)) << np.uint64(32)
            self._from, self._seen = high, hits[np.searchsorted(hits, near) :].copy()
        else:
            self._from, self._seen = None, hits[:0]
        whole = Found(hits, np.array([len(hits)], np.int64), 0, 0)
        return best_of(whole, lengths, self._segments, self._max_edits, (low, high))
