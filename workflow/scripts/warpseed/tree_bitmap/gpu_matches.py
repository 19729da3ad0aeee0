"""A stream that lies on a GPU, and what is known of its places, which stays there."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from warpseed.batches import check_source, lies_on_device
from warpseed.compute.device_marks import time_on_device
from warpseed.compute.gpu import cupy, fill_bytes, on_device, synchronize
from warpseed.compute.stopwatch import Stopwatch
from warpseed.output.device_columns import refuse_results, room_on_device
from warpseed.sequences.device_queries import codes_on_device
from warpseed.sequences.names import Names
from warpseed.sequences.packed import Bounds
from warpseed.sequences.queries import read_queries
from warpseed.tree_bitmap import gpu_memory
from warpseed.tree_bitmap.gpu_edits import distances_there
from warpseed.tree_bitmap.gpu_memory import Need
from warpseed.tree_bitmap.gpu_table import DeviceKmers, search_there
from warpseed.tree_bitmap.on_device import DeviceMatches
from warpseed.tree_bitmap.request import Request
from warpseed.tree_bitmap.stream import NEW, NO_KMER, SEEN, stream_of
from warpseed.tree_bitmap.targets import known_before

__all__ = ["match_on_device"]

_BOUNDS = Bounds("record", 10**12)


def _stream_there(source: Any, watch: Stopwatch) -> tuple[Any, Any, Callable[[], Names]]:
    """The codes of a stream on the current device, where its records begin, and what gives their names."""
    if lies_on_device(source):
        with watch.stage("pack"):
            codes, starts = codes_on_device(source, _BOUNDS)
        return codes, starts, partial(Names.numbered, b"", len(starts))
    check_source(source)
    with watch.stage("read"):
        stream = stream_of(read_queries(source))
    with watch.stage("host_to_device", synchronise=synchronize):
        return *map(cupy().asarray, stream[:2]), lambda: stream.names


def _answers(codes: Any, k: int, known: np.ndarray, grows: bool, device: int) -> Any:
    """What each place of a stream on the device is, uint8[n] there."""
    xp, need = cupy(), Need.of(k, len(codes), len(known), grows=grows)
    if not gpu_memory.has_room([device], need):
        refuse_results(MemoryError(f"{need.kmers:,} k-mers"))
    answers = xp.empty(len(codes), xp.uint8)
    given = search_there(DeviceKmers(need.kept, need.kmers, known), codes, answers, gpu_memory.BLOCK_BASES)
    fill_bytes(answers[given:], int(NO_KMER))
    return answers


def match_on_device(source: Any, request: Request, device: int, watch: Stopwatch) -> DeviceMatches:
    """What is known of every place of a stream, which goes to one GPU whole; see `warpseed.tree_bitmap.match_stream`.

    Parameters
    ----------
    source : records as `match_stream` takes them, or letters on that GPU
    device : its number
    watch : takes the seconds of ``read`` and ``host_to_device``, or ``pack``, and of ``kernel``; with max_edits of
        ``build`` and ``search``

    Raises
    ------
    InputError : the records are not what was expected
    MemoryLimitError : the stream, its k-mers and what is known of it do not fit the GPU
    """
    k = request.k
    with on_device(device), room_on_device():
        codes, starts, names_of = _stream_there(source, watch)
        known, in_seed, distances = request.known, None, None
        if not request.grows and request.seed_length:
            known = known_before(codes[: request.seed_length].get(), request, watch)
        with time_on_device(watch, "kernel"):
            answers = _answers(codes, k, known, request.grows, device)
        if request.grows:
            # Of equal k-mers the first is NEW: if that begins in the seed, all are seen.
            seeded = answers[: request.seed_places]
            in_seed = cupy().flatnonzero(seeded == NEW)
            seeded[in_seed] = SEEN
        if request.max_edits:
            distances = distances_there(codes, known, k, request.max_edits, watch)
        return DeviceMatches(codes, starts, names_of, answers, k, known, in_seed, distances)
