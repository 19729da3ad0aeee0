"""The fast tier's loops on the CPU: what each place of a stream is, by bits, by sets in parts, or by one set.

Bits are for short k-mers, one for each that there can be. Longer ones are dealt out to *parts* by their *minimizer*,
the m-mer of lowest rank in them: k-mers beside each other mostly share theirs, so a part comes as *runs* of places. Its
set stays in the second-level cache while all of its runs are worked on, one part after the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.bits import fetch_word
from warpseed.compute.compiled import int64, scalar, uint8, uint32, uint64
from warpseed.compute.intrinsics import prefetch
from warpseed.sequences.packed import BASES_A_WORD
from warpseed.tree_bitmap.fast import (
    add_kmers,
    bit_of,
    clear_set,
    find_slot,
    keep_kmer,
    line_of,
    may_hold,
    note_kmer,
    tell_counts,
)
from warpseed.tree_bitmap.stream import NEW, SEEN
from warpseed.tree_bitmap.windows import BLOCK, kmers_of, known_of, rank_of_kmer, ranks_of, read_block, word_of

__all__ = [
    "LENGTH_BITS", "NO_PART", "Cut", "Grouped", "Runs", "Said", "Tally", "add_bits", "add_tally", "answer_by_bits",
    "answer_by_set", "answer_parts", "answer_runs", "count_new", "count_places", "cut_range", "gather_new",
    "group_runs", "part_of_kmers", "seen_by_bits", "slots_for",
]  # fmt: skip

LENGTH_BITS = 12
"""Of a run's word; a run ends with its block."""
_LENGTH = np.uint64((1 << LENGTH_BITS) - 1)
NO_PART = np.uint16(0xFFFF)
"""Said of places where no k-mer begins."""
_PLACES_AHEAD, _RUNS_AHEAD = 32, 16
"""How far ahead memory is asked for."""
_LEAST_SLOTS = 64
_MIX = np.uint32(0x85EBCA6B)


class Cut(NamedTuple):
    """How k-mers are dealt out to parts."""

    k: int
    m: int
    """bases of a minimizer"""
    bits: int
    """of the number of a part, 0 to 14"""


class Runs(NamedTuple):
    """The runs of a range of places, in order."""

    places: np.ndarray
    """uint32[], where each begins"""
    parts: np.ndarray
    """uint16[], its part, or NO_PART"""
    runs: np.ndarray
    """int64[parts], of each part"""
    kmers: np.ndarray
    """int64[parts], places of each part"""


class Grouped(NamedTuple):
    """The runs of a stream, part by part, in order within a part, and the k-mers that were known before."""

    words: np.ndarray
    """uint64[], the stream, 32 bases a word, first base on top"""
    runs: np.ndarray
    """uint64[], place << LENGTH_BITS | places"""
    borders: np.ndarray
    """int64[parts + 1], where the runs of each part begin"""
    kmers: np.ndarray
    """int64[parts], places of each part"""
    known: np.ndarray
    """uint64[], distinct k-mers"""
    known_borders: np.ndarray
    """int64[parts + 1], where those of each part begin"""


class Said(NamedTuple):
    """What is said of the places of a block."""

    answers: np.ndarray
    """uint8[places]"""
    first_counts: np.ndarray
    """uint32[places], how often the k-mers come that are NEW, else 0; uint32[0] where nobody counts"""
    known_counts: np.ndarray
    """int64[known], how often those come that were known before; int64[0] where nobody counts"""


class Tally(NamedTuple):
    """How often each k-mer comes that there can be, and a list of those that have come, by their first places."""

    counts: np.ndarray
    """int64[4^k]"""
    kmers: np.ndarray
    """uint64[…]"""
    places: np.ndarray
    """int64[…], their first places"""


# ---- bits: one for each k-mer


@scalar
def add_bits(bits, kmers):
    """Set the bits of k-mers."""
    for i in range(kmers.shape[0]):
        bits[kmers[i] >> uint64(6)] |= uint64(1) << (kmers[i] & uint64(63))


@scalar
def answer_by_bits(codes, places, k, bits, grows, windows, answers):
    """What each of the places [begin, end) is; where the dictionary grows, bits are set for what is there."""
    place, end = places
    while place < end:
        count = min(int64(BLOCK), end - place)
        kmers_of(windows, k, count, read_block(codes, place, count, windows))
        for i in range(count):
            prefetch(bits, int64(windows.kmers[uint64(i) + uint64(_PLACES_AHEAD)] >> uint64(6)))
            kmer, known = windows.kmers[uint64(i)], uint64(windows.known[uint64(i)])
            word, bit = kmer >> uint64(6), kmer & uint64(63)
            held = bits[word]
            if grows:
                bits[word] = held | (known << bit)
            answers[uint64(place + i)] = uint8(known + (known & (held >> bit)))
        place += count


@scalar
def seen_by_bits(codes, places, k, bits, windows, answers):
    """Of the places [begin, end) that are NEW make those SEEN whose bits are set."""
    place, end = places
    while place < end:
        count = min(int64(BLOCK), end - place)
        new = uint8(0)
        for i in range(count):
            new |= uint8(answers[uint64(place + i)] == NEW)
        if new:
            kmers_of(windows, k, count, read_block(codes, place, count, windows))
        for i in range(count if new else int64(0)):
            prefetch(bits, int64(windows.kmers[uint64(i) + uint64(_PLACES_AHEAD)] >> uint64(6)))
            kmer = windows.kmers[uint64(i)]
            if answers[uint64(place + i)] == NEW and (bits[kmer >> uint64(6)] >> (kmer & uint64(63))) & uint64(1):
                answers[uint64(place + i)] = SEEN
        place += count


# ---- counts: one for each k-mer


@scalar
def count_places(codes, places, k, windows, first, tally, used):
    """Count the k-mers of the places [begin, end), of which `tally`, a Tally, had `used` before.

    Parameters
    ----------
    first : what the tally's places are counted from, less than those of `codes`

    Returns
    -------
    how many k-mers it has then
    """
    place, end = places
    while place < end:
        count = min(int64(BLOCK), end - place)
        kmers_of(windows, k, count, read_block(codes, place, count, windows))
        for i in range(count):
            prefetch(tally.counts, int64(windows.kmers[uint64(i) + uint64(_PLACES_AHEAD)]))
            kmer, known = windows.kmers[uint64(i)], windows.known[uint64(i)]
            held = tally.counts[kmer]
            tally.counts[kmer] = held + int64(known)
            if held == int64(0) and known:
                tally.kmers[uint64(used)] = kmer
                tally.places[uint64(used)] = first + place + i
                used += int64(1)
        place += count
    return used


@scalar
def add_tally(part, part_used, tally, used):
    """Add what was counted of a range to what was counted before it, and leave nothing; returns how many k-mers it has
    then."""
    for i in range(part_used):
        prefetch(tally.counts, int64(part.kmers[uint64(min(i + _PLACES_AHEAD, part_used - 1))]))
        kmer = part.kmers[uint64(i)]
        if tally.counts[kmer] == int64(0):
            tally.kmers[uint64(used)] = kmer
            tally.places[uint64(used)] = part.places[uint64(i)]
            used += int64(1)
        tally.counts[kmer] += part.counts[kmer]
        part.counts[kmer] = int64(0)
    return used


# ---- one set, which does not grow


@scalar
def answer_by_set(codes, places, k, kmers, windows, candidates, answers):
    """What each of the places [begin, end) is: SEEN where the set has its k-mer.

    Parameters
    ----------
    candidates : uint32[BLOCK + 1], room for the places whose bit is set
    """
    place, end = places
    slots = kmers.slots.shape[0]
    while place < end:
        count = min(int64(BLOCK), end - place)
        kmers_of(windows, k, count, read_block(codes, place, count, windows))
        for i in range(count):
            windows.hashes[uint64(i)] = uint32(bit_of(kmers, windows.kmers[uint64(i)]))
        for i in range(count):
            answers[uint64(place + i)] = windows.known[uint64(i)]
        found = uint64(0)
        for i in range(count):
            candidates[found] = i
            found += uint64(windows.known[uint64(i)]) & may_hold(kmers, uint64(windows.hashes[uint64(i)]))
        for j in range(found):
            prefetch(kmers.slots, int64(line_of(windows.kmers[uint64(candidates[uint64(j)])], slots)))
        for j in range(found):
            i = uint64(candidates[uint64(j)])
            _, is_there = find_slot(kmers, slots, windows.kmers[i])
            answers[uint64(place) + i] = uint8(1) + uint8(is_there)
        place += count


# ---- sets in parts


@scalar
def _part_of(rank, cut):
    """The part of the k-mers whose minimizer has this rank: ranks are small, parts are alike."""
    return int64(uint64(uint32(rank * _MIX)) >> uint64(32 - cut.bits))


@scalar
def part_of_kmers(kmers, cut, parts):
    """The part of each k-mer."""
    for i in range(kmers.shape[0]):
        parts[uint64(i)] = _part_of(rank_of_kmer(kmers[uint64(i)], cut.k, cut.m), cut)


@scalar
def _begin_runs(windows, row, cut, place, count, runs, used):
    """Append the runs of a block to those before; returns how many there are."""
    ranks, parts, begins = windows.ranks[row], windows.parts, windows.begins
    for i in range(count):
        parts[uint64(i)] = _part_of(ranks[uint64(i)], cut) if windows.known[uint64(i)] else int64(NO_PART)
    begins[0] = uint8(1)
    for i in range(int64(1), count):
        begins[uint64(i)] = uint8(parts[uint64(i)] != parts[uint64(i) - uint64(1)])
    for i in range(count):
        runs.places[uint64(used)] = uint32(place + i)
        runs.parts[uint64(used)] = parts[uint64(i)]
        used += int64(begins[uint64(i)])
    return used


@scalar
def cut_range(codes, places, cut, windows, words, runs):
    """The runs of the places [begin, end), of which the first is a multiple of BLOCK; their bases go to `words`.

    Returns
    -------
    the number of runs; one more has room, and is written there: the end
    """
    place, end = places
    used = int64(0)
    while place < end:
        count = min(int64(BLOCK), end - place)
        all_known = read_block(codes, place, count, windows)
        known_of(windows, cut.k, count, all_known)
        row = ranks_of(windows, cut.k, cut.m, count)
        used = _begin_runs(windows, row, cut, place, count, runs, used)
        for i in range(int64(0), count + int64(BASES_A_WORD), int64(BASES_A_WORD)):
            words[uint64(place + i) >> uint64(5)] = word_of(windows, i)
        place += count
    runs.places[uint64(used)] = uint32(end)
    for i in range(used):
        part = uint64(runs.parts[uint64(i)])
        if part != uint64(NO_PART):
            runs.runs[part] += 1
            runs.kmers[part] += int64(runs.places[uint64(i) + uint64(1)]) - int64(runs.places[uint64(i)])
    return used


@scalar
def group_runs(runs, used, next_of, grouped):
    """Put the runs of a range where those of their parts go: ``next_of[part]`` on, which moves on."""
    for i in range(used):
        part = uint64(runs.parts[uint64(i)])
        if part != uint64(NO_PART):
            place = uint64(runs.places[uint64(i)])
            length = uint64(runs.places[uint64(i) + uint64(1)]) - place
            grouped[uint64(next_of[part])] = (place << uint64(LENGTH_BITS)) | length
            next_of[part] += 1


@scalar
def slots_for(kmers):
    """Slots of a set of so many k-mers, which fill at most two of three: a power of two."""
    slots = int64(_LEAST_SLOTS)
    while int64(2) * slots < int64(3) * kmers:
        slots *= int64(2)
    return slots


@scalar
def answer_runs(grouped, span, k, kmers, room, answers):
    """What the places of the runs [begin, end) are; their k-mers go to the set.

    Parameters
    ----------
    room : (slots, used, most), of the set: how many it has, how many are used, and may be

    Returns
    -------
    (run, used) : the runs before `run` are done; it is the end, or one that might have no room
    """
    begin, end = span
    slots, used, most = room
    down = uint64(64 - 2 * k)
    counting = kmers.notes.shape[0] > 0
    for r in range(begin, end):
        ahead = int64(grouped.runs[uint64(min(r + _RUNS_AHEAD, end - 1))] >> uint64(LENGTH_BITS))
        prefetch(grouped.words, ahead >> int64(5))
        prefetch(answers, ahead)
        run = grouped.runs[uint64(r)]
        place = int64(run >> uint64(LENGTH_BITS))
        length = int64(run & _LENGTH)
        if used + length > most:
            return int64(r), used
        for i in range(place, place + length):
            slot, was_there = keep_kmer(kmers, slots, fetch_word(grouped.words, i) >> down)
            if counting:
                note_kmer(kmers, slot, was_there, i, int64(1))
            answers[uint64(i)] = uint8(1) + uint8(was_there)
            used += int64(not was_there)
    return int64(end), used


@scalar
def answer_parts(grouped, parts, k, kmers, said):
    """What the places of the parts [first, last) are, in one set after the other; what is `said`, a Said.

    Returns
    -------
    the part that it stopped before: the last, or one that might have no room in `kmers`
    """
    first, last = parts
    for part in range(first, last):
        begin, end = grouped.borders[part], grouped.borders[part + 1]
        if begin == end:
            continue
        known, known_end = grouped.known_borders[part], grouped.known_borders[part + 1]
        slots = slots_for(grouped.kmers[part] + known_end - known)
        if slots > kmers.slots.shape[0]:
            return int64(part)
        clear_set(kmers, slots)
        # Owners of those that are known are numbered in each part, so that 32 bits hold them.
        add_kmers(kmers, slots, grouped.known, known, known_end, said.first_counts.shape[0] - known)
        room = (slots, int64(0), slots)
        answer_runs(grouped, (begin, end), k, kmers, room, said.answers)
        if kmers.notes.shape[0]:
            tell_counts(kmers, slots, said.first_counts, said.known_counts[known:known_end])
    return int64(last)


@scalar
def count_new(grouped, parts, answers, counts):
    """How many places of each of the parts [first, last) are NEW."""
    first, last = parts
    for part in range(first, last):
        for r in range(grouped.borders[part], grouped.borders[part + 1]):
            place = int64(grouped.runs[r] >> uint64(LENGTH_BITS))
            for i in range(place, place + int64(grouped.runs[r] & _LENGTH)):
                counts[part] += int64(answers[uint64(i)] == NEW)


@scalar
def gather_new(grouped, parts, k, answers, borders, out, origins):
    """Of each of the parts [first, last) the k-mers that were known, and behind them those that are NEW.

    Parameters
    ----------
    borders : int64[parts + 1], where those of each part go in `out`
    origins : int64[…], filled with the place of each k-mer that is NEW, and of one that was known with -1 - its number;
        int64[0] where nobody asks
    """
    down = uint64(64 - 2 * k)
    first, last = parts
    used = uint64(borders[first])
    for part in range(first, last):
        for i in range(grouped.known_borders[part], grouped.known_borders[part + 1]):
            out[used] = grouped.known[i]
            if origins.shape[0]:
                origins[used] = int64(-1) - int64(i)
            used += uint64(1)
        for r in range(grouped.borders[part], grouped.borders[part + 1]):
            place = int64(grouped.runs[r] >> uint64(LENGTH_BITS))
            for i in range(place, place + int64(grouped.runs[r] & _LENGTH)):
                if answers[uint64(i)] == NEW:
                    out[used] = fetch_word(grouped.words, i) >> down
                    if origins.shape[0]:
                        origins[used] = i
                    used += uint64(1)
