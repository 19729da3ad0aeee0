"""Levenshtein distance in a stream: the fast tier's true distances, for both targets.

A string that is within D edits of a k-mer is within d edits of one that is within D - d edits of it. So all strings
near the dictionary's k-mers, its *neighbourhood*, are kept in a set with their distances, and of the strings that end
at a place of the stream those few lengths that can matter are looked up, and, where D is more than the set's radius,
their own neighbours too. The functions here are scalar, and run on the CPU and in kernels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.bits import first_slot
from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.errors import InputError, check_number
from warpseed.tree_bitmap.slots import EMPTY, next_slot

__all__ = [
    "MOST_EDITS",
    "MOST_LENGTH",
    "TOO_FAR",
    "Neighbourhood",
    "check_edits",
    "check_edits_of",
    "code_below",
    "key_of",
    "length_of",
    "level_of",
    "longest_window",
    "neighbour",
    "neighbours",
    "place_distance",
    "radius_of",
    "slot_of",
    "slots_for",
    "strings_near",
]

TOO_FAR = 255
"""Said of a place at which nothing ends that is near a k-mer."""
MOST_EDITS = 3
MOST_LENGTH = 30
"""Bases of a k-mer and its edits, together: a key has two bits beside those of its bases."""
_LOAD = 0.6


class Neighbourhood(NamedTuple):
    """A set of strings with their distances from a dictionary's k-mers."""

    slots: np.ndarray
    """uint64[…], EMPTY or a string's key above two bits with its distance"""
    k: int
    radius: int
    """the greatest distance that is kept"""
    max_edits: int
    """the greatest distance that is asked for: at most one more than the radius"""


def check_edits(max_edits: Any, grows: bool, tier: str) -> int:
    """Edits that can be asked for, as an int.

    Raises
    ------
    InputError : they are out of their range, or asked of a dictionary that grows, or of the paper tier
    """
    max_edits = check_number("max_edits", max_edits, 0, MOST_EDITS)
    if max_edits and tier == "paper":
        raise InputError(
            "max_edits is given, but the paper tier's automaton knows deletions at a k-mer's end alone, and so gives "
            "other distances; choose the fast tier."
        )
    if max_edits and grows:
        raise InputError(
            "max_edits asks for a dictionary that does not grow ('--fixed', grows=False): with the stream's k-mers in "
            "it, something within one edit of the k-mer one base before would end at every place."
        )
    return max_edits


def check_edits_of(k: int, max_edits: int) -> None:
    """Check that k-mers can be so far away.

    Raises
    ------
    InputError : with their edits they are too long, or nothing would be left of them
    """
    if max_edits and k + max_edits > MOST_LENGTH:
        raise InputError(
            f"k is {k} and max_edits {max_edits}, but together they are {MOST_LENGTH} at most; take shorter k-mers, or "
            "fewer edits."
        )
    if max_edits >= k:
        raise InputError(f"max_edits is {max_edits}, but {k}-mers are all edits then; fewer than {k} were expected.")


def radius_of(max_edits: int) -> int:
    """The radius of a neighbourhood in which distances up to `max_edits` are looked up."""
    return (max_edits + 1) // 2


def strings_near(kmers: int, k: int, radius: int) -> tuple[int, int]:
    """How many strings are near so many k-mers at most, and how many of their lengths there are at all."""
    strings, most = kmers, kmers
    for distance in range(1, radius + 1):
        # Substitutions, deletions, and insertions that are not the same as another.
        strings *= 7 * (k + distance - 1) + 4
        most += strings
    everything = sum(4**length for length in range(max(0, k - radius), k + radius + 1))
    return min(most, everything), everything


def slots_for(kmers: int, k: int, radius: int) -> int:
    """Slots that suffice for the neighbourhood of so many k-mers."""
    return int(strings_near(kmers, k, radius)[0] / _LOAD) + 8


@scalar
def key_of(code, length):
    """A string as a number: its code, 2 bits a base with the first on top, behind a one."""
    return (uint64(1) << uint64(int64(2) * length)) | code


@scalar
def length_of(key):
    """Bases of a string by its key."""
    length = int64(0)
    while key >> uint64(int64(2) * length) != uint64(1):
        length += int64(1)
    return length


@scalar
def code_below(window, length):
    """The last `length` bases of a window of up to 32."""
    return window & ((uint64(1) << uint64(int64(2) * length)) - uint64(1))


@scalar
def slot_of(slots, key):
    """The slot that holds a key, or the empty one where it would be."""
    slot = first_slot(key, slots.shape[0])
    while slots[slot] != EMPTY and slots[slot] >> uint64(2) != key:
        slot = next_slot(slot, slots.shape[0])
    return slot


@scalar
def level_of(slots, key):
    """A string's distance from the dictionary, or TOO_FAR."""
    held = slots[slot_of(slots, key)]
    return int64(TOO_FAR) if held == EMPTY else int64(held & uint64(3))


@scalar
def neighbours(length):
    """How many edits a string has, of which several may give the same."""
    return int64(8) * length + int64(4)


@scalar
def neighbour(code, length, edit):
    """What a string becomes by an edit, by its number: (code, length).

    3 substitutions and a deletion of each base, then 4 insertions before each base and at the end.
    """
    if edit < int64(4) * length:
        shift = uint64(int64(2) * (edit >> int64(2)))
        other = uint64(edit & int64(3))
        if other != uint64(0):
            return code ^ (other << shift), length
        low = code & ((uint64(1) << shift) - uint64(1))
        return ((code >> (shift + uint64(2))) << shift) | low, length - int64(1)
    edit -= int64(4) * length
    shift = uint64(int64(2) * (edit >> int64(2)))
    low = code & ((uint64(1) << shift) - uint64(1))
    return ((((code >> shift) << uint64(2)) | uint64(edit & int64(3))) << shift) | low, length + int64(1)


@scalar
def longest_window(near):
    """Bases of the longest string that can be near a k-mer."""
    return int64(near.k) + int64(near.max_edits)


@scalar
def _is_near_neighbour(near, window, run):
    """Whether a neighbour of a string that ends here is in the neighbourhood."""
    shortest = max(int64(1), int64(near.k) - int64(near.max_edits))
    for length in range(shortest, min(run, longest_window(near)) + int64(1)):
        code = code_below(window, length)
        for edit in range(neighbours(length)):
            other, bases = neighbour(code, length, int64(edit))
            # Of another length, or of none, none is there.
            if level_of(near.slots, key_of(other, bases)) != int64(TOO_FAR):
                return True
    return False


@scalar
def place_distance(near, window, run):
    """The least distance of a k-mer of the dictionary and a string that ends at a place of the stream.

    Parameters
    ----------
    window : uint64, the last 32 bases up to and with this place, the last in the lowest bits
    run : int64, how many of them there are since what is no base; what is before means nothing

    Returns
    -------
    int64, TOO_FAR beyond max_edits
    """
    best = int64(TOO_FAR)
    shortest = max(int64(1), int64(near.k) - int64(near.radius))
    for length in range(shortest, min(run, int64(near.k) + int64(near.radius)) + int64(1)):
        best = min(best, level_of(near.slots, key_of(code_below(window, length), length)))
    if best == int64(TOO_FAR) and near.max_edits > near.radius and _is_near_neighbour(near, window, run):
        best = int64(near.max_edits)
    return best
