"""Every k-mer at a step, and drawn ones that can be traced, held to plain Python."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sequence_files import records
from warpseed.sequences.cutting import EveryKmer, cut_kmers
from warpseed.sequences.queries import Queries

Reads = list[tuple[str, str]]

NAMES = st.text("abcXYZ0189._:/|é", max_size=20)
READS = st.lists(st.tuples(NAMES, st.text("ACGTN", min_size=1, max_size=60)), max_size=12)


def queries_of(reads: Reads) -> Queries:
    return Queries.from_sequences([bases for _, bases in reads], [name for name, _ in reads])


def cut_plainly(reads: Reads, k: int, step: int) -> Reads:
    """The definition: one k-mer after the other, read by read."""
    cut = []
    for name, bases in reads:
        for offset in range(0, len(bases), step):
            if offset + k <= len(bases):
                cut.append((f"{name}:{offset}", bases[offset : offset + k]))
    return cut


def every_kmer(reads: Queries, k: int, step: int | None = None) -> Queries:
    kmers = EveryKmer(reads, k, step)
    return kmers.slice(0, len(kmers))


@given(reads=READS, k=st.integers(1, 70), step=st.integers(1, 70))
def test_every_kmer_at_a_step(reads: Reads, k: int, step: int) -> None:
    expected = cut_plainly(reads, k, step)
    cut = every_kmer(queries_of(reads), k, step)
    assert records(cut) == expected
    assert cut.offsets.tolist() == [k * i for i in range(len(expected) + 1)] and cut.codes.size == k * len(expected)
    assert cut.name_offsets[-1] == len(cut.name_bytes) and cut.qualities is None
    if step == k:
        assert records(every_kmer(queries_of(reads), k)) == expected


@given(reads=READS, k=st.integers(1, 20), step=st.integers(1, 20), data=st.data())
def test_a_part_is_a_part_of_the_whole(reads: Reads, k: int, step: int, data: st.DataObject) -> None:
    kmers = EveryKmer(queries_of(reads), k, step)
    expected = cut_plainly(reads, k, step)
    assert len(kmers) == len(expected)
    assert kmers.short_reads == sum(len(bases) < k for _, bases in reads)
    start, stop = (data.draw(st.integers(0, len(expected) + 3)) for _ in range(2))
    assert records(kmers.slice(start, stop)) == expected[start:stop]


def test_offsets_of_many_digits_and_a_part_of_a_larger_set() -> None:
    reads = [("first", "ACGTN" * 3), ("chr1", "GATTACA" * 30_000), ("last", "T" * 9)]
    expected = cut_plainly(reads, 13, 7)
    assert records(every_kmer(queries_of(reads), 13, 7)) == expected
    assert expected[-1] == ("chr1:209986", "GATTACAGATTAC")
    part = queries_of([("before", "A" * 100), *reads, ("behind", "C" * 100)]).slice(1, 4)
    assert records(every_kmer(part, 13, 7)) == expected


def test_reads_with_nothing_to_cut() -> None:
    for reads in ([], [("a", "ACG"), ("b", "T")]):
        assert records(every_kmer(queries_of(reads), 4)) == []
        assert EveryKmer(queries_of(reads), 4).short_reads == len(reads)


def test_threads_may_cut_at_once() -> None:
    reads = queries_of([(f"r{i}", "ACGTTGCA" * (1 + i % 9)) for i in range(3000)])
    kmers = EveryKmer(reads, 11, 3)
    size = 777
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda first: kmers.slice(first, first + size), range(0, len(kmers), size)))
    assert records(Queries.concatenate(parts)) == records(every_kmer(reads, 11, 3))


@pytest.mark.parametrize("deduplicate", [False, True])
def test_drawn_kmers_can_be_traced(deduplicate: bool) -> None:
    reads = dict([("a", "ACGTTGCATGCC"), ("b:1", "ACGTTGCAT"), ("c", "AC"), ("", "ACGTTNNAT")])
    arguments = {"k": 4, "count": 9, "seed": 3, "deduplicate": deduplicate}
    cut = cut_kmers(queries_of(list(reads.items())), **arguments, traced=True)
    numbered = cut_kmers(queries_of(list(reads.items())), **arguments)
    assert np.array_equal(cut.codes, numbered.codes) and numbered.name(8) == "k8"
    assert len({name for name, _ in records(cut)}) == 9
    for name, bases in records(cut):
        read, offset = name.rsplit(":", 1)
        assert reads[read][int(offset) :].startswith(bases)
