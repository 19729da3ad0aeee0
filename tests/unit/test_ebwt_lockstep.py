"""The kernels of paper 004 run as they are written, thread by thread, and its host's side on a GPU that is played."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles.lockstep import run_kernel
from oracles.pretend_ebwt import play_kernels
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt import cpu_paper, gpu_paper
from warpseed.ebwt.paper import EMPTY, Written, all_pairs, bitonic_steps, prefix_length
from warpseed.ebwt.words import Words, words_of
from warpseed.errors import InputError, MemoryLimitError

STRINGS = ["abac", "cbab", "bca", "cba", "ab", "abab", "a", "abacabacabac"]


def run(kernel: Any, threads: int, block: int, *arguments: Any) -> None:
    run_kernel((gpu_paper,), (), (kernel, threads, block), *arguments)


def written_by_kernel(words: Words, block: int) -> Written:
    """Conjugates as the kernel writes them out, by blocks that may be smaller than words; one block too many."""
    count, letters = len(words.codes), prefix_length(words)
    written = Written(
        *(np.full(shape, 0xAB, kind) for shape, kind in (((count, letters), "u1"), (count, "u4"), (count, "u4")))
    )
    run(gpu_paper.write_conjugates, block * len(words.offsets), block, words.codes, words.offsets, written)
    return written


@pytest.mark.parametrize("block", [1, 3, 32])
def test_a_thread_writes_out_a_conjugate(block: int) -> None:
    words = words_of(STRINGS)
    written = written_by_kernel(words, block)
    rows = [(word[i:] + word[:i]) * 20 for word in STRINGS for i in range(len(word))]
    letters = np.frombuffer(words.letters, np.uint8)[written.prefixes]
    assert [row.tobytes().decode() for row in letters] == [row[: letters.shape[1]] for row in rows]
    numbers = [number for number, word in enumerate(STRINGS) for _ in word]
    assert written.words.tolist() == numbers and written.lengths.tolist() == [len(STRINGS[n]) for n in numbers]


def test_pointers_are_exchanged_as_on_the_cpu() -> None:
    words = words_of(STRINGS)
    written = written_by_kernel(words, 32)
    pointers = np.full(64, 7, np.uint32)
    run(gpu_paper.number_conjugates, 96, 32, len(words.codes), pointers)
    assert pointers.tolist() == [*range(len(words.codes)), *[EMPTY] * (64 - len(words.codes))]
    for size, stride in bitonic_steps(64):
        run(gpu_paper.exchange_pointers, 33, 16, written, pointers, size, stride)
    assert pointers[: len(words.codes)].tolist() == cpu_paper.order_conjugates(words).tolist()


def test_keys_are_eight_letters_and_zeros_behind_the_last() -> None:
    prefixes = np.arange(1, 61, dtype=np.uint8).reshape(3, 20)
    order, keys = np.array([2, 0, 1, 2], np.int64), np.zeros(4, np.uint64)
    for first in (0, 8, 16):
        run(gpu_paper.load_keys, 32, 32, prefixes, order, first, keys)
        expected = [prefixes[row, first : first + 8].tobytes().ljust(8, b"\0") for row in order]
        assert keys.tolist() == [int.from_bytes(letters, "big") for letters in expected]


def test_a_thread_measures_a_pair() -> None:
    words = words_of(STRINGS)
    order = cpu_paper.order_conjugates(words)
    colours = np.zeros(len(order), np.uint32)
    run(gpu_paper.colour_ranks, len(order) + 5, 32, written_by_kernel(words, 32).words, order, colours)
    pairs, matrix = all_pairs(len(STRINGS)), cpu_paper.distances(words, order)
    measured = np.full(len(pairs), -1, np.int64)
    run(gpu_paper.measure_pairs, len(pairs) + 1, 8, colours, pairs, measured)
    assert measured.tolist() == [matrix[tuple(pair)] for pair in pairs]


# ------------------------------------------------------------------------------------------------ the host's side


def test_a_step_of_the_bitonic_sort_is_a_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = play_kernels(monkeypatch)
    gpu_paper.order_conjugates(words_of(STRINGS))
    launched = [name for name, *_ in kernels.launched]
    assert launched.count("exchange_pointers") == len(bitonic_steps(64)) == 21
    assert ("write_conjugates", 32 * len(STRINGS), 32) in kernels.launched
    kernels.launched.clear()
    gpu_paper.order_conjugates(words_of(["ab" * 700, "b"]), sort="radix")
    assert ("write_conjugates", 2 * 1024, 1024) in kernels.launched  # no block has more threads
    assert [name for name, *_ in kernels.launched].count("load_keys") == 175  # 1,400 letters


def test_memory_and_sorts_are_checked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = play_kernels(monkeypatch)
    with pytest.raises(InputError, match="sort is 'merge', but 'bitonic' or 'radix' was expected on a GPU"):
        gpu_paper.order_conjugates(words_of(STRINGS), sort="merge")
    monkeypatch.setattr(gpu_paper, "free_memory", lambda: 1000)
    with pytest.raises(MemoryLimitError, match="writes out 33 conjugates of 12 letters"):
        gpu_paper.order_conjugates(words_of(STRINGS), watch=Stopwatch())
    assert kernels.launched == []
