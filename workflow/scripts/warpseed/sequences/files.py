"""Reading bytes whatever their compression, and writing files so that half a file never has a final name."""

from __future__ import annotations

import hashlib
import io
import os
import select
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, TextIO, TypeVar

from warpseed.compute.descriptors import fill_from, read_at
from warpseed.compute.pipeline import behind
from warpseed.compute.temporary import folder_made, remove_leftovers, temporary_name
from warpseed.errors import InputError, say
from warpseed.sequences.bgzf_format import END_BLOCK, GZIP_MAGIC, HEADER_BYTES, block_bytes
from warpseed.sequences.digests import digest_behind

__all__ = [
    "ByteStream",
    "atomic_path",
    "open_bytes",
    "open_for_writing",
    "sha256_file",
    "standard_input",
    "standard_output",
]

_Read = TypeVar("_Read")

_READ_BYTES = 1 << 20
_WRITE_BYTES = 1 << 17
_PAUSE = 100  # milliseconds between looks at whether a pipe is still wanted
_PACKED_BYTES = 1 << 16
_END_ZEROS = bytes(len(END_BLOCK) - len(END_BLOCK.rstrip(b"\0")))
_GZIP_WBITS = 31  # as zlib has it: expect a gzip header and check its CRC and length


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path`, and rename it onto `path` when the block succeeds.

    Parameters
    ----------
    path : path-like
        The final name. Its folder is made when it does not exist, and if then the block raises it goes again.

    Yields
    ------
    Path
        A name that does not exist yet, in the same folder, with the same ending (so that code which chooses
        a format by the ending still works). The block has to create it.

    Raises
    ------
    FileNotFoundError
        When the block ends well without having written the temporary file.

    Notes
    -----
    When the block raises, the temporary file is removed and `path` stays as it was; an OSError about the temporary
    file names `path`. What a killed process left of the same file is removed first.
    """
    final = Path(path)
    _, point, ending = final.name.rpartition(".")
    suffix = f".{ending}"[:16] if point else ""  # pathlib's is empty for a name that is all ending, such as .bam
    with folder_made(final.parent):
        remove_leftovers(final, suffix)
        temporary = final.parent / temporary_name(final, suffix)
        try:
            yield temporary
            os.replace(temporary, final)
        except OSError as error:
            if str(error.filename) == os.fspath(temporary):
                error.filename = os.fspath(final)
            raise
        finally:
            if os.path.lexists(temporary):  # on a read-only file system what is not there cannot be removed either
                temporary.unlink()


def sha256_file(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file's bytes as 64 hexadecimal digits.

    Parameters
    ----------
    path : path-like
        An ordinary file; it is read in pieces of 1 MiB.

    Returns
    -------
    str
        Lower-case hexadecimal digits.
    """
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


@contextmanager
def open_bytes(path: str | os.PathLike[str], *, digest: bool = False) -> Iterator[ByteStream]:
    """Open a plain or gzip file, or standard input for ``-``, as a stream of uncompressed pieces.

    Parameters
    ----------
    path : path-like
        The file, or ``-`` for standard input.
    digest : bool
        Whether to take the SHA-256 of the file's own (compressed) bytes while they pass.

    Yields
    ------
    ByteStream

    Raises
    ------
    InputError
        When the file does not exist, is a folder, or may not be read.
    """
    name = os.fspath(path)
    if name == "-":
        yield ByteStream(standard_input(), "standard input", 0, digest)
        return
    try:
        handle = open(name, "rb", buffering=0)  # noqa: SIM115 (closed below)
    except FileNotFoundError:
        if not name.strip():
            raise InputError("the name of the input file is empty; name a file, or '-' for standard input.") from None
        raise InputError(f"{name}: there is no such file; give the path of an existing file.") from None
    except IsADirectoryError:
        raise InputError(f"{name}: this is a folder, but a file was expected; give the path of a file.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{name}: the file cannot be opened for reading ({reason}).") from None
    with handle:
        yield ByteStream(handle, name, os.fstat(handle.fileno()).st_size, digest)


class _NamedFile(io.FileIO):
    """A file whose errors of writing say which file it is; the operating system names it only when it is opened."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = os.fspath(self.name)
            raise


class _Behind:
    """A stream whose bytes are taken in another thread: none of them may change any more."""

    def __init__(self, write: Callable[[Any], None]) -> None:
        self._write = write

    def write(self, data: Any) -> int:
        self._write(data)
        return len(data)


class _TextAsBytes:
    """Bytes into a stream of text, as some programs put in the place of standard output."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, data: Any) -> int:
        self._stream.write(bytes(data).decode("utf-8", "replace"))
        return len(data)

    def flush(self) -> None:
        self._stream.flush()


def standard_input() -> BinaryIO:
    """Standard input as bytes, also where a stream of text has taken its place.

    Raises
    ------
    InputError
        When it is closed.
    """
    if sys.stdin is None or sys.stdin.closed:
        raise InputError("standard input: it is closed; give the path of a file.")
    if hasattr(sys.stdin, "buffer"):
        return sys.stdin.buffer
    return io.BytesIO(sys.stdin.read().encode())


def standard_output() -> BinaryIO:
    """Standard output for bytes, also where a stream of text has taken its place.

    Raises
    ------
    InputError
        When it is closed.
    """
    if sys.stdout is None or sys.stdout.closed:
        raise InputError("standard output: it is closed; name a file, or send it to one.")
    return getattr(sys.stdout, "buffer", None) or _TextAsBytes(sys.stdout)  # type: ignore[return-value]


@contextmanager
def open_for_writing(path: str | os.PathLike[str], *, threads: int = 1) -> Iterator[BinaryIO]:
    """Open a file for writing bytes, as BGZF, which is gzip, when its name ends in ``.gz`` or ``.bam``.

    Equal content gives equal files, for any number of threads, which compress. With more than one, what goes to a plain
    file is written in a thread of its own. An OSError that writing raises, perhaps only with the next bytes or at the
    end, names the file.
    """
    with ExitStack() as stack:
        stream: Any = stack.enter_context(io.BufferedWriter(_NamedFile(path, "wb"), _WRITE_BYTES))
        # (A pipe may be full for as long as it likes, and whoever waits for it has to be interruptible.)
        if threads > 1 and stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            stream = _Behind(stack.enter_context(behind(stream.write)))
        if os.fspath(path).endswith((".gz", ".bam")):
            from warpseed.sequences.bgzf import BgzfWriter  # NumPy: what only names files waits for none

            stream = stack.enter_context(BgzfWriter(stream, threads))
        yield stream


class ByteStream:
    """Uncompressed bytes of one file, piece by piece, in bounded memory.

    Parameters
    ----------
    handle : binary file
        Open for reading, unbuffered where speed matters.
    name : str
        What error sentences call the file.
    size : int
        Bytes of the file, 0 when unknown (a pipe).
    digest : bool
        Whether to take the SHA-256 of the bytes as they are in the file.

    Attributes
    ----------
    bytes_read, bytes_out : int
        Bytes taken from the file so far, and handed out so far: their ratio predicts the uncompressed size.
    packed : bool
        Whether the file is gzip; told by the first of its `pieces`.
    """

    def __init__(self, handle: BinaryIO, name: str, size: int, digest: bool = False) -> None:
        self.name = name
        self.size = size
        self.bytes_read = 0
        self.bytes_out = 0
        self.packed = False
        self._handle = handle
        self._read = getattr(handle, "readinto1", None) or handle.readinto  # type: ignore[attr-defined]
        self._stopped = threading.Event()
        self._hash = hashlib.sha256() if digest else None
        self._first = self._last = b""  # of the bytes read, as many as tell BGZF, and its end
        self._noted = False

    @property
    def hexdigest(self) -> str:
        """SHA-256 of the file's bytes, in hexadecimal; complete once `pieces` is exhausted."""
        if self._hash is None:
            raise ValueError("this stream was opened without digest=True")
        return self._hash.hexdigest()

    @property
    def unchecked(self) -> bool:
        """Whether uncompressed bytes come before gzip's check of them; a block of BGZF is checked before it comes."""
        return self.packed and not block_bytes(self._first)

    def digest_behind(self) -> Callable[[], str]:
        """Take the SHA-256 of an ordinary file behind other work; see `warpseed.sequences.digests.digest_behind`."""
        return digest_behind(self._handle.fileno(), self.name)

    def expected_size(self) -> int:
        """Uncompressed bytes that the whole file is expected to hold, 0 when that cannot be said."""
        if self.bytes_read == 0:
            return 0
        return int(self.bytes_out / self.bytes_read * max(self.size, self.bytes_read))

    def read_at(self, begin: int, end: int) -> bytes:
        """The bytes ``[begin, end)`` of an ordinary file as they are in it, fewer where it ends before; any thread.

        Raises
        ------
        InputError
            When reading fails.
        """
        return self._at_a_place(read_at, begin, end)

    def fill_from(self, begin: int, buffer: memoryview) -> int:
        """Fill a buffer with the bytes of an ordinary file from byte `begin` on; returns how many there were, fewer
        where it ends; errors and threads as `read_at`."""
        return self._at_a_place(fill_from, begin, buffer)

    def _at_a_place(self, read: Callable[..., _Read], *place: object) -> _Read:
        try:
            return read(self._handle.fileno(), *place)
        except OSError as error:
            raise self._unreadable(error) from None

    def pieces(self, piece_bytes: int = _READ_BYTES) -> Iterator[memoryview | bytes]:
        """Yield the uncompressed bytes in pieces of at most about `piece_bytes`.

        A piece is valid until the next one is asked for: plain files reuse one buffer.

        Raises
        ------
        InputError
            When gzip data are damaged, end too early, or are followed by something else.
        """
        buffer = bytearray(piece_bytes)
        raw = self._raw_pieces(memoryview(buffer))
        start = b""
        for first in raw:  # a pipe may hand out a single byte at first: two are needed to tell gzip
            start += bytes(first)
            if len(start) >= len(GZIP_MAGIC):
                break
        self.packed = start.startswith(GZIP_MAGIC)
        held: list[memoryview | bytes] = [start] if start else []
        for piece in self._gunzip(start, raw, piece_bytes) if self.packed else chain(held, raw):
            self.bytes_out += len(piece)
            yield piece

    def _raw_pieces(self, buffer: memoryview) -> Iterator[memoryview]:
        while count := self._read_into(buffer):
            piece = buffer[:count]
            self.bytes_read += count
            if len(self._first) < HEADER_BYTES:
                self._first += bytes(piece[:HEADER_BYTES])
            self._last = (self._last + bytes(piece[-len(END_BLOCK) :]))[-len(END_BLOCK) :]
            if self._hash is not None:
                self._hash.update(piece)
            yield piece

    def stop(self) -> None:
        """End a wait for more, such as that of another thread for a pipe: what comes then is the end of the file."""
        self._stopped.set()

    def _read_into(self, buffer: memoryview) -> int:
        """Read what there is into a buffer, or wait for it; 0 at the end."""
        try:
            # What a stream of Python's holds of its own comes first, and no poll sees it.
            return self._read(buffer) if not self.bytes_read or self._has_more() else 0
        except OSError as error:
            raise self._unreadable(error) from None

    def _has_more(self) -> bool:
        """Wait until there is something to read, or the end; False when `stop` was called."""
        if self.size:
            return True
        try:
            poll = select.poll()
            poll.register(self._handle.fileno(), select.POLLIN)
        except OSError:  # no file of the system's: never waits
            return True
        while not self._stopped.is_set():
            if poll.poll(_PAUSE):
                return True
        return False

    def _unreadable(self, error: OSError) -> InputError:
        return InputError(f"{self.name}: reading failed ({error.strerror}).")

    def members(self, place: int, bytes_out: int) -> Iterator[bytes]:
        """Yield what gzip members hold, from byte `place` of an ordinary file on; `bytes_out` came from those before.

        Raises
        ------
        InputError
            As `pieces`.
        """
        self._handle.seek(place)
        self.bytes_read, self.bytes_out = place, bytes_out
        raw = self._raw_pieces(memoryview(bytearray(_READ_BYTES)))
        if start := self._next_member(b"", raw):
            for piece in self._gunzip(start, raw, _READ_BYTES):
                self.bytes_out += len(piece)
                yield piece

    def _gunzip(self, start: bytes, raw: Iterator[memoryview], piece_bytes: int) -> Iterator[bytes]:
        """Decompress one or several gzip members (bgzip writes thousands) one after the other."""
        from isal import isal_zlib

        # What a member leaves of its input is copied: little at a time.
        raw = (piece[i : i + _PACKED_BYTES] for piece in raw for i in range(0, len(piece), _PACKED_BYTES))
        data: bytes | memoryview = start
        member = isal_zlib.decompressobj(_GZIP_WBITS)
        while True:
            try:
                out = member.decompress(data, piece_bytes)
            except isal_zlib.error:  # type: ignore[misc]
                raise self.damaged(self.bytes_out) from None
            if out:
                yield out
            if member.eof:
                data = self._next_member(member.unused_data, raw)
                if not data:
                    # Only the end block ends with so many zeros, or what some tools pad with.
                    if block_bytes(self._first) and not self._last.endswith(_END_ZEROS):
                        self.note_cut_blocks()
                    return
                member = isal_zlib.decompressobj(_GZIP_WBITS)
            else:
                # With a full piece there may be more inside isal although no input is left over.
                data = member.unconsumed_tail or (b"" if len(out) == piece_bytes else next(raw, b""))
                if not data and len(out) < piece_bytes:
                    raise self._cut()

    def note_cut_blocks(self) -> None:
        """Say, once, that this is BGZF without the block that ends a whole file."""
        if not self._noted:
            self._noted = True
            say(f"Note: {self.name}: BGZF without the empty block that a whole file ends with: it may have been cut.")

    def damaged(self, bytes_out: int) -> InputError:
        """That gzip data are damaged behind so many uncompressed bytes."""
        return InputError(
            f"{self.name}: the gzip data are damaged after {bytes_out} uncompressed bytes; "
            "get or compress the file again."
        )

    def _cut(self) -> InputError:
        return InputError(
            f"{self.name}: the gzip data end too early, after {self.bytes_out} uncompressed bytes; "
            "the file was cut: get or compress it again."
        )

    def _next_member(self, rest: bytes, raw: Iterator[memoryview]) -> bytes:
        """Bytes that start with the next gzip member's magic, or nothing at the end of the file."""
        while True:
            rest = rest.lstrip(b"\0")  # tapes and some tools pad with zeros
            if not rest.startswith(GZIP_MAGIC[: len(rest)]):
                raise InputError(f"{self.name}: other bytes follow the gzip data; get or compress the file again.")
            if len(rest) >= len(GZIP_MAGIC):
                return rest
            piece = next(raw, None)
            if piece is None:
                if rest:
                    raise self._cut()
                return b""
            rest += bytes(piece)
