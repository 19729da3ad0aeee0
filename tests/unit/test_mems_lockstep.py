"""The kernels of the paper tier of long reads, run as they are written, against the CPU's stages."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles.lockstep import run_kernel
from warpseed import build_index
from warpseed.compute import warp
from warpseed.fm_index.binned import binned_index
from warpseed.mems import cpu
from warpseed.mems import gpu_paper as kernels
from warpseed.mems.matches import PAPER, Criteria
from warpseed.mems.paper import Entries
from warpseed.mems.reads import pack_long_reads
from warpseed.sequences.queries import Queries

DEVICE_FUNCTIONS = (kernels._is_early_redundant, kernels._place_in, warp.last_lane, warp.warp_places)


def launched(kernel: Any, threads: int, *arguments: Any) -> None:
    run_kernel((kernels, warp), DEVICE_FUNCTIONS, (kernel, threads, warp.BLOCK), *arguments)


def new_entries(count: int) -> Entries:
    return Entries(np.empty(count, np.uint64), np.empty(count, np.uint64), np.empty(count, np.uint32))


def borders_of(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


@pytest.mark.parametrize(("length", "seed"), [(2, 1), (4, 2), (6, 3), (9, 4)])
def test_kernels_find_what_the_cpu_does(write_reference: Callable[..., Path], length: int, seed: int) -> None:
    draw = random.Random(seed)
    contigs = ["".join(draw.choices("ACGTN", [9, 9, 9, 9, 1], k=400)), "AC" * 30, "A" * 50]
    first = draw.randrange(300)
    reads = [contigs[0][first : first + 70], "AC" * 20 + contigs[0][:9], "A" * 15, "ACGT"[:length]]
    index = build_index(write_reference(contigs), table_length=draw.choice([1, 3]))
    packed = pack_long_reads(Queries.from_sequences(reads))
    criteria, binned = Criteria(length, PAPER, 2), binned_index(index, length)
    expected = cpu.search_paper(index, packed, criteria)

    patterns = expected.patterns._replace(words=np.zeros_like(expected.patterns.words))
    launched(kernels.pack_pattern_words, len(patterns.words) - 3, packed, patterns)
    assert patterns.words.tolist() == expected.patterns.words.tolist()
    count = int(patterns.starts[-1])
    started = kernels.Started(np.empty(count, np.uint32), np.empty(count, np.uint32))
    launched(kernels.assign_starts, count, patterns.starts, 0, started)

    found, counts = new_entries(count), np.empty(-(-count // warp.BLOCK), np.uint32)
    launched(kernels.find_intervals, count, binned, patterns, started, length, found, counts)
    borders = borders_of(counts)
    compacted = new_entries(int(borders[-1]))
    launched(kernels.compact_found, count, found, started.patterns, borders, compacted)
    # Some of what is redundant is found before it is written.
    assert len(expected.entries.spans) <= len(compacted.spans)
    counts = np.empty(-(-len(compacted.spans) // warp.BLOCK), np.uint32)
    launched(kernels.count_kept, len(compacted.spans), compacted, counts)
    borders = borders_of(counts)
    kept = new_entries(int(borders[-1]))
    launched(kernels.compact_kept, len(compacted.spans), compacted, borders, kept)
    assert [column.tolist() for column in kept] == [column.tolist() for column in expected.entries]

    rows, matches = np.empty(len(kept.spans), np.int64), np.empty(len(reads), np.int64)
    launched(kernels.count_new_rows, len(rows), kept, rows)
    assert borders_of(rows).tolist() == expected.borders.tolist()
    launched(kernels.count_matches, len(reads), kept, expected.borders, 2, matches)
    assert matches.tolist() == expected.counts.tolist()
    limit, total = int(np.median(matches)), int(expected.borders[-1])
    launched(kernels.drop_reads, len(rows), kept, 2, limit, matches, rows)
    assert int(rows.sum()) == int(matches[matches <= limit].sum())

    split, owners = np.empty(total, np.uint32), np.empty(total, np.uint32)
    launched(kernels.split_intervals, total, kept, expected.borders, 0, split, owners)
    keys, spans = np.empty(total, np.uint64), np.empty(total, np.uint64)
    launched(kernels.locate_matches, total, binned, patterns, kept, split, owners, keys, spans)
    hits = cpu.find_paper(index, packed, criteria)
    query = np.repeat(np.arange(len(reads), dtype=np.uint64), hits.counts) << np.uint64(kernels.PLACE_BITS)
    places = hits.hits["place"] & np.uint64((1 << kernels.PLACE_BITS) - 1)
    in_order = zip(query | places, hits.hits["span"], strict=True)
    assert sorted(zip(keys, spans, strict=True)) == list(in_order)
    assert len(keys) > 50


@pytest.mark.thorough
def test_what_another_lane_has_found_ends_a_search(write_reference: Callable[..., Path]) -> None:
    """Of a read that lies in the text, one MEM start of each warp writes a match; the others are redundant early."""
    bases = "".join(random.Random(1).choices("ACGT", k=400))
    index = build_index(write_reference([bases]))
    patterns = cpu.search_paper(
        index, pack_long_reads(Queries.from_sequences([bases[20:200]])), Criteria(20, PAPER, 1)
    ).patterns
    count = int(patterns.starts[-1])
    started = kernels.Started(np.zeros(count, np.uint32), np.arange(count, dtype=np.uint32))
    found, counts = new_entries(count), np.empty(-(-count // warp.BLOCK), np.uint32)
    launched(kernels.find_intervals, count, binned_index(index, 20), patterns, started, 20, found, counts)
    # A table of so few bases leaves several rows at first: then a lane or two find what the first one does.
    assert counts.sum() <= 3 * -(-count // 32) and found.intervals[0] != 0
