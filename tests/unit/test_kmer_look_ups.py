"""What a GPU's threads are told of each look-up, held to all ways that mismatches may lie in a k-mer."""

from __future__ import annotations

import random

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from warpseed.kmer_seeds import gpu_look_ups as look_ups
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
        ways = look_ups.ways_of(scheme).astype(np.int64)
        for _ in range(60):
            places = chance.sample(range(k), chance.randint(0, max_mismatches))
            window, pattern = reported_by(scheme, k, places)
            way = int(ways[pattern])
            offset, seen = (int(each[pattern]) for each in (scheme.pattern_offset, scheme.pattern_length))
            assert (look_ups.window_of(way), look_ups.offset_of(way)) == (window, offset)
            behind = [place - offset - table_length for place in places if place >= offset + table_length]
            in_tag = sum(place < look_ups.bases_behind(way) for place in behind)
            assert in_tag <= look_ups.spare_of(way) <= max_mismatches
            assert not any(place < look_ups.sure_bases(way) for place in behind)
            if look_ups.is_whole(way):
                looked_up = sum(offset <= place < offset + seen for place in places)
                assert seen == table_length and looked_up + in_tag == len(places)
                assert k == table_length + look_ups.bases_behind(way)


def test_neighbours_by_the_bases_that_they_change() -> None:
    masks, first = exact_neighbours(5)
    assert np.diff(first).tolist() == [1, 5 * 3, 10 * 9, 10 * 27]
    assert len(set(masks.tolist())) == len(masks) and masks.max() < 4**5
    for changes in range(4):
        for mask in masks[first[changes] : first[changes + 1]].tolist():
            assert sum(mask >> 2 * place & 3 > 0 for place in range(5)) == changes
