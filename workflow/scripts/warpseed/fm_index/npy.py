"""Arrays as .npy files: written with a fixed header, mapped only where header and size are exactly that.

Compiled code checks no bounds, so an array must be what it is taken for. Its file is known before it is opened: the
header is compared byte by byte with the one that was written, and nothing of it is interpreted.
"""

from __future__ import annotations

import ctypes
import hashlib
import mmap
import os
import stat
import weakref
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.descriptors import read_at, write_at
from warpseed.compute.pipeline import mapped
from warpseed.errors import IndexFormatError
from warpseed.fm_index.checksum import checksum

__all__ = ["HEADER_BYTES", "PIECE_BYTES", "FileEntry", "digest_of_pieces", "map_array", "write_array"]

HEADER_BYTES = 128
PIECE_BYTES = 1 << 24
"""Of a file, whose digests `digest_of_pieces` joins: part of the format."""


class FileEntry(NamedTuple):
    """What is recorded of a file."""

    size: int
    sha256_of_pieces: str
    """of the file, by `digest_of_pieces`"""
    checksum: str
    """of the array alone, by `checksum`: fast enough to be compared at every opening"""


def _header(dtype: type[np.generic], length: int) -> bytes:
    """Header of format 1.0 (magic, version, length, dict), padded so that the values begin at a multiple of 64."""
    text = f"{{'descr': '{np.dtype(dtype).newbyteorder('<').str}', 'fortran_order': False, 'shape': ({length},), }}"
    body = text.encode().ljust(HEADER_BYTES - 11) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(body).to_bytes(2, "little") + body


def write_array(name: str, folder: int, array: np.ndarray, threads: int = 1) -> FileEntry:
    """Write an array to a new file of the folder with this descriptor; an older file of that name goes.

    With more than one thread its checksum and the pieces of the file, each with its digest, are made side by side.
    """
    header = _header(array.dtype.type, len(array))
    values = np.ascontiguousarray(array).view(np.uint8).data
    size = HEADER_BYTES + len(values)

    def write(begin: int) -> bytes:
        own = values[max(0, begin - HEADER_BYTES) : begin + PIECE_BYTES - HEADER_BYTES]
        parts: list[bytes | memoryview] = [own] if begin else [header, own]
        for part in parts:
            write_at(number, begin, part)
            begin += len(part)
        return _digest(parts)

    number = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644, dir_fd=folder)
    try:
        pieces = [partial(write, begin) for begin in range(0, size, PIECE_BYTES)]
        tasks: list[Callable[[], Any]] = [partial(checksum, array), *pieces]
        sums, *digests = mapped(tasks, lambda task: task(), threads, ahead=len(tasks))
    finally:
        os.close(number)
    return FileEntry(size, _joined(digests), sums)


def _digest(parts: list[bytes | memoryview]) -> bytes:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part)
    return whole.digest()


def _joined(digests: Iterable[bytes]) -> str:
    return hashlib.sha256(b"".join(digests)).hexdigest()


def digest_of_pieces(number: int, threads: int = 1) -> str:
    """SHA-256 of the SHA-256 of each 16 MiB of a file, in their order, in hexadecimal: several threads can take it.

    Parameters
    ----------
    number : descriptor of the file
    """
    places = range(0, os.fstat(number).st_size, PIECE_BYTES)
    return _joined(mapped(places, lambda place: _digest([read_at(number, place, place + PIECE_BYTES)]), threads))


def map_array(path: str, folder: int, dtype: type[np.generic], length: int) -> np.ndarray:
    """Map the array of a file; changes of it stay in memory, and no descriptor stays open.

    Parameters
    ----------
    path : of the file, for sentences; its last part is opened in `folder`
    folder : descriptor of the folder, so that all files are of one folder even if another takes its name meanwhile

    Raises
    ------
    IndexFormatError : the file is missing, or anything about it differs from what was written
    """
    expected = HEADER_BYTES + length * np.dtype(dtype).itemsize
    try:
        number = os.open(os.path.basename(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder)
    except FileNotFoundError:
        raise IndexFormatError(f"{path}: missing from the index; build the index again.") from None
    except OSError as error:
        raise IndexFormatError(f"{path}: cannot be read ({error.strerror}).") from None
    try:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode):
            raise IndexFormatError(f"{path}: is no plain file; build the index again.")
        if found.st_size != expected:
            raise IndexFormatError(
                f"{path}: {found.st_size:,} bytes, but {expected:,} were expected; build the index again."
            )
        if os.pread(number, HEADER_BYTES, 0) != _header(dtype, length):
            raise IndexFormatError(
                f"{path}: its header is not that of {length:,} values of type {np.dtype(dtype)}; build the index again."
            )
        return np.frombuffer(_map(number, expected), dtype, length, HEADER_BYTES)
    finally:
        os.close(number)


@lru_cache(maxsize=1)
def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc


def _map(number: int, size: int) -> Any:
    """A private mapping. (Python's own keeps a descriptor for each: fifty indexes would reach a usual limit.)"""
    address = _libc().mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE, number, 0)
    if address == ctypes.c_void_p(-1).value:
        raise MemoryError(f"mapping {size:,} bytes of an index: {os.strerror(ctypes.get_errno())}")
    view = (ctypes.c_uint8 * size).from_address(address)
    weakref.finalize(view, _libc().munmap, address, size)
    return view
