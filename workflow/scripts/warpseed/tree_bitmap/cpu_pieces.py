"""True Levenshtein distances in a stream on the CPU by pieces of k-mers.

A k-mer is cut into one piece more than edits are allowed. What is within these edits of it has one of the pieces as it
is: no edit falls into it. So a table for each piece has the k-mers by that piece, and at each place of the stream the
k-mers are *candidates* that have one of their pieces there. Of a candidate, what is left on both sides of the piece is
read along the stream, away from it, by an automaton of bits: a *state* says how many of these bases are read, and the
states of each number of edits are a word, with a pair of bits for a state. Most candidates have none left after a few
bases of the stream, so those that have a piece in common read these few side by side, in vector code.

One of the pieces that are as they are has more: with the piece behind it there is one edit at most, with the two behind
it there are two, and so on to the last. (Else pieces could be taken together, from the first one on, so that in each
lot there are as many edits as pieces.) So behind a piece *gates* hold back states that come too early for their edits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import inlined, int64, scalar, uint8, uint64
from warpseed.compute.intrinsics import prefetch
from warpseed.compute.machine import available_memory
from warpseed.errors import MemoryLimitError
from warpseed.sequences.packed import BASES_A_WORD
from warpseed.tree_bitmap.edits import TOO_FAR
from warpseed.tree_bitmap.stream import NO_BASE

__all__ = ["Pieces", "Room", "candidates_at", "find_by_pieces", "new_room", "pieces_of"]

PLACES = 256
"""Places that are looked up together."""
_TOGETHER = 64
"""Candidates that are read side by side."""
_STEPS = 5
"""Bases of the stream that they read so."""
_LOW = np.uint64(0x5555_5555_5555_5555)
"""The low bit of each pair."""
_MIDDLE = 3
"""Which of the eight is that of an end as many bases away as the k-mer's own."""


class Pieces(NamedTuple):
    """K-mers by their pieces."""

    cuts: np.ndarray
    """int64[pieces, 4], of each piece its first base, how many bases from there on are looked up, where its borders
    begin, and the first base behind it"""
    borders: np.ndarray
    """uint32[…] or int64[…], of each piece where the k-mers with each of its codes begin, and the last end; a code has
    the first base in its lowest bits"""
    rests: np.ndarray
    """uint64[pieces·d], of k-mers without their piece: what is left before it, the base next to it in the lowest bits,
    and on top of that what is left behind it, likewise"""
    k: int
    max_edits: int


class Room(NamedTuple):
    """What is known of places that are looked up together."""

    behind: np.ndarray
    """uint64[PLACES], the 32 bases before a place, the nearest in the lowest bits"""
    ahead: np.ndarray
    """uint64[PLACES], the 32 bases from a place on, likewise"""
    before: np.ndarray
    """int64[PLACES], bases before a place since what is no base"""
    after: np.ndarray
    """int64[PLACES], bases from a place on until then"""
    left: np.ndarray
    """uint64[_TOGETHER], states that are left of candidates"""


def new_room() -> Room:
    """Room for PLACES."""
    words, counts = np.zeros((2, PLACES), np.uint64), np.zeros((2, PLACES), np.int64)
    return Room(words[0], words[1], counts[0], counts[1], np.zeros(_TOGETHER, np.uint64))


def _sizes_of(kmers: int, k: int, max_edits: int) -> list[int]:
    """The bases of each piece: shorter than it could be, where its table would be large for so few k-mers."""
    count = max_edits + 1
    enough = max(4, (max(1, kmers) - 1).bit_length() // 2 + 2)
    return [min((piece + 1) * k // count - piece * k // count, enough) for piece in range(count)]


def candidates_at(kmers: int, k: int, max_edits: int) -> float:
    """How many candidates a place of a random stream has."""
    return sum(kmers / 4**size for size in _sizes_of(kmers, k, max_edits))


def pieces_of(kmers: np.ndarray, k: int, max_edits: int) -> Pieces:
    """K-mers by their pieces.

    Parameters
    ----------
    kmers : uint64[d], codes
    k : bases of each; k + max_edits <= MOST_LENGTH
    max_edits : 0 to MOST_EDITS, below k

    Raises
    ------
    MemoryLimitError : the tables do not fit the memory that is free
    """
    count, sizes = max_edits + 1, _sizes_of(len(kmers), k, max_edits)
    rows = np.cumsum([0, *(4**size + 1 for size in sizes)])
    kind = np.uint32 if count * len(kmers) < 1 << 32 else np.int64
    needed, free = 8 * count * len(kmers) + np.dtype(kind).itemsize * int(rows[-1]), available_memory()
    if needed > free:
        raise MemoryLimitError(
            f"{len(kmers):,} {k}-mers by {count} pieces take {needed / 1e9:.1f} GB, but {free / 1e9:.1f} GB are free; "
            "take fewer k-mers."
        )
    starts = [piece * k // count for piece in range(count + 1)]
    cuts = np.array([(starts[piece], sizes[piece], rows[piece], starts[piece + 1]) for piece in range(count)], np.int64)
    pieces = Pieces(cuts, np.zeros(int(rows[-1]), kind), np.empty(count * len(kmers), np.uint64), k, max_edits)
    for piece in range(count):
        borders = pieces.borders[rows[piece] : rows[piece + 1]]
        _count_codes(kmers, k, cuts[piece, 0], cuts[piece, 1], borders)
        borders[1:] = np.cumsum(borders[:-1])
        borders[0] = 0
        borders += kind(piece * len(kmers))
        _put_rests(kmers, k, cuts[piece, 0], cuts[piece, 1], borders, pieces.rests)
        # Each border has moved on to where the next code's k-mers begin.
        borders[1:] = borders[:-1].copy()
        borders[0] = piece * len(kmers)
    return pieces


@scalar
def _reversed(code, length):
    """A code with its bases in the other order."""
    turned = uint64(0)
    for _ in range(length):
        turned = (turned << uint64(2)) | (code & uint64(3))
        code >>= uint64(2)
    return turned


@scalar
def _ones(bases):
    """Ones over so many bases, at most 31."""
    return (uint64(1) << uint64(int64(2) * bases)) - uint64(1)


@scalar
def _count_codes(kmers, k, first, size, counts):
    """Count the k-mers with each code of a piece."""
    for i in range(kmers.shape[0]):
        counts[(_reversed(kmers[i], k) >> uint64(int64(2) * first)) & _ones(size)] += 1


@scalar
def _put_rests(kmers, k, first, size, next_of, rests):
    """Put what is left of each k-mer without a piece behind those of the same code, ``next_of[code]`` on."""
    for i in range(kmers.shape[0]):
        turned = _reversed(kmers[i], k) >> uint64(int64(2) * first)
        code = turned & _ones(size)
        before = kmers[i] >> uint64(int64(2) * (int64(k) - first))
        behind = turned >> uint64(int64(2) * size)
        rests[int64(next_of[code])] = before | (behind << uint64(int64(2) * first))
        next_of[code] += 1


@scalar
def _read_places(codes, place, count, room):
    """What is known of `count` places from `place` on."""
    window, run = uint64(0), int64(0)
    for i in range(max(int64(0), place - int64(BASES_A_WORD)), place + count):
        if i >= place:
            room.behind[i - place], room.before[i - place] = window, run
        code = uint64(codes[i])
        run = run + int64(1) if code < uint64(NO_BASE) else int64(0)
        window = (window << uint64(2)) | (code & uint64(3))
    window, run = uint64(0), int64(0)
    last = min(int64(codes.shape[0]), place + count + int64(BASES_A_WORD)) - int64(1)
    for i in range(last, place - int64(1), int64(-1)):
        code = uint64(codes[i])
        run = run + int64(1) if code < uint64(NO_BASE) else int64(0)
        window = (window << uint64(2)) | (code & uint64(3))
        if i < place + count:
            room.ahead[i - place], room.after[i - place] = window, run


@scalar
def _gate_of(cuts, piece, edits):
    """The states behind a piece to which so many edits may lead."""
    if edits <= int64(0):
        return ~uint64(0)
    last = min(piece + edits, cuts.shape[0]) - int64(1)
    return ~_ones(cuts[last, 3] - cuts[piece, 0] - cuts[piece, 1])


@scalar
def _gates_of(cuts, piece, most):
    """The states behind a piece to which `most` edits may lead, one less, and two less."""
    return _gate_of(cuts, piece, most), _gate_of(cuts, piece, most - int64(1)), _gate_of(cuts, piece, most - int64(2))


@scalar
def _no_gates():
    """All states."""
    return ~uint64(0), ~uint64(0), ~uint64(0)


@scalar
def _begin(most, gates):
    """The states before a base of the stream is read: with at most `most` edits, one less, two less and three less.

    Each has those behind it; what is left of a k-mer may be skipped, a base an edit.
    """
    start = uint64(0x55)
    fewest = start & _ones(max(most - int64(2), int64(0)))
    fewer = (start & _ones(max(most - int64(1), int64(0))) & gates[2]) | fewest
    few = (start & _ones(most) & gates[1]) | fewer
    return (start & _ones(most + int64(1)) & gates[0]) | few, few, fewer, fewest


@inlined
def _step(states, rest, text, gates):
    """The states when the base in the lowest bits of `text` is read.

    It is the next one of `rest`; or it takes an edit: it is none of the k-mer's, or stands for the next one, which may
    also be skipped behind it.
    """
    all, few, fewer, fewest = states
    other = rest ^ ((text & uint64(3)) * uint64(_LOW))
    same = ~(other | (other >> uint64(1))) & uint64(_LOW)
    new_fewest = (fewest & same) << uint64(2)
    new_fewer = (((((fewer & same) | fewest | new_fewest) << uint64(2)) | fewest) & gates[2]) | new_fewest
    new_few = (((((few & same) | fewer | new_fewer) << uint64(2)) | fewer) & gates[1]) | new_fewer
    return (((((all & same) | few | new_few) << uint64(2)) | few) & gates[0]) | new_few, new_few, new_fewer, new_fewest


@scalar
def _sift(rests, candidates, shift, text, most, gates, left):
    """What states some candidates have when _STEPS bases of the stream are read.

    Parameters
    ----------
    candidates : (first, count), of `rests`, of which what is to be read begins at the bit `shift`
    text, most, gates : as for `_extend`
    left : uint64[count], filled
    """
    begin = _begin(most, gates)
    first, count = candidates
    for i in range(count):
        rest = rests[uint64(first + i)] >> uint64(shift)
        states = begin
        for step in range(_STEPS):
            states = _step(states, rest, text >> uint64(2 * step), gates)
        left[uint64(i)] = states[0]


@scalar
def _extend(rest, bases, text, there, most, gates):
    """What it costs to read what is left of a k-mer along the stream, away from its piece.

    Parameters
    ----------
    rest : uint64, what is left, of which `bases` matter; the base next to the piece is in the lowest bits
    text : uint64, the bases of the stream there, likewise; there are `there` of them
    most : edits that may be made, 0 to 3
    gates : states to which `most` edits may lead, one less, and two less

    Returns
    -------
    (least, costs) : the least edits, TOO_FAR beyond `most`; and eight bits, from the lowest on, for each end: the least
        edits if 3 bases less are read of the stream than are left, 2 less, and so on
    """
    states = _begin(most, gates)
    end = uint64(1) << uint64(int64(2) * bases)
    inside = (end << uint64(1)) - uint64(1)
    costs, least = ~uint64(0), int64(TOO_FAR)  # that is eight times TOO_FAR
    stop = min(there, bases + most)
    read = int64(0)
    while True:
        if states[0] & end:
            cost = most
            cost -= int64((states[1] & end) != uint64(0))
            cost -= int64((states[2] & end) != uint64(0))
            cost -= int64((states[3] & end) != uint64(0))
            least = min(least, cost)
            shift = uint64(int64(8) * (read - bases + int64(_MIDDLE)))
            costs = (costs & ~(uint64(0xFF) << shift)) | (uint64(cost) << shift)
        if read == stop or (states[0] & inside) == uint64(0):
            return least, costs
        states = _step(states, rest, text, gates)
        text >>= uint64(2)
        read += int64(1)


@scalar
def _edits_of_use(distances, span, end, max_edits):
    """Edits below which a candidate makes some distance less, if its own end is the place `end`; -1 for none."""
    most = int64(-1)
    for place in range(max(span[0], end - max_edits), min(span[1], end + max_edits + int64(1))):
        edits = min(int64(distances[place]), max_edits + int64(1)) - int64(1)
        # An end so many bases away takes as many edits.
        if edits >= abs(place - end):
            most = max(most, edits)
    return most


@scalar
def _take_costs(costs, cost, span, end, max_edits, distances):
    """Lower the distances around a candidate's own end to what its ends cost; returns whether any was."""
    lowered = False
    for place in range(max(span[0], end - max_edits), min(span[1], end + max_edits + int64(1))):
        edits = cost + int64((costs >> uint64(int64(8) * (place - end + int64(_MIDDLE)))) & uint64(0xFF))
        if edits <= max_edits and edits < int64(distances[place]):
            distances[place] = uint8(edits)
            lowered = True
    return lowered


@scalar
def _try_candidates(pieces, piece, borders, place, known, span, distances, left):
    """Try the k-mers that have a piece at a place.

    Parameters
    ----------
    borders : (first, last), where they are in ``pieces.rests``
    known : (behind, ahead, before, after), of the place as in Room
    span : the places [begin, end) whose distances are asked for
    left : as in Room
    """
    behind, ahead, before, after = known
    first, size = pieces.cuts[piece, 0], pieces.cuts[piece, 1]
    last = int64(pieces.k) - first - size
    ahead >>= uint64(int64(2) * size)
    after -= size
    end = place + int64(pieces.k) - first - int64(1)
    max_edits = int64(pieces.max_edits)
    most = _edits_of_use(distances, span, end, max_edits)
    shift = uint64(int64(2) * first)
    # The longer side is read first: most candidates end there.
    goes_ahead = last >= first
    bases, there = (last, after) if goes_ahead else (first, before)
    for begin in range(borders[0], borders[1], int64(_TOGETHER)):
        if most < int64(0):
            return
        count = min(int64(_TOGETHER), borders[1] - begin)
        gates = _gates_of(pieces.cuts, piece, most)
        # None is at its end before so many bases are read.
        sifted = bases - most >= int64(_STEPS) and there >= int64(_STEPS)
        if sifted and goes_ahead:
            _sift(pieces.rests, (begin, count), shift, ahead, most, gates, left)
        elif sifted:
            _sift(pieces.rests, (begin, count), uint64(0), behind, most, _no_gates(), left)
        for i in range(count):
            if most < int64(0):
                return  # this candidate and others make no distance less
            if sifted and (left[uint64(i)] & _ones(bases + int64(1))) == uint64(0):
                continue
            rest = pieces.rests[begin + i]
            if goes_ahead:
                least, costs = _extend(rest >> shift, last, ahead, after, most, gates)
                if least > most:
                    continue
                cost, _ = _extend(rest, first, behind, before, most - least, _no_gates())
            else:
                cost, costs = _extend(rest, first, behind, before, most, _no_gates())
                if cost > most:
                    continue
                rest_gates = _gates_of(pieces.cuts, piece, most - cost)
                _, costs = _extend(rest >> shift, last, ahead, after, most - cost, rest_gates)
            if _take_costs(costs, cost, span, end, max_edits, distances):
                most = _edits_of_use(distances, span, end, max_edits)
                gates = _gates_of(pieces.cuts, piece, most)


@scalar
def find_by_pieces(codes, pieces, span, room, distances):
    """The distances at the places [begin, end) of a stream.

    Parameters
    ----------
    codes : uint8[n]
    span : (begin, end)
    room : Room
    distances : uint8[n], filled with TOO_FAR there
    """
    reach = int64(pieces.k) + int64(pieces.max_edits)
    place = max(int64(0), span[0] - reach)
    end = min(int64(codes.shape[0]), span[1] + int64(pieces.max_edits))
    count_of_pieces = pieces.cuts.shape[0]
    while place < end:
        count = min(int64(PLACES), end - place)
        _read_places(codes, place, count, room)
        for piece in range(count_of_pieces):
            size, row = pieces.cuts[piece, 1], pieces.cuts[piece, 2]
            for i in range(count):
                prefetch(pieces.borders, row + int64(room.ahead[i] & _ones(size)))
            for i in range(count):
                code = row + int64(room.ahead[i] & _ones(size))
                prefetch(pieces.rests, int64(pieces.borders[code]))
            for i in range(count):
                code = row + int64(room.ahead[i] & _ones(size))
                first, last = int64(pieces.borders[code]), int64(pieces.borders[code + int64(1)])
                if first < last and room.after[i] >= size:
                    known = (room.behind[i], room.ahead[i], room.before[i], room.after[i])
                    _try_candidates(pieces, int64(piece), (first, last), place + i, known, span, distances, room.left)
        place += count
