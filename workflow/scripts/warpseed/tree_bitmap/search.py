"""Streams as users give them: read in blocks of whole records, matched, written, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from warpseed.compute.pipeline import behind
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import InputError
from warpseed.output.opening import check_output, open_output, output_format
from warpseed.tree_bitmap import cpu, output
from warpseed.tree_bitmap.blocks import iter_blocks
from warpseed.tree_bitmap.dictionary import Dictionary, check_save, write_dictionary
from warpseed.tree_bitmap.edits import TOO_FAR
from warpseed.tree_bitmap.reports import Ends, Kmers, Places, Put, Report, WholePlaces
from warpseed.tree_bitmap.request import Request, Tell, Totals, checked_request
from warpseed.tree_bitmap.stream import NO_KMER, SEEN, Stream
from warpseed.tree_bitmap.targets import distances_on, find_answers, known_before, target_for

if TYPE_CHECKING:
    from warpseed.tree_bitmap.targets import Target

__all__ = ["Matches", "Request", "Totals", "checked_request", "match", "write_stream"]

_ALL = 1 << 62
"""Places of a block that has the whole stream."""


class Matches:
    """What is known of every place of a stream.

    Attributes
    ----------
    stream : Stream
    answers : uint8[n], by the places where k-mers begin: NO_KMER, NEW or SEEN
    k : int, bases of a k-mer
    distances : uint8[n], by the last base of what ends at a place, the least edits that lead to it from a k-mer of the
        dictionary or the seed; TOO_FAR (255) where they are more than max_edits. None without max_edits
    """

    def __init__(
        self,
        stream: Stream,
        answers: np.ndarray,
        k: int,
        grown: Callable[[], np.ndarray],
        distances: np.ndarray | None = None,
    ) -> None:
        self.stream = stream
        self.answers = answers
        self.k = k
        self.distances = distances
        self._grown = grown

    @cached_property
    def dictionary(self) -> Dictionary:
        """All k-mers that have been seen in the end."""
        return Dictionary(self.k, self._grown())

    def to_frame(self) -> Any:
        """A pandas DataFrame of the places where k-mers begin: `record`, `start` in it, and `status`. With distances,
        of the places at which something near a k-mer ends: `record`, `end` in it, behind its last base, `distance`.
        """
        import pandas as pd

        places = np.flatnonzero(self.answers != NO_KMER if self.distances is None else self.distances != TOO_FAR)
        records, starts = self.stream.records_of(places)
        names = self.stream.names.decoded()[records]
        if self.distances is not None:
            return pd.DataFrame({"record": names, "end": starts + 1, "distance": self.distances[places]})
        seen = self.answers[places] == SEEN
        return pd.DataFrame({"record": names, "start": starts, "status": np.where(seen, "seen", "new")})


def match(stream: Stream, request: Request, watch: Stopwatch) -> Matches:
    """What is known of every place of a stream that is in memory."""
    answers, grown = find_answers(stream.codes, request, watch)
    distances = None
    if request.max_edits:
        known = known_before(stream.codes, request, watch)
        distances = distances_on(request, known, watch).find(stream.codes)
    return Matches(stream, answers, request.k, grown, distances)


# ---- from file to file


def _taken(
    report: Report,
    source: Any,
    request: Request,
    target: Target,
    watch: Stopwatch,
    tell: Tell,
) -> None:
    """Give a report all blocks of a source; where there are threads, the next one is read meanwhile."""

    def size() -> int:
        if target.whole:
            return _ALL
        most = max(cpu.BLOCK_PLACES, min(report.held // 2, cpu.MOST_PLACES))
        return most if request.grows else max(most, request.seed_length)

    def take(block: tuple[Stream, bool]) -> None:
        report.take(*block)

    # Reading may wait for a pipe, which a signal ends in the main thread alone.
    with nullcontext(take) if request.options.threads == 1 or target.whole else behind(take, 1) as put:
        for block in tell(lambda: f"{report.totals.bases:,} bases", iter_blocks(source, size, watch)):
            put(block)


def write_stream(
    source: str | os.PathLike[str],
    path: str | os.PathLike[str],
    request: Request,
    *,
    report: str = "kmers",
    save: str | os.PathLike[str] | None = None,
    dictionary: str | os.PathLike[str] | None = None,
    watch: Stopwatch,
    tell: Tell = lambda done, parts: parts,
) -> Totals:
    """Match the records of a file, and write what comes of it.

    Parameters
    ----------
    source : FASTA or FASTQ, plain or gzip, '-' for standard input
    path : .tsv or .bin, with .gz behind it compressed, '-' for TSV on standard output; it appears whole or not at all
    request : Request
    report : 'kmers', each distinct k-mer of the stream once, or 'places', each place where one begins; with max_edits
        each place at which something near one ends
    save : where the dictionary goes that is there in the end
    dictionary : the file that the request's k-mers are from, which the output does not replace; `save` may
    watch : takes the seconds of the stages ``read``, ``build``, ``search`` and ``write``
    tell : function of what says how much is done, and of the parts of the work, that gives the same parts, and tells

    Raises
    ------
    InputError : a file is not what it should be, or cannot be written
    """
    format = output_format(path, output.FORMATS)
    read = [source] if dictionary is None else [source, dictionary]
    check_output(path, read)
    if save is not None:
        check_save(save, source, path)
    _check_told(request, report, save is not None)
    target = target_for(source, request, counting=report == "kmers")
    with ExitStack() as outputs:
        # Both are begun before any work, which one that cannot be written would waste. The output gets its name first:
        # of a run that fails no dictionary is left, which would have its k-mers as seen when it is run again.
        kept = None if save is None else outputs.enter_context(open_output(save))
        handle = outputs.enter_context(open_output(path, read, threads=request.options.threads))
        if report == "places":
            places = _places(request, target, watch, _put(handle, format, request), kept is not None)
            _taken(places, source, request, target, watch, tell)
            totals, grown = places.totals, None if isinstance(places, Ends) else places.dictionary
        else:
            kmers = Kmers(request, watch, target)
            _taken(kmers, source, request, target, watch, tell)
            rows = kmers.rows()
            totals, grown = kmers.totals, partial(kmers.dictionary, rows)
            with watch.stage("write"):
                write = output.write_kmers if format == "tsv" else output.write_kmers_as_binary
                write(handle, rows, tell, request.options.threads)
        if kept is not None:
            assert grown is not None  # what does not grow is not saved
            with watch.stage("write"):
                write_dictionary(Dictionary(request.k, grown()), kept)
                kept.flush()
    return totals


def _check_told(request: Request, report: str, saved: bool) -> None:
    """Refuse what cannot be told of such a request."""
    if saved and not request.grows:
        raise InputError("a dictionary that does not grow is not saved again; leave out the one or the other.")
    if report not in ("kmers", "places"):
        raise InputError(f"report is {report!r}, but 'kmers' or 'places' was expected.")
    if report == "kmers" and request.max_edits:
        raise InputError("with max_edits, places of the stream are told, not its k-mers; choose the report 'places'.")


def _put(handle: BinaryIO, format: str, request: Request) -> Put:
    """What writes the kinds of places; what goes before the first is written."""
    told = output.DISTANCES if request.max_edits else output.ANSWERS
    output.begin_places(handle, format, told, request.k, request.max_edits)
    if format == "tsv":
        return partial(output.write_places, handle, told, request.options.threads)
    return partial(output.write_places_as_binary, handle, told)


def _places(request: Request, target: Target, watch: Stopwatch, put: Put, keep: bool) -> Places | WholePlaces | Ends:
    """What finds the kinds of places, and puts them."""
    if request.max_edits:
        return Ends(request, watch, put)
    return WholePlaces(request, watch, put) if target.whole else Places(request, watch, target, put, keep)
