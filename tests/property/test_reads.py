"""Reads with at most one edit: the oracles against each other, and both tiers against them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from made_up_genomes import cases
from oracles.kmers import find_kmers, reverse_complement
from oracles.reads import (
    edited,
    edits_between,
    exact_search,
    find_reads,
    find_reads_plainly,
    leftmost_edit,
    paper_results,
)
from oracles.suffix_array import NaiveIndex, joined, segments_of

# ---- the oracles


@given(case=cases(indels=True), max_edits=st.integers(0, 2), max_hits=st.one_of(st.none(), st.integers(0, 30)))
def test_oracle_is_what_its_plain_twin_says(
    case: tuple[list[str], list[str]], max_edits: int, max_hits: int | None
) -> None:
    contigs, queries = [contig[:24] for contig in case[0][:2]], [query[:12] for query in case[1][:3]]
    assert find_reads(contigs, queries, max_edits, max_hits) == find_reads_plainly(
        contigs, queries, max_edits, max_hits
    )


@given(case=cases(indels=True))
def test_placements_of_one_length_are_those_of_mismatches(case: tuple[list[str], list[str]]) -> None:
    """With one edit, a placement as long as its read has one mismatch: the oracle of k-mers finds the same."""
    contigs, queries = case
    placements = find_reads(contigs, queries)
    same_length = [of for of in placements if of[3] - of[2] == len(queries[of[0]])]
    assert same_length == find_kmers(contigs, queries, 1)


@given(case=cases(indels=True))
def test_algorithm_3_finds_each_placement_by_all_its_edits(case: tuple[list[str], list[str]]) -> None:
    """The results of the paper's search, with the positions of their rows, are all edits of all placements."""
    contigs, queries = case[0], case[1][:6]
    segments = segments_of(contigs)
    index = NaiveIndex.of(joined([bases for _, _, bases in segments]))
    places = []
    for contig, start, bases in segments:
        places += [(contig, start + i) for i in range(len(bases) + 1)]
    for number, query in enumerate(queries):
        for strand, read in enumerate((reverse_complement(reverse_complement(query)), reverse_complement(query))):
            found = set()
            for kind, offset, base, first, last in paper_results(index, read):
                bases = edited(read, (kind, offset, base))
                assert exact_search(index, bases, len(bases) - 1, (0, len(index.text) - 1)) == (first, last)
                for row in range(first, last + 1):
                    contig, start = places[index.suffix_array[row]]
                    found.add((contig, start, start + len(bases), (kind, offset, base)))
            true = set()
            for _, contig, start, end, _, _ in find_reads(contigs, [query], strands=[strand]):
                edits = edits_between(read, contigs[contig][start:end].upper())
                assert leftmost_edit(read, contigs[contig][start:end].upper()) == min(edits, key=lambda of: of[1])
                true |= {(contig, start, end, edit) for edit in edits}
            assert found == true, (number, strand)
