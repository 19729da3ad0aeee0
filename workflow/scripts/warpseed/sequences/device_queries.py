"""Queries whose letters lie on a device: packed there, as the host packs those that it reads.

They are an array of uint8, the ASCII letters of a query a row, or a pair of such an array of one dimension and of
offsets, int[n + 1], between which the letters of each query lie; offsets may lie on the host. An array is one of CuPy,
or has ``__cuda_array_interface__`` or ``__dlpack__``.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint64
from warpseed.compute.devices import is_on_gpu
from warpseed.compute.gpu import cuda, cupy, current_device, kernel, launch
from warpseed.compute.searching import owner_of
from warpseed.compute.warp import BLOCK
from warpseed.errors import InputError
from warpseed.sequences.alphabet import show_byte
from warpseed.sequences.packed import BASES_A_WORD, Bounds, Packed, refuse_length

__all__ = ["SOURCE", "code_of_letter", "codes_on_device", "pack_letters", "pack_on_device", "spread_codes"]

SOURCE = "the queries on the GPU"
"""What error sentences call them."""
_IUPAC = sum(1 << (ord(letter) - ord("A")) for letter in "ACGTURYSWKMBDHVN")
_BASES = sum(1 << (ord(letter) - ord("A")) for letter in "ACGT")
"""Letters as bits, A in the lowest."""


@scalar
def code_of_letter(letter):
    """The code of a byte, int64: 0 to 3 for A, C, G and T in either case, 4 for other IUPAC letters, 5 for all else."""
    number = (int64(letter) & int64(0xDF)) - int64(65)
    if number < int64(0) or number > int64(25) or not (int64(_IUPAC) >> number) & int64(1):
        return int64(5)
    if not (int64(_BASES) >> number) & int64(1):
        return int64(4)
    return ((int64(letter) >> int64(1)) ^ (int64(letter) >> int64(2))) & int64(3)


@kernel
def pack_letters(letters, offsets, first, words, marks, seen):
    """A word of packed queries a thread, and its marks; see `warpseed.sequences.packed.Packed`.

    seen : int64[2]; [0] becomes the place of the first byte that is no IUPAC letter, [1] 1 where a letter is no base
    """
    w = int64(cuda.grid(1))
    if w >= int64(words.shape[0]):
        return
    query, before = w, int64(0)
    if first.shape[0]:
        query = owner_of(first, w)
        before = int64(32) * (w - int64(first[query]))
    begin = int64(offsets[query]) + before
    stop = min(begin + int64(32), int64(offsets[query + int64(1)]))
    word, mark = uint64(0), uint64(0)
    for i in range(begin, stop):
        code = code_of_letter(letters[i])
        if code == int64(5):
            cuda.atomic.min(seen, 0, i)
        known = code < int64(4)
        word = (word << uint64(2)) | (uint64(code) if known else uint64(0))
        mark = (mark << uint64(2)) | (uint64(0) if known else uint64(1))
    shift = uint64(int64(64) - int64(2) * (stop - begin))
    words[w] = word << shift
    marks[w] = mark << shift
    if mark:
        seen[1] = int64(1)


@kernel
def spread_codes(letters, offsets, codes, seen):
    """The code of a letter a thread, behind as many places that stay as they are as there are queries before its own.

    seen : int64[1], becomes the place of the first byte that is no IUPAC letter
    """
    i = int64(cuda.grid(1))
    if i < int64(letters.shape[0]):
        code = code_of_letter(letters[i])
        if code == int64(5):
            cuda.atomic.min(seen, 0, i)
        codes[i + owner_of(offsets, i)] = min(code, int64(4))


class _Letters(NamedTuple):
    """Letters of queries on the current device."""

    letters: Any
    """uint8[total]"""
    offsets: Any
    """int64[n + 1]"""
    lengths: Any
    """int64[n]"""


def _device_of(array: Any) -> int:
    """The number of the device that an array lies on; the current one of an array that has no memory."""
    if isinstance(array, cupy().ndarray):
        return int(array.device.id)
    if hasattr(array, "__cuda_array_interface__"):
        address = int(array.__cuda_array_interface__["data"][0])
        return int(cupy().cuda.runtime.pointerGetAttributes(address).device) if address else current_device()
    return int(array.__dlpack_device__()[1])


def _there(array: Any) -> Any:
    """An array of the current device as CuPy's, which would copy one of another device."""
    if (number := _device_of(array)) != current_device():
        raise InputError(
            f"{SOURCE} lie on GPU {number}, but GPU {current_device()} is to search; name that one "
            f"(device='gpu:{number}')."
        )
    return cupy().asarray(array) if hasattr(array, "__cuda_array_interface__") else cupy().from_dlpack(array)


def _letters_of(source: Any) -> _Letters:
    """The letters of a source on the current device.

    Raises
    ------
    InputError : it is not what was expected, or lies on another device
    """
    xp = cupy()
    array, offsets = source if isinstance(source, tuple) else (source, None)
    letters = xp.ascontiguousarray(_there(array))
    if letters.dtype != np.uint8 or letters.ndim != (2 if offsets is None else 1):
        raise InputError(
            f"{SOURCE} are {letters.dtype} of {letters.ndim} dimensions, but letters were expected, uint8: "
            "a query a row, or in one dimension with offsets between them."
        )
    if offsets is None:
        count, length = letters.shape
        offsets = xp.arange(count + 1, dtype=xp.int64) * length
        return _Letters(letters.reshape(-1), offsets, xp.full(count, length, xp.int64))
    offsets = _there(offsets) if is_on_gpu(offsets) else np.asarray(offsets)
    if offsets.dtype.kind not in "iu" or offsets.ndim != 1 or not len(offsets):
        raise InputError(
            f"offsets of {SOURCE} are {offsets.dtype}, but whole numbers, one more than queries, were expected."
        )
    offsets = xp.asarray(offsets).astype(xp.int64)
    ends = int(offsets[0]), int(offsets[-1])
    if ends != (0, len(letters)):
        raise InputError(f"offsets of {SOURCE} go from {ends[0]} to {ends[1]}, but 0 to {len(letters)} was expected.")
    return _Letters(letters, offsets, xp.diff(offsets))


def _refuse_letter(queries: _Letters, place: int) -> NoReturn:
    offsets = queries.offsets.get()
    number = int(np.searchsorted(offsets, place, side="right")) - 1
    raise InputError(
        f"{SOURCE}, number {number}: found {show_byte(int(queries.letters[place]))} at position "
        f"{place - offsets[number]}; only IUPAC letters (A, C, G, T, N, …) are allowed."
    )


def _bounded(source: Any, bounds: Bounds) -> tuple[_Letters, int]:
    """The letters of a source on the current device, and the length of the longest query."""
    queries = _letters_of(source)
    lengths = queries.lengths
    longest = int(lengths.max()) if len(lengths) else 0
    if len(lengths) and (longest > bounds.longest or int(lengths.min()) < 1):
        worst = int(((lengths > bounds.longest) | (lengths < 1)).argmax())
        refuse_length(SOURCE, worst, str(worst), int(lengths[worst]), bounds)
    return queries, longest


def pack_on_device(source: Any, bounds: Bounds) -> Packed:
    """Pack queries that lie on the current device.

    Parameters
    ----------
    source : see the module
    bounds : Bounds of each

    Returns
    -------
    Packed, of CuPy arrays

    Raises
    ------
    InputError : with the query's number, for one that is empty or too long, or has a byte that is no IUPAC letter; or
        the arrays are not what was expected
    """
    xp = cupy()
    queries, longest = _bounded(source, bounds)
    lengths, count = queries.lengths, len(queries.lengths)
    first = xp.zeros(count + 1 if longest > BASES_A_WORD else 0, xp.uint32)
    if len(first):
        xp.cumsum((lengths + 31) >> 5, dtype=xp.uint32, out=first[1:])
    total = int(first[-1]) if len(first) else count
    words, marks = xp.empty(total, xp.uint64), xp.empty(total, xp.uint64)
    seen = xp.asarray(np.array([len(queries.letters), 0], np.int64))
    read = (queries.letters, queries.offsets, first)
    launch(pack_letters, total, BLOCK, *read, words, marks, seen)
    place, others = seen.get().tolist()
    if place < len(queries.letters):
        _refuse_letter(queries, place)
    return Packed(words, marks if others else marks[:0], first, lengths.astype(xp.uint32))


def codes_on_device(source: Any, bounds: Bounds) -> tuple[Any, Any]:
    """The codes of queries that lie on the current device, back to back, with a place of code 4 between two of them.

    Parameters and errors are those of `pack_on_device`.

    Returns
    -------
    (codes, starts) : CuPy uint8[n], and int64[q], where each query begins
    """
    xp = cupy()
    queries, _ = _bounded(source, bounds)
    count = len(queries.lengths)
    codes = xp.full(len(queries.letters) + max(0, count - 1), 4, xp.uint8)
    seen = xp.asarray(np.array([len(queries.letters)], np.int64))
    launch(spread_codes, len(queries.letters), BLOCK, queries.letters, queries.offsets, codes, seen)
    place = int(seen[0])
    if place < len(queries.letters):
        _refuse_letter(queries, place)
    return codes, queries.offsets[:-1] + xp.arange(count, dtype=xp.int64)
