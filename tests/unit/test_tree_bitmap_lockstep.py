"""The kernels of paper 003 run as they are written, thread by thread, against their twins on the CPU."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles.lockstep import run_kernel
from oracles.tree_bitmap import codes_of_words, words_at
from warpseed.tree_bitmap import gpu_paper as kernels
from warpseed.tree_bitmap.bitmap import TreeBitmap
from warpseed.tree_bitmap.cpu_paper import match_chunk
from warpseed.tree_bitmap.growing import Growing

DEVICE_FUNCTIONS = (kernels.append_record, kernels._append_together, kernels.reset_active)


def drawn(k: int, count: int, seed: int) -> tuple[np.ndarray, TreeBitmap]:
    """A stream with a few holes, and the Tree Bitmap of half of its k-mers."""
    draw = random.Random(seed)
    codes = np.array(draw.choices(range(5), [12, 12, 12, 12, 1], k=count), np.uint8)
    dictionary = Growing(k, "tree")
    known = [word for _, word in words_at(codes.tolist(), k) if draw.random() < 0.5]
    dictionary.insert(np.array(codes_of_words(known), np.uint64))
    return codes, dictionary.to_bitmap()


def new_buffer(room: int) -> kernels.MatchBuffer:
    return kernels.MatchBuffer(np.zeros(room, np.uint64), np.zeros(1, np.uint64))


def launched(kernel: Any, threads: int, block: int, *arguments: Any) -> list[int]:
    """The records that a kernel leaves in its buffer, which is the last argument, in order."""
    run_kernel((kernels,), DEVICE_FUNCTIONS, (kernel, threads, block), *arguments)
    buffer = arguments[-1]
    return sorted(buffer.records[: int(buffer.cursor[0])].tolist())


@pytest.mark.parametrize(("k", "blocks"), [(1, 2), (3, 1), (4, 3), (5, 2), (9, 2), (31, 2)])
def test_the_naive_kernel_is_its_twin(k: int, blocks: int) -> None:
    codes, bitmap = drawn(k, 30 + k, k)
    places = (2, 26)
    expected = sorted(match_chunk(codes, k, bitmap, places, "naive").tolist())
    buffer, actives = new_buffer(100), np.full(blocks * len(bitmap.inmaps), 0xAB, np.uint32)
    assert launched(kernels.match_naively, 8 * blocks, 8, codes, k, bitmap, places, actives, buffer) == expected
    assert len(expected) > 10


@pytest.mark.parametrize(("k", "lanes"), [(1, 4), (3, 4), (4, 8), (5, 32), (7, 8), (15, 16), (31, 32)])
@pytest.mark.parametrize("pieces", [1, 5, 26])
def test_the_shuffle_kernel_is_its_twin_in_all_logical_warps(k: int, lanes: int, pieces: int) -> None:
    """Some pieces are empty, some logical warps have no piece."""
    codes, bitmap = drawn(k, 40 + k, k)
    places = (3, 27)
    expected = sorted(match_chunk(codes, k, bitmap, places).tolist())
    buffer, shape = new_buffer(100), (pieces, lanes)
    assert launched(kernels.match_by_shuffle, pieces * lanes, 64, codes, k, bitmap, places, shape, buffer) == expected
    assert len(expected) > 10


def test_what_finds_no_room_is_counted() -> None:
    codes, bitmap = drawn(4, 40, 1)
    expected = set(match_chunk(codes, 4, bitmap, (0, 37)).tolist())
    actives = np.empty(len(bitmap.inmaps), np.uint32)
    for kernel, work in ((kernels.match_naively, actives), (kernels.match_by_shuffle, (4, 8))):
        buffer = new_buffer(10)
        assert set(launched(kernel, 32, 32, codes, 4, bitmap, (0, 37), work, buffer)) < expected
        assert int(buffer.cursor[0]) == len(expected) > 20


def test_records_of_a_step_lie_beside_each_other() -> None:
    """Homopolymers: at each base one k-mer ends in each of the four pieces that a warp has."""
    codes, dictionary = np.zeros(43, np.uint8), Growing(4)
    dictionary.insert(np.zeros(1, np.uint64))
    buffer = new_buffer(40)
    launched(kernels.match_by_shuffle, 32, 32, codes, 4, dictionary.to_bitmap(), (0, 40), (4, 8), buffer)
    ends = [10 * piece + step + 3 for step in range(10) for piece in range(4)]
    assert (buffer.records >> np.uint64(32)).tolist() == ends
