"""What a GPU's threads are told of each look-up, held to all ways that mismatches may lie in a k-mer."""

from __future__ import annotations

import random

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from warpseed.fm_index.tagged import BASES_BEFORE
from warpseed.kmer_seeds import gpu_ways
from warpseed.kmer_seeds.fast import Scheme, exact_neighbours, make_scheme
from warpseed.kmer_seeds.gpu import COSTS


def reported_by(scheme: Scheme, k: int, places: list[int]) -> tuple[int, int]:
    """The window that reports a match with mismatches at these places, and the pattern by which it is found."""
    for i in range(int(scheme.windows[k])):
        offset, length, errors = (int(each[k, i]) for each in (scheme.offset, scheme.length, scheme.errors))
        if sum(offset <= place < offset + length for place in places) > errors:
            continue
        first, last = scheme.pattern_first[k, i : i + 2].tolist()
        seen = int(scheme.pattern_length[first])
        mask = sum(1 << 2 * (offset + seen - 1 - place) for place in places if offset <= place < offset + seen)
        return i, first + scheme.patterns[first:last].tolist().index(mask)
    raise AssertionError("no window reports it")


@pytest.mark.parametrize("table_length, rows", [(4, 90), (10, 300_000), (11, 1_200_000), (16, 3_000_000_000)])
@pytest.mark.parametrize("max_mismatches", [1, 2, 3])
def test_a_match_is_as_its_look_up_says(table_length: int, rows: int, max_mismatches: int) -> None:
    chance = random.Random(f"{table_length} {max_mismatches}")
    for k in (*range(max_mismatches + 1, 37, 3), 18, 20, 22, 30, 64, 255):
        scheme = make_scheme(np.array([k], np.uint32), max_mismatches, rows, table_length, COSTS)
        ways = gpu_ways.ways_of(scheme, True).astype(np.int64)
        for _ in range(60):
            places = chance.sample(range(k), chance.randint(0, max_mismatches))
            window, pattern = reported_by(scheme, k, places)
            way = int(ways[pattern])
            offset, seen = (int(each[pattern]) for each in (scheme.pattern_offset, scheme.pattern_length))
            assert (gpu_ways.window_of(way), gpu_ways.offset_of(way)) == (window, offset)
            behind = [place - offset - table_length for place in places if place >= offset + table_length]
            in_tag = sum(place < gpu_ways.bases_behind(way) for place in behind)
            assert in_tag <= gpu_ways.spare_of(way) <= max_mismatches
            assert not any(place < gpu_ways.sure_bases(way) for place in behind)
            if gpu_ways.is_whole(way):
                looked_up = sum(offset <= place < offset + seen for place in places)
                assert seen == table_length and looked_up + in_tag == len(places)
                assert k == table_length + gpu_ways.bases_behind(way)
            if gpu_ways.is_framed(way):
                before = sum(place < offset for place in places)
                looked_up = sum(offset <= place < offset + seen for place in places)
                assert window == 1 and offset <= BASES_BEFORE and before + looked_up + in_tag == len(places)
                assert max_mismatches - gpu_ways.spare_of(way) <= before + looked_up <= max_mismatches
                assert before > scheme.errors[k, 0]


def test_a_second_window_is_framed_by_the_bases_before_it() -> None:
    """Where two windows are looked up, and the first has as many bases as lie before a row at most."""
    for k, expected in ((30, True), (32, True), (20, False), (50, False)):
        scheme = make_scheme(np.array([k], np.uint32), 2, 3_000_000_000, 16, COSTS)
        ways = gpu_ways.ways_of(scheme, True)
        assert gpu_ways.has_framed(ways) == expected, k
        framed = ways >> np.uint32(gpu_ways._FRAMED) == 1
        assert (scheme.pattern_window[framed] == 1).all() and framed.sum() == expected * np.sum(
            scheme.pattern_window == 1
        )
        assert not gpu_ways.has_framed(gpu_ways.ways_of(scheme, False))


def test_neighbours_by_the_bases_that_they_change() -> None:
    masks, fewer = exact_neighbours(5, 3)
    assert np.diff(fewer[5]).tolist() == [1, 5 * 3, 10 * 9, 10 * 27]
    assert len(set(masks.tolist())) == len(masks) and masks.max() < 4**5
    for changes in range(4):
        own = masks[fewer[5, changes] : fewer[5, changes + 1]].tolist()
        for mask in own:
            assert sum(mask >> 2 * place & 3 > 0 for place in range(5)) == changes
        for last in range(6):
            of_these = own[: fewer[last, changes + 1] - fewer[last, changes]]
            assert sorted(of_these) == sorted(mask for mask in own if mask < 4**last)
