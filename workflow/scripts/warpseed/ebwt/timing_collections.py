"""What is timed of collections of words, which are drawn at random: our own measurements of the fast tier.

`transform` is L and I of words in memory, `pairs` the distances of all pairs of them; `files` is the command from a
FASTA file to that of L, as a process, with its peak memory; `on_device` has the words on a GPU, and leaves there what
comes of them. How runs are timed is `warpseed.measure`'s.
"""

from __future__ import annotations

import hashlib
import logging
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from warpseed.batches import Options, Settings
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt.floors import measure_limits
from warpseed.ebwt.search import search
from warpseed.ebwt.words import BASES, Words
from warpseed.measure.digests import digest_of
from warpseed.measure.peers.process import run_warpseed
from warpseed.measure.processes import process_run
from warpseed.measure.records import join_parameters
from warpseed.measure.timing import Outcome, Run, Side, add_total, each_taken, side_fields, time_sides
from warpseed.sequences.draws import fill_background
from warpseed.sequences.names import Names

__all__ = ["COLLECTION_ITEMS", "Collection", "collections_of", "time_collections"]

_LOGGER = logging.getLogger(__name__)
_SYSTEM = "ebwt"
_BASES_OF_CODES = np.array([BASES.index(letter) for letter in b"ACGT"], np.uint8)


class Collection(NamedTuple):
    """Collections of words of one length each, and what their records call them."""

    words: Sequence[Sequence[int]]
    """how many words, and letters of each, of every collection"""
    differ: float = 0.0
    """in what share of its letters a word differs from the one before; with 0 each is drawn for itself"""
    seed: int = 9


class _Drawn(NamedTuple):
    """One collection."""

    words: Words
    fields: dict[str, Any]
    """the columns of its records"""


def collections_of(case: Collection) -> Iterator[Words]:
    """The words of each collection, of A, C, G and T."""
    for count, letters in case.words:
        codes = np.empty(count * letters if not case.differ else letters, np.uint8)
        fill_background(codes, case.seed, 0.5)
        if case.differ:
            codes = _changed(codes, count, case)
        offsets = np.arange(count + 1, dtype=np.int64) * letters
        yield Words(BASES, _BASES_OF_CODES[codes], offsets, Names.numbered(b"word", count))


def _changed(first: np.ndarray, count: int, case: Collection) -> np.ndarray:
    """The word and others, each of which differs from the one before."""
    draw, words = np.random.default_rng(case.seed), [first]
    for _ in range(count - 1):
        word = words[-1].copy()
        at = draw.choice(len(word), round(case.differ * len(word)), replace=False)
        word[at] = (word[at] + draw.integers(1, 4, len(at), np.uint8)) & np.uint8(3)
        words.append(word)
    return np.concatenate(words)


def _transform(words: Words, options: Options, watch: Stopwatch) -> Callable[[], Outcome]:
    found = search(words, options, transform=True, distances=False, watch=watch).transform
    assert found is not None
    return lambda: Outcome(len(words.codes), len(found.indices), digest_of(found.last, found.indices, dtype=np.int64))


def _pairs(words: Words, options: Options, watch: Stopwatch) -> Callable[[], Outcome]:
    found = search(words, options, transform=False, distances=True, watch=watch).distances
    assert found is not None
    return lambda: Outcome(len(words.codes), len(found) * (len(found) - 1) // 2, digest_of(found, dtype=np.int64))


_IN_MEMORY: dict[str, Callable[[Words, Options, Stopwatch], Callable[[], Outcome]]] = {
    "transform": _transform,
    "pairs": _pairs,
}
COLLECTION_ITEMS = (*_IN_MEMORY, "files", "on_device")


def _targets(settings: Settings, item: str) -> list[Options]:
    """On what an item is timed: one GPU stands for several in what has files, or is on the device alone."""
    targets = settings if item in _IN_MEMORY else settings.on_one_gpu()
    return [options for options in targets.options(None) if options.tier == "fast"]


def _in_memory(words: Words, item: str, options: Options) -> Side:
    find = _IN_MEMORY[item]

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        return find(words, options, watch)

    timed: Run = add_total(run)
    return Side(timed, timed, _fields_of(options))


def _files(drawn: _Drawn, options: Options, folder: Path) -> Side:
    """The command, whose output is read again off the clock."""
    source, prefix = folder / "words.fa", folder / "out"
    if not source.exists():
        _write(drawn.words, source)

    def outcome() -> Outcome:
        last, words = ((folder / f"out.{name}").read_bytes() for name in ("ebwt.txt", "words.tsv"))
        digest = hashlib.sha256(last + words).hexdigest()
        return Outcome(len(drawn.words.codes), len(drawn.words.lengths), digest)

    arguments = ["ebwt", str(source), "-q", "--no-distances", "-o", str(prefix)]
    arguments += ["--device", options.device, "--threads", str(options.threads)]
    run = process_run(lambda: run_warpseed(arguments), outcome)
    return Side(run, run, _fields_of(options))


def _fields_of(options: Options) -> dict[str, Any]:
    return side_fields(_SYSTEM, tier=options.tier, device=options.device, threads=options.threads)


def _write(words: Words, path: Path) -> None:
    with path.open("wb") as handle:
        for number in range(len(words.lengths)):
            handle.write(b">word%d\n%b\n" % (number, words.word(number)))


def time_collections(
    case: Collection, settings: Settings, *, items: Iterable[str], repeats: int
) -> list[dict[str, Any]]:
    """Time collections of words in the fast tier, on every device and number of threads, all sides of one in turns.

    Parameters
    ----------
    case : Collection
    settings : Settings
    items : which of COLLECTION_ITEMS to fill; `on_device` has no records without a GPU, and those in memory alone have
        some of several GPUs
    repeats : runs of each after its warm-up

    Returns
    -------
    list of records (see `warpseed.measure.records.RECORD_COLUMNS`); `queries` are letters, `results` words, or pairs of
    them; of item 'limits' what `on_device` measures, of 'files' metric `memory` too, the peak of the process
    """
    rows: list[dict[str, Any]] = []
    wanted = list(items)
    for words in collections_of(case):
        count, letters = len(words.lengths), int(words.lengths[0])
        facts = {"letters": len(words.codes), "words": count} | ({"differ": case.differ} if case.differ else {})
        name = f"{count:,} words of {letters:,} letters"
        drawn = _Drawn(words, {"case": name, "parameters": join_parameters(facts)})
        for item in wanted:
            _LOGGER.info("%s: %s", name, item)
            fields, targets = {"item": item, **drawn.fields}, _targets(settings, item)
            if item == "on_device":
                if any(options.gpus for options in targets):
                    own = side_fields(_SYSTEM, tier="fast", device="gpu", threads=1) | drawn.fields
                    rows += measure_limits(words, repeats, own, with_distances="pairs" in wanted)
            elif item == "files":
                with tempfile.TemporaryDirectory() as folder:
                    sides = [_files(drawn, options, Path(folder)) for options in targets]
                    rows += time_sides(sides, repeats, fields)
            else:
                taken = each_taken(words.codes, targets)
                sides = [_in_memory(words._replace(codes=codes), item, options) for options, codes in taken]
                rows += time_sides(sides, repeats, fields)
    return rows
