"""Lines sorted by coordinates in bounded memory: into one file with its index, or into a run file for a merge.

What one process writes and what is merged from the run files of several is the same, byte by byte: the order is total,
and queries are numbered as in the whole input.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

import numpy as np

from warpseed.compute.pipeline import Ahead, mapped
from warpseed.errors import InputError
from warpseed.output.bam import bam_heading
from warpseed.output.density import Counts, Density
from warpseed.output.hits import Hits
from warpseed.output.lines import Format, header
from warpseed.output.opening import check_output, check_still_there, folder_of, open_output, refusal
from warpseed.output.runs import About, RunFile, Spool, open_run_file, open_spool
from warpseed.output.sorting import Before, HeldRun, Run, SortedLines, merge_lines, merge_runs, sort_lines, unplaced
from warpseed.output.tabix import BamIndex, Entries, TabixIndex
from warpseed.output.totals import Totals
from warpseed.sequences.bgzf import block_offsets
from warpseed.sequences.files import atomic_path

__all__ = ["LINES_AT_ONCE", "MEMORY", "LineMaker", "SortedWriter", "merge_run_files", "open_run_writer", "open_sorted"]

MEMORY = 1 << 28
"""Bytes of lines that are held before they are sorted into a file; a merge takes about as much."""
_HELD_PARTS = 32
"""Parts in which they are held, about."""
_JOINING_THREADS = 4
"""That make these parts, at most: each takes about twice its part meanwhile."""
LINES_AT_ONCE = 1 << 17
"""Lines that a thread makes together, about."""


class LineMaker(Protocol):
    """What makes sorted lines of batches of hits, which come in their order."""

    def make(self, hits: Hits) -> SortedLines:
        """Those of a batch that is not large; queries are numbered from the batch's first one. From any thread."""

    def parts(self, hits: Hits, made: SortedLines | None, threads: int) -> Iterator[SortedLines]:
        """Those of the next batch, part by part, `made` being what `make` made of it."""

    def check(self, hits: Hits) -> None:
        """Refuse contigs that such a file cannot have; called once, before any lines are made in order."""


class _TextLines:
    """A LineMaker of lines of text."""

    def __init__(self, format: Format) -> None:
        self._format = format

    def make(self, hits: Hits) -> SortedLines:
        return sort_lines(hits, self._format.line, 0, len(hits))

    def parts(self, hits: Hits, made: SortedLines | None, threads: int) -> Iterator[SortedLines]:
        def part(first: int) -> SortedLines:
            return sort_lines(hits, self._format.line, first, min(first + LINES_AT_ONCE, len(hits)))

        return mapped(range(0, len(hits), LINES_AT_ONCE), part, threads) if made is None else iter([made])

    def check(self, hits: Hits) -> None:
        comment = next((name for name in hits.contig_names if name.startswith("#")), None)
        if self._format.preset == "bed" and comment is not None:
            raise InputError(
                f"contig {comment}: lines that begin with # are comments to those who read sorted BED files; give the "
                "contig another name."
            )


class SortedWriter:
    """A Writer that holds lines sorted batch by batch, and writes them to a spool where they become too many.

    Attributes
    ----------
    totals : Totals, of what was put so far
    line : None: lines are made with what they are sorted by
    """

    line: None = None

    def __init__(
        self, spool: Spool, joining: Ahead[SortedLines], format: Format, about: About, *, memory: int, threads: int
    ) -> None:
        self.totals = about.totals
        self._maker = _TextLines(format) if format.maker is None else format.maker()
        self._about = about
        self._spool = spool
        self._memory = memory
        self._threads = threads
        self._joining = joining
        self._fresh: list[SortedLines] = []
        self._held: list[HeldRun] = []
        self._fresh_bytes = self._held_bytes = 0

    def make(self, hits: Hits) -> SortedLines:
        """The lines, sorted; queries are numbered from the batch's first one."""
        return self._maker.make(hits)

    def put(self, hits: Hits, made: SortedLines | None = None) -> None:
        """Hold the lines, and write a run where they take too much memory."""
        self.totals.add(hits)
        if not self._about.contigs:
            self._maker.check(hits)
            lengths = hits.contig_lengths.tolist()
            self._about.contigs = "".join(map("{}\t{}\n".format, hits.contig_names, lengths))
        for part in self._maker.parts(hits, made, self._threads):
            if len(part):
                self._hold(replace(part, query=part.query + hits.first_query))

    def _hold(self, part: SortedLines) -> None:
        self._fresh.append(part)
        self._fresh_bytes += part.size()
        if self._fresh_bytes > self._memory // _HELD_PARTS:
            self._join()
        if self._held_bytes + self._fresh_bytes > self._memory:
            self.spill()

    def _join(self, everything: bool = False) -> None:
        """Make one part of those that came last, beside what comes next: many small ones would take long to merge."""
        if self._fresh:
            self._joining.submit(merge_lines, self._fresh)
            self._held_bytes += self._fresh_bytes
            self._fresh, self._fresh_bytes = [], 0
        self._held.extend(map(HeldRun, self._joining.taken(everything)))

    def spill(self) -> None:
        """Write what is held as a run."""
        self._join(everything=True)
        if self._held:
            text_bytes = sum(run.held.text_bytes() for run in self._held)
            write = self._spool.begin_run(sum(run.lines for run in self._held), text_bytes)
            deque(merge_runs(self._held, memory=self._memory, threads=self._threads, make=write), maxlen=0)
            self._held, self._held_bytes = [], 0

    def runs(self) -> list[Run]:
        """All lines, those on the disk first."""
        self._join(everything=True)
        return [*self._spool.runs(), *self._held]


class _Prepared(NamedTuple):
    """What is made of some lines beside others, before they are written."""

    text: memoryview
    entries: Entries | None
    counts: Counts | None
    unplaced: int


class _Output:
    """A file of sorted lines, and its index beside it."""

    def __init__(self, handle: BinaryIO, indexed: bool) -> None:
        self._handle = handle
        self._indexed = indexed
        self.index: TabixIndex | None = None
        self.file: BinaryIO | None = None  # (the file once it is whole, where it gets an index)

    def write(
        self, runs: Sequence[Run], about: About, *, memory: int, threads: int, density: Density | None = None
    ) -> None:
        """Merge all runs into the file."""
        contigs = [line.rsplit("\t", 1) for line in about.contigs.splitlines()]
        names, lengths = [name for name, _ in contigs], np.array([length for _, length in contigs], np.int64)
        heading = bam_heading(names, lengths) if about.preset == "bam" else about.heading.encode()
        index = (BamIndex if about.preset == "bam" else TabixIndex)(names, lengths, about.preset)
        behind = unplaced(lengths)

        def prepared(lines: SortedLines, before: Before) -> _Prepared:
            placed = lines.part(0, int(np.searchsorted(lines.place, behind)))
            shown = placed.that_are_written()
            return _Prepared(
                lines.used_text().data,
                index.entries(shown, len(heading) + before.text_bytes) if self._indexed and len(shown) else None,
                density.counted(placed) if density is not None and len(placed) else None,
                len(lines) - len(placed),
            )

        self._handle.write(heading)
        for text, entries, counts, more_unplaced in merge_runs(runs, memory=memory, threads=threads, make=prepared):
            self._handle.write(text)
            if entries is not None:
                index.add(entries)
            if density is not None and counts is not None:
                density.add(counts)
            index.unplaced += more_unplaced
        self.index = index


@contextmanager
def _open_sorted(
    path: str | os.PathLike[str],
    about: About,
    threads: int,
    inputs: Sequence[str | os.PathLike[str]],
    index_path: str | os.PathLike[str] | None = None,
) -> Iterator[_Output]:
    """What sorted lines are written to once; then the file appears, and its index."""
    name = os.fspath(path)
    is_bam = about.preset == "bam"
    indexed = is_bam or (about.preset is not None and name.endswith(".gz"))
    with ExitStack() as behind:  # the index gets its name behind the file

        def write_index(data: Path) -> None:
            assert output.index is not None
            output.file = behind.enter_context(open(data, "rb"))  # (no other file gets its inode meanwhile)
            target = name + (".csi" if output.index.is_wide else ".bai" if is_bam else ".tbi")
            targets = dict.fromkeys([target, os.fspath(index_path or target)])
            try:
                content = output.index.finished(block_offsets(data))
                for target in targets:
                    with open(behind.enter_context(atomic_path(target)), "xb") as handle:
                        handle.write(content)
            except OSError as error:
                raise refusal(target, error) from error

        with open_output(path, inputs, threads=threads, finish=write_index if indexed else None) as handle:
            output = _Output(handle, indexed)
            yield output
        if output.file is not None:
            check_still_there(path, output.file.fileno())


@contextmanager
def open_sorted(
    path: str | os.PathLike[str],
    format: Format,
    *,
    threads: int = 1,
    inputs: Sequence[str | os.PathLike[str]] = (),
    memory: int = MEMORY,
) -> Iterator[SortedWriter]:
    """A writer as `open_writer` gives it, of sorted lines.

    Parameters
    ----------
    memory : bytes of lines that are held; what is more waits in a file without a name beside the output

    Raises
    ------
    InputError : the file cannot be written, or is one of the inputs
    """
    about = _about(format)
    with _open_sorted(path, about, threads, inputs) as output, open_spool(folder_of(path)) as spool:
        with _joining(threads) as joining:
            writer = SortedWriter(spool, joining, format, about, memory=memory, threads=threads)
            yield writer
            runs = writer.runs()
        output.write(runs, about, memory=memory, threads=threads)


@contextmanager
def open_run_writer(
    path: str | os.PathLike[str], format: Format, *, threads: int = 1, memory: int = MEMORY
) -> Iterator[SortedWriter]:
    """A writer of a run file: the sorted lines of a part of the queries, for `merge_run_files`.

    The batches' `first_query` say where their queries stand among those of all parts.

    Raises
    ------
    InputError : the file cannot be written
    """
    about = _about(format)
    check_output(path)
    with atomic_path(path) as temporary, open(temporary, "x+b", buffering=0) as handle, _joining(threads) as joining:
        spool = Spool(handle, path)
        writer = SortedWriter(spool, joining, format, about, memory=memory, threads=threads)
        yield writer
        writer.spill()
        spool.close_as_file(about)


def merge_run_files(
    paths: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    index_path: str | os.PathLike[str] | None = None,
    threads: int = 1,
    memory: int = MEMORY,
    density: Density | None = None,
) -> Totals:
    """Merge the run files of all parts of a set of queries into what `open_sorted` writes of the whole set.

    Parameters
    ----------
    paths : one run file or more, in any order
    output : as `path` of `open_writer`; its name ends as that of a file with such lines
    index_path : file that holds the index, too, whatever its kind: tabix and pysam tell by what is in it
    density : counts where the lines begin

    Returns
    -------
    Totals of all queries

    Raises
    ------
    InputError : a file is no run file, or they do not belong together; or the output cannot be written
    """
    files = [open_run_file(path) for path in paths]
    about = replace(files[0].about)
    for file in files:
        _check_belongs(file, about)
        about.contigs = about.contigs or file.about.contigs
    runs: list[Run] = [run for file in files for run in file.runs()]
    with _open_sorted(output, about, threads, paths, index_path) as opened:
        opened.write(runs, about, memory=memory, threads=threads, density=density)
    return Totals.sum(file.about.totals for file in files)


def _joining(threads: int) -> Ahead[SortedLines]:
    return Ahead(min(threads, _JOINING_THREADS))


def _about(format: Format) -> About:
    return About(header(format.line).decode(), format.heading.decode(), format.preset)


def _check_belongs(file: RunFile, about: About) -> None:
    """Refuse a run file of other lines, or of another reference than those before it."""
    formats = [(each.columns, each.heading, each.preset) for each in (file.about, about)]
    if formats[0] != formats[1]:
        raise InputError(f"{file.path}: its lines are of another format than those before it; make the file again.")
    if file.about.contigs and about.contigs and file.about.contigs != about.contigs:
        raise InputError(f"{file.path}: it is of another reference than the run files before it; make it again.")
