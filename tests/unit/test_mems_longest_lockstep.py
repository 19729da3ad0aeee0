"""The kernels of longest matches, run as they are written, against the CPU's matches."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles.kmers import reverse_complement
from oracles.lockstep import run_kernel
from oracles.tagged import tagged_rows
from warpseed import build_index
from warpseed.compute import appended, warp
from warpseed.fm_index.layout import SeedIndex
from warpseed.mems import cpu, gpu_fast, gpu_longest
from warpseed.mems.fast import how_for
from warpseed.mems.matches import PAPER, PLACE_BITS, SUPER, Criteria
from warpseed.mems.reads import pack_long_reads
from warpseed.sequences.packed import Packed
from warpseed.sequences.queries import Queries

ROOM = 4096
"""Entries of each list."""
MODULES = (gpu_longest, gpu_fast, appended, warp)
SHARED = (
    gpu_fast.append_match,
    gpu_fast._largest_before,
    gpu_longest._list_bases,
    gpu_longest._try_row,
    gpu_longest._word_at,
    gpu_longest._words_of_warp,
    appended.set_aside,
    appended.runs_of_warp,
    warp.warp_places,
    warp.reserve,
)


def found_by_kernels(
    index: SeedIndex, reads: Packed, criteria: Criteria, part: tuple[int, int] | None = None
) -> list[tuple[int, int]]:
    """(read, strand and place; bases and place in the read) of the matches in a part of the text, sorted. What is
    appended is wanted, all of it."""
    total, strands = len(reads.words), criteria.strands
    oriented = gpu_fast.OrientedReads(*(np.zeros(strands * total + 2, np.uint64) for _ in range(2)))
    if not len(reads.marks):
        oriented = oriented._replace(marks=np.empty(0, np.uint64))

    def launched(kernel: Any, threads: int, *arguments: Any) -> None:
        run_kernel(MODULES, SHARED, (kernel, threads, warp.BLOCK), *arguments)

    launched(gpu_fast.orient_words, total, reads, strands, oriented)
    how = how_for(criteria, index.table_length, index.rows)._replace(longest=True)
    ends = np.zeros(2 * 32 * total, np.uint32)
    cursors, keys, spans, to_keys, to_spans = (np.zeros(size, np.uint64) for size in (3, *4 * [ROOM]))
    lists, crowded = gpu_fast.AppendedMatches(cursors, keys, spans), np.zeros((ROOM, 4), np.uint32)
    shared = tagged_rows(index), reads, oriented, how, np.zeros(1, np.int64), ends, lists, crowded
    search = gpu_fast.MatchSearch(*shared, True, *(part or (0, index.rows)))
    warps = -(-strands * total // gpu_longest.WORDS_A_WARP)
    launched(gpu_longest.note_longest, 32 * warps, search)
    blocks = len(reads.lengths) * (2 if criteria.kind == PAPER else 1)
    launched(gpu_fast.bound_ends, blocks * warp.BLOCK, reads, criteria.kind, ends)
    search = search._replace(noting=False)
    launched(gpu_longest.append_longest, 32 * warps, search)
    launched(gpu_longest.append_crowded_longest, warp.BLOCK, search)
    assert max(cursors[:2]) <= ROOM
    counts = np.zeros(len(reads.lengths), np.uint64)
    wanted = cursors[2:], to_keys, to_spans, counts
    launched(gpu_fast.keep_matches, warp.BLOCK, lists, reads, criteria.kind, ends, *wanted)
    assert cursors[2] == cursors[0] == counts.sum()
    return sorted(zip(to_keys[: int(cursors[2])].tolist(), to_spans[: int(cursors[2])].tolist(), strict=True))


def found_by_cpu(index: SeedIndex, reads: Packed, criteria: Criteria) -> list[tuple[int, int]]:
    hits = cpu.find_fast(index, reads, criteria)
    query = np.repeat(np.arange(len(hits.counts), dtype=np.uint64), hits.counts) << np.uint64(PLACE_BITS)
    places = hits.hits["place"] & np.uint64((1 << PLACE_BITS) - 1)
    return sorted(zip((query | places).tolist(), hits.hits["span"].tolist(), strict=True))


def changed(draw: random.Random, piece: str, letters: str = "ACGT") -> str:
    return "".join(draw.choice(letters) if draw.random() < 0.1 else base for base in piece)


def drawn(draw: random.Random) -> tuple[Sequence[str], Sequence[str]]:
    """Contigs of a few elements, of one letter, and with ends in what others go on with; and reads of them."""
    element = "".join(draw.choices("ACGT", k=40))
    contigs = [changed(draw, element * 3, "ACGTN") for _ in range(3)]
    contigs += [element[:27], element[:27] + "A" * 9, "A" * 50, element[:20] + "A" * 16 + "C" * 9]
    reads = [changed(draw, element * 2), element[:27] + "A" * 21, reverse_complement(contigs[0].replace("N", "G"))]
    return contigs, [*reads, changed(draw, element + "A" * 24, "ACGTN"), element[:32], "A" * 33, "ACG"]


@pytest.fixture(autouse=True)
def one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists have one part, and a base with many rows is crowded."""
    monkeypatch.setattr(gpu_longest, "CROWDED", 8)
    monkeypatch.setattr(gpu_longest, "RUN", 5)
    monkeypatch.setattr(gpu_fast, "KEEPING_BLOCKS", 1)
    for module in (appended, gpu_fast):
        monkeypatch.setattr(module, "SEGMENTS", 1)


@pytest.mark.parametrize("kind", [PAPER, SUPER])
@pytest.mark.parametrize(
    ("table_length", "least", "strands", "words", "seed"),
    [(2, 5, 2, 4, 1), (3, 19, 1, 3, 2), (6, 4, 2, 2, 3), (4, 18, 2, 16, 4)],
)
def test_kernels_find_what_the_cpu_does(
    monkeypatch: pytest.MonkeyPatch,
    write_reference: Callable[..., Path],
    table_length: int,
    least: int,
    strands: int,
    words: int,
    seed: int,
    kind: int,
) -> None:
    """Matches that end in a tag, in the table's bases before it, and behind it; warps with words of both strands."""
    monkeypatch.setattr(gpu_longest, "WORDS_A_WARP", words)
    contigs, reads = drawn(random.Random(seed))
    index = build_index(write_reference(contigs), table_length=table_length)
    packed, criteria = pack_long_reads(Queries.from_sequences(reads)), Criteria(least, kind, strands)
    expected = found_by_cpu(index, packed, criteria)
    lengths = {span >> 32 for _, span in expected}
    assert min(lengths) < 31 < max(lengths)
    assert found_by_kernels(index, packed, criteria) == expected


def read_of(length: int) -> str:
    """A read of a text like it."""
    return changed(random.Random(7), LONG * 2)[:length]


LONG = "".join(random.Random(5).choices("ACGT", k=600))
SPECIAL = {
    "of a word": (["ACGTTGCA" * 4 + LONG[:60]], [LONG[3:30], LONG[20:52], "ACGTTGCA" * 3, LONG[:9]], 6),
    "of more than a block": ([LONG], [read_of(1100)], 14),
    "of more than a warp": ([LONG], [read_of(300), read_of(64)], 14),
    "that match with their last base": (["A"], ["CA"], 1),
    "that match with their first base": (["T"], ["CA"], 1),
}


@pytest.mark.parametrize("kind", [PAPER, SUPER])
@pytest.mark.parametrize("reads", SPECIAL)
def test_reads(write_reference: Callable[..., Path], reads: str, kind: int) -> None:
    contigs, sequences, least = SPECIAL[reads]
    index = build_index(write_reference(contigs), table_length=2)
    packed, criteria = pack_long_reads(Queries.from_sequences(sequences)), Criteria(least, kind, 2)
    expected = found_by_cpu(index, packed, criteria)
    assert expected and found_by_kernels(index, packed, criteria) == expected


def test_matches_come_in_parts_of_the_text(write_reference: Callable[..., Path]) -> None:
    """Each begins in one of them."""
    index = build_index(write_reference([LONG[:90] * 2]), table_length=3)
    packed, criteria = pack_long_reads(Queries.from_sequences([LONG[10:80]])), Criteria(9, SUPER, 1)
    expected = found_by_cpu(index, packed, criteria)
    places = [(key & ((1 << PLACE_BITS) - 1)) >> 1 for key, _ in expected]
    assert places == [10, 100]
    parts = [found_by_kernels(index, packed, criteria, part) for part in ((0, 10), (10, 100), (100, index.rows))]
    assert parts == [[], expected[:1], expected[1:]]
