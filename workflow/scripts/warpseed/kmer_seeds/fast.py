"""The fast tier: windows of a k-mer looked up in the table of K bases, candidates verified in the packed text.

Which windows: the generalised pigeonhole. Cut a k-mer into disjoint windows that allow e_1 … e_r mismatches with
sum(e_i + 1) = D + 1; a match with at most D mismatches has at most e_i in some window i, since otherwise it had
D + 1. So it is enough to look up, for every window, all strings within e_i mismatches. Thirds that match exactly,
halves of which one may differ in one base, the whole neighbourhood of a short k-mer: all are such cuts, and
`choose_windows` takes the cheapest by a model of its cost. A match that several windows find is reported by the first.

The functions here are the steps of one query that both targets share; the order of the work is cpu.py's and gpu.py's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, combinations, product
from math import comb, log2
from typing import NamedTuple

import numpy as np

from warpseed.compute.bits import fetch_word, mismatch_bits, prefix_mask
from warpseed.compute.compiled import int64, scalar
from warpseed.compute.intrinsics import popcount
from warpseed.fm_index.text import inside_segment
from warpseed.kmer_seeds.kmers import MAX_LENGTH
from warpseed.sequences.packed import BASES_A_WORD, oriented_marks, oriented_word

__all__ = [
    "MAX_MISMATCHES",
    "Costs",
    "Neighbours",
    "Scheme",
    "Window",
    "accept_word",
    "accept_words",
    "bases_in_tags",
    "changed_bases",
    "choose_windows",
    "error_splits",
    "exact_bases",
    "exact_neighbours",
    "first_window",
    "lay_outs",
    "lengths_in",
    "make_scheme",
    "neighbour_patterns",
    "neighbours",
    "scheme_of",
    "seen_bases",
    "spare_mismatches",
    "spent_in",
    "word_distance",
    "words_distance",
]

MAX_MISMATCHES = 3
_MAX_WINDOWS = MAX_MISMATCHES + 1


class Window(NamedTuple):
    """Bases [offset, offset + length) of a k-mer, in which up to `errors` mismatches are looked up."""

    offset: int
    length: int
    errors: int
    ahead: int = 0
    """bases behind it that are looked up with it; they lie in the window before it in the list, on its right"""


class Costs(NamedTuple):
    """What a target pays, in units of a table look-up of K bases in a large batch."""

    look_up: float
    short_look_up: float
    """a look-up of fewer than K bases, whose two table entries are farther apart"""
    row: float
    """one candidate: its suffix array entry and its text"""
    narrowing: float
    """one step of a binary search in a crowded bucket"""
    narrow_above: int
    """rows from which a bucket is narrowed by the bases behind the K of the table"""


class Scheme(NamedTuple):
    """The windows of every k-mer length in a set, as arrays for jitted code; row k is for k-mers of k bases."""

    windows: np.ndarray
    """int64[256], how many"""
    offset: np.ndarray
    """int64[256, 4]"""
    length: np.ndarray
    """int64[256, 4]"""
    errors: np.ndarray
    """int64[256, 4]"""
    mask: np.ndarray
    """uint64[256, 4], the pairs of a window's bases, as far as they lie in the first word"""
    pattern_first: np.ndarray
    """int64[256, 5], the look-ups of window i are patterns[first[i] : first[i + 1]]"""
    patterns: np.ndarray
    """uint64[…], XOR masks on the 2-bit code of the bases that are looked up, ascending within a window"""
    pattern_window: np.ndarray
    """uint8[…], the window of each pattern"""
    pattern_offset: np.ndarray
    """uint8[…], the offset of that window"""
    pattern_length: np.ndarray
    """uint8[…], the bases from there on that are looked up, at most K"""
    pattern_spare: np.ndarray
    """uint8[…], mismatches that a match may have beside those of its pattern, and those that the windows before must
    have, as none of them reported it"""
    pattern_exact: np.ndarray
    """uint8[…], bases from that offset on, at most 32: those that are looked up, and those behind them in which a match
    is as the k-mer, since all mismatches that it may have there are spent"""
    look_ups: np.ndarray
    """int64[256], table look-ups for one strand of a k-mer"""
    max_mismatches: int
    table_length: int


def bases_in_tags(scheme: Scheme, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Of each look-up the bases of its k-mer behind K from its offset on, at most so many, and how many of them are
    sure: a match has them as the k-mer does.

    Returns
    -------
    (behind, sure) : int64[patterns] each
    """
    length = np.zeros(len(scheme.patterns), np.int64)
    for k in np.flatnonzero(scheme.windows):
        length[scheme.pattern_first[k, 0] : scheme.pattern_first[k, scheme.windows[k]]] = k
    behind = np.clip(length - scheme.pattern_offset - scheme.table_length, 0, most)
    return behind, np.clip(scheme.pattern_exact.astype(np.int64) - scheme.table_length, 0, behind)


def neighbours(length: int, errors: int) -> int:
    """Strings within so many mismatches of a string of `length` bases."""
    return sum(comb(length, e) * 3**e for e in range(min(errors, length) + 1))


@lru_cache(maxsize=64)
def neighbour_patterns(length: int, errors: int) -> np.ndarray:
    """XOR masks that turn a packed string of `length` bases into all strings within `errors` mismatches.

    Returns
    -------
    uint64[sum over e of C(length, e)·3**e], ascending, so that neighbours share table sectors.
    """
    masks = [
        sum(change << (2 * place) for place, change in zip(places, changes, strict=True))
        for e in range(min(errors, length) + 1)
        for places in combinations(range(length), e)
        for changes in product((1, 2, 3), repeat=e)
    ]
    return np.array(sorted(masks), np.uint64)


class Neighbours(NamedTuple):
    """XOR masks that change some bases of a packed string: by how many they change, and ascending where as many.

    So masks that change just e bases begin at fewer[length, e], and the first fewer[l, e + 1] - fewer[l, e] of them
    change only the last l.
    """

    masks: np.ndarray
    """uint64[…]"""
    fewer: np.ndarray
    """int32[length + 1, most + 2], at [l, e] how many change fewer than e bases, and only of the last l"""


@lru_cache(maxsize=16)
def exact_neighbours(length: int, most: int) -> Neighbours:
    """The masks that change at most so many bases of a packed string of `length` bases."""
    masks = neighbour_patterns(length, most)
    fewer = [[neighbours(last, e - 1) for e in range(most + 2)] for last in range(length + 1)]
    return Neighbours(masks[np.argsort(changed_bases(masks), kind="stable")], np.array(fewer, np.int32))


def error_splits(total: int) -> list[tuple[int, ...]]:
    """All descending tuples e with sum(e_i + 1) = total."""
    if total == 0:
        return [()]
    return [
        (first - 1, *rest)
        for first in range(total, 0, -1)
        for rest in error_splits(total - first)
        if not rest or rest[0] <= first - 1
    ]


def lay_outs(length: int, errors: tuple[int, ...], table_length: int) -> Iterator[list[Window]]:
    """All ways to lay windows out, for one split of the errors.

    Windows with errors come first and take any length up to K; those without share what is left evenly.
    """
    inexact = sum(e > 0 for e in errors)
    exact = len(errors) - inexact
    for lengths in product(range(1, min(length, table_length) + 1), repeat=inexact):
        left = length - sum(lengths)
        if left < exact:
            continue
        shares = [(left + i) // exact for i in range(exact)]
        ends = list(accumulate((*lengths, *shares), initial=0))
        yield [Window(offset, end - offset, e) for offset, end, e in zip(ends, ends[1:], errors, strict=False)]


def _cost(windows: list[Window], rows: int, table_length: int, costs: Costs) -> float:
    total = 0.0
    for window in windows:
        seen = min(window.length, table_length)
        bucket = rows / 4**seen
        each = costs.look_up if seen == table_length else costs.short_look_up
        if bucket > costs.narrow_above and window.length > table_length:
            each += costs.narrowing * log2(bucket) + costs.row * costs.narrow_above
        else:
            each += costs.row * bucket
        total += neighbours(seen, window.errors) * each
    return total


def choose_windows(length: int, max_mismatches: int, rows: int, table_length: int, costs: Costs) -> list[Window]:
    """The cheapest windows for k-mers of `length` bases in a text of `rows` positions."""
    options = (
        windows for errors in error_splits(max_mismatches + 1) for windows in lay_outs(length, errors, table_length)
    )
    return min(options, key=lambda windows: _cost(windows, rows, table_length, costs))


def seen_bases(window: Window, table_length: int) -> tuple[int, int]:
    """Bases of a window that are looked up, and those behind it that are looked up with them; at most K in all."""
    own = min(window.length, table_length)
    return own, min(window.ahead, table_length - own)


def spare_mismatches(windows: Sequence[Window], i: int, spent: tuple[int, int], max_mismatches: int) -> int:
    """Mismatches that a match which window i reports may have beside those of what is looked up, and those that every
    window before it must have, since it did not report the match.

    Parameters
    ----------
    spent : mismatches of what is looked up, in the window and ahead of it
    """
    owed = sum(before.errors + 1 for before in windows[:i])
    if windows[i].ahead:
        owed -= min(spent[1], windows[i - 1].errors + 1)
    return max_mismatches - sum(spent) - owed


def exact_bases(
    windows: Sequence[Window], i: int, spent: tuple[int, int], length: int, max_mismatches: int, table_length: int
) -> int:
    """Bases from window i on, at most 32, that a match has as what is looked up says, or else as the k-mer.

    Parameters
    ----------
    spent : mismatches of what is looked up, in the window and ahead of it
    length : bases of the k-mer
    """
    window = windows[i]
    seen = sum(seen_bases(window, table_length))
    exact = seen
    if sum(spent) == max_mismatches:
        exact = length - window.offset
    elif spare_mismatches(windows, i, spent, max_mismatches) == 0:
        # What is left belongs to the windows before; the nearest on the right ends what is sure.
        behind = [before.offset for before in windows[:i] if before.offset >= window.offset + window.length]
        exact = min(behind, default=length) - window.offset
    elif spent[0] == window.errors:
        exact = window.length
    return min(max(seen, exact), BASES_A_WORD)


def spent_in(patterns: np.ndarray, ahead: int) -> list[tuple[int, int]]:
    """Mismatches of each XOR mask, uint64[p], in the window and in the `ahead` bases that are looked up with it."""
    behind = np.uint64((1 << 2 * ahead) - 1)
    own, others = (changed_bases(part).tolist() for part in (patterns & ~behind, patterns & behind))
    return list(zip(own, others, strict=True))


def changed_bases(patterns: np.ndarray) -> np.ndarray:
    """Bases that each XOR mask changes: uint64[p] to uint8[p]."""
    return np.bitwise_count((patterns | patterns >> np.uint64(1)) & np.uint64(0x5555555555555555))


def _look_ups(windows: Sequence[Window], i: int, max_mismatches: int, table_length: int) -> np.ndarray:
    """XOR masks of the strings that are looked up for window i, ascending; see `neighbour_patterns`.

    With a mismatches in window i, and those that every window before it must have, since it did not report the match,
    the bases ahead may have what is left, and what the window that they lie in must have.
    """
    own, ahead = seen_bases(windows[i], table_length)
    patterns = neighbour_patterns(own, windows[i].errors)
    if ahead == 0:
        return patterns
    left = max_mismatches - sum(window.errors + 1 for window in windows[: i - 1])
    parts = [
        (mask << np.uint64(2 * ahead)) | neighbour_patterns(ahead, left - int(mismatches))
        for mask, mismatches in zip(patterns, changed_bases(patterns), strict=True)
    ]
    return np.sort(np.concatenate(parts))


def _first_word_mask(window: Window) -> int:
    begin, end = min(window.offset, 32), min(window.offset + window.length, 32)
    return ((1 << 2 * (end - begin)) - 1) << 2 * (32 - end)


def make_scheme(lengths: np.ndarray, max_mismatches: int, rows: int, table_length: int, costs: Costs) -> Scheme:
    """Choose the windows for every length in a set.

    Parameters
    ----------
    lengths : uint32[n], bases of the k-mers
    max_mismatches : int, 0 to MAX_MISMATCHES
    rows : int, length of the text
    table_length : int, K
    costs : Costs of the target
    """
    return _scheme_of(lengths_in(lengths), max_mismatches, rows, table_length, costs)


def lengths_in(lengths: np.ndarray) -> tuple[int, ...]:
    """The different lengths of a set, ascending; `lengths` is uint32[n], on the host or on a device."""
    present = {int(lengths.min()), int(lengths.max())} if len(lengths) else set()
    if len(present) > 1:
        present = set(np.flatnonzero(np.bincount(lengths)).tolist())
    return tuple(sorted(present))


@lru_cache(maxsize=64)
def _scheme_of(present: tuple[int, ...], max_mismatches: int, rows: int, table_length: int, costs: Costs) -> Scheme:
    """The scheme of a set in which these lengths are present; every batch of a file asks for the same one."""
    chosen = {k: choose_windows(k, max_mismatches, rows, table_length, costs) for k in present}
    return scheme_of(chosen, max_mismatches, table_length)


def scheme_of(chosen: Mapping[int, Sequence[Window]], max_mismatches: int, table_length: int) -> Scheme:
    """The scheme of these windows for k-mers of each length."""
    offset, length, errors = (np.zeros((MAX_LENGTH + 1, _MAX_WINDOWS), np.int64) for _ in range(3))
    mask = np.zeros((MAX_LENGTH + 1, _MAX_WINDOWS), np.uint64)
    pattern_first = np.zeros((MAX_LENGTH + 1, _MAX_WINDOWS + 1), np.int64)
    windows, look_ups = np.zeros(MAX_LENGTH + 1, np.int64), np.zeros(MAX_LENGTH + 1, np.int64)
    patterns: list[np.ndarray] = [np.empty(0, np.uint64)]
    described: list[np.ndarray] = [np.empty((0, 5), np.uint8)]
    for k, listed in chosen.items():
        pattern_first[k, 0] = sum(map(len, patterns))
        for i, window in enumerate(listed):
            offset[k, i], length[k, i], errors[k, i] = window[:3]
            mask[k, i] = _first_word_mask(window)
            patterns.append(_look_ups(listed, i, max_mismatches, table_length))
            own, ahead = seen_bases(window, table_length)
            spent = spent_in(patterns[-1], ahead)
            left = {
                each: (
                    spare_mismatches(listed, i, each, max_mismatches),
                    exact_bases(listed, i, each, k, max_mismatches, table_length),
                )
                for each in set(spent)
            }
            described.append(np.array([(i, window.offset, own + ahead, *left[each]) for each in spent], np.uint8))
            pattern_first[k, i + 1] = pattern_first[k, i] + len(patterns[-1])
            windows[k], look_ups[k] = i + 1, pattern_first[k, i + 1] - pattern_first[k, 0]
    window_of, offset_of, length_of, spare_of, exact_of = np.ascontiguousarray(np.concatenate(described).T)
    return Scheme(
        windows, offset, length, errors, mask, pattern_first, np.concatenate(patterns),
        window_of, offset_of, length_of, spare_of, exact_of, look_ups, max_mismatches, table_length,
    )  # fmt: skip


@scalar
def first_window(scheme, length, differ, window):
    """Whether a match of at most 32 bases is reported by the window that led to it.

    Parameters
    ----------
    differ : uint64, a bit for each mismatch of the k-mer, as from `mismatch_bits`
    window : int64, the first window with at most its own mismatches reports
    """
    for i in range(window):
        if popcount(differ & scheme.mask[length, i]) <= scheme.errors[length, i]:
            return False
    return popcount(differ & scheme.mask[length, window]) <= scheme.errors[length, window]


@scalar
def word_distance(scheme, length, window, differ):
    """The Hamming distance of a k-mer of at most 32 bases to where a window led, int64; -1 as for `accept_word`, which
    looks at segments, too."""
    distance = popcount(differ)
    if distance > int64(scheme.max_mismatches) or not first_window(scheme, length, differ, window):
        return int64(-1)
    return distance


@scalar
def accept_word(fast, scheme, length, position, window, differ):
    """Decide on one candidate for a k-mer of at most 32 bases.

    Parameters
    ----------
    position : int64, where the k-mer would begin in the text, from 0 on and in the text; may end outside
    window : int64, the number of the window that led here
    differ : uint64, a bit for each mismatch, as from `mismatch_bits`

    Returns
    -------
    int64, the Hamming distance, or -1: too far, across a segment's border, or another window reports it.
    """
    distance = word_distance(scheme, length, window, differ)
    return distance if inside_segment(fast.segments, position, length) else int64(-1)


@scalar
def words_distance(index, kmers, scheme, query, strand, position, window):
    """As `word_distance`, for a k-mer of any length in one orientation, at a position of the index's text."""
    length = int64(kmers.lengths[query])
    distance = int64(0)
    for w in range((length + int64(31)) >> int64(5)):
        distance += _window_mismatches(index, kmers, query, strand, position, int64(0), length, int64(w))
        if distance > scheme.max_mismatches:
            return int64(-1)
    for i in range(window + int64(1)):
        begin = scheme.offset[length, i]
        end = begin + scheme.length[length, i]
        found = int64(0)
        for w in range(begin >> int64(5), (end + int64(31)) >> int64(5)):
            found += _window_mismatches(index, kmers, query, strand, position, begin, end, int64(w))
        if (found <= scheme.errors[length, i]) != (i == window):
            return int64(-1)
    return distance


@scalar
def accept_words(fast, kmers, scheme, query, strand, position, window):
    """As `accept_word`, for a k-mer of any length in one orientation."""
    distance = words_distance(fast, kmers, scheme, query, strand, position, window)
    return distance if inside_segment(fast.segments, position, int64(kmers.lengths[query])) else int64(-1)


@scalar
def _window_mismatches(fast, kmers, query, strand, position, begin, end, word):
    """Mismatches in those bases of [begin, end) that lie in word `word` of the k-mer."""
    mask = prefix_mask(end - int64(32) * word) & ~prefix_mask(begin - int64(32) * word)
    text = fetch_word(fast.text, position + int64(32) * word)
    differ = mismatch_bits(text, oriented_word(kmers, query, strand, word))
    return popcount((differ | oriented_marks(kmers, query, strand, word)) & mask)
