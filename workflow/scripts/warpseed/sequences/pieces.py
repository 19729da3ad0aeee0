"""A source of queries as a line of pieces, which any number of threads parse: files, pipes and sequences in memory.

A piece is two mebibytes of text that begins and ends at record borders. Where the borders are depends on the
text and on `piece_bytes`, never on threads, shares or compression: piece by piece, the records joined are those of the
file, and what is wrong with a file is said by the same sentence as if it was read from its beginning.
"""

from __future__ import annotations

import os
import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple, NoReturn, Protocol, TypeVar

from warpseed.compute.machine import keep_what_is_freed
from warpseed.errors import InputError
from warpseed.sequences.blocks import Blocks, is_bgzf
from warpseed.sequences.borders import Border, Reader, find_border
from warpseed.sequences.files import ByteStream, open_bytes
from warpseed.sequences.queries import Queries, Sniffed, sniffed, split_queries

if TYPE_CHECKING:
    from warpseed.sequences.fastx import FastxParser

__all__ = ["PIECE_BYTES", "Parsed", "Piece", "Pieces", "open_pieces"]

PIECE_BYTES = 2 << 20
_REST_BYTES = 1 << 20
_AHEAD = 4  # pieces that the thread which reads and decompresses may be ahead
_PAUSE = 0.1  # seconds between looks at whether it is still wanted

_Item = TypeVar("_Item")


class Piece(NamedTuple):
    """Whole records of a source that follow each other; cheap to hand to another thread."""

    number: int
    """from 0, in the order of the source"""
    begin: int
    """first byte of the uncompressed text; of sequences in memory, the first query"""
    end: int
    """behind the last one"""
    text: bytes | None = None
    """the bytes, where they cannot be read again"""
    behind: bytes = b""
    """of such a text, what was looked at behind its end"""
    failure: InputError | None = None
    """what ended the text here; it is raised when the piece is parsed"""


class Parsed(NamedTuple):
    """What a piece holds."""

    queries: Queries
    """at least one"""
    lines: int
    """lines that end in it, 0 in memory"""


class Pieces(ABC):
    """The pieces of a source, from `open_pieces`.

    Attributes
    ----------
    name : str
        What error sentences call the source.
    """

    def __init__(self, name: str, share: tuple[int, int]) -> None:
        self.name = name
        self._share = share

    def __iter__(self) -> Iterator[Piece]:
        """The pieces of the share, in order.

        Raises
        ------
        InputError
            When reading fails.
        """
        first, shares = self._share
        return (piece for piece in self._all() if piece.number % shares == first)

    @abstractmethod
    def _all(self) -> Iterator[Piece]:
        """All pieces, whatever the share."""

    @abstractmethod
    def parse(self, piece: Piece) -> Parsed:
        """The queries of a piece; from any thread.

        Raises
        ------
        InputError
            When the piece is not as it should be. Its sentence counts records and lines from the start of the piece:
            `explain` has the right one.
        """

    @abstractmethod
    def share_until(self, piece: Piece) -> float | None:
        """How much of the source there is until the end of a piece, 0 to 1; None where its size is not known, as of a
        pipe. Of compressed files it is estimated."""

    @abstractmethod
    def explain(self, piece: Piece, records: int, lines: int) -> NoReturn:
        """Raise the InputError of a piece that could not be parsed, after all pieces before it were.

        Parameters
        ----------
        records, lines : int
            Those of the pieces before it.
        """


@contextmanager
def open_pieces(
    source: str | os.PathLike[str] | Queries | Iterable[str | bytes],
    *,
    threads: int = 1,
    piece_bytes: int = PIECE_BYTES,
    as_written: bool = False,
    share: tuple[int, int] = (0, 1),
) -> Iterator[Pieces]:
    """Open a source of queries, as `iter_queries` takes them, as pieces.

    Parameters
    ----------
    source : path-like, Queries, or iterable of str or bytes
    threads : int
        With more than one, what cannot be read from several places at once (gzip, standard input, a pipe) is read and
        decompressed in a thread of its own, a few pieces ahead.
    piece_bytes : int
        Uncompressed bytes of a piece, about; a longer record makes a longer piece. In memory, bases.
    as_written : bool
        Whether to keep what a search does not need: the qualities of a FASTQ file, and letters for several bases.
    share : (int, int)
        ``(i, n)``: only the pieces i, i + n, i + 2n, …

    Yields
    ------
    Pieces

    Raises
    ------
    InputError
        When the source cannot be opened, is no FASTA or FASTQ file, or is a pipe of which a share was asked for.
    """
    if not (threads >= 1 and piece_bytes >= 1 and 0 <= share[0] < share[1]):
        raise ValueError(f"threads {threads}, piece_bytes {piece_bytes} or share {share} is out of range")
    keep_what_is_freed()
    if not isinstance(source, str | os.PathLike):
        queries = source if isinstance(source, Queries) else Queries.from_sequences(source, letters=as_written)
        yield _MemoryPieces(queries, piece_bytes, share)
        return
    with open_bytes(source) as stream:
        file = sniffed(stream)
        if share != (0, 1) and not stream.size:
            raise InputError(f"{stream.name}: a pipe cannot be read in shares; give the path of a file.")
        text = _Text(stream.name, file.format, as_written, piece_bytes, stream.unchecked)
        if stream.size and not stream.packed:
            yield _FilePieces(stream, file, text, share, _Plain(stream))
        elif stream.size and is_bgzf(stream):
            yield _FilePieces(stream, file, text, share, Blocks(stream))
        elif threads == 1:
            yield _FilePieces(stream, file, text, share)
        else:
            pieces = _FilePieces(stream, file, text, share)
            with _ahead(pieces.cut, stream.stop) as pieces.cut:
                yield pieces


class _MemoryPieces(Pieces):
    """Queries in memory: slices of them."""

    def __init__(self, queries: Queries, piece_bases: int, share: tuple[int, int]) -> None:
        super().__init__(queries.source, share)
        self._queries = queries
        self._piece_bases = piece_bases

    def _all(self) -> Iterator[Piece]:
        for number, (begin, end) in enumerate(split_queries(self._queries, self._piece_bases)):
            yield Piece(number, begin, end)

    def parse(self, piece: Piece) -> Parsed:
        return Parsed(self._queries.slice(piece.begin, piece.end), 0)

    def share_until(self, piece: Piece) -> float | None:
        return piece.end / len(self._queries)

    def explain(self, piece: Piece, records: int, lines: int) -> NoReturn:
        raise AssertionError("what is in memory was parsed before, and cannot fail")


class _Text(NamedTuple):
    """How the text of a file is cut and parsed."""

    name: str
    format: str
    as_written: bool
    piece_bytes: int
    unchecked: bool
    """whether it comes from a compressed file before it is checked"""

    def parser(self, before: tuple[int, int] = (0, 0)) -> FastxParser:
        from warpseed.sequences.fastx import FastxParser

        kept = self.as_written
        return FastxParser(
            self.name, self.format, qualities=kept, letters=kept, before=before, unchecked=self.unchecked
        )

    def next_border(self, read: Reader, begin: int) -> Border | None:
        """Where the piece whose first record begins at a byte ends: behind the next multiple of `piece_bytes`; None at
        the end of the text."""
        return find_border(read, (begin // self.piece_bytes + 1) * self.piece_bytes, self.format)

    def parse(self, piece: bytes) -> Parsed:
        parser = self.parser()
        parser.feed(piece)
        parser.finish()
        lines = parser.line - 1
        records = parser.take(all_records=True)
        return Parsed(Queries(*records[:4], self.name, records.qualities if parser.keeps_qualities else None), lines)

    def fail(self, parts: Iterable[memoryview | bytes], before: tuple[int, int]) -> NoReturn:
        """Parse parts of a text that follow each other, until what is wrong in them is found."""
        parser = self.parser(before)
        for part in parts:
            parser.feed(part)
        parser.finish()
        raise self.changed()

    def changed(self) -> InputError:
        """That what was read a second time is not what it was."""
        return InputError(f"{self.name}: the file was changed while it was read; read it again.")

    def fail_from_start(self) -> NoReturn:
        """Find what is wrong with a file of which not all pieces were read."""
        with open_bytes(self.name) as stream:
            self.fail(sniffed(stream).text, (0, 0))


class _Places(Protocol):
    """A text of which any place can be read, by any thread."""

    whole: bool
    """whether nothing else follows; known when `read` was asked for more than there is, as `size`"""

    @property
    def size(self) -> int:
        """Bytes of the text."""

    def read(self, begin: int, end: int) -> bytes:
        """Bytes ``[begin, end)``, fewer where the text ends before."""

    def rest(self, begin: int) -> Iterator[bytes]:
        """The text from a byte on, and what follows it."""

    def share_until(self, end: int) -> float:
        """How much of the file there is until that byte, 0 to 1."""


class _Plain:
    """A plain file."""

    whole = True

    def __init__(self, stream: ByteStream) -> None:
        self.size = stream.size
        self.read = stream.read_at

    def rest(self, begin: int) -> Iterator[bytes]:
        return (self.read(at, at + _REST_BYTES) for at in range(begin, self.size, _REST_BYTES))

    def share_until(self, end: int) -> float:
        return end / self.size


class _FilePieces(Pieces):
    """The text of a file. Where any place of it can be read, whoever parses a piece reads it, too.

    Attributes
    ----------
    cut : iterator
        All pieces, as they are cut.
    """

    def __init__(
        self, stream: ByteStream, file: Sniffed, text: _Text, share: tuple[int, int], places: _Places | None = None
    ) -> None:
        super().__init__(text.name, share)
        self._stream = stream
        self._text = text
        self._places = places
        self.cut = _cut_in_order(file, text) if places is None else self._cut(places, file)

    def _all(self) -> Iterator[Piece]:
        return self.cut

    def _cut(self, places: _Places, file: Sniffed) -> Iterator[Piece]:
        begin, number = file.begin, 0
        while border := self._text.next_border(places.read, max(begin, file.first)):
            yield Piece(number, begin, border.place)
            begin, number = border.place, number + 1
        if not places.whole:
            yield from _cut_in_order(file._replace(begin=begin, text=places.rest(begin)), self._text, number)
        elif begin < places.size:
            yield Piece(number, begin, places.size)

    def parse(self, piece: Piece) -> Parsed:
        if piece.failure:
            raise piece.failure
        return self._text.parse(self._read(piece) if piece.text is None else piece.text)

    def share_until(self, piece: Piece) -> float | None:
        if self._places is not None and piece.text is None:
            return self._places.share_until(piece.end)
        expected = self._stream.expected_size()
        return min(1.0, piece.end / expected) if self._stream.size and expected else None

    def _read(self, piece: Piece) -> bytes:
        assert self._places is not None
        text = self._places.read(piece.begin, piece.end)
        if len(text) < piece.end - piece.begin:
            raise self._text.changed()
        return text

    def explain(self, piece: Piece, records: int, lines: int) -> NoReturn:
        if self._share != (0, 1):
            self._text.fail_from_start()
        self._text.fail(self._from(piece), (records, lines))

    def _from(self, piece: Piece) -> Iterator[bytes]:
        """The text from a piece on, as far as its error needs it, and what ended it."""
        if piece.text is None:
            assert self._places is not None
            yield from self._places.rest(piece.begin)
            return
        yield piece.text
        yield piece.behind
        if piece.failure:
            raise piece.failure


def _cut_in_order(file: Sniffed, text: _Text, number: int = 0) -> Iterator[Piece]:
    """Cut a text that comes in order and once; the first piece has that number."""
    begin, buffers = file.begin, file.text
    held = bytearray()
    failure: InputError | None = None

    def read(first: int, last: int) -> bytes:
        nonlocal failure
        while begin + len(held) < last and failure is None:
            try:
                buffer = next(buffers, None)
            except InputError as error:
                failure = error
                break
            if buffer is None:
                break
            held.extend(buffer)
        return bytes(memoryview(held)[first - begin : last - begin])

    while border := text.next_border(read, max(begin, file.first)):
        end = border.place
        piece = Piece(number, begin, end, read(begin, end), read(end, border.seen))
        del held[: end - begin]
        begin, number = end, number + 1
        yield piece
    if held or failure:
        yield Piece(number, begin, begin + len(held), bytes(held), b"", failure)


@contextmanager
def _ahead(items: Iterator[_Item], stop: Callable[[], None]) -> Iterator[Iterator[_Item]]:
    """The items of an iterator, taken from it by a thread of its own, a few ahead; `stop` ends a wait for more."""
    ready: queue.Queue[_Item | BaseException | None] = queue.Queue(_AHEAD)
    over = threading.Event()

    def put(item: _Item | BaseException | None) -> None:
        while not over.is_set():
            with suppress(queue.Full):
                ready.put(item, timeout=_PAUSE)
                return

    def take() -> None:
        try:
            for item in items:
                put(item)
                if over.is_set():
                    return
            put(None)
        except BaseException as error:  # raised again where the items are wanted
            put(error)

    def wanted() -> Iterator[_Item]:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    thread = threading.Thread(target=take, name="warpseed reading", daemon=True)
    thread.start()
    try:
        yield wanted()
    finally:
        over.set()
        stop()
        thread.join()
