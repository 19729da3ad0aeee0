"""The Levenshtein kernels of paper 003 run as they are written, thread by thread, against their twins on the CPU."""

from __future__ import annotations

import random

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles.lockstep import run_kernel
from oracles.tree_bitmap import codes_of_words, words_at
from warpseed.compute import warp
from warpseed.tree_bitmap import cpu_levenshtein, gpu_paper
from warpseed.tree_bitmap import gpu_levenshtein as kernels
from warpseed.tree_bitmap.growing import Growing

DEVICE_FUNCTIONS = (
    gpu_paper.append_record,
    gpu_paper.reset_active,
    kernels._begin,
    kernels._empty_queue,
    kernels._match,
    kernels._next_base,
    kernels._note,
    kernels._queue_children,
    kernels._read_efficiently,
    kernels._read_in_queues,
    kernels._read_naively,
    kernels._report,
    kernels._sweep_all,
    kernels._sweep_in_queues,
    kernels._sweep_is,
    kernels._sweep_k,
    warp.last_lane,
)


def assert_same(kernel: str, stream: list[int], known: list[int], k: int, edits: int, blocks: int, threads: int) -> int:
    """A kernel finds what its twin does; returns at how many places something is accepted."""
    dictionary, codes = Growing(k), np.array(stream, np.uint8)
    dictionary.insert(np.array(codes_of_words(word for _, word in words_at(known, k)), np.uint64))
    bitmap = dictionary.to_bitmap()
    expected = cpu_levenshtein.match_edits(codes, k, edits, bitmap)
    actives = np.full(blocks * (edits + 1) * len(bitmap.inmaps), 0xAB, np.uint32)
    buffer = gpu_paper.MatchBuffer(np.zeros(2 * len(codes), np.uint64), np.zeros(1, np.uint64))
    launch = (kernels.KERNELS[kernel], blocks * threads, threads)
    arguments = (codes, (k, edits), bitmap, (0, len(codes)), actives, buffer)
    run_kernel((kernels, gpu_paper, warp), DEVICE_FUNCTIONS, launch, *arguments)
    found = cpu_levenshtein.edits_of(buffer.records[: int(buffer.cursor[0])], len(codes))
    assert (found.accepted.tolist(), found.missed.tolist()) == (expected.accepted.tolist(), expected.missed.tolist())
    return int((expected.accepted > 0).sum())


@pytest.mark.parametrize(
    ("k", "edits", "blocks"),
    [(1, 0, 2), (3, 1, 1), (4, 2, 3), (6, 1, 2), pytest.param(31, 1, 1, marks=pytest.mark.thorough)],
)
@pytest.mark.parametrize("kernel", kernels.KERNELS)
def test_the_kernels_are_their_twins(kernel: str, k: int, edits: int, blocks: int) -> None:
    draw = random.Random(k)
    known = draw.choices(range(4), k=k + 12)
    edited = [code for code in known for code in draw.choice([[code]] * 9 + [[], [code, 2], [3]])]
    stream = [*edited, 4, *known[: k - 1]]
    assert assert_same(kernel, stream, known, k, edits, blocks, 32 if kernel == "queue" else 8) > 0


@pytest.mark.thorough
def test_queues_that_are_full_are_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    """By two warps; there is room for the children that one half of an exmap can have."""
    monkeypatch.setattr(kernels, "QUEUE", 32)
    emptied = []
    empty = kernels._empty_queue.py_func
    monkeypatch.setattr(kernels._empty_queue, "py_func", lambda *room: (emptied.append(int(room[1])), empty(*room))[1])
    draw = random.Random(5)
    known = draw.choices(range(4), k=700)
    assert assert_same("queue", draw.choices(range(4), k=9), known, 6, 3, 1, 64) > 0
    assert max(emptied) > 16
