"""What is timed of weighted sequences: Tables 1, 2 and 3 of paper 004.

`table_1` and `table_2` order the conjugates of all solid sequences and patterns: by the bitonic sort, and on a GPU by
the library's. `table_3` orders them by the optimised sorts, and measures every sequence with every pattern. Words are
in the host's memory, and what comes of them, too. How runs are timed is `warpseed.measure`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from warpseed.batches import Options, Settings
from warpseed.compute.devices import devices_of
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt import cpu, cpu_paper
from warpseed.ebwt.paper import NO_PAIRS, Compared
from warpseed.ebwt.timed import Case, Work, side_of, works_of
from warpseed.measure.digests import digest_of
from warpseed.measure.timing import Outcome, Run, Side, add_total, time_sides

__all__ = ["ITEMS", "time_dataset"]

_SORTS = {
    "table_1": {"cpu": "bitonic", "gpu": "bitonic"},
    "table_2": {"cpu": "bitonic", "gpu": "radix"},
    "table_3": {"cpu": "merge", "gpu": "radix"},
}
"""The paper tier's sort of each item on each device."""
ITEMS = tuple(_SORTS)
_STAGES = {"order": "sort", "distances": "distance"}
"""What stages of the fast tier on a GPU are called here."""


def _compare(work: Work, item: str, options: Options, watch: Stopwatch) -> Compared:
    """What an item asks for, by the paper tier on one device."""
    pairs = work.pairs if item == "table_3" else NO_PAIRS
    if options.device == "cpu":
        return cpu_paper.compare(work.words, pairs, _SORTS[item]["cpu"], watch=watch)
    from warpseed.ebwt import gpu_paper

    device = devices_of(options.device)[0]
    return gpu_paper.compare(work.words, pairs, _SORTS[item]["gpu"], device=device, watch=watch)


def _compare_fast(work: Work, item: str, options: Options, watch: Stopwatch) -> Compared:
    """The same by the fast tier, with the paper tier's stages."""
    measured = item == "table_3"
    order: np.ndarray | None
    distances: np.ndarray | None = None
    if options.device == "cpu":
        with watch.stage("sort"):
            order = ordered = cpu.order_conjugates(work.words, threads=options.threads)
        if measured:
            with watch.stage("distance"):
                distances = cpu.distances(work.words, ordered, threads=options.threads)
    else:
        from warpseed.ebwt import gpu

        own, devices = Stopwatch(), devices_of(options.device)
        order, _, distances = gpu.find(
            work.words, order=True, distances=measured, devices=devices, threads=options.threads, watch=own
        )
        for stage, seconds in own.seconds.items():
            watch.add(_STAGES.get(stage, stage), seconds)
    assert order is not None
    return Compared(order, np.empty(0, np.int64) if distances is None else distances[tuple(work.pairs.T)])


def _run(work: Work, item: str, options: Options) -> Run:
    compare = _compare if options.tier == "paper" else _compare_fast

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        order, distances = compare(work, item, options, watch)
        return lambda: Outcome(len(order), len(distances) or len(order), digest_of(order, distances, dtype=np.int64))

    return add_total(run)


def _sides(work: Work, item: str, settings: Settings) -> Iterator[Side]:
    """The paper tier is one thread on the CPU."""
    for options in settings.options(None):
        if options.tier == "paper" and options.device == "cpu" and options.threads > min(settings.threads):
            continue
        target = options._replace(threads=1) if options.tier == "paper" else options
        yield side_of(work, _run(work, item, target), target)


def time_dataset(case: Case, settings: Settings, *, items: Iterable[str], repeats: int) -> list[dict[str, Any]]:
    """Time one data set in every tier, on every device and number of threads, all sides of a sequence in turns.

    Parameters
    ----------
    case : Case
    settings : Settings
    items : which of ITEMS to fill
    repeats : runs of each after its warm-up

    Returns
    -------
    list of records (see `warpseed.measure.records.RECORD_COLUMNS`), one for each stage and repeat; `queries` are the
    conjugates, `results` the pairs that are measured, or else the conjugates again

    Raises
    ------
    InputError : a weighted sequence has more solid sequences than may be, or none
    """
    rows: list[dict[str, Any]] = []
    for work in works_of(case):
        for item in items:
            rows += time_sides(list(_sides(work, item, settings)), repeats, {"item": item})
    return rows
