"""How near the GPU kernels come to what the device can do: k-mers on the device, hits left there; and the whole search
beside them, from letters to columns there.

The floor is that of `warpseed.measure.floors`. What must be read: for every look-up the sector of its table entries
(look-ups that share a sector count once); for every bucket the sectors of the rows that agree with the k-mer in the
bases in which a match must, at most 16. Of a k-mer that tags alone show to have too many hits it is one sector of the
table, and one of rows.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from warpseed.compute.bits import prefix_mask, reverse_complement_word
from warpseed.compute.compiled import float64, int64, scalar, uint64
from warpseed.compute.ranges import borders_of
from warpseed.compute.sink import limit_of
from warpseed.compute.stopwatch import Stopwatch
from warpseed.fm_index.layout import SeedIndex
from warpseed.fm_index.store import open_index
from warpseed.fm_index.text import inside_segment
from warpseed.kmer_seeds import find_kmers
from warpseed.kmer_seeds.output import make_hits
from warpseed.kmer_seeds.paper import MAX_MISMATCHES
from warpseed.measure.floors import floor_seconds, gather_rates, kernel_seconds, limit_rows
from warpseed.measure.records import join_parameters, split_parameters
from warpseed.measure.timing import side_fields
from warpseed.sequences.draws import GOLDEN, mix
from warpseed.sequences.packed import Packed
from warpseed.sequences.queries import Queries

if TYPE_CHECKING:
    from warpseed.fm_index.tagged import TaggedIndex
    from warpseed.output.columns import DeviceColumns

__all__ = ["column_rows", "draw_kmers", "measure_limits"]

_LOGGER = logging.getLogger(__name__)


@scalar
def _next_random(state):
    """One step of SplitMix64: (new state, random word)."""
    state = state + GOLDEN
    return state, mix(state)


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
    from warpseed.compute.gpu import on_device

    opened = open_index(index)
    with on_device(0):
        return _limits(opened, cases, repeats, seed, max_hits)


def _limits(
    opened: SeedIndex, cases: Iterable[Mapping[str, Any]], repeats: int, seed: int, max_hits: int | None
) -> list[dict[str, Any]]:
    from warpseed.fm_index.device import kmer_rows_on_device
    from warpseed.kmer_seeds import gpu

    tagged = kmer_rows_on_device(opened, Stopwatch())
    fields = {"item": "limits", **side_fields("kmer_seeds", tier="-", device="gpu", threads=1)}
    arrays = {name: getattr(tagged, name) for name in ("table", "rows", "text")}
    rates, rows = gather_rates(arrays, repeats, fields)
    for case in cases:
        k, mismatches, count = int(case["k"]), int(case["mismatches"]), int(case["count"])
        kmers = draw_kmers(opened, k, count, float(case["error_rate"]), seed)
        parameters = {"k": k, "mismatches": mismatches, "errors": case["error_rate"], "count": count}
        named = {"case": f"k={k}, D={mismatches}, errors={case['error_rate']}, {count:,} k-mers"}
        named["parameters"] = join_parameters(parameters)
        floor = floor_seconds(_sectors(tagged, kmers, mismatches, max_hits), rates)
        for tier in case["tiers"]:
            if tier == "paper" and mismatches > MAX_MISMATCHES:
                continue
            run = gpu.device_run(opened, kmers, mismatches, tier=tier, max_hits=max_hits)
            found = {"tier": tier, "queries": count, "results": run()}
            # What the paper tier must read depends on where each of its searches goes: there is no such count.
            own = floor if tier == "fast" else None
            seconds = kernel_seconds(run, repeats)
            _LOGGER.info("%s, %s tier: %.6f s", named["case"], tier, min(seconds))
            rows += limit_rows(seconds, own, {**fields, **named, **found}, unit="k-mers/s")
            if tier == "fast":
                told = {**fields, **named, **found}
                rows += column_rows(opened, kmers, mismatches, max_hits, repeats=repeats, fields=told, floor=floor)
    return rows


def column_rows(
    index: SeedIndex,
    kmers: Packed,
    mismatches: int,
    max_hits: int | None,
    *,
    repeats: int,
    fields: Mapping[str, Any],
    floor: float,
) -> list[dict[str, Any]]:
    """Time `find_kmers` from letters on the current GPU to columns there, of k-mers of one length, sorted and all.

    Parameters
    ----------
    fields : columns of the records of the same k-mers' kernels, and `floor` that of these in seconds, which counts
        neither letters nor columns

    Raises
    ------
    AssertionError : the columns are not the rows that the host makes of the same search's hits
    """
    from warpseed.kmer_seeds import gpu

    letters = _letters_on_device(kmers)

    def run() -> DeviceColumns:
        return find_kmers(index, letters, max_mismatches=mismatches, max_hits=max_hits, device="gpu", on_device=True)

    found, count = run(), len(kmers.lengths)
    offsets, nothing = borders_of(kmers.lengths), np.empty(0, np.uint8)
    unnamed = Queries(nothing, offsets, nothing, np.zeros(count + 1, np.int64), "the k-mers")
    rows = make_hits(index, unnamed, gpu.find_fast(index, kmers, mismatches, max_hits=max_hits)).rows()
    for name, column in found.columns.items():
        if not np.array_equal(column.get(), rows[name]):
            raise AssertionError(f"{fields['case']}: the column '{name}' on the device is not that of the host")
    results = len(found)
    del found, rows
    parameters = join_parameters({**split_parameters(fields["parameters"]), "results": "columns"})
    told = {"case": f"{fields['case']}, letters to columns", "parameters": parameters, "results": results}
    return limit_rows(kernel_seconds(run, repeats), floor, {**fields, **told}, unit="k-mers/s")


def _letters_on_device(kmers: Packed) -> Any:
    """The letters of k-mers of one length, at most 32 bases: uint8[n, k] on the current device."""
    from warpseed.compute.gpu import cupy

    xp = cupy()
    words, bases = xp.asarray(kmers.words), xp.asarray(np.frombuffer(b"ACGT", np.uint8))
    letters = xp.empty((len(words), int(kmers.lengths[0])), xp.uint8)
    for i in range(letters.shape[1]):
        letters[:, i] = bases[((words >> xp.uint64(62 - 2 * i)) & xp.uint64(3)).astype(xp.int64)]
    return letters


def _sectors(tagged: TaggedIndex, kmers: Packed, mismatches: int, max_hits: int | None) -> dict[str, int]:
    """Sectors of the table and of the tagged rows that the fast tier must read for these k-mers of one length."""
    from warpseed.compute.gpu import cupy, launch, to_device
    from warpseed.kmer_seeds import gpu
    from warpseed.kmer_seeds.gpu_floors import count_hits_shown, count_sectors
    from warpseed.kmer_seeds.gpu_look_ups import Lists

    scheme = gpu.device_scheme(tagged, kmers.lengths, mismatches)
    nothing, shown = cupy().empty(0, np.uint64), cupy().zeros(len(kmers.lengths), np.uint64)
    lists = Lists(nothing, nothing, cupy().empty((0, 4), np.uint32), shown)
    search = scheme.search(tagged, to_device(kmers), limit_of(max_hits), lists)
    sectors = cupy().zeros(2, np.uint64)
    look_ups = tagged.orientations * len(kmers.lengths) * int(scheme.on_host.look_ups[int(kmers.lengths[0])])
    launch(count_hits_shown, look_ups, 256, search)
    launch(count_sectors, look_ups, 256, search, sectors)
    table, rows = map(int, sectors.get())
    return {"table": table, "rows": rows}
