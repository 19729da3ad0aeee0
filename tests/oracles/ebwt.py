"""The extended Burrows-Wheeler transform and the distance by their definitions (paper 004, sections III and V).

Words are strings. A conjugate is named by (word, offset): the rotation of that word which begins there. Ranks and
indices are 1-based, as in print.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key
from itertools import groupby
from math import gcd

__all__ = [
    "colouring",
    "conjugate",
    "distance",
    "exponent",
    "inverse",
    "ordered_conjugates",
    "prefix_length",
    "root",
    "transform",
]


def root(word: str) -> str:
    """The primitive word of which `word` is a power."""
    return next(word[:n] for n in range(1, len(word) + 1) if word[:n] * (len(word) // n) == word)


def exponent(word: str) -> int:
    """Which power of its root `word` is."""
    return len(word) // len(root(word))


def infinite(word: str, length: int) -> str:
    """Pref(length) of u^ω."""
    return (word * (length // len(word) + 1))[:length]


def compare(u: str, v: str) -> int:
    """Definition 1: below 0 where u comes before v, above 0 where it comes behind, 0 where they are equal."""
    if root(u) == root(v):
        return exponent(u) - exponent(v)
    length = len(u) + len(v) - gcd(len(u), len(v))  # Proposition 1
    left, right = infinite(u, length), infinite(v, length)
    assert left != right
    return -1 if left < right else 1


def conjugate(word: str, offset: int) -> str:
    """The rotation of a word that begins at an offset."""
    return word[offset:] + word[:offset]


def ordered_conjugates(words: Sequence[str]) -> list[tuple[int, int]]:
    """(word, offset), 0-based, of all conjugates in ω-order; equal ones in the order of words, then of offsets."""
    rotations = {
        (number, offset): conjugate(word, offset) for number, word in enumerate(words) for offset in range(len(word))
    }
    return sorted(rotations, key=cmp_to_key(lambda a, b: compare(rotations[a], rotations[b])))


def transform(words: Sequence[str]) -> tuple[str, list[int]]:
    """(L, I): the last letters of the ordered conjugates, and the rank of each word itself, in the words' order."""
    order = ordered_conjugates(words)
    last = "".join(words[number][offset - 1] for number, offset in order)
    ranks = {place: rank for rank, place in enumerate(order, start=1)}
    return last, [ranks[number, 0] for number in range(len(words))]


def inverse(last: str, indices: Sequence[int]) -> list[str]:
    """The words of a transform, without Proposition 6: letters are put before sorted rows until the rows are long.

    Rows that are equal then are conjugates of powers of one root; the j-th of them belongs to the j-th copy of that
    root, and a word whose index is at one copy has the copies behind it that hold no index.
    """
    length = 2 * len(last)
    rows = [""] * len(last)
    for _ in range(length):
        rows = sorted(letter + row for letter, row in zip(last, rows, strict=True))
    words = []
    for index in indices:
        row = rows[index - 1]
        period = next(n for n in range(1, length + 1) if infinite(row[:n], length) == row)
        conjugates = {infinite(conjugate(row[:period], offset), length) for offset in range(period)}
        copies = {index - rows.index(rows[index - 1]) for index in indices if rows[index - 1] in conjugates}
        copy = index - rows.index(row)
        count = rows.count(row)
        following = [other for other in copies if other > copy]
        words.append(row[:period] * (min(following, default=count + 1) - copy))
    return words


def prefix_length(words: Sequence[str]) -> int:
    """H of section III: so many letters of u^ω tell any two conjugates of primitive words apart."""
    lengths = [len(word) for word in words]
    return max(a + b - gcd(a, b) for a in lengths for b in lengths)


def colouring(words: Sequence[str]) -> list[int]:
    """Which word each of the ordered conjugates belongs to, 0-based."""
    return [number for number, _ in ordered_conjugates(words)]


def distance(u: str, v: str) -> int:
    """Definition 24: the sum of n_i - 1 over the runs of one colour in the ordered conjugates of u and v."""
    return sum(len(list(run)) - 1 for _, run in groupby(colouring([u, v])))
