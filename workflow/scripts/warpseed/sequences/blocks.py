"""BGZF, read at any place: gzip in blocks of at most 64 KiB, each of which tells how long it is."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from warpseed.sequences.bgzf_format import END_BLOCK, HEADER_BYTES, LARGEST_BLOCK, TRAILER, block_bytes
from warpseed.sequences.files import ByteStream

__all__ = ["Blocks", "is_bgzf"]


def is_bgzf(stream: ByteStream) -> bool:
    """Whether an ordinary file begins with a block of BGZF."""
    return block_bytes(stream.read_at(0, HEADER_BYTES)) > 0


class Blocks:
    """The text of a BGZF file, as far as it consists of blocks.

    Parameters
    ----------
    stream : ByteStream
        Of an ordinary file.

    Attributes
    ----------
    whole : bool
        Whether the blocks reach to the end of the file. It is known once `read` was asked for more than there is.

    Notes
    -----
    One thread finds the blocks, by reading on; where they are known, any thread may read.
    """

    def __init__(self, stream: ByteStream) -> None:
        self.whole = False
        self._stream = stream
        self._file_starts = [0]  # of each block, and the end of the last
        self._text_starts = [0]
        self._next = stream.read_at(0, HEADER_BYTES)  # the header behind the last block
        self._over = False

    @property
    def size(self) -> int:
        """Bytes of the text of the blocks found so far."""
        return self._text_starts[-1]

    def read(self, begin: int, end: int) -> bytes:
        """Bytes ``[begin, end)`` of the text, fewer where the blocks end before.

        Raises
        ------
        InputError
            When a block is damaged.
        """
        from isal import isal_zlib

        while self.size < end and not self._over:
            self._find_next()
        end = min(end, self.size)
        if begin >= end:
            return b""
        first, last = bisect_right(self._text_starts, begin) - 1, bisect_left(self._text_starts, end)
        offset = self._file_starts[first]
        packed = memoryview(self._stream.read_at(offset, self._file_starts[last]))
        parts = []
        for i in range(first, last):
            size = self._text_starts[i + 1] - self._text_starts[i]
            block = packed[self._file_starts[i] - offset : self._file_starts[i + 1] - offset]
            try:
                part = isal_zlib.decompress(block, 31, size)
            except isal_zlib.error:  # type: ignore[misc]
                part = b""
            if len(part) != size:
                raise self._stream.damaged(self._text_starts[i])
            parts.append(part)
        start = self._text_starts[first]
        return b"".join(parts)[begin - start : end - start]

    def rest(self, begin: int) -> Iterator[bytes]:
        """The text from a byte on, beyond the blocks too, in pieces: read as gzip, from the block that holds it."""
        i = bisect_right(self._text_starts, begin) - 1
        skipped = begin - self._text_starts[i]
        for piece in self._stream.members(self._file_starts[i], self._text_starts[i]):
            if skipped < len(piece):
                yield piece[skipped:]
            skipped = max(0, skipped - len(piece))

    def share_until(self, end: int) -> float:
        """How much of the file there is until that byte of the text, 0 to 1."""
        return self._file_starts[bisect_left(self._text_starts, end)] / self._stream.size

    def _find_next(self) -> None:
        """Find one more block, or that none follows."""
        start = self._file_starts[-1]
        length = block_bytes(self._next)
        end = start + length
        tail = self._stream.read_at(end - TRAILER.size, end + HEADER_BYTES) if length else b""
        following = tail[TRAILER.size :]
        self._over = not length or len(tail) < TRAILER.size or (following != b"" and not block_bytes(following))
        if self._over:
            # Something else follows: what that is, and whether all of this block is there, the reader of gzip will say.
            return
        _, size = TRAILER.unpack_from(tail)
        if size > LARGEST_BLOCK or (size == 0 and self._stream.read_at(start, end) != END_BLOCK):
            self._over = True
            return
        self._next = following
        if size:
            self._file_starts.append(end)
            self._text_starts.append(self.size + size)
        else:
            self._file_starts[-1] = end
        self.whole = self._over = following == b""
        if self.whole and size:
            self._stream.note_cut_blocks()
