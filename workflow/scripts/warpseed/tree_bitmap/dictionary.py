"""A dictionary on disk: distinct k-mers, sorted, in one file that maps into memory.

The file is a head of 64 bytes and the k-mers' numbers, uint64, little-endian, ascending (docs/formats.md).
"""

from __future__ import annotations

import mmap
import os
import stat
import struct
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from warpseed.compute.compiled import int64, scalar
from warpseed.compute.machine import usable_cores
from warpseed.errors import InputError, check_number
from warpseed.fm_index.checksum import checksum
from warpseed.output.opening import check_output, open_output, same_output
from warpseed.tree_bitmap.stream import MAX_K

__all__ = [
    "HEAD",
    "MAGIC",
    "Dictionary",
    "check_dictionary",
    "check_save",
    "open_dictionary",
    "save_dictionary",
    "write_dictionary",
]

MAGIC = b"warpseed k-mers\n"
VERSION = 1
_DIGITS = 16
"""Those of a checksum."""
HEAD = struct.Struct("<16sIIQ16s16s")
"""MAGIC, version, k, number of k-mers, and two checksums: of their numbers, and of the head as far as that one."""


class Dictionary(NamedTuple):
    """Distinct k-mers."""

    k: int
    kmers: np.ndarray
    """uint64[d], their numbers, ascending"""


def _head(k: int, count: int, digits: bytes) -> bytes:
    """The head of a dictionary whose numbers have this checksum."""
    unsealed = HEAD.pack(MAGIC, VERSION, k, count, digits, b"")[:-_DIGITS]
    return unsealed + checksum(np.frombuffer(unsealed, np.uint8), 1).encode()


@scalar
def _first_out_of_order(kmers, most):
    """The first entry that is above `most`, or not above the one before it; -1 where there is none."""
    for i in range(kmers.shape[0]):
        if kmers[i] > most or (i > 0 and kmers[i] <= kmers[i - 1]):
            return int64(i)
    return int64(-1)


def _numbers_in(kmers: Any) -> np.ndarray | None:
    """A row of whole numbers from 0 on as uint64[n]; None for anything else."""
    try:
        given = np.asarray(kmers)
    except (TypeError, ValueError):  # (as of rows of several lengths)
        return None
    if given.ndim != 1 or given.dtype.kind not in "iu" or (given.dtype.kind == "i" and (given < 0).any()):
        return None
    return np.ascontiguousarray(given, np.uint64)


def check_dictionary(k: int, kmers: np.ndarray, where: str = "dictionary") -> Dictionary:
    """A dictionary of k-mers that are what they should be.

    Raises
    ------
    InputError : k is out of its range, or the numbers are no k-mers, or not ascending
    """
    k = check_number("k", k, 1, MAX_K)
    numbers = _numbers_in(kmers)
    if numbers is None:
        raise InputError(f"{where}: it is no row of whole numbers from 0 on; give the numbers of k-mers, ascending.")
    if (bad := _first_out_of_order(numbers, np.uint64(4**k - 1))) >= 0:
        raise InputError(
            f"{where}: entry {bad} is {int(numbers[bad])}, but the numbers of distinct {k}-mers were expected, "
            "ascending."
        )
    return Dictionary(k, numbers)


def check_save(save: str | os.PathLike[str], source: str | os.PathLike[str], output: str | os.PathLike[str]) -> None:
    """Refuse, before any work, a name under which no dictionary can be saved.

    Parameters
    ----------
    save : the name
    source : the file of the stream, which is read
    output : where else something is written

    Raises
    ------
    InputError
    """
    name = os.fspath(save)
    if name == "-":
        raise InputError("a dictionary is saved in a file; name one, not standard output.")
    if not name.strip():
        raise InputError("the name of the dictionary that is to be saved is empty; name a file.")
    if name.endswith((".gz", ".bam")):
        raise InputError(f"{name}: a dictionary is mapped into memory, so it is not compressed; choose another ending.")
    check_output(save, [source])
    if same_output(save, output):
        raise InputError(f"{name}: the dictionary and the output, with its indexes, need names of their own.")


def save_dictionary(dictionary: Dictionary, path: str | os.PathLike[str]) -> None:
    """Write a dictionary; the file appears whole or not at all.

    Raises
    ------
    InputError : the numbers are not what they should be, or the file cannot be written
    """
    with open_output(path) as handle:
        write_dictionary(dictionary, handle)


def write_dictionary(dictionary: Dictionary, handle: BinaryIO) -> None:
    """Write a dictionary; InputError where its numbers are not what they should be, before anything is written."""
    k, kmers = check_dictionary(*dictionary)
    digits = checksum(kmers, min(4, usable_cores())).encode()
    handle.write(_head(k, len(kmers), digits))
    handle.write(kmers.astype("<u8", copy=False).data.cast("B"))


def open_dictionary(path: str | os.PathLike[str]) -> Dictionary:
    """Map a dictionary into memory; everything about it is checked.

    Raises
    ------
    InputError : there is no such file, or it is no dictionary, or a damaged one
    """
    name = os.fspath(path)
    again = "make it again with '--save-dictionary'"
    try:
        if not stat.S_ISREG(os.stat(name).st_mode):
            what = "a folder" if os.path.isdir(name) else "no plain file"
            raise InputError(
                f"{name}: this is {what}, but a dictionary is mapped from a plain file; give one that "
                "'--save-dictionary' wrote."
            )
        with open(name, "rb") as handle:
            head = handle.read(HEAD.size)
            if head[: len(MAGIC)] != MAGIC:
                raise InputError(
                    f"{name}: this is no dictionary of k-mers; give a file that '--save-dictionary' wrote."
                )
            size = os.fstat(handle.fileno()).st_size
            if len(head) < HEAD.size:
                raise InputError(f"{name}: the dictionary was cut; {again}.")
            _, version, k, count, digits, _ = HEAD.unpack(head)
            if version != VERSION:
                raise InputError(f"{name}: its form is number {version}, but this version reads {VERSION}; {again}.")
            if head != _head(k, count, digits):
                raise InputError(f"{name}: the checksum of its head is not the recorded one; {again}.")
            if size != HEAD.size + 8 * count or not 1 <= k <= MAX_K:
                raise InputError(
                    f"{name}: {size:,} bytes with {count:,} {k}-mers, but {HEAD.size + 8 * count:,} bytes were "
                    f"expected, and k from 1 to {MAX_K}; {again}."
                )
            data = mmap.mmap(handle.fileno(), size, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        missing = f"{name}: there is no such file" if name.strip() else "the name of the dictionary is empty"
        raise InputError(f"{missing}; give a file that '--save-dictionary' wrote.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{name}: cannot be read ({reason}).") from None
    kmers = np.frombuffer(data, "<u8", count, HEAD.size)
    if checksum(kmers, min(4, usable_cores())) != digits.decode("ascii", "replace"):
        raise InputError(f"{name}: its checksum is not the recorded one; {again}.")
    return check_dictionary(k, kmers, name)
