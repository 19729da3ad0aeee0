"""One placement a locus is what its definition says, wherever a search is cut."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import warpseed
from oracles.kmers import reverse_complement
from oracles.reads import best_placements, find_reads
from warpseed import tasks
from warpseed.errors import InputError
from warpseed.fm_index.layout import SeedIndex
from warpseed.one_error import cpu
from warpseed.one_error.best import BestInOrder, best_of
from warpseed.one_error.output import make_hits
from warpseed.one_error.reads import Criteria, pack_reads
from warpseed.output.rows import Found
from warpseed.sequences.queries import Queries

DRAW = random.Random(11)
UNIT = "".join(DRAW.choices("ACGT", k=90))
GENOME = {
    "a": UNIT + "A" * 40 + UNIT[:50] + "N" + UNIT[20:70] + "AC" * 20,
    "b": reverse_complement(UNIT) + "N" * 3 + "ACA" + "N" + "CA" + "NN" + "A",
    "c": "AC",
    "d": "CA",
}
READS = [
    UNIT[:40], UNIT[10:40] + "T" + UNIT[40:70], UNIT[50:85], reverse_complement(UNIT[30:80]), "A" * 20, "AC" * 8,
    "CA" * 5 + "A", UNIT[20:30] + UNIT[31:60], "AC", "A", "CAC", "N", "AN", UNIT[85:] + "A" * 10, "ACGT" * 8,
    "A" * 38 + "C", "T" * 3,
]  # fmt: skip


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> SeedIndex:
    path = tmp_path_factory.mktemp("best") / "g.fa"
    path.write_text("".join(f">{name}\n{bases}\n" for name, bases in GENOME.items()))
    return warpseed.build_index(path, parts=("fast", "paper"))


def expected(max_edits: int = 1) -> list[tuple[int, ...]]:
    found = find_reads(list(GENOME.values()), READS, max_edits)
    return best_placements(found, list(map(len, READS)), max_edits)


def placements(hits: warpseed.output.hits.Hits) -> list[tuple[int, ...]]:
    names = ("query", "contig", "start", "end", "strand", "distance")
    return list(zip(*(hits.rows()[name].tolist() for name in names), strict=True))


@pytest.mark.parametrize(("tier", "max_edits"), [("fast", 1), ("fast", 2), ("paper", 1)])
@pytest.mark.parametrize("threads", [1, 2])
def test_the_best_are_those_of_the_definition(index: SeedIndex, tier: str, max_edits: int, threads: int) -> None:
    hits = warpseed.find_reads(index, READS, report="best", tier=tier, max_edits=max_edits, threads=threads)
    assert placements(hits) == expected(max_edits)
    everything = warpseed.find_reads(index, READS, tier=tier, max_edits=max_edits)
    assert 50 < len(hits) < len(everything) / 3
    assert [bool(count) for count in hits.counts] == [bool(count) for count in everything.counts]


def test_without_edits_there_is_nothing_to_choose(index: SeedIndex) -> None:
    assert placements(warpseed.find_reads(index, READS, report="best", max_edits=0)) == expected(0)


@pytest.mark.parametrize("max_edits", [1, 2])
@pytest.mark.parametrize("room", [1, 3, 20])
def test_a_read_that_is_searched_in_parts_of_the_text(
    index: SeedIndex, monkeypatch: pytest.MonkeyPatch, room: int, max_edits: int
) -> None:
    """Where a part ends, the placements behind its end decide on those before it."""
    monkeypatch.setattr(tasks, "_ROOM", room)
    monkeypatch.setattr(tasks, "_LARGE_ROOM", max(room, 40))
    batches = list(warpseed.iter_read_hits(index, READS, report="best", max_edits=max_edits))
    assert sum(batch.continues for batch in batches) > 5
    assert [each for batch in batches for each in placements(batch)] == expected(max_edits)


@pytest.mark.parametrize("max_edits", [1, 2])
@pytest.mark.parametrize("seed", range(5))
def test_placements_that_come_in_parts(index: SeedIndex, max_edits: int, seed: int) -> None:
    """As a device hands them on: cut between reads and within those of one, anywhere."""
    draw, reads = random.Random(seed), pack_reads(Queries.from_sequences(READS))
    whole = cpu.find_fast(index, reads, Criteria(max_edits, 2))
    ends = np.concatenate([[0], np.cumsum(whole.counts)])
    best, parts, begin, low = BestInOrder(index.segments, max_edits), [], 0, 0
    while begin < len(READS):
        end = min(begin + draw.randint(1, 4), len(READS))
        high = draw.randint(max(low, int(ends[end - 1])), int(ends[end]))
        continues = high < ends[end] or (draw.random() < 0.2 and end < len(READS))
        counts = np.diff(np.clip(ends[begin : end + 1], low, high))
        part = Found(whole.hits[low:high], counts, 0, 0)
        parts.append((best.take(part, reads.lengths[begin:end], continues), begin))
        begin, low = end - continues, high
    joined = np.zeros(len(READS), np.int64)
    for part, first in parts:
        joined[first : first + len(part.counts)] += part.counts
    expected = best_of(whole, reads.lengths, index.segments, max_edits)
    assert np.concatenate([part.hits for part, _ in parts]).tolist() == expected.hits.tolist()
    assert joined.tolist() == expected.counts.tolist()


def words_of(index: SeedIndex, rows: list[tuple[int, ...]], lengths: list[int]) -> Iterator[int]:
    """Placements as a search packs them."""
    segments = index.segments
    for query, contig, start, end, strand, distance in rows:
        here = (segments.contig == contig) & (segments.contig_start <= start)
        segment = int(np.flatnonzero(here)[-1])
        position = int(segments.text_start[segment]) + start - int(segments.contig_start[segment])
        yield position << 32 | strand << 31 | end - start - lengths[query] + 2 << 28 | distance << 26


@pytest.mark.parametrize("max_edits", [1, 2])
def test_tiny_placements_beside_a_hole(index: SeedIndex, max_edits: int) -> None:
    """Between two segments there is one position of the text, whatever there is between them on the contig, and also
    where they are on two contigs."""
    reads = ["A", "AC", "CA", "AN", "NA", "ACA"]
    lengths = list(map(len, reads))
    found = find_reads(list(GENOME.values()), reads, max_edits)
    words = [sorted(words_of(index, [row for row in found if row[0] == q], lengths)) for q in range(len(reads))]
    packed = Found(np.array(sum(words, []), np.uint64), np.array(list(map(len, words))), 0, 0)
    best = best_of(packed, np.array(lengths, np.uint32), index.segments, max_edits)
    assert placements(make_hits(index, Queries.from_sequences(reads), best)) == best_placements(
        found, lengths, max_edits
    )
    assert 0 < len(best.hits) < len(packed.hits)


def test_max_hits_counts_what_was_found(index: SeedIndex) -> None:
    once = [UNIT[2:70]]
    everything = warpseed.find_reads(index, once)
    assert len(everything) > len(warpseed.find_reads(index, once, report="best")) > 0
    limited = warpseed.find_reads(index, once, report="best", max_hits=len(everything) - 1)
    assert (len(limited), limited.dropped_queries) == (0, 1)
    assert len(warpseed.find_reads(index, once, report="best", max_hits=len(everything))) > 0


def test_another_report_is_a_sentence(index: SeedIndex) -> None:
    with pytest.raises(InputError, match=r"^report is 'first', but 'all' or 'best' was expected\.$"):
        warpseed.find_reads(index, ["ACGT"], report="first")


@pytest.mark.parametrize(
    "wanted", [{"both_strands": "no"}, {"keep_reads": None}, {"both_strands": 2}, {"keep_reads": np.ones(2)}]
)
def test_what_is_neither_true_nor_false_is_a_sentence(index: SeedIndex, wanted: dict[str, Any]) -> None:
    (name, value), *_ = wanted.items()
    with pytest.raises(InputError, match=rf"^{name} is {re.escape(repr(value))}, but True or False was expected\.$"):
        warpseed.find_reads(index, ["ACGT"], **wanted)
