"""BGZF as tests make it: gzip in blocks that tell their length."""

from __future__ import annotations

import gzip

END_BLOCK = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
"""What bgzip ends a file with."""


def block(content: bytes) -> bytes:
    """One block, of at most 64 KiB."""
    packed = gzip.compress(content, 1)
    extra = b"BC\2\0" + (len(packed) + 7).to_bytes(2, "little")
    return packed[:3] + b"\4" + packed[4:10] + b"\6\0" + extra + packed[10:]


def bgzf(content: bytes, size: int = 1000) -> bytes:
    """A whole file, in blocks of `size` bytes of content."""
    return b"".join(block(content[i : i + size]) for i in range(0, len(content), size)) + END_BLOCK
