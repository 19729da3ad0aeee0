"""A fast 64-bit checksum of arrays, for every opening of an index. (SHA-256, for `verify`, is ten times slower.)

Each word goes into one of eight lanes by a step that is a bijection of the lane's state for a given word, and of the
word for a given state; lanes and blocks are joined by the same step. So a change within one word always changes the
result. Other damage goes unseen once in 2**64 times. It is no defence against intent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from warpseed.compute.compiled import scalar, uint64

__all__ = ["checksum", "digest_of_arrays"]

_BLOCK = 1 << 20
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@scalar
def _step(state, word):
    state = (state ^ word) * _FACTOR
    return state ^ (state >> uint64(32))


@scalar
def _join(state, lane):
    """Two steps: after one, a change of `state` by its last word could look like one of `lane`."""
    return _step(_step(state, _FACTOR), lane)


@scalar
def _sum_words(words, start):
    """The checksum of uint64[], eight lanes at a time."""
    a = b = c = d = e = f = g = h = start
    i = uint64(0)
    end = uint64(words.shape[0])
    while i + uint64(8) <= end:
        a = _step(a, words[i])
        b = _step(b, words[i + uint64(1)])
        c = _step(c, words[i + uint64(2)])
        d = _step(d, words[i + uint64(3)])
        e = _step(e, words[i + uint64(4)])
        f = _step(f, words[i + uint64(5)])
        g = _step(g, words[i + uint64(6)])
        h = _step(h, words[i + uint64(7)])
        i += uint64(8)
    while i < end:
        a = _step(a, words[i])
        i += uint64(1)
    a = _join(_join(_join(a, b), c), d)
    return _join(_join(_join(_join(a, e), f), g), h)


def checksum(array: np.ndarray, threads: int = 1) -> str:
    """Sixteen hexadecimal digits that depend on every bit of an array, on its order and its size.

    Parameters
    ----------
    array : one-dimensional, contiguous
    threads : int, the result is the same with any number
    """
    data = array.view(np.uint8)
    whole = len(data) // 8 * 8
    words = data[:whole].view(np.uint64)
    last = int.from_bytes(data[whole:].tobytes(), "little")
    blocks = [words[first : first + _BLOCK] for first in range(0, len(words), _BLOCK)]
    start = np.uint64(len(data))
    if threads == 1 or len(blocks) < 2:
        sums = [_sum_words(block, start) for block in blocks]
    else:
        with ThreadPoolExecutor(min(threads, len(blocks))) as pool:
            sums = list(pool.map(lambda block: _sum_words(block, start), blocks))
    return f"{int(_sum_words(np.array([*sums, last], np.uint64), start)):016x}"


def digest_of_arrays(arrays: Mapping[str, np.ndarray], threads: int = 1) -> str:
    """SHA-256 of the names of arrays, in alphabetical order, each with its type and checksum; in hexadecimal."""
    whole = hashlib.sha256()
    for name in sorted(arrays):
        whole.update(f"{name} {arrays[name].dtype.str} {checksum(arrays[name], threads)}\n".encode())
    return whole.hexdigest()
