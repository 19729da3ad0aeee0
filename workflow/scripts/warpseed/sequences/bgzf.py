"""BGZF: gzip in blocks that are compressed side by side, and that tabix can jump to."""

from __future__ import annotations

import mmap
import os
import struct
from contextlib import nullcontext
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np

from warpseed.compute.pipeline import Ahead
from warpseed.errors import InputError
from warpseed.sequences.bgzf_format import (
    END_BLOCK,
    HEADER_BYTES,
    LARGEST_BLOCK,
    TRAILER,
    block_bytes,
    block_header,
)

__all__ = ["BLOCK_BYTES", "BgzfWriter", "block_offsets", "pack_blocks"]

BLOCK_BYTES = 0xFF00
"""Uncompressed bytes of a block, as bgzip takes them: even stored they fit into the 65,536 that a block may have."""

_TASK_BYTES = 16 * BLOCK_BYTES
_LEVEL = 1
"""Of libdeflate, which packs the same bytes in every process and on every processor (docs/decisions.md)."""
_BLOCK_EXTRA = HEADER_BYTES + TRAILER.size
_MOST_PACKED = LARGEST_BLOCK - _BLOCK_EXTRA


def _pack_block(data: memoryview) -> bytes:
    """One block of at most BLOCK_BYTES."""
    import deflate

    packed: bytes | bytearray = deflate.deflate_compress(data, _LEVEL)
    if len(packed) > _MOST_PACKED:  # deflate's own way of storing
        packed = struct.pack("<BHH", 1, len(data), len(data) ^ 0xFFFF) + data
    header = block_header(len(packed) + _BLOCK_EXTRA)
    return b"".join((header, packed, TRAILER.pack(deflate.crc32(data), len(data))))


def pack_blocks(data: bytes | bytearray | memoryview) -> bytes:
    """Bytes as BGZF blocks, without the one that ends a file; the last of them may be short."""
    view = memoryview(data)
    return b"".join(_pack_block(view[i : i + BLOCK_BYTES]) for i in range(0, len(view), BLOCK_BYTES))


def block_offsets(path: str | os.PathLike[str]) -> np.ndarray:
    """Where each block of a whole BGZF file begins, the one that ends it included; int64[b].

    Raises
    ------
    InputError : it is no such file: empty, plain, gzip without blocks, or cut off
    """
    offsets = []
    at, size = 0, os.path.getsize(path)
    # An empty file cannot be mapped.
    with (
        open(path, "rb") as handle,
        mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) if size else nullcontext(b"") as data,
    ):
        while at < size and (length := block_bytes(data[at : at + HEADER_BYTES])):
            offsets.append(at)
            at += length
    if at != size or not offsets:
        raise InputError(f"{path}: from byte {at} on it is no BGZF, which has an index; compress it with bgzip.")
    return np.array(offsets, np.int64)


class BgzfWriter:
    """A stream of bytes that goes into a BGZF file; the same bytes for any number of threads and any sizes of writes.

    Used as a context manager: the file is whole when the block succeeds. A header holds no time and no name.

    Parameters
    ----------
    raw : binary file
        Open for writing; its `write` is called by the thread that writes here alone, with bytes that do not change.
    threads : int
        Threads that compress; with 1 the thread that writes does.
    """

    def __init__(self, raw: BinaryIO, threads: int = 1) -> None:
        self._raw = raw
        self._held = bytearray()
        self._packing: Ahead[bytes] = Ahead(threads)

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Take bytes, which may not change before the file is whole; what was written is some megabytes behind."""
        if len(data) >= _TASK_BYTES:
            self._take_long(memoryview(data))
        else:
            self._held += data
            if len(self._held) >= _TASK_BYTES:
                self._pack(bytes(memoryview(self._held)[:_TASK_BYTES]))
                del self._held[:_TASK_BYTES]
        return len(data)

    def _take_long(self, data: memoryview) -> None:
        """Pack whole blocks where they lie; what is less than one at either end is copied."""
        first = -len(self._held) % BLOCK_BYTES
        last = len(data) - (len(data) - first) % BLOCK_BYTES
        self._pack(bytes(self._held) + data[:first])
        for begin in range(first, last, _TASK_BYTES):
            self._pack(data[begin : min(begin + _TASK_BYTES, last)])
        self._held = bytearray(data[last:])

    def flush(self) -> None:
        """Nothing: half a block cannot be written."""

    def _pack(self, data: bytes | memoryview, everything: bool = False) -> None:
        self._packing.submit(pack_blocks, data)
        for blocks in self._packing.taken(everything):
            self._raw.write(blocks)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._packing:
            if kind is None:
                self._pack(bytes(self._held), everything=True)
                self._raw.write(END_BLOCK)
