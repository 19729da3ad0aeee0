"""Reading and writing a file at any of its places, by any thread: the place that a descriptor has is not used."""

from __future__ import annotations

import os

__all__ = ["fill_from", "read_at", "write_at"]


def read_at(number: int, begin: int, end: int) -> bytes:
    """The bytes ``[begin, end)`` of the file of a descriptor, fewer where it ends before.

    Raises
    ------
    OSError : when reading fails
    """
    parts = []
    while begin < end and (part := os.pread(number, end - begin, begin)):
        parts.append(part)
        begin += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def fill_from(number: int, begin: int, buffer: memoryview) -> int:
    """Fill a buffer with the bytes of a file from byte `begin` on; returns how many there were, fewer where it ends.

    Raises
    ------
    OSError : when reading fails
    """
    done = 0
    while part := os.preadv(number, [buffer[done:]], begin + done):
        done += part
    return done


def write_at(number: int, begin: int, data: memoryview | bytes) -> None:
    """Write all of it from byte `begin` of a file on.

    Raises
    ------
    OSError : when writing fails
    """
    while len(data):
        written = os.pwrite(number, data, begin)
        data, begin = data[written:], begin + written
