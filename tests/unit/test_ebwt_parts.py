"""How the distances of all pairs are dealt out to GPUs: every gap of every word once, in equal parts; and in what
pieces they come back."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles.pretend_ebwt_fast import set_chunks
from warpseed.ebwt import gpu_between, gpu_distances, gpu_parts, gpu_sets
from warpseed.ebwt.gpu_parts import Part


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    set_chunks(monkeypatch, 32)


def lengths_of(kind: str, m: int) -> np.ndarray:
    draw = np.random.default_rng(m)
    lengths = {
        "equal": np.full(m, 700),
        "one letter": np.ones(m, np.int64),
        "drawn": draw.integers(1, 1_000, m),
        "ascending": np.arange(1, m + 1),
        "one long": np.where(np.arange(m) == m // 3, 100 * m, 3),
    }
    return lengths[kind].astype(np.int64)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("devices", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("m", [1, 2, 5, 33, 64, 100, 320])
@pytest.mark.parametrize("kind", ["equal", "one letter", "drawn", "ascending", "one long"])
def test_every_gap_is_in_one_part_and_parts_are_equal(kind: str, m: int, devices: int) -> None:
    lengths = lengths_of(kind, m)
    parts = gpu_parts.parts_of(lengths, devices)
    assert len(parts) == devices
    looks = np.array(
        [[gpu_between.is_counted.py_func(word, first, m) for word in range(m)] for first in range(0, m, 32)]
    )
    of_chunks = np.array([lengths[first : first + 32].sum() for first in range(0, m, 32)])
    looked_through = int(of_chunks.sum()) // gpu_parts._RANKS_LOOKED_AT if m > 32 else 0
    sets = of_chunks * gpu_parts._GAPS_COUNTED // gpu_parts._RANKS_IN_SETS + looked_through  # (what takes as long)
    total, of_devices = np.zeros((len(looks), m), np.int64), []
    for number, mine in enumerate(parts):
        assert len({part.first_word for part in mine}) == len(mine)
        have = np.zeros_like(total)
        for part in mine:
            assert part.begin < part.end
            for word in range(m):
                first = part.begin[1] if word == part.begin[0] else lengths[word] * (word < part.begin[0])
                last = part.end[1] if word == part.end[0] else lengths[word] * (word < part.end[0])
                have[part.first_word // 32, word] = last - first
                is_complete = part.complete_words.start <= word < part.complete_words.stop
                is_split = word in part.split_words
                assert is_complete == (last - first == lengths[word]) and is_complete + is_split <= 1
                assert is_complete or is_split or last == first, number
        total += have
        of_devices.append(have[looks].sum() + sets[[part.first_word // 32 for part in mine]].sum())
    assert (total == lengths).all()
    share = sum(of_devices) / devices
    assert max(of_devices) - share <= devices + 2 * share / 64 + sets.max() * (
        m > 32
    )  # (of one chunk all make the sets)


@pytest.mark.parametrize("m", [20_000, 40_000, 60_000])
def test_two_devices_are_done_together(m: int) -> None:
    """One that comes near to the end of members goes on with the next ones, if both are done sooner so."""
    lengths, chunks = np.full(m, 5_000), -(-m // gpu_sets.WORDS)
    of_chunks = np.add.reduceat(lengths, np.arange(0, m, gpu_sets.WORDS))
    sets, of_devices = gpu_parts._work_of_sets(of_chunks), []
    for parts in gpu_parts.parts_of(lengths, 2):
        gaps = 0
        for part in parts:
            counted = gpu_parts.counted_chunks(chunks)[:, part.first_word // gpu_sets.WORDS]
            of_words = np.repeat(counted, gpu_sets.WORDS)[:m]
            gaps += int(lengths[part.complete_words] @ of_words[part.complete_words])
        of_devices.append(gaps + int(sets[[part.first_word // gpu_sets.WORDS for part in parts]].sum()))
    alone = int((of_chunks @ gpu_parts.counted_chunks(chunks)).sum() + sets.sum())
    assert max(of_devices) <= (alone + sets.max()) // 2 + 5_000


@pytest.mark.parametrize(("lengths", "cuts"), [
    ([100] * 4, [(0, 2, 0)]), ([100] * 5, [(0, 2, 50)]), ([10_000], [(0, 0, 5_000)]), ([1_000, 1_005], [(0, 1, 0)]),
    ([200, 10, 10, 190], [(0, 1, 5)]), ([1], [(0, 0, 0)]),
])  # fmt: skip
def test_two_parts(lengths: list[int], cuts: list[tuple[int, int, int]]) -> None:
    """Cut where a word ends, or within one that is too long for that."""
    (_, word, rank), m = cuts[0], len(lengths)
    parts = gpu_parts.parts_of(np.array(lengths), 2)
    assert parts == [[Part(0, (0, 0), (word, rank))] * ((word, rank) > (0, 0)), [Part(0, (word, rank), (m, 0))]]


@pytest.mark.parametrize("count", [1, 2, 8])
@pytest.mark.parametrize("part", [
    Part(0, (0, 0), (9, 0)), Part(0, (0, 0), (1, 0)), Part(5, (2, 3), (2, 7)), Part(0, (3, 1), (100, 2)),
    Part(0, (3, 1), (4, 0)), Part(0, (3, 0), (3, 4)),
])  # fmt: skip
def test_a_part_is_split_by_words(part: Part, count: int) -> None:
    parts = part.split(count)
    assert (parts[0].begin, parts[-1].end) == (part.begin, part.end) and 1 <= len(parts) <= count
    assert all(one.end == other.begin and one.end[1] == 0 for one, other in pairwise(parts))
    assert all(one.begin < one.end and one.first_word == part.first_word for one in parts)
    assert {word for one in parts for word in one.split_words} == part.split_words
    complete = [[*range(1_000)[one.complete_words]] for one in parts]
    assert sum(complete, []) == [*range(1_000)[part.complete_words]]
    if part.end[0] > 8:
        assert len(parts) == count and max(map(len, complete)) <= -(-100 // count) + 1


@pytest.mark.parametrize("words", [1, 5, 31, 32, 33, 64, 65, 96, 128, 250, 320])
def test_every_pair_is_counted_once_and_each_word_for_half_of_the_others(
    monkeypatch: pytest.MonkeyPatch, words: int
) -> None:
    monkeypatch.setattr(gpu_between, "WORDS", 32)
    is_counted, chunk = gpu_between.is_counted.py_func, np.arange(words) // 32
    table = np.array([[is_counted(u, v, words) for v in range(words)] for u in range(words)])
    assert np.array_equal(table | table.T, np.ones((words, words), bool))
    assert np.array_equal(table & table.T, chunk[:, None] == chunk)
    chunks = -(-words // 32)
    of_words = [len(set(chunk[row].tolist())) for row in table]
    assert set(of_words) <= {chunks // 2, (chunks + 1) // 2, chunks // 2 + 1}
    # Where chunks face each other no half of the file has all that are looked at more often.
    if chunks % 4 == 0 and words % 32 == 0:
        assert sum(of_words[: words // 2]) == sum(of_words[words // 2 :])


def test_what_is_sent_last_is_sent_in_small_pieces() -> None:
    """Of forty thousand words, whatever a device's last part is; what is sent earlier may take longer."""
    words = 40_000
    whole = [Part(first, (0, 0), (words, 0)) for first in range(0, 5 * gpu_sets.WORDS, gpu_sets.WORDS)]
    rest = Part(5 * gpu_sets.WORDS, (0, 0), (2_000, 0))
    assert gpu_distances._pieces_of(whole, words, 4) == [1, 1, 1, 2, 8]
    assert gpu_distances._pieces_of([*whole, rest], words, 4) == [1, 1, 1, 2, 8, 1]


@pytest.mark.usefixtures("small_chunks")
def test_rows_that_follow_each_other_are_sent_at_once() -> None:
    """Of the complete words of a part, wherever it begins and ends, those whose gaps are counted."""
    for m, first_word in ((160, 64), (64, 32), (40, 0), (320, 128)):
        for begin, end in (((0, 0), (m, 0)), ((5, 0), (m - 7, 0)), ((5, 3), (m - 7, 3)), ((3, 1), (4, 0))):
            part = Part(first_word, begin, end)
            rows = range(m)[part.complete_words]
            expected = [row for row in rows if gpu_between.is_counted.py_func(row, first_word, m)]
            runs = list(gpu_distances._counted_in(part, m))
            assert [row for begin_row, end_row in runs for row in range(begin_row, end_row)] == expected
            assert all(one[1] < other[0] for one, other in pairwise(runs))
