"""The kernels of paper 003 timed: Figures 36 to 38. On the CPU their twins are, which do the same on one thread.

The stream, the Tree Bitmap of its seed and the records lie on the device; stage `kernel` is the kernel alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from warpseed.batches import Options, Settings
from warpseed.compute.stopwatch import Stopwatch
from warpseed.measure.digests import digest_of
from warpseed.measure.timing import Outcome, Run, Side, time_sides
from warpseed.tree_bitmap import cpu_levenshtein
from warpseed.tree_bitmap.bitmap import TreeBitmap
from warpseed.tree_bitmap.dynamic import How, matcher_on
from warpseed.tree_bitmap.growing import Growing
from warpseed.tree_bitmap.paper import MISMATCH
from warpseed.tree_bitmap.timed import Work, kmers_of_stream, side_of

__all__ = ["edit_sides", "exact_sides", "time_edit_kernels"]

_EXACT = ("naive", "shuffle")


def _bitmap_of_seed(work: Work) -> TreeBitmap:
    """The Tree Bitmap of the k-mers of the seed, or of the whole stream where there is none."""
    dictionary = Growing(work.k)
    dictionary.insert(kmers_of_stream(work.codes[: work.seed_length or None], work.k))
    return dictionary.to_bitmap()


def _match(work: Work, bitmap: TreeBitmap, kernel: str, device: str) -> Run:
    """Match the whole stream as one chunk."""
    how = How(chunk_length=len(work.codes), kernel=kernel)
    places = (0, max(len(work.codes) - work.k + 1, 0))

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        matcher, events = matcher_on(work.codes, work.k, how, device)
        matcher.upload(bitmap)
        matcher.launch(places, 0)
        records = np.sort(matcher.collect(0))
        for event in events.all:
            watch.add(event.name, event.end - event.begin)
        matches = int(np.count_nonzero(records & MISMATCH == 0))
        return lambda: Outcome(len(work.codes), matches, digest_of(records))

    return run


def exact_sides(work: Work, settings: Settings) -> Iterator[Side]:
    """Each exact kernel on each device."""
    if "paper" not in settings.tiers:
        return
    bitmap = _bitmap_of_seed(work)
    for device in settings.devices:
        for kernel in _EXACT:
            run = _match(work, bitmap, kernel, device)
            yield side_of(work, run, run, Options("paper", device, 1, None), {"kernel": kernel})


def _edit_facts(work: Work, kernel: str) -> dict[str, Any]:
    return {"max_edits": work.max_edits, "kernel": kernel}


def _match_edits(
    work: Work, bitmap: TreeBitmap, kernel: str, device: str, counted: list[cpu_levenshtein.Accesses]
) -> Run:
    """Let the automaton read the stream; `counted` takes the accesses of memory, which the CPU counts."""
    asked = (work.codes, work.k, work.max_edits, bitmap, kernel)

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        if device == "cpu":
            with watch.stage("kernel"):
                edits = cpu_levenshtein.match_edits(*asked)
        else:
            from warpseed.tree_bitmap import gpu_levenshtein

            edits = gpu_levenshtein.match_edits(*asked, watch=watch)
        if edits.accesses is not None:
            counted[:] = [edits.accesses]
        accepted = int(np.count_nonzero(edits.accepted))
        return lambda: Outcome(len(work.codes), accepted, digest_of(edits.accepted, edits.missed))

    return run


def edit_sides(work: Work, settings: Settings) -> Iterator[tuple[Side, list[cpu_levenshtein.Accesses]]]:
    """Each Levenshtein kernel on each device; the CPU has nothing that queues could bring together."""
    if "paper" not in settings.tiers:
        return
    bitmap = _bitmap_of_seed(work)
    for device in settings.devices:
        for kernel in cpu_levenshtein.EDIT_KERNELS:
            if device != "cpu" or kernel != "queue":
                counted: list[cpu_levenshtein.Accesses] = []
                run = _match_edits(work, bitmap, kernel, device, counted)
                options = Options("paper", device, 1, None)
                yield side_of(work, run, run, options, _edit_facts(work, kernel)), counted


def time_edit_kernels(work: Work, settings: Settings, repeats: int, fields: dict[str, Any]) -> list[dict[str, Any]]:
    """Records of the Levenshtein kernels: their times; on the CPU the words of memory that they access, and on a GPU
    their occupancy."""
    sides = list(edit_sides(work, settings))
    rows = time_sides([side for side, _ in sides], repeats, fields)
    for side, counted in sides:
        shared = {**side.fields, **fields, "stage": "-", "unit": "1", "queries": len(work.codes)}
        rows += [{**shared, "metric": "accesses", "value": sum(accesses)} for accesses in counted]
        if side.fields["device"] == "gpu":
            kernel = side.fields["parameters"].rpartition("=")[2]
            rows.append({**shared, "metric": "occupancy", "value": _occupancy(kernel)})
    return rows


def _occupancy(kernel: str) -> float:
    from warpseed.compute.gpu import on_device
    from warpseed.measure.occupancy import occupancy_of
    from warpseed.tree_bitmap.gpu_levenshtein import KERNELS
    from warpseed.tree_bitmap.gpu_paper import BLOCK

    with on_device(0):
        return occupancy_of(KERNELS[kernel], BLOCK)
