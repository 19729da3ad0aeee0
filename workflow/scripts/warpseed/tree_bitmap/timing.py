"""What is timed of k-mers in a stream: Figures 36 to 41 of paper 003, and measurements of our own.

`exact_kernels` and `edit_kernels` are those of `timing_kernels`. `structures` inserts a stream's k-mers into both
intermediate structures and makes the Tree Bitmap of each. `versions` are those of the dynamic system that the thesis
compares, and one whose dictionary is in order, where kernels run. `in_memory` has a stream in memory and what each
place is in memory; `on_device` has both on the GPU; `counts` are those of a stream's k-mers. How runs are timed is
`warpseed.measure`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from warpseed.batches import Options, Settings
from warpseed.compute.stopwatch import Stopwatch
from warpseed.measure.digests import count_equal, digest_of
from warpseed.measure.records import join_parameters
from warpseed.measure.timing import Outcome, Run, Side, add_total, each_taken, time_sides
from warpseed.tree_bitmap.dynamic import SORTED, Event, How, Matched, Seed, match_dynamically, match_on_one_trie
from warpseed.tree_bitmap.floors import measure_limits
from warpseed.tree_bitmap.growing import STRUCTURES, Growing
from warpseed.tree_bitmap.peers import fixed_dictionary, fixed_sides
from warpseed.tree_bitmap.stream import NEW
from warpseed.tree_bitmap.targets import count_fast, find_fast
from warpseed.tree_bitmap.timed import WARM_UP_BASES, Case, Work, kmers_of_stream, side_of, works_of
from warpseed.tree_bitmap.timing_kernels import exact_sides, time_edit_kernels

__all__ = ["ITEMS", "time_dataset"]

_SHORT_RUNS = 2
"""Runs of what takes milliseconds, for each that is asked for."""


# ---- the intermediate structures


def _build(work: Work, structure: str) -> Run:
    """Insert the k-mers into a structure that has room for all, and make the Tree Bitmap of it."""
    kmers = kmers_of_stream(work.codes, work.k)
    room = 1 + len(kmers) * STRUCTURES[structure].nodes_a_kmer(work.k)

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        with watch.stage("insert"):
            dictionary = Growing(work.k, structure, room)
            dictionary.insert(kmers)
        with watch.stage("to_bitmap"):
            bitmap = dictionary.to_bitmap()
        return lambda: Outcome(len(work.codes), dictionary.trie_nodes, digest_of(*bitmap))

    return add_total(run)


def _structures(work: Work, settings: Settings) -> Iterator[Side]:
    if "paper" in settings.tiers and "cpu" in settings.devices:
        few = work._replace(codes=work.codes[:WARM_UP_BASES])
        target = Options("paper", "cpu", 1, None)
        for name in STRUCTURES:
            yield side_of(work, _build(work, name), _build(few, name), target, {"structure": name})


# ---- the dynamic system


def _matched(work: Work, match: Callable[[Work], Matched], kept: list[Matched] | None = None) -> Run:
    """A run of the paper tier, whose stages are its events; its dictionary is put in order off the clock. With `kept`,
    which takes what came of it, the outcome is of the dictionary, too."""

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        matched = match(work)
        for event in matched.events:
            watch.add(event.name, event.end - event.begin)
        watch.add("total", max((event.end for event in matched.events), default=0.0))
        if kept is None:
            return lambda: _outcome(matched.answers)
        kept[:] = [matched]
        return lambda: _outcome(matched.answers, matched.dictionary)

    return run


def _outcome(answers: np.ndarray, *dictionary: np.ndarray) -> Outcome:
    """What the places of a stream are, and the dictionary; so many of them have a k-mer for the first time."""
    return Outcome(len(answers), count_equal(answers, NEW), digest_of(answers, *dictionary))


def _on_one_trie(work: Work) -> Matched:
    return match_on_one_trie(work.codes, work.k, Seed(work.seed_length))


def _dynamic(concurrent: bool, device: str, structure: str = "tree") -> Callable[[Work], Matched]:
    """Figure 40's version, or Figure 41's, or that with another structure."""

    def match(work: Work) -> Matched:
        how = How(chunk_length=work.chunk_length, structure=structure, concurrent=concurrent)
        return match_dynamically(work.codes, work.k, Seed(work.seed_length), how, device)

    return match


def _version_sides(work: Work, settings: Settings) -> Iterator[tuple[Side, list[Matched]]]:
    """The version for the CPU alone, and the others on each device; each with where its last run goes."""
    few = work._replace(codes=work.codes[:WARM_UP_BASES])
    for device in settings.devices if "paper" in settings.tiers else ():
        versions = {
            "serial": _dynamic(False, device),
            "concurrent": _dynamic(True, device),
            SORTED: _dynamic(True, device, SORTED),
        }
        for name, match in {"one_trie": _on_one_trie, **versions}.items() if device == "cpu" else versions.items():
            last: list[Matched] = []
            named = {"version": name} | ({} if name == "one_trie" else {"chunk_length": work.chunk_length})
            run, warm_up = _matched(work, match, last), _matched(few if device == "cpu" else work, match)
            yield side_of(work, run, warm_up, Options("paper", device, 1, None), named), last


def _event_rows(side: Side, events: Iterable[Event], fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """When each event of a run began and ended."""
    for number, event in enumerate(events):
        parameters = f"{side.fields['parameters']}; " + join_parameters({"stream": event.stream, "event": number})
        shared = {**side.fields, **fields, "item": "events", "parameters": parameters, "stage": event.name}
        yield {**shared, "metric": "begin", "value": event.begin}
        yield {**shared, "metric": "end", "value": event.end}


def _time_versions(work: Work, settings: Settings, repeats: int, fields: dict[str, Any]) -> list[dict[str, Any]]:
    sides = list(_version_sides(work, settings))
    rows = time_sides([side for side, _ in sides], repeats, fields)
    for side, (last,) in sides:
        rows += _event_rows(side, last.events, fields)
    return rows


# ---- the fast tier, and the dynamic system beside it


def _answer(work: Work, options: Options) -> Run:
    """What the places of a stream are, by the fast tier, or by the dynamic system."""
    if options.tier == "paper":
        return _matched(work, _on_one_trie if options.device == "cpu" else _dynamic(True, options.device))

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        answers, _ = find_fast(work.codes, work.k, options, seed_length=work.seed_length, watch=watch)
        return lambda: _outcome(answers)

    return add_total(run)


def _in_memory(work: Work, settings: Settings) -> Iterator[Side]:
    for options, codes in each_taken(work.codes, settings.options(None)):
        # The thesis's version for the CPU is a thread, and that for GPUs is one's.
        if options.tier == "paper" and (options.threads > 1 if options.device == "cpu" else options.gpus > 1):
            continue
        # Which structure answers is a matter of the length, so the whole stream warms up.
        run = _answer(work._replace(codes=codes), options)
        yield side_of(work, run, run, options, {})


def _count(work: Work, options: Options) -> Run:
    """Count the k-mers of a stream."""

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        counted = count_fast(work.codes, work.k, options, watch)
        return lambda: Outcome(len(work.codes), len(counted.codes), digest_of(*counted, dtype=np.int64))

    return add_total(run)


def _counts(work: Work, settings: Settings) -> Iterator[Side]:
    for options, codes in each_taken(work.codes, settings.options(None)):
        if options.tier == "fast":
            run = _count(work._replace(codes=codes), options)
            yield side_of(work, run, run, options, {})


# ---- all items


_SIDES: dict[str, tuple[Callable[[Work, Settings], Iterator[Side]], int]] = {
    "exact_kernels": (exact_sides, 1),
    "structures": (_structures, _SHORT_RUNS),
    "in_memory": (_in_memory, 1),
    "counts": (_counts, 1),
}
_ROWS = {"edit_kernels": time_edit_kernels, "versions": _time_versions}
_ON_SEVERAL_GPUS = ("in_memory", "counts", "fixed")
"""What is timed on several GPUs where they are measured; one stands for them in the others."""
ITEMS = (*_SIDES, *_ROWS, "on_device", "fixed")
"""Figures 36, 39a and 39b, two of our own; Figures 37 and 38, 40 and 41; what the fast tier's kernels do with a stream
that lies on a GPU; and a dictionary that does not grow, beside other libraries."""


def time_dataset(case: Case, settings: Settings, *, items: Iterable[str], repeats: int) -> list[dict[str, Any]]:
    """Time one data set in every tier, on every device and number of threads, all sides of a stream in turns.

    Parameters
    ----------
    case : Case
    settings : Settings
    items : which of ITEMS to fill; one that needs a GPU has no records without it; `in_memory`, `counts` and `fixed`
        are timed on several, the others on one
    repeats : runs of each after its warm-up

    Returns
    -------
    list of records (see `warpseed.measure.records.RECORD_COLUMNS`), one for each stage and repeat; of item 'events'
    when each event of a version's last run began and ended; of item 'limits' what `on_device` measures
    """
    rows: list[dict[str, Any]] = []
    for work in works_of(case):
        for item in items:
            fields = {"item": item, "case": case.name}
            targets = settings if item in _ON_SEVERAL_GPUS else settings.on_one_gpu()
            if item in _ROWS:
                rows += _ROWS[item](work, targets, repeats, fields)
            elif item == "fixed":
                given = fixed_dictionary(work, case.kmers, case.seed)
                rows += time_sides(list(fixed_sides(given, targets, case.tools)), repeats, fields)
            elif item == "on_device":
                if "fast" in settings.tiers and any(device != "cpu" for device in settings.devices):
                    rows += measure_limits(work.codes, work.k, repeats, fields, join_parameters(work.parameters))
            else:
                sides, times = _SIDES[item]
                rows += time_sides(list(sides(work, targets)), times * repeats, fields)
    return rows
