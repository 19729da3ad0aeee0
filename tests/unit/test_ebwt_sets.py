"""Sets of members of the eBWT's distances on a GPU, and their times, thread by thread, as the kernels are written."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.pretend_ebwt_fast import play_fast_kernels
from warpseed.compute.warp import LANES
from warpseed.ebwt import gpu_counts, gpu_sets


def numbered(members: np.ndarray) -> np.ndarray:
    """uint16, what is put down of members: the place of a bit in 32 of a half of all bits of lanes, those below each
    other."""
    return (members // 1_024 * 1_024 + members % 32 * 32 + members // 32 % 32).astype(np.uint16)


@pytest.mark.parametrize("times", [5, 16, 63, 64, 260, 1_100])
@pytest.mark.parametrize("levels", [4, 5])
def test_sets_of_every_level_up_to_the_last_time(monkeypatch: pytest.MonkeyPatch, levels: int, times: int) -> None:
    played, draw = play_fast_kernels(monkeypatch), np.random.default_rng(times)
    members, count = draw.integers(0, gpu_sets.WORDS, times), times // gpu_sets.RANKS
    there = played.package.asarray(numbered(members))
    sets = played.package.empty((levels, count * LANES), np.uint64)
    gpu_counts.launch(gpu_sets.make_sets, sets.shape[1], 64, there, sets.reshape(-1))
    for level in range(1, levels, 2):
        gpu_counts.launch(gpu_sets.join_sets, sets.shape[1], 64, level, sets)
    for level in range(levels):
        of_level, size = np.asarray(sets[level]).reshape(count, LANES), gpu_sets.JOINED**level
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
            assert members.tolist() == numbered(colours[is_member] - first_word).tolist()
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
    assert members.tolist() == numbered(np.arange(10)).tolist() and len(times) == 0
