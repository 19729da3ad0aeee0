"""Searches from file to file, as runs that are timed: what was found is read back from the file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

from warpseed.batches import Source, write_results
from warpseed.compute.stopwatch import Stopwatch
from warpseed.line import Search
from warpseed.measure.timing import Outcome, Run
from warpseed.output.lines import Format
from warpseed.output.writers import open_writer

__all__ = ["file_to_file"]

_outputs = count()


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
