"""The kernels of k-mers with mismatches, run as they are written, against the CPU's search."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles.kmers import reverse_complement
from oracles.lockstep import run_kernel
from oracles.tagged import Far, bases_before, far_away, rows_of_both, tagged_rows, with_opposites
from warpseed import build_index
from warpseed.compute import appended, warp
from warpseed.compute.compiled import Compiled
from warpseed.compute.intrinsics import popcount
from warpseed.compute.sink import NO_LIMIT
from warpseed.fm_index import tagged
from warpseed.fm_index.layout import SeedIndex
from warpseed.fm_index.tagged import MOST_TABLE_LENGTH
from warpseed.kmer_seeds import cpu, gpu, gpu_crowded, gpu_exact, gpu_inexact, gpu_look_ups, gpu_ways
from warpseed.kmer_seeds.fast import exact_neighbours, make_scheme
from warpseed.kmer_seeds.kmers import QUERY_SHIFT, pack_kmers
from warpseed.sequences.packed import Packed
from warpseed.sequences.queries import Queries

MODULES = (gpu_inexact, gpu_crowded, gpu_look_ups, gpu_exact, appended, warp)
SEGMENTS = 2
ROOM = 20_000
BASES = "ACGT"


def mutated(draw: random.Random, bases: str, rate: float) -> str:
    return "".join(draw.choice(BASES) if draw.random() < rate else base for base in bases)


def repetitive(draw: random.Random) -> list[str]:
    """A contig of copies of a few bases, some of them changed, and of random bases; and short ones."""
    unit = "".join(draw.choices(BASES, k=draw.choice([7, 25, 40])))
    copies = [mutated(draw, unit, draw.choice([0, 0.05])) + "".join(draw.choices(BASES, k=3)) for _ in range(40)]
    text = "".join(copies) + "".join(draw.choices(BASES, k=200))
    return [text, text[:60], text[100:109]]


def drawn_kmers(draw: random.Random, text: str, lengths: list[int], unknown: bool) -> Packed:
    kmers: list[str] = []
    for k in lengths:
        first = draw.randrange(len(text) - k + 1)
        bases = mutated(draw, text[first : first + k], 0.03 if kmers else 0)
        if unknown:
            bases = "N" + bases[1:]
        kmers.append(bases if draw.random() < 0.5 else bases[::-1].translate(str.maketrans(BASES, BASES[::-1])))
    return pack_kmers(Queries.from_sequences(kmers))


def bits_of(intrinsic: Any, word: np.uint64) -> np.int64:
    """The one intrinsic that these kernels use."""
    assert intrinsic is popcount and isinstance(word, np.uint64)
    return np.int64(int(word).bit_count())


def room_taken(lists: gpu_look_ups.Lists) -> list[int]:
    """Take room for a piece in each part of the list, where something else stands as yet; places of these."""
    taken = []
    for segment in range(SEGMENTS):
        taken.append(segment * ROOM + int(lists.cursors[SEGMENTS + segment]))
        lists.crowded[taken[-1]] = lists.crowded[segment * ROOM]
        lists.cursors[SEGMENTS + segment] += np.uint64(1)
    return taken


def search(
    rows: tagged.TaggedIndex, kmers: Packed, mismatches: int, max_hits: int, framed: bool, first: int = 0
) -> tuple[gpu_look_ups.Lists, list[int]]:
    """What the kernels append, and how many hits there were before each; rows have numbers from `first` on."""
    scheme = make_scheme(kmers.lengths, mismatches, 100 * len(rows.rows), rows.table_length, gpu.COSTS)
    described = gpu_look_ups.strings_of(scheme), gpu_ways.ways_of(scheme, framed)
    near, before = (
        exact_neighbours(MOST_TABLE_LENGTH, mismatches),
        bases_before(rows) if framed else np.empty(0, np.uint32),
    )
    if first:
        rows, before = far_away(rows, first), Far(before, first, lenient=False)
    lists = gpu_look_ups.Lists(
        np.zeros(2 * SEGMENTS + 2, np.uint64),
        np.zeros(SEGMENTS * ROOM, np.uint64),
        np.zeros((SEGMENTS * ROOM, 4), np.uint32),
        np.zeros(len(kmers.lengths), np.uint64),
    )
    shared = gpu_look_ups.InexactSearch(rows, kmers, scheme, *described, near, before, max_hits, lists)
    rounds = -(-int(scheme.look_ups.max()) // (1 << gpu_inexact.LANES_SHIFT))
    threads = rows.orientations * len(kmers.lengths) << gpu_inexact.LANES_SHIFT
    launches: list[tuple[Any, int, Any]] = [(gpu_inexact.append_inexact, threads, lambda: rounds)]
    launches += [
        (kernel, warp.BLOCK, lists.cursors.copy)
        for kernel in (gpu_crowded.probe_crowded, gpu_crowded.look_deeper, gpu_crowded.read_crowded)
    ]
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Compiled, "__call__", lambda self, *given: self.py_func(*given))
        patch.setattr(type(popcount), "__call__", bits_of, raising=False)
        for kernel, count, argument in launches:
            found.append(int(lists.cursors[:SEGMENTS].sum()))
            arguments = shared, argument()
            taken = room_taken(lists) if found[1:] else []
            run_kernel(MODULES, (), (kernel, count, warp.BLOCK), *arguments)
            lists.crowded[taken] = 0
    assert lists.cursors[: 2 * SEGMENTS].max() <= ROOM
    return lists, found


def compare(lists: gpu_look_ups.Lists, index: SeedIndex, kmers: Packed, mismatches: int, max_hits: int) -> np.ndarray:
    """Hold what the kernels appended to what the CPU finds; returns how many hits each k-mer has."""
    expected = cpu.find_fast(index, kmers, mismatches)
    kept = expected.counts <= max_hits
    assert (lists.counts <= max_hits).tolist() == kept.tolist()
    assert lists.counts[kept].tolist() == expected.counts[kept].tolist()
    of_query = np.repeat(np.arange(len(kmers.lengths), dtype=np.uint64), expected.counts)
    keyed = (of_query << np.uint64(QUERY_SHIFT)) | expected.hits
    ours = np.concatenate([lists.hits[s * ROOM :][: int(lists.cursors[s])] for s in range(SEGMENTS)])
    ours = ours[kept[(ours >> np.uint64(QUERY_SHIFT)).astype(np.int64)]]
    assert np.sort(ours).tolist() == keyed[np.repeat(kept, expected.counts)].tolist()
    return expected.counts


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are many, and lists have few parts."""
    for module in (appended, gpu_look_ups, gpu_inexact):
        monkeypatch.setattr(module, "SEGMENTS", SEGMENTS)
    monkeypatch.setattr(gpu_inexact, "_CROWDED", 3)
    for name, rows in (("_RUN", 8), ("_LONG_RUN", 16), ("_SLICE", 32), ("_ROWS_A_PROBE", 0)):
        monkeypatch.setattr(gpu_crowded, name, rows)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("max_hits", [NO_LIMIT, 5])
@pytest.mark.parametrize("both", [False, True], ids=["one strand", "both strands"])
@pytest.mark.parametrize("framed", [False, True])
@pytest.mark.parametrize(
    ("lengths", "mismatches", "table_length", "unknown"),
    [
        ([12, 12, 12], 1, 4, False),
        ([8, 8], 2, 4, False),
        ([9, 14, 4], 2, 4, True),
        ([40, 33], 1, 5, False),
        ([20, 20], 3, 4, False),
        ([12] * 6, 3, 5, False),
        ([3, 15, 2], 1, 4, True),
    ],
)
def test_kernels_find_what_the_cpu_does(
    write_reference: Callable[..., Path], lengths: list[int], mismatches: int, table_length: int, unknown: bool,
    framed: bool, both: bool, max_hits: int,
) -> None:  # fmt: skip
    draw = random.Random(f"{lengths} {mismatches}")
    contigs = repetitive(draw)
    index = build_index(write_reference(contigs), table_length=table_length)
    kmers = drawn_kmers(draw, contigs[0], lengths, unknown)
    opposites = build_index(write_reference(with_opposites(contigs)), table_length=table_length)
    rows = rows_of_both(index, opposites) if both else tagged_rows(index)
    lists, _ = search(rows, kmers, mismatches, max_hits, framed)

    assert compare(lists, index, kmers, mismatches, max_hits)[0] > 0


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("k", "mismatches"), [(8, 2), (10, 2), (12, 3)])
def test_tags_of_fewer_bases_than_the_tables_strings(
    write_reference: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, k: int, mismatches: int
) -> None:
    """As they are where a table has strings of 16 bases; strings of the window before are looked up."""
    for module in (tagged, gpu_ways):
        monkeypatch.setattr(module, "TAG_BASES", 3)
    monkeypatch.setattr(gpu_crowded, "_ROWS_A_STRING", 0)
    draw = random.Random(k)
    contigs = repetitive(draw)
    index = build_index(write_reference(contigs), table_length=4)
    kmers = drawn_kmers(draw, contigs[0], [k] * 4, False)
    rows = rows_of_both(index, build_index(write_reference(with_opposites(contigs)), table_length=4))
    for framed in (False, True):
        lists, _ = search(rows, kmers, mismatches, NO_LIMIT, framed)
        assert compare(lists, index, kmers, mismatches, NO_LIMIT)[0] > 0


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("framed", [False, True])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("max_hits", [5, NO_LIMIT])
def test_rows_whose_numbers_reach_beyond_32_bits(
    write_reference: Callable[..., Path], max_hits: int, share: float, framed: bool
) -> None:
    """In crowded buckets, too, which are set aside."""
    draw = random.Random(f"{share}")
    contigs = repetitive(draw)
    index = build_index(write_reference(contigs), table_length=4)
    kmers = drawn_kmers(draw, contigs[0], [10, 10, 8, 8], False)
    rows = rows_of_both(index, build_index(write_reference(with_opposites(contigs)), table_length=4))
    first = tagged.TABLE_MODULUS - int(share * len(rows.rows))
    lists, _ = search(rows, kmers, 2, max_hits, framed, first)
    assert compare(lists, index, kmers, 2, max_hits)[0] > 0
    assert lists.cursors[SEGMENTS : 2 * SEGMENTS].any()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("framed", [False, True])
@pytest.mark.parametrize("k", [8, 9])
def test_a_second_window_that_no_tag_shows_whole(
    write_reference: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, k: int, framed: bool
) -> None:
    """Strings of it that differ in its last base alone lead to the same rows of the first window's strings."""
    for module in (tagged, gpu_ways):
        monkeypatch.setattr(module, "TAG_BASES", 3)
    draw = random.Random(k)
    first, second = "ACGT", "GATC" + "A" * (k - 8)
    crowd = "".join(draw.choice(BASES) + second[:3] + "G" + second[4:] for _ in range(400))
    text = crowd + "CCTTA" + "TCGA" + second + "ACCA"
    index = build_index(write_reference([text]), table_length=4)
    kmers = pack_kmers(Queries.from_sequences([first + second]))
    scheme = make_scheme(kmers.lengths, 3, 100 * 2 * index.rows, 4, gpu.COSTS)
    assert scheme.length[k, :2].tolist() == [4, 4] and scheme.errors[k, :2].tolist() == [1, 1]
    rows = rows_of_both(index, build_index(write_reference(with_opposites([text])), table_length=4))
    lists, _ = search(rows, kmers, 3, NO_LIMIT, framed)
    assert compare(lists, index, kmers, 3, NO_LIMIT)[0] > 0


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("max_hits", [2, 5, 30, NO_LIMIT])
@pytest.mark.parametrize("place", range(3))
def test_rows_on_either_side_of_a_kmer_in_its_crowded_bucket(
    write_reference: Callable[..., Path], max_hits: int, place: int
) -> None:
    """Rows that are most like it lie around it; others with one mismatch in the first of those bases do not."""
    draw = random.Random(place)
    first, last = "GATC", "CCGTACGA"
    tails = ["".join(draw.choices(BASES, k=8)) for _ in range(60)]
    tails += [base + last[1:] for base in BASES for _ in range(3 if place else 1)] + place * [last[:7] + "T"]
    draw.shuffle(tails)
    text = "".join(first + tail + "".join(draw.choices(BASES, k=2)) for tail in tails)
    index = build_index(write_reference([text]), table_length=4)
    kmers = pack_kmers(Queries.from_sequences([first + last, first + tails[0]]))
    lists, _ = search(tagged_rows(index), kmers, 2, max_hits, framed=True)
    assert compare(lists, index, kmers, 2, max_hits)[0] >= (4, 12, 12)[place]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("framed", [False, True])
def test_crowded_buckets_are_taken_in_each_way(
    write_reference: Callable[..., Path], framed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are read, strings searched for in tags, and strings of the window before looked up."""
    monkeypatch.setattr(gpu_crowded, "_ROWS_A_STRING", 1)
    monkeypatch.setattr(gpu_crowded, "_ROWS_A_PROBE", 1)
    draw = random.Random(3)
    unit = "".join(draw.choices(BASES, k=14))
    copies = [mutated(draw, unit[:4], 0.5) + unit[4:] + "".join(draw.choices(BASES, k=2)) for _ in range(70)]
    copies += [unit[:4] + mutated(draw, unit[4:8], 0.2) + "".join(draw.choices(BASES, k=1)) for _ in range(90)]
    text = "".join(copies)
    index = build_index(write_reference([text]), table_length=4)
    kmers = pack_kmers(Queries.from_sequences([unit[:8]]))
    lists, before = search(tagged_rows(index), kmers, 2, NO_LIMIT, framed)
    after = [*before[1:], int(lists.cursors[:SEGMENTS].sum())]
    assert all(more > fewer for fewer, more in zip(before, after, strict=True)), (before, after)
    assert (lists.crowded[:, 1] >= gpu_crowded._TO_BE_READ).any()
    assert lists.counts.tolist() == cpu.find_fast(index, kmers, 2).counts.tolist()


@pytest.mark.parametrize("both", [False, True], ids=["one strand", "both strands"])
@pytest.mark.parametrize("max_hits", [NO_LIMIT, 5])
@pytest.mark.parametrize("lengths", [[7, 5, 12], [3, 20, 30], [4, 40, 70]])
def test_exact_kmers(write_reference: Callable[..., Path], lengths: list[int], max_hits: int, both: bool) -> None:
    """Of fewer bases than the table's, of those a row decides, and of more; one of them has an N."""
    draw = random.Random(f"{lengths}")
    contigs = repetitive(draw)
    index = build_index(write_reference(contigs), table_length=4)
    firsts = [(draw.randrange(200), k) for k in lengths for _ in range(4)]
    drawn = [contigs[0][first : first + k] for first, k in firsts]
    drawn += [reverse_complement(each) for each in drawn[::2]]
    kmers = pack_kmers(Queries.from_sequences(["AT", "GAATTC", "GATTNC", "A" * 60, *drawn]))
    rows = tagged_rows(index)
    if both:
        rows = rows_of_both(index, build_index(write_reference(with_opposites(contigs)), table_length=4))
    count = len(kmers.lengths)
    cursor, counts, hits = np.zeros(2, np.uint64), np.zeros(count, np.uint32), np.zeros(ROOM, np.uint64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Compiled, "__call__", lambda self, *given: self.py_func(*given))
        launched = gpu_exact.append_exact, rows.orientations * count, warp.BLOCK
        run_kernel(MODULES, (), launched, rows, kmers, max_hits, True, cursor, counts, hits)
    expected = cpu.find_fast(index, kmers, 0, max_hits=None if max_hits == NO_LIMIT else max_hits)
    assert counts.tolist() == expected.counts.tolist()
    of_query = np.repeat(np.arange(count, dtype=np.uint64), expected.counts)
    keyed = (of_query << np.uint64(QUERY_SHIFT)) | expected.hits
    assert np.sort(hits[: int(cursor[0])]).tolist() == keyed.tolist() and len(keyed) >= 12
    assert int(cursor[1]) == expected.dropped_queries


def test_the_bases_before_each_row(write_reference: Callable[..., Path]) -> None:
    index = build_index(write_reference(repetitive(random.Random(5))), table_length=4)
    before = np.full(index.rows, 7, np.uint32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Compiled, "__call__", lambda self, *given: self.py_func(*given))
        launched = tagged.fill_bases_before, index.rows, warp.BLOCK
        run_kernel((tagged,), (), launched, index.text, tagged_rows(index).rows, before)
    assert before.tolist() == bases_before(tagged_rows(index)).tolist() and before.any()
