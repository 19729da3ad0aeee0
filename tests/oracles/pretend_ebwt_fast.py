"""The kernels of the eBWT's fast tier run as they are written, thread by thread, in small blocks, on GPUs that the CPU
plays."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
from warpseed.compute import device_copies, device_places, device_ties, searching, warp
from warpseed.compute import gpu as device
from warpseed.ebwt import (
    gpu,
    gpu_between,
    gpu_counts,
    gpu_distances,
    gpu_fast,
    gpu_few,
    gpu_few_words,
    gpu_groups,
    gpu_order,
    gpu_parts,
    gpu_ranges,
    gpu_runs,
    gpu_sets,
)

from oracles.lockstep import run_kernel
from oracles.pretend_cupy import Array, PretendCupy
from oracles.pretend_gpu import install

__all__ = [
    "DEVICE_FUNCTIONS",
    "LAUNCHERS",
    "MODULES",
    "TOGETHER",
    "Played",
    "play_fast_kernels",
    "set_chunks",
    "set_stretch",
]

MODULES = device_places, device_ties, gpu_between, gpu_fast, gpu_few, gpu_runs, gpu_sets, gpu_groups, warp
LAUNCHERS = (
    device_places, device_ties, gpu_counts, gpu_distances, gpu_few_words, gpu_order, gpu_ranges, gpu_groups, gpu_runs,
)  # fmt: skip
DEVICE_FUNCTIONS = (
    gpu_fast.further, gpu_fast.last_letter, gpu_fast.letters_from, searching.lower_bound,
    gpu_fast.ends_at, gpu_fast.known_of, gpu_fast.read_on,
    gpu_fast.repeats, gpu_fast.roll_on, gpu_fast.stretch_of_warp, gpu_fast.word_behind,
    gpu_between.add_counts, gpu_between.counted, gpu_between.distance, gpu_between.end_member, gpu_between.ends_of,
    gpu_between.is_before, gpu_between.is_counted, gpu_between.later_members, gpu_between.mark, gpu_between.stop_of,
    gpu_between.take_marks,
    gpu_sets.between_ends, gpu_sets.cover_of, gpu_sets.ends_of_cover, gpu_sets.is_long, gpu_sets.is_member,
    gpu_sets.time_of,
    gpu_few._deepen, gpu_few._keep_tile, gpu_few._make_tiles, gpu_few._merge, gpu_few._place, gpu_few._sort_tile,
    gpu_few.header_of,
    gpu_groups.ahead_in_word, gpu_groups.begins_at, gpu_groups.compare_listed, gpu_groups.count_before,
    gpu_groups.lanes_taken, gpu_groups.leave_tied, gpu_groups.list_tied, gpu_groups.next_number, gpu_groups.position_in,
    gpu_groups.run_at, gpu_groups.span_of,
    gpu_runs.put_rank, gpu_runs.run_of,
    device_places.eight_at,
    warp.first_lane, warp.lanes_before, warp.lanes_upto, warp.last_lane, warp.reserve, warp.wait_for_blocks,
    warp.warp_places,
)  # fmt: skip
TOGETHER = gpu_few.order_few, gpu_few.group_few
"""Kernels whose blocks wait for each other."""


class Played(NamedTuple):
    """GPUs that are played, and what was done there, in order."""

    package: PretendCupy
    launched: list[tuple[int, str, tuple[Any, ...]]]
    """number of the GPU, name of the kernel, and its arguments"""
    brought: list[tuple[int, Any]]
    """number of the GPU to which a value was copied from another, and the copy"""

    def where(self, name: str) -> list[int]:
        """On which GPUs a kernel was launched."""
        return [number for number, launched, _ in self.launched if launched == name]


def set_stretch(monkeypatch: Any, keys: int) -> None:
    """So many keys of a warp that looks for groups, of two in a block."""
    listed = keys + warp.LANES
    for name, value in (("BLOCK", 2 * warp.LANES), ("STRETCH", keys), ("_LISTED", listed)):
        monkeypatch.setattr(gpu_groups, name, value)
    monkeypatch.setattr(gpu_groups, "_LISTED_OF_BLOCK", 2 * listed)


def set_chunks(monkeypatch: Any, words: int) -> None:
    """So many members at once."""
    for module in (gpu_between, gpu_counts, gpu_distances, gpu_parts, gpu_sets):
        monkeypatch.setattr(module, "WORDS", words)


def play_fast_kernels(monkeypatch: Any, devices: int = 1) -> Played:
    """Put a pretended CuPy, so many GPUs and these kernels where the library looks for them."""
    package, _ = install(monkeypatch, None, devices)
    played, one_by_one = Played(package, [], []), threading.Lock()

    def here() -> int:
        return int(package.cuda.runtime.getDevice())

    def launch(function: Any, threads: int, block: int, *arguments: Any) -> None:
        together = -(-threads // block) if function in TOGETHER else 1
        with one_by_one:
            played.launched.append((here(), function.py_func.__name__, arguments))
            run_kernel(MODULES, DEVICE_FUNCTIONS, (function, threads, block), *arguments, together=together)

    def from_device(value: Any, out: Any = None) -> Any:
        copy = np.array(value).view(Array)
        played.brought.append((here(), copy))
        if out is not None:
            out[...] = copy
        return copy if out is None else out

    for module in LAUNCHERS:
        monkeypatch.setattr(module, "launch", launch)
    for module in (device_copies, gpu_distances, gpu_ranges, gpu_runs):
        monkeypatch.setattr(module, "from_device", from_device)
    monkeypatch.setattr(gpu, "_told", set())
    monkeypatch.setattr(device, "_probe", lambda size: None)
    for module in (gpu_order, gpu_few_words):
        monkeypatch.setattr(module, "multiprocessors", lambda: 3)
    monkeypatch.setattr(gpu_few, "TILE", 8)
    monkeypatch.setattr(gpu_few, "WAYS", 4)
    monkeypatch.setattr(gpu_few_words, "_BLOCK", 16)
    monkeypatch.setattr(gpu_order, "BLOCK", 16)
    monkeypatch.setattr(gpu_order, "KEY_BLOCK", 32)
    monkeypatch.setattr(gpu_distances, "_LEAST_SENT", 300)
    monkeypatch.setattr(gpu_distances, "_MOST_PIECES", 2)
    monkeypatch.setattr(gpu_fast, "ROLLED", 5)
    monkeypatch.setattr(gpu_fast, "WALKED", 3)
    monkeypatch.setattr(gpu_groups, "ROUNDS", 2)
    set_stretch(monkeypatch, 40)
    monkeypatch.setattr(gpu_ranges, "_LEAST_SENT", 30)
    monkeypatch.setattr(gpu_ranges, "BLOCK", 16)
    monkeypatch.setattr(device_places, "BLOCK", 32)
    monkeypatch.setattr(device_places, "_WORDS", 2)
    monkeypatch.setattr(device_places, "_TILE", 64)
    monkeypatch.setattr(gpu_runs, "_LEAST_PIECE", 9)
    monkeypatch.setattr(gpu_runs, "_MOST_PIECES", 3)
    monkeypatch.setattr(gpu_runs, "_JOINED", 6)
    monkeypatch.setattr(gpu_runs, "_THREADS", 16)
    monkeypatch.setattr(gpu_runs, "BLOCK", 64)
    monkeypatch.setattr(gpu_sets, "COUNTED", 24)
    monkeypatch.setattr(gpu_counts, "COUNTED", 24)
    monkeypatch.setattr(gpu_counts, "_THREADS", 16)
    monkeypatch.setattr(gpu_counts, "BLOCK", 32)
    monkeypatch.setattr(gpu_counts, "_LEAST_STRETCH", 40)
    monkeypatch.setattr(gpu_counts, "_GAPS_OF_STRETCH", 4)
    monkeypatch.setattr(gpu_counts, "_SLAB", 100)
    monkeypatch.setattr(gpu_few_words, "_LEAST_STRETCH", 10)
    return played
