"""The kernels that say what places are, and list the k-mers that come first, run as they are written."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles import tree_bitmap as truth
from oracles.lockstep import run_kernel
from test_tree_bitmap_table import blocks_of
from warpseed.compute import warp
from warpseed.tree_bitmap import gpu_answers as kernels
from warpseed.tree_bitmap import gpu_fast
from warpseed.tree_bitmap.gpu_fast import Stretch
from warpseed.tree_bitmap.gpu_parts import hash_of, hashes_of_part

BLOCK = 64
"""Two warps."""


def launched(kernel: Any, threads: int, *arguments: Any) -> None:
    functions = kernels._new_at, kernels._kmers_at, gpu_fast.kmer_in, warp.lanes_before
    run_kernel((kernels, gpu_fast, warp), functions, (kernel, threads, BLOCK), *arguments)


@pytest.mark.parametrize("parts", [1, 2, 3])
@pytest.mark.parametrize("k", [1, 9, 25, 26, 31])
@pytest.mark.parametrize("rare", [0, 30, 6])
@pytest.mark.parametrize(("first", "last"), [(0, 0), (0, 8), (0, 150), (8, 95), (37, 38), (61, 235)])
def test_answers_of_parts(parts: int, k: int, rare: int, first: int, last: int) -> None:
    """Of any places: a bit of any part says that a k-mer is SEEN, and it is NEW without; no base is in the block, or
    few, or many; behind the stretch are k-mers, or none."""
    draw = random.Random(rare)
    codes = [4 if rare and not draw.randrange(rare) else draw.randrange(4) for _ in range(last + k - 1)]
    codes += [draw.choice([1, 4]) for _ in range(-len(codes) % 32)]
    (block,) = blocks_of(codes, [])
    words = dict(truth.words_at(codes, k))
    told = np.full(-(-(last - first) // 8), 0x4D4D_4D4D_4D4D_4D4D, np.uint64)
    seen = np.frombuffer(draw.randbytes(parts * len(told)), np.uint8).reshape(parts, -1)
    stretch = Stretch(first, last, 0, parts)
    launched(kernels.put_answers, len(told) + 3, block, k, stretch, seen[0], seen[1:], told)
    bits = np.unpackbits(np.bitwise_or.reduce(seen), bitorder="little")
    expected = [(truth.SEEN if bit else truth.NEW) for bit in bits[: last - first]]
    for place in range(first, last):
        if place not in words:
            expected[place - first] = truth.NO_KMER
    assert told.view(np.uint8)[: last - first].tolist() == expected


@pytest.mark.parametrize("tile", [32, 96])
@pytest.mark.parametrize(("first", "last"), [(0, 1), (0, 32), (3, 99), (5, 101), (0, 150), (40, 230), (7, 7)])
@pytest.mark.parametrize("parts", [1, 2, 5])
@pytest.mark.parametrize("k", [4, 31])
def test_listed_kmers(monkeypatch: pytest.MonkeyPatch, tile: int, first: int, last: int, parts: int, k: int) -> None:
    """Those of a part that come first, in the order of their places; what is behind the stretch is not looked at."""
    monkeypatch.setattr(kernels, "TILE", tile)
    draw = random.Random(last)
    codes = [draw.randrange(4) for _ in range(270)]
    (block,) = blocks_of(codes, [])
    words = dict(truth.words_at(codes, k))
    answers = np.array(draw.choices([truth.NO_KMER, truth.NEW, truth.SEEN], [1, 3, 2], k=last - first + 9), np.uint8)
    numbers = np.array([truth.codes_of_words([words[place]])[0] for place in range(last)], np.uint64)
    dealt = hash_of.py_func(numbers, k).tolist()
    for part in range(min(parts, 3)):
        stretch = Stretch(first, last, part, parts)
        mine = range(4**k)[hashes_of_part(k, part, parts)]
        wanted = [place for place in range(first, last) if answers[place - first] == truth.NEW and dealt[place] in mine]
        tiles = -(-(last - first) // tile)
        ends = np.full(tiles, -1)
        launched(kernels.count_new, 32 * tiles, block, k, stretch, answers, ends)
        assert ends.tolist() == [
            sum(begin <= place - first < begin + tile for place in wanted) for begin in range(0, last - first, tile)
        ]
        np.cumsum(ends, out=ends)
        kmers, places = np.zeros(len(wanted), np.uint64), np.zeros(len(wanted), np.int64)
        launched(kernels.list_new, 32 * tiles, block, k, stretch, answers, ends, kmers, places)
        assert places.tolist() == wanted and kmers.tolist() == numbers[wanted].tolist()
