"""How near the GPU kernels come to what the device can do: k-mers on the device, hits left there.

floor = sum over arrays of (sectors that must be read / rate of random 32-byte sectors in a table of that size,
measured in the same run); share = floor / time. What must be read: for every look-up the sector of its table entries
(look-ups that share a sector count once); for every bucket that holds something the sectors of the rows that agree
with the k-mer, at least one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numba import float64, int64, uint64

from warpseed.compute.bits import prefix_mask, reverse_complement_word
from warpseed.compute.compiled import scalar
from warpseed.compute.stopwatch import Stopwatch
from warpseed.fm_index.layout import SeedIndex
from warpseed.fm_index.store import open_index
from warpseed.fm_index.text import inside_segment
from warpseed.kmer_seeds.fast import make_scheme
from warpseed.measure.records import join_parameters
from warpseed.sequences.packed import Packed

__all__ = ["draw_kmers", "measure_limits"]

_SECTOR = 32
_READS_PER_THREAD = 64
_GATHER_THREADS = 1 << 21


@scalar
def _next_random(state):
    """One step of splitmix64: (new state, random word)."""
    state = state + uint64(0x9E3779B97F4A7C15)
    word = (state ^ (state >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> uint64(27))) * uint64(0x94D049BB133111EB)
    return state, word ^ (word >> uint64(31))


@scalar
def _draw(fast, length, error_rate, seed, words):
    from_text = fast.text
    rows = uint64(fast.suffix_array.shape[0])
    state = uint64(seed)
    for i in range(words.shape[0]):
        position = int64(-1)
        while position < int64(0) or not inside_segment(fast.segments, position, length):
            state, word = _next_random(state)
            position = int64((word >> uint64(32)) * rows >> uint64(32))
        index = position >> int64(5)
        shift = uint64(int64(2) * (position & int64(31)))
        bases = from_text[index] << shift
        if shift != uint64(0):
            bases |= from_text[index + int64(1)] >> (uint64(64) - shift)
        words[i] = bases & prefix_mask(length)
        if word & uint64(1):
            words[i] = reverse_complement_word(words, int64(i), length, int64(0), ~uint64(0))
        for base in range(length if error_rate > 0 else 0):
            state, word = _next_random(state)
            if float64(word >> uint64(11)) * 2.0**-53 < error_rate:
                state, word = _next_random(state)
                change = uint64(1) + word % uint64(3)
                words[i] ^= change << uint64(int64(62) - int64(2) * int64(base))


def draw_kmers(index: SeedIndex, length: int, count: int, error_rate: float, seed: int) -> Packed:
    """k-mers of at most 32 bases from uniform places of the reference, both strands, with substitutions."""
    words = np.empty(count, np.uint64)
    _draw(index.fast, length, float(error_rate), seed, words)
    return Packed(words, np.empty(0, np.uint64), np.empty(0, np.uint32), np.full(count, length, np.uint32))


def _time(run: Callable[[], Any], repeats: int) -> list[float]:
    """Seconds of each repeat by CUDA events, after a warm-up."""
    from warpseed.compute.gpu import time_on_device

    run()
    seconds = []
    for _ in range(repeats):
        watch = Stopwatch()
        with time_on_device(watch, "kernel"):
            kept = run()
        del kept
        seconds.append(watch.seconds["kernel"])
    return seconds


def _gather_rate(array: Any, repeats: int) -> float:
    """Random 32-byte sectors a second from a table of this array's size."""
    from warpseed.compute.gpu import cupy, launch, view
    from warpseed.kmer_seeds.gpu_floors import gather_sectors

    xp = cupy()
    words = view(xp.asarray(array).view(xp.uint32))
    sums = view(xp.empty(_GATHER_THREADS, xp.uint32))
    seconds = _time(lambda: launch(gather_sectors, _GATHER_THREADS, 256, words, _READS_PER_THREAD, sums), repeats)
    return _GATHER_THREADS * _READS_PER_THREAD / float(np.median(seconds))


def measure_limits(
    index: str | os.PathLike[str],
    cases: Iterable[Mapping[str, Any]],
    *,
    repeats: int,
    seed: int,
    max_hits: int | None = None,
) -> list[dict[str, Any]]:
    """Time the kernels of both tiers with k-mers on the device, beside their floors.

    Parameters
    ----------
    index : folder of an index
    cases : mappings with k (at most 32), mismatches, count, error_rate and tiers
    max_hits : as in `find_kmers`

    Returns
    -------
    list of records with item `limits`: metric rate (random sectors a second of each array), time, throughput
    (k-mers a second), floor and share.
    """
    from warpseed.compute.gpu import cupy, launch, to_device, view
    from warpseed.kmer_seeds import gpu
    from warpseed.kmer_seeds.gpu_floors import count_sectors

    opened = open_index(index)
    xp = cupy()
    watch = Stopwatch()
    tagged = gpu.tagged_index(opened, watch)
    fields = {
        "system": "kmer_seeds", "item": "limits", "tool": "warpseed", "device": "gpu", "threads": 1,
    }  # fmt: skip
    rates = {}
    rows: list[dict[str, Any]] = []
    for name in ("table", "rows", "text"):
        array = xp.asarray(getattr(tagged, name))
        rates[name] = _gather_rate(array[: array.nbytes // _SECTOR * _SECTOR // array.itemsize], repeats)
        what = {
            "case": f"random sectors of the {name}",
            "parameters": join_parameters({"array": name, "bytes": array.nbytes}),
        }
        rows.append(fields | what | {"stage": "kernel", "metric": "rate", "value": rates[name], "unit": "1/s"})
    for case in cases:
        k, mismatches, count = int(case["k"]), int(case["mismatches"]), int(case["count"])
        parameters = {"k": k, "mismatches": mismatches, "errors": case["error_rate"], "count": count}
        kmers = draw_kmers(opened, k, count, float(case["error_rate"]), seed)
        on_device = to_device(kmers)
        scheme = make_scheme(kmers.lengths, mismatches, opened.rows, tagged.table_length, gpu.COSTS)
        sectors = view(xp.zeros(2, xp.uint64))
        look_ups = 2 * count * int(scheme.look_ups[k])
        launch(count_sectors, look_ups, 256, tagged, on_device, to_device(scheme), sectors)
        of_table, of_rows = map(int, sectors.copy_to_host())
        floor = of_table / rates["table"] + of_rows / rates["rows"]
        for tier in case["tiers"]:
            if tier == "paper" and mismatches > 2:
                continue
            run = gpu.device_run(opened, kmers, mismatches, tier=tier, max_hits=max_hits)
            results = run()
            seconds = _time(run, repeats)
            shared = fields | {
                "tier": tier, "case": f"k={k}, D={mismatches}, errors={case['error_rate']}, {count:,} k-mers",
                "parameters": join_parameters(parameters),
                "stage": "kernel", "queries": count, "results": results,
            }  # fmt: skip
            for repeat, value in enumerate(seconds):
                rows.append(shared | {"repeat": repeat, "metric": "time", "value": value, "unit": "s"})
            median = float(np.median(seconds))
            rows.append(shared | {"metric": "throughput", "value": count / median, "unit": "k-mers/s"})
            if tier == "fast":
                rows.append(shared | {"metric": "floor", "value": floor, "unit": "s"})
                rows.append(shared | {"metric": "share", "value": floor / median, "unit": "1"})
    return rows
