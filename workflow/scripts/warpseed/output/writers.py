"""Where results go while they are found, batch by batch: lines in the order of the queries, or of the coordinates.

A writer is given batches of hits in order. Its `make` is for any thread and does what can be done beside the search;
`put` is for one thread, and takes the batches in order with what `make` made of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, BinaryIO, Protocol

from warpseed.errors import InputError, check_number
from warpseed.output.hits import Hits
from warpseed.output.lines import Format, Line
from warpseed.output.opening import open_output, output_format
from warpseed.output.totals import Totals

__all__ = ["Writer", "format_of", "open_writer", "write_batches"]


class Writer(Protocol):
    """What takes batches of hits.

    Attributes
    ----------
    totals : Totals, of what was put so far
    """

    totals: Totals

    @property
    def line(self) -> Line | None:
        """The line of which `make` makes a list of texts, one behind the other; None where it makes anything else."""

    def make(self, hits: Hits) -> Any:
        """What can be made of some hits beside everything else, from any thread; for at most some 100,000 hits."""

    def put(self, hits: Hits, made: Any = None) -> None:
        """Take the next hits, and what `make` made of them; None where nothing was, as of a large batch."""


class _LinesWriter:
    """Lines in the order of the queries, written as they come.

    The heading comes with the first of them: a search that fails before has written nothing to standard output.
    """

    def __init__(self, handle: BinaryIO, format: Format, threads: int) -> None:
        self._handle = handle
        self._heading = format.heading
        self.line = format.line
        self._threads = threads
        self.totals = Totals()

    def make(self, hits: Hits) -> list[memoryview]:
        """The lines."""
        return list(hits.lines(self.line))

    def put(self, hits: Hits, made: list[memoryview] | None = None) -> None:
        """Write the lines."""
        self.totals.add(hits)
        self.write_heading()
        for text in hits.lines(self.line, self._threads) if made is None else made:
            self._handle.write(text)

    def write_heading(self) -> None:
        """Write the heading where it is not written yet."""
        heading, self._heading = self._heading, b""
        self._handle.write(heading)


@contextmanager
def _open_lines(
    path: str | os.PathLike[str], format: Format, threads: int, inputs: Sequence[str | os.PathLike[str]]
) -> Iterator[_LinesWriter]:
    with open_output(path, inputs, threads=threads) as handle:
        writer = _LinesWriter(handle, format, threads)
        yield writer
        writer.write_heading()


def open_writer(
    path: str | os.PathLike[str],
    format: Format,
    *,
    sorted: bool = False,
    threads: int = 1,
    inputs: Sequence[str | os.PathLike[str]] = (),
) -> AbstractContextManager[Writer]:
    """A writer of lines; the file appears when the block succeeds, and nothing is left when it fails.

    The bytes are the same for any number of threads or batches.

    Parameters
    ----------
    path : file, compressed (BGZF) where its name ends in .gz, or '-' for standard output
    sorted : whether lines are ordered by contig (in the order of the reference), start, end, strand, and query, not
        by query; nothing is written before the end then. A compressed file gets a tabix index beside it where its
        format can have one. What has no order of queries, as BAM, is sorted always.
    threads : for large batches, sorting and compressing
    inputs : files that are being read, which the output must not be

    Raises
    ------
    InputError : the file cannot be written, or is one of the inputs; threads is no number from 1 on; or lines that
        stand below headings are to be sorted
    """
    threads = check_number("threads", threads, 1)
    if format.groups:
        from warpseed.output.grouped_lines import open_grouped

        if sorted:
            raise InputError(
                f"{os.fspath(path)}: its lines stand below the names of their queries, and cannot be sorted by "
                "coordinates; write another format, or do not ask for sorted lines."
            )
        return open_grouped(path, format, threads=threads, inputs=inputs)
    if sorted or format.maker is not None:
        from warpseed.output.sorted_lines import open_sorted

        return open_sorted(path, format, threads=threads, inputs=inputs)
    return _open_lines(path, format, threads, inputs)


def format_of(path: str | os.PathLike[str], formats: Mapping[str, Format], name: str | None = None) -> Format:
    """One of a system's formats: by its name, or by the ending of a file's; the first of them for '-'.

    Raises
    ------
    InputError : there is no such format, or the ending says none
    """
    kind = output_format(path, tuple(formats)) if name is None else name
    if kind not in formats:
        raise InputError(f"format is {kind!r}, but {' or '.join(map(repr, formats))} was expected.")
    return formats[kind]


def write_batches(writer: AbstractContextManager[Writer], batches: Hits | Iterable[Hits]) -> int:
    """Write hits, all at once or batch by batch as they come.

    Returns
    -------
    int, hits written

    Raises
    ------
    InputError : something that is no hits
    """
    given: Iterable[Any] = [batches] if isinstance(batches, Hits) or not isinstance(batches, Iterable) else batches
    with writer as opened:
        for hits in given:
            if not isinstance(hits, Hits):
                raise InputError(f"what is to be written is {hits!r:.60}, but Hits were expected, or batches of them.")
            opened.put(hits)
    return opened.totals.hits
