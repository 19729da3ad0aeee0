"""Every placement of reads with a few edits, by dynamic programming over every start and length.

A *placement* of a read is (strand, contig, start, end): the edit distance between the read (strand 0, '+') or its
reverse complement (strand 1, '-') and the contig's [start, end) is at most D. The bases of a placement are all ACGT,
and there is at least one; a read without bases has no placement, and a read base that is not ACGT differs from every
base. So a read of L bases that occurs at s has, with D = 1, the placements [s, s + L), [s, s + L - 1), [s, s + L + 1),
[s + 1, s + L) and [s - 1, s + L), as far as they lie in the segment.

An *edit* is what is done to the read to get the bases of the placement, as paper 001 names them: a mismatch puts
another base in the place of one, an insertion puts a base between two or at an end, a deletion takes one out. It is
(type, offset, base): the bases of the read before it, on the placement's strand, and the base that is put; '' where
none is. One placement may be had by several edits: in a run of equal bases any of them can be taken out, or one be put
anywhere. All of these are the same placement, which is counted once; its edit is the *leftmost*, that of the smallest
offset on the forward strand of the reference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from oracles.kmers import (
    BETWEEN_CONTIGS,
    QUERY_HOLE,
    codes_of,
    in_contigs,
    one_behind_the_other,
    reverse_complement,
)
from oracles.suffix_array import NaiveIndex

__all__ = [
    "KINDS",
    "Edit",
    "Placement",
    "best_placements",
    "edits_between",
    "exact_search",
    "find_reads",
    "find_reads_plainly",
    "leftmost_edit",
    "leftmost_edits",
    "paper_results",
]

Placement = tuple[int, int, int, int, int, int]
"""query, contig, start, end, strand (0 '+', 1 '-'), distance; 0-based, half-open, on the forward strand."""

Edit = tuple[str, int, str]
"""type ('match', 'mismatch', 'insertion', 'deletion'), offset, base"""


def in_output_order(placements: list[Placement], max_hits: int | None) -> list[Placement]:
    """Drop all of a query with more than `max_hits`, sort by query, contig, start, strand, end."""
    if max_hits is not None:
        found = Counter(placement[0] for placement in placements)
        placements = [placement for placement in placements if found[placement[0]] <= max_hits]
    return sorted(placements, key=lambda of: (of[0], of[1], of[2], of[4], of[3]))


# ---- all placements


def _distances(text: np.ndarray, reads: Sequence[np.ndarray], most: int) -> np.ndarray:
    """Edit distances, cut to most + 1, of each read, of L bases, to text[s : s + L + k - most], by k, read and s.

    They are given for every s behind which there is enough of the text for the shortest read.
    """
    far = most + 1
    lengths = np.array([len(read) for read in reads])
    starts = max(len(text) + most + 1 - lengths.min(), 0)
    padded = np.concatenate([text, np.full(lengths.max() + 2 * most + 1, BETWEEN_CONTIGS, np.uint8)])
    letters = np.full((lengths.max(), len(reads), 1), QUERY_HOLE, np.uint8)
    for number, read in enumerate(reads):
        letters[: len(read), number, 0] = read
    # Row k + 1: the first i bases of the reads against the first i + k - most of the text from s on. Those at the rims
    # stay too far.
    band = np.full((2 * most + 3, len(reads), starts), far, np.int8)
    for k in range(most, 2 * most + 1):
        band[k + 1] = k - most
    whole = np.empty_like(band[1:-1])
    for i, bases in enumerate(letters, 1):
        after = np.full_like(band, far)
        for k in range(max(most - i, 0), 2 * most + 1):
            j = i + k - most
            costs = np.minimum(band[k + 2], after[k]) + 1
            if j > 0:
                costs = np.minimum(costs, band[k + 1] + (padded[j - 1 : j - 1 + starts] != bases))
            after[k + 1] = np.minimum(costs, far)
        band = after
        whole[:, lengths == i] = band[1:-1, lengths == i]
    return whole


def find_reads(
    contigs: Sequence[str],
    queries: Sequence[str],
    max_edits: int = 1,
    max_hits: int | None = None,
    strands: Sequence[int] = (0, 1),
) -> list[Placement]:
    """All placements, by the band of the dynamic programming table, for all starts and reads of like length at once.

    Parameters
    ----------
    contigs, queries
        Sequences as they stand in the files: any case, any letter.
    max_edits
        Largest edit distance of a placement.
    max_hits
        A query with more placements than this, on all strands together, has none. None keeps all.
    strands
        0 for the read as it is given, 1 for its reverse complement.
    """
    text, firsts = one_behind_the_other(contigs)
    holes = np.concatenate([[0], np.cumsum(text > 3)])
    alike: dict[int, list[tuple[int, int, np.ndarray]]] = {}
    for number, query in enumerate(queries):
        for strand in strands if query else ():
            read = codes_of(reverse_complement(query) if strand else query, QUERY_HOLE)
            alike.setdefault(len(read).bit_length(), []).append((number, strand, read))
    placements: list[Placement] = []
    for oriented in alike.values():
        distances = _distances(text, [read for _, _, read in oriented], max_edits)
        for row, (number, strand, read) in enumerate(oriented):
            for k in range(max(max_edits + 1 - len(read), 0), 2 * max_edits + 1):
                length = len(read) + k - max_edits
                starts = np.arange(max(len(text) - length + 1, 0))
                near = distances[k, row, : len(starts)] <= max_edits
                places = np.flatnonzero(near & (holes[starts + length] == holes[starts]))
                placements += [
                    (number, contig, start, start + length, strand, distance)
                    for contig, start, distance in zip(
                        *in_contigs(firsts, places), distances[k, row, places].tolist(), strict=True
                    )
                ]
    return in_output_order(placements, max_hits)


def best_placements(placements: Sequence[Placement], lengths: Sequence[int], max_edits: int) -> list[Placement]:
    """One placement a locus, from its definition: those of which no other one of the same read and strand, that begins
    and ends within `max_edits` bases of it on the same contig, is better.

    Better has fewer edits, then as many bases as the read, then the smaller start, then the smaller end. `lengths` are
    those of the queries.
    """

    def merit(of: Placement) -> tuple[int, bool, int, int]:
        return of[5], of[3] - of[2] != lengths[of[0]], of[2], of[3]

    def is_near(a: Placement, b: Placement) -> bool:
        return (a[0], a[1], a[4]) == (b[0], b[1], b[4]) and max(abs(a[2] - b[2]), abs(a[3] - b[3])) <= max_edits

    at: dict[tuple[int, int, int], list[Placement]] = {}
    for each in placements:
        at.setdefault((each[0], each[1], each[2]), []).append(each)

    def around(one: Placement) -> list[Placement]:
        starts = range(one[2] - max_edits, one[2] + max_edits + 1)
        return [other for start in starts for other in at.get((one[0], one[1], start), [])]

    return [
        one for one in placements if not any(is_near(one, other) and merit(other) < merit(one) for other in around(one))
    ]


def edit_distance(a: str, b: str) -> int:
    """Levenshtein's distance, row by row; N equals nothing."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y or x == "N")))
    return row[-1]


def find_reads_plainly(
    contigs: Sequence[str], queries: Sequence[str], max_edits: int = 1, max_hits: int | None = None
) -> list[Placement]:
    """The same set without NumPy, substring by substring: what `find_reads` itself is held to."""
    placements: list[Placement] = []
    for number, query in enumerate(queries):
        plain = reverse_complement(reverse_complement(query))
        for strand, read in enumerate((plain, reverse_complement(query)) if query else ()):
            for contig, sequence in enumerate(contigs):
                for start in range(len(sequence)):
                    for end in range(start + 1, len(sequence) + 1):
                        bases = sequence[start:end].upper()
                        if abs(len(bases) - len(read)) <= max_edits and set(bases) <= set("ACGT"):
                            distance = edit_distance(read, bases)
                            if distance <= max_edits:
                                placements.append((number, contig, start, end, strand, distance))
    return in_output_order(placements, max_hits)


# ---- edits


def edits_between(read: str, bases: str) -> list[Edit]:
    """Every single edit that makes `bases` (over ACGT) of a read, from left to right; a match where they are equal."""
    if read == bases and "N" not in read:
        return [("match", 0, "")]
    tried = [("mismatch", i, base) for i in range(len(read)) for base in "ACGT" if base != read[i]]
    tried += [("deletion", i, "") for i in range(len(read))]
    tried += [("insertion", i, base) for i in range(len(read) + 1) for base in "ACGT"]
    return [edit for edit in tried if edited(read, edit) == bases]


def edited(read: str, edit: Edit) -> str:
    """What an edit makes of a read."""
    kind, offset, base = edit
    return read[:offset] + base + read[offset + (kind in ("mismatch", "deletion")) :]


def all_edits_between(read: str, bases: str, edits: int, begin: int = 0) -> Iterator[tuple[Edit, ...]]:
    """Every way to make `bases` (over ACGT) of a read by so many edits, one behind the other; `begin` is added to their
    offsets."""
    if not edits:
        if read == bases and "N" not in read:
            yield ()
        return
    if abs(len(read) - len(bases)) > edits:
        return
    for i in range(min(len(read), len(bases)) + 1):
        if i and read[i - 1] != bases[i - 1]:
            return
        tried = [("insertion", bases[i], i, i + 1)] if i < len(bases) else []
        if i < len(read):
            tried.append(("deletion", "", i + 1, i))
            if i < len(bases) and read[i] != bases[i]:
                tried.append(("mismatch", bases[i], i + 1, i + 1))
        for kind, base, done, there in tried:
            for rest in all_edits_between(read[done:], bases[there:], edits - 1, begin + done):
                yield ((kind, begin + i, base), *rest)


KINDS = ("match", "mismatch", "insertion", "deletion", "several")
"""Types of an edit, by their numbers."""


@lru_cache(maxsize=1024)
def leftmost_edits(read: str, bases: str, distance: int) -> tuple[Edit, ...]:
    """The edits of a placement: the fewest insertions and deletions, then the smallest offsets, then the first kind."""

    def order(edits: tuple[Edit, ...]) -> tuple[int, list[int], list[int]]:
        kinds, offsets, _ = zip(*edits, strict=True) if edits else ((), (), ())
        return sum(kind != "mismatch" for kind in kinds), list(offsets), list(map(KINDS.index, kinds))

    return min(all_edits_between(read, bases, distance), key=order)


def leftmost_edit(read: str, bases: str) -> Edit:
    """The edit of a placement: the first of `edits_between`, found by its type, which the lengths tell."""
    kind = {-1: "deletion", 0: "mismatch", 1: "insertion"}[len(bases) - len(read)]
    if read == bases:
        return ("match", 0, "")
    offset = 0
    while True:
        edit = (kind, offset, "" if kind == "deletion" else bases[offset])
        if read[offset + (kind != "insertion") :] == bases[offset + (kind != "deletion") :]:
            return edit
        assert read[offset] == bases[offset], (read, bases)
        offset += 1


# ---- paper 001, on SA intervals (both ends included, as printed)


def exact_search(index: NaiveIndex, read: str, i: int, interval: tuple[int, int]) -> tuple[int, int]:
    """Algorithm 1, recursive: the interval of read[..i] + W from that of W."""
    if i < 0:
        return interval
    return exact_search(index, read, i - 1, index.step(read[i], interval) if read[i] in "ACGT" else (1, 0))


def paper_results(index: NaiveIndex, read: str) -> list[tuple[str, int, str, int, int]]:
    """What Algorithm 3 is meant to find: (type, offset, base, first row, last row), sorted.

    By recursion over the read with an edit still to be made or not, and no exact search within. Every edit is a result,
    equal ones of a run of bases included; nothing is made of a read by taking out all there is.
    """

    def visit(i: int, interval: tuple[int, int], edit: Edit | None) -> Iterator[tuple[str, int, str, int, int]]:
        if interval[0] > interval[1]:
            return
        steps = {base: index.step(base, interval) for base in "ACGT"}
        if i < 0:
            yield *(edit or ("match", 0, "")), *interval
        elif read[i] in steps:
            yield from visit(i - 1, steps[read[i]], edit)
        if edit is None:
            for base, narrowed in steps.items():
                if i >= 0 and base != read[i]:
                    yield from visit(i - 1, narrowed, ("mismatch", i, base))
                yield from visit(i, narrowed, ("insertion", i + 1, base))
            if i >= 0 and len(read) > 1:
                yield from visit(i - 1, interval, ("deletion", i, ""))

    return sorted(visit(len(read) - 1, (0, len(index.text) - 1), None))
