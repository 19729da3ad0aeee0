"""How files of gzip begin, and what BGZF is made of: gzip members of at most 64 KiB, blocks, each of which tells in its
header how long it is."""

from __future__ import annotations

import os
import struct

__all__ = [
    "END_BLOCK",
    "GZIP_MAGIC",
    "HEADER_BYTES",
    "LARGEST_BLOCK",
    "TRAILER",
    "block_bytes",
    "block_header",
    "is_gzip",
]

GZIP_MAGIC = b"\x1f\x8b"
END_BLOCK = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
"""The empty block that a whole file ends with."""
LARGEST_BLOCK = 1 << 16
"""Bytes that a block has at most, packed as unpacked."""
TRAILER = struct.Struct("<II")
"""What a block ends with: CRC-32 and number of the unpacked bytes."""

_HEADER = struct.Struct(
    "<4s6sHHHH"
)  # magic, method and flags; time and system; length, kind, length and value of extra
_START = GZIP_MAGIC + b"\x08\x04"
_NO_TIME = b"\0\0\0\0\0\xff"
_EXTRA = (6, 0x4342, 2)
HEADER_BYTES = _HEADER.size


def is_gzip(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as those of gzip do."""
    with open(path, "rb") as handle:
        return handle.read(len(GZIP_MAGIC)) == GZIP_MAGIC


def block_header(size: int) -> bytes:
    """The header of a block of `size` bytes, header and trailer included."""
    return _HEADER.pack(_START, _NO_TIME, *_EXTRA, size - 1)


def block_bytes(header: bytes) -> int:
    """Bytes of the block that begins so, header and trailer included; 0 where none does."""
    if len(header) < HEADER_BYTES:
        return 0
    start, _, *extra, last = _HEADER.unpack_from(header)
    return int(last) + 1 if start == _START and tuple(extra) == _EXTRA else 0
