"""Sets of members of the eBWT's distances on a GPU, and their times, thread by thread, as the kernels are written."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from oracles.pretend_ebwt_fast import play_fast_kernels, set_chunks
from warpseed.compute.warp import LANES
from warpseed.ebwt import gpu_between, gpu_counts, gpu_sets
from warpseed.ebwt.gpu_parts import Part


def marks_of(members: np.ndarray) -> np.ndarray:
    """uint16, as of `gpu_sets.mark_of`."""
    return (members // 1_024 * 1_024 + members % 32 * 32 + members // 32 % 32).astype(np.uint16)


@pytest.mark.parametrize("times", [16, 63, 64, 260, 1_100])
@pytest.mark.parametrize("levels", [4, 5])
def test_sets_of_every_level_up_to_the_last_time(monkeypatch: pytest.MonkeyPatch, levels: int, times: int) -> None:
    played, draw = play_fast_kernels(monkeypatch), np.random.default_rng(times)
    members, count = draw.integers(0, gpu_sets.WORDS, times), times // gpu_sets.RANKS
    there = played.package.asarray(marks_of(members))
    sets = played.package.empty((levels, count * LANES), np.uint64)
    gpu_counts.launch(gpu_sets.make_sets, sets.shape[1], 64, there, sets.reshape(-1))
    for level in range(1, levels, 2):
        gpu_counts.launch(gpu_sets.join_sets, sets.shape[1], 64, level, sets)
    for level in range(levels):
        of_level, size = np.asarray(sets[level]).reshape(count, LANES), 1 << level
        for begin in range(count - size + 1):
            expected = np.zeros((64, LANES), np.uint64)
            inside = members[begin * gpu_sets.RANKS : (begin + size) * gpu_sets.RANKS]
            expected[inside // LANES, inside % LANES] = 1
            bits = (of_level[begin] >> np.arange(64, dtype=np.uint64)[:, None]) & np.uint64(1)
            assert np.array_equal(bits, expected)


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
@pytest.mark.parametrize("ranks", [1, 31, 32, 33, 500, 1_023, 1_024, 1_025, 5_000])
def test_members_and_their_times(monkeypatch: pytest.MonkeyPatch, ranks: int, dtype: type) -> None:
    """Of words of which few, many or all are members, or none."""
    played, draw = play_fast_kernels(monkeypatch), np.random.default_rng(ranks)
    for most in (2 * gpu_sets.WORDS, 20 * gpu_sets.WORDS):
        colours = draw.integers(0, most, ranks).astype(dtype)
        for first_word in range(0, most + 1, gpu_sets.WORDS):
            is_member = (colours >= first_word) & (colours < first_word + gpu_sets.WORDS)
            there, size = played.package.asarray(colours), int(is_member.sum())
            members, times = gpu_counts._take_members(there, first_word, size, most)
            assert members.tolist() == marks_of(colours[is_member] - first_word).tolist()
            known = np.concatenate([[0], np.cumsum(is_member)[:-1]])
            blocks = np.arange(ranks) >> 5
            found = [
                int(times[block] >> np.uint64(32)) + (int(times[block]) & ((1 << (rank & 31)) - 1)).bit_count()
                for rank, block in enumerate(blocks)
            ]
            assert found == known.tolist()


def test_all_words_are_members_of_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    played = play_fast_kernels(monkeypatch)
    colours = played.package.asarray(np.arange(10, dtype=np.uint16))
    members, times = gpu_counts._take_members(colours, 0, 10, gpu_sets.WORDS)
    assert members.tolist() == marks_of(np.arange(10)).tolist() and len(times) == 0


def test_a_mark_says_where_a_member_is() -> None:
    members = np.arange(gpu_sets.WORDS)
    marks = marks_of(members)
    assert sorted(marks) == members.tolist()
    for member, mark in zip(members.tolist(), marks.tolist(), strict=True):
        assert gpu_sets.mark_of(member) == mark
        assert (gpu_sets.lane_of_mark(mark), gpu_sets.bit_of_mark(mark)) == (member % 32, member // 32)


def test_planes_count_up_to_the_most_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets of all lanes' bits, of which each is in another share."""
    monkeypatch.setattr(gpu_between, "added", gpu_between.added.py_func)
    draw, none = np.random.default_rng(5), np.uint64(0)
    are_in = draw.random((gpu_between.GAPS, 64)) < np.linspace(0, 1, 64)
    sets = (are_in * (np.uint64(1) << np.arange(64, dtype=np.uint64))).sum(axis=1, dtype=np.uint64)
    planes = (none,) * 8
    for first in range(0, gpu_between.GAPS, 4):
        planes = gpu_between.add_four.py_func(planes, *sets[first : first + 4])
    counts = [sum((int(plane) >> bit & 1) << k for k, plane in enumerate(planes)) for bit in range(64)]
    assert counts == are_in.sum(axis=0).tolist() and counts[-1] == gpu_between.GAPS
    for bit in range(8):
        eight = int(gpu_between.eight_counts.py_func(planes, bit))
        assert [eight >> (8 * byte) & 255 for byte in range(8)] == counts[bit::8]


def test_gaps_of_words_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many words as a set of some warps has, and more gaps of one than a warp counts."""
    played, draw = play_fast_kernels(monkeypatch), np.random.default_rng(8)
    m, often = 1_500, 3
    colours = draw.permutation(np.concatenate([np.repeat(np.arange(often), 280), np.arange(m)])).astype(np.uint16)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(colours))]).astype(np.int64)
    ranked = gpu_counts.rank_words(*map(played.package.asarray, (colours, offsets)))
    counts = np.asarray(gpu_counts.count_gaps(ranked, [Part(0, (0, 0), (often, 0))]))
    for word in range(often):
        ranks = np.flatnonzero(colours == word)
        assert len(ranks) > gpu_between.GAPS
        expected = np.zeros(m, np.int64)
        for first, last in pairwise(ranks):
            expected[np.unique(colours[first + 1 : last])] += 1
        assert counts[word].tolist() == expected.tolist()
        assert expected[:often].max() > 128 and expected[1_024:].any()


@pytest.mark.parametrize("served", [1, 31, 32, 33, 64, 200])
def test_each_warp_is_told_its_stretch_and_word(monkeypatch: pytest.MonkeyPatch, served: int) -> None:
    """Whether each has no warp, some, one of them nearly all, or only the last one any."""
    played, draw = play_fast_kernels(monkeypatch), np.random.default_rng(served)
    several, one = draw.integers(0, 4, served), np.zeros(served, int)
    one[served // 2] = 500
    for warps in (several, one, several + one, np.eye(served, dtype=int)[-1] * 70, np.zeros(served, int)):
        ends, count = np.cumsum(warps), int(warps.sum())
        owners = played.package.asarray(np.full(count + 5, 7_777, np.uint32))
        gpu_counts.launch(gpu_between.put_owners, served, 64, played.package.asarray(ends), owners)
        assert owners.tolist() == np.repeat(np.arange(served), warps).tolist() + [7_777] * 5


def test_distances_of_words_that_are_very_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than 32 bits can tell, in both halves of the matrix; what is not counted stays as it is."""
    played, letters = play_fast_kernels(monkeypatch), 3 << 30
    set_chunks(monkeypatch, 1)
    xp, counts = played.package, np.array([[5], [0], [7]], np.uint32)
    offsets, firsts = np.arange(4, dtype=np.int64) * letters, np.array([3, 1, 2], np.uint32)
    lasts, distances = np.array([6, 9, 8], np.uint32), xp.asarray(np.full((3, 3), -1, np.int64))
    read = (xp.asarray(values) for values in (counts, offsets, firsts, lasts))
    counted, *others = read
    gpu_counts.launch(gpu_between.put_distances, 128, 128, counted, 0, 1, *others, distances)
    # Of words 0 and 1, by gaps of the former: in five of them, before the first, and behind the last.
    apart = 2 * letters - (2 * 5 + 1 + 1 + 1)
    assert distances.tolist() == [[-1, apart, -1], [apart, 0, -1], [-1, -1, -1]]
