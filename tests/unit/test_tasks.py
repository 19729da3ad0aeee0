"""How much a task searches at once, and how often it searches the same again."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
import warpseed.tasks
from warpseed.batches import find_all
from warpseed.compute.stopwatch import Stopwatch
from warpseed.fm_index.build import build_index
from warpseed.fm_index.layout import SeedIndex
from warpseed.kmer_seeds import cpu, find_kmers, kmer_search
from warpseed.kmer_seeds.search import KmerSearch
from warpseed.sequences.packed import pack
from warpseed.sequences.queries import Queries
from warpseed.tasks import Room, Tasks, _Part

KMER = "A" * 20
HITS = 2000 - len(KMER) + 1


@pytest.fixture(scope="module")
def poly_a(tmp_path_factory: pytest.TempPathFactory) -> SeedIndex:
    path = tmp_path_factory.mktemp("poly") / "a.fa"
    path.write_text(">a\n" + 2000 * "A" + "\n")
    return build_index(path, parts=("fast", "paper"))


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many k-mers each search is given, one by one."""
    searched: list[int] = []
    found = KmerSearch.find

    def find(self: KmerSearch, queries: Any, *rest: Any) -> Any:
        searched.append(len(queries.lengths))
        return found(self, queries, *rest)

    monkeypatch.setattr(KmerSearch, "find", find)
    return searched


@pytest.mark.parametrize("tier", ["fast", "paper"])
def test_kmers_without_room_are_not_tried_again_and_again(
    poly_a: SeedIndex, monkeypatch: pytest.MonkeyPatch, tried: list[int], tier: str
) -> None:
    monkeypatch.setattr("warpseed.tasks._ROOM", HITS - 1)
    assert len(find_kmers(poly_a, [KMER] * 512, tier=tier)) == 512 * HITS
    # The whole rest behind each of them would be half the square of their number.
    assert len(tried) < 2 * 512 and sum(tried) < 8 * 512


@pytest.mark.parametrize(("count", "threads", "searches"), [(1000, 1, 1), (1000, 2, 8), (1000, 4, 16), (100, 4, 2)])
def test_threads_share_a_piece_where_there_are_few(
    poly_a: SeedIndex, monkeypatch: pytest.MonkeyPatch, tried: list[int], count: int, threads: int, searches: int
) -> None:
    """A small set of k-mers is one piece, and its search may take long: each thread has some of it."""
    monkeypatch.setattr("warpseed.tasks._TURN", 0.0)
    monkeypatch.setattr("warpseed.tasks._LEAST_WORK", 0.0)
    kmers = ["C" * 20] * (count - 1) + [KMER]
    assert len(find_kmers(poly_a, kmers, threads=threads)) == HITS
    assert sum(tried) == count and len(tried) == searches


def test_threads_do_not_wait_for_turns_at_small_parts(
    poly_a: SeedIndex, monkeypatch: pytest.MonkeyPatch, tried: list[int]
) -> None:
    monkeypatch.setattr("warpseed.tasks._TURN", 1.0)
    assert len(find_kmers(poly_a, ["C" * 20] * 999 + [KMER], threads=4)) == HITS
    assert sum(tried) == 1000 and tried == [64, 936]


def test_what_is_left_is_shared_again_where_it_turns_out_to_take_long(poly_a: SeedIndex) -> None:
    """Queries that find nothing come first: many are then searched at once, until some take a second."""
    tasks = Tasks(cast(Any, None), kmer_search(poly_a, threads=4), None)
    part = _Part(Queries.from_sequences(1000 * [KMER]), 0, 1000, Room(1 << 17), False, 64, 64)

    def sizes(part: _Part, took: float) -> list[int]:
        rest = list(tasks._rest(part, 64, 64, took) or [])
        assert [each.begin for each in rest] == [64 + part.begin, *(each.end for each in rest[:-1])]
        assert all(each.end - each.begin <= each.most for each in rest) and rest[-1].end == part.end
        return [each.end - each.begin for each in rest]

    assert sizes(part, 1e-5) == [936]
    worth_130 = warpseed.tasks._TURN + warpseed.tasks._LEAST_WORK * 64 / 130.5
    assert sizes(part, worth_130) == 7 * [130] + [26]
    (slow,) = tasks._rest(part, 64, 64, 1e-5) or []
    assert sizes(slow, 1.0) == 13 * [64] + [40]
    nothing = [each.end - each.begin for each in tasks._rest(part, 0, 0, 1e-5) or []]
    assert max(nothing) == 64 and sum(nothing) == 1000


def test_a_search_ends_with_the_kmer_that_has_no_room(poly_a: SeedIndex) -> None:
    kmers = pack(Queries.from_sequences([KMER] * 100))
    search = cpu._range_search(poly_a, kmers, 0)
    block, counts = search.new_block(), np.zeros(100, np.int64)
    searcher = search._replace(new_block=lambda: block)._searcher(None)
    stop, hits, needed = searcher(0, 100, 5000, (counts, np.zeros(2, np.int64)))
    assert (stop, len(hits), needed) == (2, 2 * HITS, HITS)
    assert block.found[:3].tolist() == [HITS] * 3 and not block.found[3:100].any()


def test_a_search_ends_when_much_is_done(poly_a: SeedIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal waits for the search: of 100 k-mers, all of which are dropped, not all are done in one call."""
    kmers = pack(Queries.from_sequences([KMER] * 100))
    monkeypatch.setattr("warpseed.output.collect._MOST_WORK", 5000)
    found = cpu.find_first_fast(poly_a, kmers, 1, Room(1 << 17), max_hits=1, watch=Stopwatch())
    assert len(found.counts) == found.dropped_queries < 60 and found.dropped_hits == 2 * found.dropped_queries > 0
    # Without mismatches the number of their rows is enough.
    exact = cpu.find_first_fast(poly_a, kmers, 0, Room(1 << 17), max_hits=1, watch=Stopwatch())
    assert len(exact.counts) == exact.dropped_queries == 100 and exact.dropped_hits == 200
    monkeypatch.setattr(cpu, "_MOST_QUERIES", (7, 5, 3))
    for mismatches in range(3):
        few = cpu.find_first_paper(poly_a, kmers, mismatches, Room(1 << 17), max_hits=None, watch=Stopwatch())
        assert few.counts.tolist() == [HITS] * (7 - 2 * mismatches)


@pytest.mark.parametrize("step", [1 << 40, (1 << 63) - 1, 10**20])
def test_a_step_beyond_every_read_cuts_the_first_kmer(poly_a: SeedIndex, step: int) -> None:
    reads = ["C" * 30 + "G" * 30, "C" * 40]
    queries, _ = find_all(reads, kmer_search(poly_a, k=20, step=step), watch=Stopwatch())
    assert [queries.name(i) for i in range(len(queries))] == ["0:0", "1:0"]
