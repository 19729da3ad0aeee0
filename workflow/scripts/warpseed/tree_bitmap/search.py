"""Streams as users give them: read in blocks of whole records, matched, written, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from warpseed.batches import devices_of
from warpseed.compute.pipeline import behind
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import InputError
from warpseed.output.opening import check_output, open_output, output_format
from warpseed.sequences.names import Names
from warpseed.tree_bitmap import cpu, output
from warpseed.tree_bitmap.blocks import iter_blocks
from warpseed.tree_bitmap.dictionary import Dictionary, save_dictionary
from warpseed.tree_bitmap.edits import TOO_FAR
from warpseed.tree_bitmap.ends import Ends, find_distances, known_before
from warpseed.tree_bitmap.request import Put, Report, Request, Tell, Totals, checked_request
from warpseed.tree_bitmap.seeds import new_kmers
from warpseed.tree_bitmap.stream import NEW, NO_KMER, SEEN, Stream
from warpseed.tree_bitmap.targets import WholeCounts, answers_on, count_places, counts_on, target_for

if TYPE_CHECKING:
    from warpseed.tree_bitmap.targets import Answers, Counts, Target

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
    answers, grown = _find(request)(stream.codes, request, watch)
    distances = find_distances(stream.codes, request, watch) if request.max_edits else None
    return Matches(stream, answers, request.k, grown, distances)


_Found = tuple[np.ndarray, Callable[[], np.ndarray]]


def _find(request: Request) -> Callable[[np.ndarray, Request, Stopwatch], _Found]:
    """What finds the answers on a tier and a device."""
    if request.options.tier == "paper":
        return _find_paper
    return _find_fast if request.options.device == "cpu" else _find_on_gpus


def _find_fast(codes: np.ndarray, request: Request, watch: Stopwatch) -> _Found:
    return cpu.find_answers(
        codes, request.k, seed_length=request.seed_length, dictionary=request.known, grows=request.grows,
        threads=request.options.threads, watch=watch,
    )  # fmt: skip


def _find_on_gpus(codes: np.ndarray, request: Request, watch: Stopwatch) -> _Found:
    from warpseed.tree_bitmap import gpu

    devices = devices_of(request.options.device)
    return gpu.find_answers(
        codes, request.k, seed_length=request.seed_length, dictionary=request.known, grows=request.grows,
        devices=devices, threads=request.options.threads, watch=watch,
    )  # fmt: skip


def _find_paper(codes: np.ndarray, request: Request, watch: Stopwatch) -> _Found:
    from warpseed.tree_bitmap.dynamic import How, Seed, match_dynamically, match_on_one_trie

    seed = Seed(min(request.seed_length, len(codes)), request.known)
    with watch.stage("search"):
        if request.options.device == "cpu":
            matched = match_on_one_trie(codes, request.k, seed)
        else:
            matched = match_dynamically(codes, request.k, seed, How(concurrent=True), request.options.device)
    return matched.answers, lambda: matched.dictionary


# ---- from file to file


class _Places(Report):
    """Places, written as they come."""

    def __init__(self, request: Request, watch: Stopwatch, target: Target, put: Put, keep: bool) -> None:
        super().__init__(request, watch)
        self._target = target
        self._put = put
        self._keep = keep
        self._kmers: Answers | None = None
        self._waiting: list[Stream] = []
        self._new = [request.known]

    def take(self, block: Stream, more: bool) -> None:
        """Match the next block, and write what places are."""
        if self._kmers is None:
            with self._watch.stage("build"):
                self._kmers = self._begun(block)
        self._waiting.append(block)
        with self._watch.stage("search"):
            found = self._kmers.take(block.codes, more)
        for answers in found:
            self._told(self._waiting.pop(0), answers)

    def _begun(self, block: Stream) -> Answers:
        """What knows the dictionary, and the seed where that is all; `block` is the first."""
        request = self._request
        known = request.known if request.grows else known_before(block.codes, request, self._watch)
        return answers_on(self._target, request, known, len(block.codes))

    def _told(self, block: Stream, answers: np.ndarray) -> None:
        """Write what the places of a block are."""
        with self._watch.stage("search"):
            if self._keep:
                self._new.append(new_kmers(block.codes, self._request.k, answers))
            seed = answers[: max(0, self._request.seed_places - self._first)] if self._request.grows else answers[:0]
            seed[seed == NEW] = SEEN
        with self._watch.stage("write"):
            self._put(block, answers)
        self._passed(block, int(np.count_nonzero(answers)), int(np.count_nonzero(answers == NEW)))

    def held(self) -> int:
        """K-mers that are held in sets in parts, which are filled anew for each block."""
        return 0 if self._kmers is None else self._kmers.held

    def dictionary(self) -> np.ndarray:
        """All k-mers that have been seen."""
        return np.sort(np.concatenate(self._new))


class _WholePlaces(Report):
    """Places of a stream that is one block."""

    def __init__(self, request: Request, watch: Stopwatch, put: Put) -> None:
        super().__init__(request, watch)
        self._put = put

    def take(self, block: Stream, more: bool) -> None:
        """Match the stream, and write what places are."""
        self._matches = match(block, self._request, self._watch)
        answers = self._matches.answers
        with self._watch.stage("write"):
            self._put(block, answers)
        self._passed(block, int(np.count_nonzero(answers)), int(np.count_nonzero(answers == NEW)))

    def held(self) -> int:
        """As `_Places.held`."""
        return 0

    def dictionary(self) -> np.ndarray:
        """All k-mers that have been seen."""
        return self._matches.dictionary.kmers


class _Kmers(Report):
    """K-mers, written when all have been counted."""

    def __init__(self, request: Request, watch: Stopwatch, target: Target) -> None:
        super().__init__(request, watch)
        self._target = target
        self._counts: Counts | None = None
        self._names: list[Names] = []
        self._starts: list[np.ndarray] = []

    def take(self, block: Stream, more: bool) -> None:
        """Count the k-mers of the next block."""
        with self._watch.stage("search"):
            if self._counts is None:
                self._counts = self._begun(len(block.codes))
            self._counts.take(block.codes, more)
        self._names.append(block.names)
        self._starts.append(block.starts + self._first)
        self._passed(block, 0, 0)

    def _begun(self, places: int) -> Counts:
        request = self._request
        if request.options.tier == "paper":
            return WholeCounts(
                lambda codes: count_places(codes, request.k, _find_paper(codes, request, Stopwatch())[0])
            )
        return counts_on(self._target, request, places)

    def held(self) -> int:
        """As `_Places.held`."""
        return 0 if self._counts is None else self._counts.held

    def rows(self) -> output.KmerRows:
        """All k-mers."""
        assert self._counts is not None
        with self._watch.stage("search"):
            counted = self._counts.counted()
        self._counts = None  # whose memory is wanted
        seen = cpu.is_known(counted.codes, self._request.known)
        seen |= counted.places < self._request.seed_places
        new = len(seen) - np.count_nonzero(seen) if self._request.grows else counted.counts[~seen].sum()
        self.totals = self.totals._replace(kmers=int(counted.counts.sum()), new=int(new))
        names = Names.joined(self._names)
        return output.KmerRows(self._request.k, counted, seen, np.concatenate(self._starts), names)

    def dictionary(self, rows: output.KmerRows) -> np.ndarray:
        """All k-mers that have been seen."""
        known, codes = self._request.known, rows.counted.codes
        return np.union1d(known, codes) if len(known) else np.sort(codes)


def _taken(
    report: _Places | _WholePlaces | Ends | _Kmers,
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
        most = max(cpu.BLOCK_PLACES, min(report.held() // 2, cpu.MOST_PLACES))
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
        if not request.grows:
            raise InputError("a dictionary that does not grow is not saved again; leave out the one or the other.")
        if os.fspath(save) == "-":
            raise InputError("a dictionary is saved in a file; name one, not standard output.")
        check_output(save, [source])
        if os.path.realpath(save) == os.path.realpath(path):
            raise InputError(f"{os.fspath(save)}: the dictionary and the output need names of their own.")
    if report not in ("kmers", "places"):
        raise InputError(f"report is {report!r}, but 'kmers' or 'places' was expected.")
    if report == "kmers" and request.max_edits:
        raise InputError("with max_edits, places of the stream are told, not its k-mers; choose the report 'places'.")
    target = target_for(source, request, counting=report == "kmers")
    with open_output(path, read, threads=request.options.threads) as handle:
        if report == "places":
            places = _places(request, target, watch, _put(handle, format, request), save is not None)
            _taken(places, source, request, target, watch, tell)
            totals, grown = places.totals, places.dictionary
        else:
            kmers = _Kmers(request, watch, target)
            _taken(kmers, source, request, target, watch, tell)
            rows = kmers.rows()
            totals, grown = kmers.totals, partial(kmers.dictionary, rows)
            with watch.stage("write"):
                (output.write_kmers if format == "tsv" else output.write_kmers_as_binary)(handle, rows, tell)
        if save is not None:
            with watch.stage("write"):
                save_dictionary(Dictionary(request.k, grown()), save)
    return totals


def _put(handle: BinaryIO, format: str, request: Request) -> Put:
    """What writes the kinds of places; what goes before the first is written."""
    told = output.DISTANCES if request.max_edits else output.ANSWERS
    output.begin_places(handle, format, told, request.k, request.max_edits)
    return partial(output.write_places if format == "tsv" else output.write_places_as_binary, handle, told)


def _places(request: Request, target: Target, watch: Stopwatch, put: Put, keep: bool) -> _Places | _WholePlaces | Ends:
    """What finds the kinds of places, and puts them."""
    if request.max_edits:
        return Ends(request, watch, put)
    return _WholePlaces(request, watch, put) if target.whole else _Places(request, watch, target, put, keep)
