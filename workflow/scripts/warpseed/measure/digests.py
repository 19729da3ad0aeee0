"""Digests and counts of what was found in memory, by which runs are told to have found the same."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from warpseed.compute.machine import usable_cores
from warpseed.compute.pipeline import mapped

__all__ = ["count_equal", "digest_of"]

_PIECE = 1 << 22
"""Numbers that one thread takes at once."""


def digest_of(*arrays: np.ndarray, dtype: type[np.generic] | None = None) -> str:
    """SHA-256 of the bytes of arrays, one behind the other. Where one of them is longer than a piece it is that of the
    SHA-256 of each piece, in their order, so that all cores can take it: the results of some runs are a hundred
    gigabytes in all.

    Parameters
    ----------
    dtype : the type that all numbers have first; if None, their own

    Returns
    -------
    str, in hexadecimal
    """

    def digested(numbers: np.ndarray) -> bytes:
        return hashlib.sha256(np.ascontiguousarray(numbers, dtype).data).digest()

    flat = [array.reshape(-1) for array in arrays]
    if all(len(numbers) <= _PIECE for numbers in flat):
        return hashlib.sha256(b"".join(np.ascontiguousarray(numbers, dtype).tobytes() for numbers in flat)).hexdigest()
    pieces = [piece for numbers in flat for piece in _pieces_of(numbers)]
    return hashlib.sha256(b"".join(mapped(pieces, digested, usable_cores()))).hexdigest()


def count_equal(numbers: np.ndarray, value: int | np.integer[Any]) -> int:
    """How many of numbers, [n], are of one value; all cores count."""
    return sum(mapped(_pieces_of(numbers), lambda piece: int(np.count_nonzero(piece == value)), usable_cores()))


def _pieces_of(numbers: np.ndarray) -> list[np.ndarray]:
    return [numbers[first : first + _PIECE] for first in range(0, len(numbers), _PIECE)]
