"""The fast tier of maximal exact matches on a GPU: which appended matches are kept, tiles of seeds, and their rows."""

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
from oracles.pretend_gpu import install
from oracles.tagged import tagged_rows
from warpseed import build_index
from warpseed.compute import warp
from warpseed.mems import gpu, gpu_fast, gpu_longest
from warpseed.mems.fast import how_for
from warpseed.mems.matches import KINDS, MAXIMAL, PAPER, PLACE_BITS, SUPER, Criteria, pack_span
from warpseed.mems.reads import pack_long_reads
from warpseed.sequences.packed import Packed
from warpseed.sequences.queries import Queries


def is_wanted(kind: int, strand: int, begin: int, bases: int, length: int, ends: np.ndarray) -> bool:
    """As a definition: `ends` are of the read, int[2, bases], of both orientations where that counts."""
    if kind == SUPER:
        return begin + bases == ends[0, begin]
    if kind == PAPER:
        begin = length - begin - bases if strand else begin
        return begin + bases > ends[strand, begin]
    return True


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_kept_matches_are_counted_by_read(monkeypatch: pytest.MonkeyPatch, kind: int) -> None:
    """Blocks take more than one turn; in one part of the list some matches found no room."""
    draw, room, block = random.Random(kind), 100, 32
    monkeypatch.setattr(gpu_fast, "SEGMENTS", 2)
    monkeypatch.setattr(gpu_fast, "KEEPING_BLOCKS", 4)
    monkeypatch.setattr(gpu_fast, "BLOCK", block)
    lengths = [60, 3, 40, 70, 32]
    first = np.concatenate([[0], np.cumsum((np.array(lengths) + 31) // 32)]).astype(np.uint32)
    total = int(first[-1])
    reads = Packed(np.zeros(total, np.uint64), np.empty(0, np.uint64), first, np.array(lengths, np.uint32))
    ends = np.array([draw.randrange(40) for _ in range(2 * 32 * total)], np.uint32)
    matches = []
    for _ in range(2 * room):
        query, strand, bases = draw.choice([0, 2, 3]), draw.randrange(2), draw.randint(1, 20)
        begin = draw.randrange(20)
        if kind == SUPER and draw.randrange(2):
            ends[32 * first[query] + begin] = begin + bases
        matches.append((query, strand, begin, bases))
    keys = np.array([query << PLACE_BITS | 8 | strand for query, strand, _, _ in matches], np.uint64)
    spans = np.array([pack_span(bases, begin) for *_, begin, bases in matches], np.uint64)
    lists = gpu_fast.AppendedMatches(np.array([room + 9, 45, 0, 0], np.uint64), keys, spans)
    places, expected = [*range(room), *range(room, room + 45)], []
    for at in places:
        query, strand, begin, bases = matches[at]
        own = ends.reshape(2, -1)[:, 32 * first[query] :]
        if is_wanted(kind, strand, begin, bases, lengths[query], own):
            expected.append(at)
    cursor, counts = np.zeros(1, np.uint64), np.zeros(len(lengths), np.uint64)
    kept: tuple[Any, Any] = (np.zeros(len(places), np.uint64), np.zeros(len(places), np.uint64))
    functions = warp.warp_places, warp.reserve
    arguments = lists, reads, kind, ends, cursor, *kept, counts
    run_kernel((gpu_fast, warp), functions, (gpu_fast.keep_matches, 4 * block, block), *arguments, together=2)
    there = sorted(zip(*(array[: int(cursor[0])].tolist() for array in kept), strict=True))
    assert there == sorted((int(keys[at]), int(spans[at])) for at in expected)
    assert counts.tolist() == [sum(matches[at][0] == query for at in expected) for query in range(len(lengths))]
    assert 0 < len(expected) < len(places) or (kind == MAXIMAL and len(expected) == len(places))


@pytest.mark.parametrize("strands", [1, 2])
@pytest.mark.parametrize("table_length", [1, 8, 13, 16])
def test_tiles_hold_all_seeds_and_there_is_a_warp_for_each(
    monkeypatch: pytest.MonkeyPatch, strands: int, table_length: int
) -> None:
    """Reads of each length alone, and of all together."""
    install(monkeypatch, None)
    lengths = np.array([*range(1, 300), 1000, 4095, 4096, 4097], np.uint32)
    for min_length in (1, 2, 7, 13, 14, 20, 33, 70, 255):
        how = how_for(Criteria(min_length, MAXIMAL, strands), table_length, 1 << 20)
        held = min_length + 1 - how.step  # a match has that many bases from the first of its seeds on at least
        seeds = [len(range(0, int(length) - held + 1, how.step)) for length in lengths]
        tiles = [strands * -(-each // gpu_fast.SEEDS_A_WARP) for each in seeds]
        for some in (*lengths.reshape(-1, 1), lengths, lengths[:0]):
            words = np.zeros(int(((some.astype(np.int64) + 31) // 32).sum()), np.uint64)
            reads = Packed(words, words[:0], some[:0], some)
            there = gpu._first_tiles(reads, how).tolist()
            if len(some) != 1:
                assert there == [sum(tiles[:before]) for before in range(len(some) + 1)]
            assert there[-1] <= gpu._most_tiles(reads, how)


@pytest.mark.parametrize(("min_length", "every"), [(6, 1), (9, 2), (14, 1)])
def test_rows_of_sampled_seeds(
    monkeypatch: pytest.MonkeyPatch, write_reference: Callable[..., Path], min_length: int, every: int
) -> None:
    """Of every so many tiles: seeds that are in the read, and where each is in the text."""
    draw = random.Random(min_length)
    contig = "".join(draw.choices("ACGT", k=500)) + "GATTACA" * 60
    index = build_index(write_reference([contig]), table_length=6)
    sequences = [contig[90:390], "GATTACA" * 50, contig[480:520] + "N" + contig[:30], contig[:5]]
    reads, how = pack_long_reads(Queries.from_sequences(sequences)), how_for(Criteria(min_length, SUPER, 2), 6, 900)
    install(monkeypatch, None)
    total = len(reads.words)
    oriented = gpu_fast.OrientedReads(np.zeros(2 * total + 2, np.uint64), np.zeros(2 * total + 2, np.uint64))
    run_kernel((gpu_fast,), (), (gpu_fast.orient_words, total, 32), reads, 2, oriented)
    nothing, words = np.empty((0, 4), np.uint32), np.empty(0, np.uint64)
    lists, first_tile = gpu_fast.AppendedMatches(words, words, words), gpu._first_tiles(reads, how)
    search = gpu_fast.MatchSearch(
        tagged_rows(index), reads, oriented, how, first_tile, nothing, lists, nothing, True, 0, len(contig)
    )
    sampled = np.zeros(3, np.uint64)
    threads = 32 * gpu._most_tiles(reads, how)
    run_kernel((gpu_longest,), (gpu_fast.tile_at,), (gpu_longest.sample_seeds, threads, 32), search, every, sampled)
    seeds, rows, words, tile = 0, 0, 0, 0
    for sequence in sequences:
        for oriented_read in (sequence, reverse_complement(sequence)):
            own = range(0, len(sequence) - 6 + 1, how.step)
            for begin in range(0, len(own), gpu_fast.SEEDS_A_WARP):
                for seed in own[begin : begin + gpu_fast.SEEDS_A_WARP] if tile % every == 0 else ():
                    piece = oriented_read[seed : seed + 6]
                    seeds += 1
                    rows += sum(contig.startswith(piece, at) for at in range(len(contig)))
                    longest = seed + min_length
                    while longest <= len(sequence) and oriented_read[seed:longest] in contig:
                        longest += 1
                    words += (longest - 1 - seed) // 32 if longest > seed + min_length else 0
                tile += 1
    assert sampled.tolist() == [seeds, rows, words] and rows > 2 * seeds > 0 < words
