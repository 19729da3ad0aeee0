"""Every k-mer hit by looking at every window of every contig: the truth for `warpseed.find_kmers`.

A hit is (query, strand, contig, start): the Hamming distance between the query (strand 0, '+') or its reverse
complement (strand 1, '-') and the contig's [start, start + k) is at most D. A window that covers anything but
ACGT is no place for a hit; a query base that is not ACGT differs from every base; a palindrome is reported on
both strands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

__all__ = [
    "Hit",
    "codes_of",
    "differences",
    "find_kmers",
    "find_kmers_plainly",
    "in_contigs",
    "one_behind_the_other",
    "reverse_complement",
]

Hit = tuple[int, int, int, int, int, int]
"""query, contig, start, end, strand (0 '+', 1 '-'), distance; 0-based, half-open, on the forward strand."""

COMPLEMENT = {"A": "T", "C": "G", "G": "C", "T": "A"}

# Three kinds of "not a base", all different, so that none equals another by accident.
QUERY_HOLE, TEXT_HOLE, BETWEEN_CONTIGS = 4, 5, 6


def reverse_complement(sequence: str) -> str:
    """Reverse complement in upper case; what is not ACGT becomes N."""
    return "".join(COMPLEMENT.get(base, "N") for base in reversed(sequence.upper()))


def codes_of(sequence: str, hole: int) -> np.ndarray:
    """uint8 codes: ACGT (either case) 0 to 3, everything else `hole`."""
    table = np.full(256, hole, np.uint8)
    for code, base in enumerate("ACGT"):
        table[ord(base)] = table[ord(base.lower())] = code
    return table[np.frombuffer(sequence.encode("ascii"), np.uint8)]


def one_behind_the_other(contigs: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Codes of all contigs, each with a border behind it, and where each begins there (one more than contigs)."""
    border = np.array([BETWEEN_CONTIGS], np.uint8)
    text = np.concatenate([part for contig in contigs for part in (codes_of(contig, TEXT_HOLE), border)])
    return text, np.cumsum([0] + [len(contig) + 1 for contig in contigs])


def in_contigs(firsts: np.ndarray, places: np.ndarray) -> tuple[list[int], list[int]]:
    """Contigs, and places in them, of places in the text of all."""
    contigs = np.searchsorted(firsts, places, side="right") - 1
    return contigs.tolist(), (places - firsts[contigs]).tolist()


def _in_output_order(hits: list[Hit], max_hits: int | None) -> list[Hit]:
    """Drop every hit of a query with more than `max_hits`, sort by query, contig, start, strand, end."""
    if max_hits is not None:
        found = Counter(hit[0] for hit in hits)
        hits = [hit for hit in hits if found[hit[0]] <= max_hits]
    return sorted(hits, key=lambda hit: (hit[0], hit[1], hit[2], hit[4], hit[3]))


def find_kmers(
    contigs: Sequence[str], queries: Sequence[str], max_mismatches: int, max_hits: int | None = None
) -> list[Hit]:
    """All hits, one vectorised comparison with all windows for each query and strand.

    Parameters
    ----------
    contigs, queries
        Sequences as they stand in the files: any case, any letter.
    max_mismatches
        Largest Hamming distance of a hit.
    max_hits
        A query with more hits than this, both strands together, has none. None keeps all.
    """
    text, firsts = one_behind_the_other(contigs)
    hits: list[Hit] = []
    for number, query in enumerate(queries):
        k = len(query)
        if k > len(text):
            continue
        windows = np.lib.stride_tricks.sliding_window_view(text, k)
        only_bases = np.flatnonzero((windows < 4).all(axis=1))
        for strand, spelled in enumerate((query, reverse_complement(query))):
            distances = (windows[only_bases] != codes_of(spelled, QUERY_HOLE)).sum(axis=1)
            near = distances <= max_mismatches
            hits += [
                (number, contig, start, start + k, strand, distance)
                for contig, start, distance in zip(
                    *in_contigs(firsts, only_bases[near]), distances[near].tolist(), strict=True
                )
            ]
    return _in_output_order(hits, max_hits)


def find_kmers_plainly(
    contigs: Sequence[str], queries: Sequence[str], max_mismatches: int, max_hits: int | None = None
) -> list[Hit]:
    """The same set without NumPy, letter by letter: what `find_kmers` itself is held to."""
    hits: list[Hit] = []
    for number, query in enumerate(queries):
        k = len(query)
        for strand, spelled in enumerate((query.upper(), reverse_complement(query))):
            for contig, sequence in enumerate(contigs):
                for start in range(len(sequence) - k + 1):
                    window = sequence[start : start + k].upper()
                    if not set(window) <= set("ACGT"):
                        continue
                    distance = sum(a != b for a, b in zip(window, spelled, strict=True))
                    if distance <= max_mismatches:
                        hits.append((number, contig, start, start + k, strand, distance))
    return _in_output_order(hits, max_hits)


def differences(found: Sequence[tuple[int, ...]], true: Sequence[tuple[int, ...]]) -> dict[str, list[tuple[int, ...]]]:
    """The first rows that are missing, and the first that there should not be."""
    return {"missing": sorted(set(true) - set(found))[:5], "invented": sorted(set(found) - set(true))[:5]}
