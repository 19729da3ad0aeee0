"""K-mers in a stream whose dictionary grows, from their definition: the truth for the trie automata (paper 003).

A *stream* is uint8 codes: A, C, G, T are 0 to 3, 4 is what is no base and stands between records. A k-mer is k codes
beside each other, none of them 4; it is named by the place where it begins. A *word* is such a k-mer, or a prefix of
one, as a tuple of codes; as a number it has two bits a base, the first base on top.

Edits are counted by two rules. The thesis's automaton (Figures 23 to 26, Equation 4) has a state for each word of the
trie and each number of edits, its *level*; of deletions it knows those that Equation 4 lets off at the end. The other
is the Levenshtein distance itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

__all__ = [
    "NEW",
    "NO_EDITS",
    "NO_KMER",
    "SEEN",
    "Word",
    "answers_to",
    "automaton_edits",
    "bitmap_of",
    "codes_of_words",
    "edit_distance",
    "least_edits",
    "suffix_trie",
    "trie_of",
    "words_at",
    "words_of_codes",
]

Word = tuple[int, ...]

NO_KMER, NEW, SEEN = range(3)
"""What is said of a place: no k-mer begins there, one that nobody has seen, one of the seed or of an earlier place."""
NO_EDITS = 255
"""Said of a place at which nothing ends that is near a k-mer."""
_NO_BASE = 4


def words_at(stream: Sequence[int], k: int) -> Iterator[tuple[int, Word]]:
    """Every k-mer of a stream with its place, in order."""
    for place in range(len(stream) - k + 1):
        word = tuple(int(code) for code in stream[place : place + k])
        if _NO_BASE not in word:
            yield place, word


def codes_of_words(words: Iterable[Word]) -> list[int]:
    """Words as numbers."""
    return [int("0" + "".join(f"{code:02b}" for code in word), 2) for word in words]


def words_of_codes(kmers: Iterable[int], k: int) -> list[Word]:
    """Numbers as words of k bases."""
    return [tuple(int(kmer) >> 2 * (k - 1 - i) & 3 for i in range(k)) for kmer in kmers]


def answers_to(
    stream: Sequence[int], k: int, seed_length: int = 0, seed: Collection[int] = ()
) -> tuple[list[int], list[int]]:
    """What is said of each place of a stream, and the dictionary at its end, ascending, as numbers.

    Parameters
    ----------
    seed_length : places at the stream's begin whose k-mers are in the dictionary at first
    seed : k-mers that are, too
    """
    known = {word for _, word in words_at(stream[:seed_length], k)} | set(words_of_codes(seed, k))
    answers = [NO_KMER] * len(stream)
    for place, word in words_at(stream, k):
        answers[place] = SEEN if word in known else NEW
        known.add(word)
    return answers, sorted(codes_of_words(known))


def trie_of(words: Iterable[Word]) -> set[Word]:
    """The nodes of a trie of some words: all their prefixes, the empty one too."""
    return {()} | {word[:length] for word in words for length in range(1, len(word) + 1)}


def suffix_trie(text: Sequence[int], k: int) -> set[Word]:
    """The nodes of the suffix trie of a text of bases, cut off at depth k (section 2.3)."""
    return trie_of(tuple(int(code) for code in text[place : place + k]) for place in range(len(text)))


def bitmap_of(nodes: Collection[Word], k: int) -> tuple[list[int], list[int], list[int], list[int]]:
    """The Tree Bitmap of the nodes of a trie: inmaps, exmaps, Equation 2's prefix sums, and the levels' offsets."""
    roots = sorted((node for node in nodes if len(node) % 3 == 0), key=lambda node: (len(node), node))
    offsets = [sum(len(root) < 3 * level for root in roots) for level in range(k // 3 + 2)]
    inmaps, exmaps, sums = [], [], []
    below = [(), *((a,) for a in range(4)), *((a, b) for a in range(4) for b in range(4))]
    outside = [(a, b, c) for a in range(4) for b in range(4) for c in range(4)]
    for number, root in enumerate(roots):
        inmaps.append(sum(1 << bit for bit, path in enumerate(below) if root + path in nodes))
        exmaps.append(sum(1 << bit for bit, path in enumerate(outside) if root + path in nodes))
        level = len(root) // 3
        sums.append(offsets[level + 1] + sum(bits.bit_count() for bits in exmaps[offsets[level] : number]))
    return inmaps, exmaps, sums, offsets


# ---- edits


def automaton_edits(
    stream: Sequence[int], k: int, words: Collection[Word], max_edits: int
) -> tuple[list[int], list[int]]:
    """The thesis's Levenshtein automaton over a dictionary, as the set of its active states, base by base.

    A state is (level, node). The empty node of level 0 is always active. A base makes of each active state:
    its child by that base, on the same level (K); its other children, one level on (S); itself, one level on (I).
    What is no base leaves the empty node of level 0 alone. A state accepts where Equation 4 says so: its depth is at
    least level + k - max_edits.

    Returns
    -------
    (accepted, missed) : for each place, of the base that is read there: bit d is set where a state of level d accepts
        after it; and bit e where a state of level 0 at depth e - 1, below k, has no child by it
    """
    nodes, active = trie_of(words), {(0, ())}
    accepted, missed = [], []
    for code in stream:
        after: set[tuple[int, Word]] = {(0, ())}
        lost = 0
        for level, node in active if code != _NO_BASE else ():
            after.add((level + 1, node))
            for base in range(4):
                child = (*node, base)
                if child in nodes:
                    after.add((level if base == code else level + 1, child))
                elif base == code and level == 0 and len(node) < k:
                    lost |= 1 << len(child)
        active = {(level, node) for level, node in after if level <= max_edits}
        levels = {level for level, node in active if len(node) >= level + k - max_edits}
        accepted.append(sum(1 << level for level in levels))
        missed.append(lost)
    return accepted, missed


def edit_distance(one: Sequence[int], other: Sequence[int]) -> int:
    """Levenshtein distance of two words, by the table of Figure 6."""
    above = list(range(len(other) + 1))
    for row, code in enumerate(one, 1):
        here = [row]
        for column, against in enumerate(other, 1):
            here.append(min(above[column] + 1, here[-1] + 1, above[column - 1] + (code != against)))
        above = here
    return above[-1]


def least_edits(stream: Sequence[int], words: Collection[Word], max_edits: int) -> list[int]:
    """For each place the least distance of a word and any bases of the stream that end there; 255 beyond `max_edits`.

    By Sellers' table: a word may begin anywhere, so its first row is 0 throughout. `max_edits` is below the length of
    the words, so that some base always takes part. Nothing ends at what is no base, or reaches over it.
    """
    if not words:
        return [NO_EDITS] * len(stream)
    table = np.array(sorted(words)).T
    fresh = np.repeat(np.arange(len(table) + 1)[:, None], len(words), axis=1)
    column, least = fresh, []
    for code in stream:
        before, column = column, fresh.copy()
        if code != _NO_BASE:
            for row, bases in enumerate(table, 1):
                by_one = np.minimum(before[row], column[row - 1]) + 1
                column[row] = np.minimum(by_one, before[row - 1] + (bases != code))
        nearest = int(column[-1].min(initial=NO_EDITS))
        least.append(nearest if nearest <= max_edits else NO_EDITS)
    return least
