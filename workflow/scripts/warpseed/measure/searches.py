"""Searches of queries as runs that are timed: in memory, and from file to file; and what they found, off the clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np

from warpseed.batches import Source, write_results
from warpseed.compute.stopwatch import Stopwatch
from warpseed.measure.peers.process import HitLines, parse_hits
from warpseed.measure.timing import Outcome, Run
from warpseed.output.hits import Hits
from warpseed.output.lines import Format
from warpseed.output.rows import Found, digest_rows
from warpseed.output.writers import open_writer
from warpseed.tasks import Search

__all__ = ["file_to_file", "in_memory", "outcome_of_file", "outcome_of_hits", "outcome_of_rows"]

_outputs = count()


def outcome_of_hits(hits: Hits) -> Outcome:
    """What was found, as the hits tell it."""
    return Outcome(len(hits.counts), len(hits), hits.digest())


def outcome_of_rows(rows: np.ndarray, lengths: np.ndarray) -> Outcome:
    """What was found of queries of these lengths, as its rows tell it."""
    return Outcome(len(lengths), len(rows), digest_rows(rows))


def outcome_of_file(path: Path, lines: HitLines, contigs: Sequence[str], lengths: np.ndarray) -> Outcome:
    """What was found, as a file tells it; its lines, contigs and lengths as `parse_hits` takes them."""
    return outcome_of_rows(parse_hits(path, lines, contigs, lengths), lengths)


def in_memory(find: Callable[[Stopwatch], Found], hits_of: Callable[[Found], Hits]) -> Run:
    """A search of queries that are packed already; `hits_of`, for the outcome, is off the clock."""

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        found = find(watch)
        return lambda: outcome_of_hits(hits_of(found))

    return run


def file_to_file(
    source: Source, new_search: Callable[[], Search], output: Path, format: Format, outcome: Callable[[Path], Outcome]
) -> Run:
    """From a file of queries to a file of lines, batch by batch as the command line does it.

    Parameters
    ----------
    source : the queries
    new_search : makes the search, each time anew
    output : the files that are written: a number goes behind the stem of the name
    format : of the lines
    outcome : works out what stands in a file, which is removed then
    """

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        # A new file, as users make one, which waits for no pages of an older one to be given back.
        path = output.with_stem(f"{output.stem}-{next(_outputs)}")
        search = new_search()
        write_results(source, search, open_writer(path, format, threads=search.options.threads), watch=watch)
        return partial(_read_back, path, outcome)

    return run


def _read_back(path: Path, outcome: Callable[[Path], Outcome]) -> Outcome:
    found = outcome(path)
    path.unlink()
    return found
