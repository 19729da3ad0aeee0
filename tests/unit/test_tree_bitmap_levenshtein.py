"""The Levenshtein Tree Bitmap on the CPU: the oracle's automaton, and what its traversals read and write."""

from __future__ import annotations

import random

import numpy as np
import pytest
from oracles.tree_bitmap import Word, automaton_edits, codes_of_words, least_edits, words_at
from warpseed.errors import InputError
from warpseed.tree_bitmap import cpu_levenshtein
from warpseed.tree_bitmap.bitmap import TreeBitmap
from warpseed.tree_bitmap.cpu_levenshtein import EDIT_KERNELS, match_edits
from warpseed.tree_bitmap.growing import Growing

CASES = ((1, 0), (3, 0), (3, 2), (4, 1), (4, 3), (5, 2), (6, 2), (9, 1), (31, 1))


def of_words(words: set[Word], k: int) -> TreeBitmap:
    dictionary = Growing(k, "hybrid")
    dictionary.insert(np.array(codes_of_words(words), np.uint64))
    return dictionary.to_bitmap()


def streams(k: int, seed: int) -> dict[str, tuple[list[int], set[Word]]]:
    """Streams with their dictionaries: words of other bases, of themselves, none, a homopolymer's."""
    draw = random.Random(100 * k + seed)
    unit = draw.choices(range(4), k=k + 20)
    edited = [code for code in unit for code in draw.choice([[code]] * 9 + [[], [code, 2], [3]])]
    holes = draw.choices(range(5), [9, 9, 9, 9, 1], k=90)

    def words(codes: list[int]) -> set[Word]:
        return {word for _, word in words_at(codes, k)}

    return {
        "near": (edited + [4] + edited[5:] + holes, words(unit)),
        "itself": (holes, words(holes)),
        "homopolymer": ([1] * 40 + [0] * 2 * k, words([1] * k)),
        "empty": (holes, set()),
        "short": (unit[: k - 1], words(unit)),
        "nothing": ([], words(unit)),
        "no base": ([4] * 9, words(unit)),
    }


@pytest.mark.parametrize(("k", "edits"), CASES)
@pytest.mark.parametrize("kernel", EDIT_KERNELS)
def test_both_traversals_are_the_oracles_automaton(k: int, edits: int, kernel: str) -> None:
    for name, (stream, words) in streams(k, edits).items():
        accepted, missed = automaton_edits(stream, k, words, edits)
        bitmap = of_words(words, k)
        for pieces in (1, 2, 13):
            found = match_edits(np.array(stream, np.uint8), k, edits, bitmap, kernel, pieces)
            assert (found.accepted.tolist(), found.missed.tolist()) == (accepted, missed), (name, pieces)


@pytest.mark.parametrize(("k", "edits"), [(4, 1), (6, 2), (7, 3)])
def test_what_is_accepted_is_within_the_levenshtein_distance(k: int, edits: int) -> None:
    stream, words = streams(k, 9)["near"]
    found = match_edits(np.array(stream, np.uint8), k, edits, of_words(words, k)).accepted.tolist()
    near = [least <= edits for least in least_edits(stream, words, edits)]
    assert all(close for bits, close in zip(found, near, strict=True) if bits)
    assert sum(bits > 0 for bits in found) > 10


@pytest.mark.parametrize(("k", "edits"), [(4, 1), (6, 2), (9, 2), (9, 3)])
def test_the_efficient_traversal_reads_and_writes_less(k: int, edits: int) -> None:
    """What both write is the same words but for those of a dist-level that the naive one writes twice."""
    codes = np.array(random.Random(k).choices(range(4), k=300), np.uint8)
    bitmap = of_words({word for _, word in words_at(codes[:200].tolist(), k)}, k)
    naive, efficient = (match_edits(codes, k, edits, bitmap, kernel).accesses for kernel in ("naive", "efficient"))
    assert naive and efficient
    assert efficient.reads < naive.reads and efficient.writes < naive.writes


def test_accesses_by_hand() -> None:
    """The word ACG, and A read with one edit, by each traversal in turn."""
    bitmap = of_words({(0, 1, 2)}, 3)
    naive = match_edits(np.zeros(1, np.uint8), 3, 1, bitmap, "naive").accesses
    efficient = match_edits(np.zeros(1, np.uint8), 3, 1, bitmap, "efficient").accesses
    # Both trie-nodes, on both dist-levels: 4 active inmaps for K, 2 for I and S. The root's alone has states, on level
    # 0: its inmap is read and its active inmap written for K; its inmap and the one on level 1 are read for I and S,
    # and that is written.
    assert naive == (6 + 1 + 2, 2)
    # 4 active inmaps, the inmap once, both active inmaps of the root's written.
    assert efficient == (4 + 1, 2)


def test_without_edits_both_are_the_same_traversal() -> None:
    codes = np.array(random.Random(3).choices(range(4), k=100), np.uint8)
    bitmap = of_words({word for _, word in words_at(codes[:50].tolist(), 5)}, 5)
    assert match_edits(codes, 5, 0, bitmap, "naive").accesses == match_edits(codes, 5, 0, bitmap).accesses


def test_what_is_out_of_range_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    bitmap, codes = of_words(set(), 3), np.zeros(9, np.uint8)
    for edits in (-1, 3):
        with pytest.raises(InputError, match="max_edits is"):
            match_edits(codes, 3, edits, bitmap)
    with pytest.raises(InputError, match="kernel is 'fast', but one of naive, efficient, queue was expected"):
        match_edits(codes, 3, 1, bitmap, "fast")
    with pytest.raises(InputError, match="k is 32"):
        match_edits(codes, 32, 1, bitmap)
    monkeypatch.setattr(cpu_levenshtein, "MOST_PLACES", 8)
    with pytest.raises(InputError, match="The stream has 9 places"):
        match_edits(codes, 3, 1, bitmap)
