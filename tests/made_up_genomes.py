"""Small genomes that break weak code, and what is searched in them: strategies and draws for property tests."""

from __future__ import annotations

import random
from collections.abc import Sequence

from hypothesis import strategies as st
from oracles.kmers import reverse_complement

__all__ = ["CONTIG", "LAYOUTS", "LONGEST", "cases", "near_queries", "patchworks"]

LONGEST = 255

# Tiny blocks and tables put their borders inside the smallest text.
LAYOUTS = [
    {"occ_interval": 32, "sa_interval": 1, "table_length": 1},
    {"occ_interval": 32, "sa_interval": 2, "table_length": 2},
    {"occ_interval": 64, "sa_interval": 4, "table_length": 3},
    {"occ_interval": 64, "sa_interval": 32, "table_length": 4},
    {"occ_interval": 128, "sa_interval": 7, "table_length": 6},
    {"occ_interval": 128, "sa_interval": 32, "table_length": None},
]


# ---- inputs

BASES = st.text("ACGT", min_size=1, max_size=60)
HOLED = st.text("ACGTACGTACGTNRYSWKMacgtn", min_size=1, max_size=60)
REPEATS = st.builds(lambda unit, times: unit * times, st.text("ACGT", min_size=1, max_size=4), st.integers(1, 30))
PALINDROMES = st.text("ACGT", min_size=1, max_size=20).map(lambda half: half + reverse_complement(half))
MANY_SEGMENTS = st.lists(st.text("AC", min_size=1, max_size=6), min_size=2, max_size=30).map("N".join)
CONTIG = st.one_of(BASES, HOLED, REPEATS, PALINDROMES, MANY_SEGMENTS)


@st.composite
def cases(draw: st.DrawFn, indels: bool = False) -> tuple[list[str], list[str]]:
    """One to five contigs with at least one base, and some twenty queries that are mostly near them."""
    contigs = draw(st.lists(CONTIG, min_size=1, max_size=5))
    if not set("".join(contigs).upper()) & set("ACGT"):
        contigs.append("A")
    seed = draw(st.integers(0, 2**16))
    return contigs, near_queries(contigs, random.Random(seed), 20, indels)


def near_queries(contigs: Sequence[str], draw: random.Random, count: int, indels: bool = False) -> list[str]:
    """Queries cut from the contigs: at their ends, across borders, changed, turned round; a few at random.

    With `indels`, at most one base, or no base, is put in the place of at most one base; changes are fewer.
    """
    joined = "".join(contigs)
    queries = []
    for _ in range(count):
        source = draw.choice([draw.choice(contigs), draw.choice(contigs), joined])[:LONGEST]
        k = draw.choice([draw.randint(1, len(source)), min(len(source), draw.randint(1, 40))])
        start = draw.choice([0, len(source) - k, draw.randint(0, len(source) - k)])
        letters = list(source[start : start + k])
        for _ in range(draw.choice([0, 1, 1, 1, 2, 2, 3]) if indels else 0):
            place = draw.choice([0, len(letters), draw.randint(0, len(letters))])
            letters[place : place + draw.randint(0, 1)] = draw.choice(["", "A", "C", "G", "T", "N"])
        for _ in range(0 if indels else draw.choice([0, 0, 0, 1, 1, 2, 3, 4])):
            letters[draw.randrange(k)] = draw.choice("ACGTACGTNR")
        query = "".join(letters) or "A"
        if draw.random() < 0.4:
            query = reverse_complement(query)
        if draw.random() < 0.1:
            query = (query + draw.choice("ACGT") * draw.randint(1, 5))[:LONGEST]
        queries.append(query)
    queries += ["".join(draw.choices("ACGT", k=draw.randint(1, 12))) for _ in range(3)]
    return [*queries, queries[0]]


@st.composite
def patchworks(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Contigs as in `cases`, and reads of any length that are patched together of pieces of them.

    Pieces have changed bases, some stand the other way round, and bases or holes lie between some. There are an empty
    read, a single base, a contig as it is, and one the other way round.
    """
    contigs, pieces = draw(cases(indels=True))
    source = random.Random(draw(st.integers(0, 2**16)))
    pieces += contigs + [reverse_complement(contig) for contig in contigs]
    reads = ["", source.choice("ACGTN"), source.choice(contigs), reverse_complement(source.choice(contigs))]
    for _ in range(4):
        chosen = source.choices(pieces, k=source.randint(1, 4))
        reads.append(source.choice(["", "", "A", "N", "tt"]).join(chosen))
    return contigs, reads
