"""k-mers cut from reads: every one at a stated step, or some that are drawn.

A k-mer that is to be traced is named READ:OFFSET, its read's name and its first base, 0-based on the read as given.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpseed.compute.compiled import int64, scalar, uint8, uint64
from warpseed.compute.letters import SLACK, bytes_of, put_bytes, put_number, read_only
from warpseed.compute.ranges import borders_of
from warpseed.compute.searching import owner_of
from warpseed.errors import InputError
from warpseed.sequences.names import Names
from warpseed.sequences.queries import Queries

__all__ = ["EveryKmer", "cut_kmers"]

_COLON = ord(":")


class _Reads(NamedTuple):
    """Queries as compiled code reads them; arrays of bytes have at least eight."""

    codes: np.ndarray
    offsets: np.ndarray
    names: np.ndarray
    name_offsets: np.ndarray


class _Cut(NamedTuple):
    """k-mers to be filled in; arrays of bytes have `SLACK` more than are needed."""

    codes: np.ndarray
    names: np.ndarray
    name_offsets: np.ndarray


class EveryKmer:
    """The k-mers at 0, step, 2·step, … of every read, in order; they are cut when a part of them is asked for.

    A read shorter than `k` has none. Code 4 (what is no base) is cut as any other.

    Parameters
    ----------
    reads : Queries
    k : int
        Bases of a k-mer, at least 1.
    step : int, optional
        Bases from one k-mer to the next, at least 1; `k` when not given, so that none overlap. 1 is all k-mers.
    """

    def __init__(self, reads: Queries, k: int, step: int | None = None) -> None:
        self.reads = reads
        self.k = k
        self.step = k if step is None else step
        self._first = borders_of(np.maximum(reads.lengths - k + self.step, 0) // self.step)

    def __len__(self) -> int:
        return int(self._first[-1])

    @property
    def short_reads(self) -> int:
        """Reads that have no k-mer."""
        return int((self.reads.lengths < self.k).sum())

    def slice(self, start: int, stop: int) -> Queries:
        """Return the k-mers ``[start, stop)``, named READ:OFFSET."""
        start, stop, _ = slice(start, stop).indices(len(self))
        stop = max(start, stop)
        reads, count = self.reads, stop - start
        # Of each read that these k-mers are of, how many; the first and the last may have others, too.
        counts = np.diff(np.clip(self._first, start, stop))
        longest = max(0, int(reads.lengths.max(initial=self.k)) - self.k)
        room = int(counts @ np.diff(reads.name_offsets)) + count * len(f":{longest}")
        cut = _Cut(
            np.empty(count * self.k + SLACK, np.uint8),
            np.empty(room + SLACK, np.uint8),
            np.empty(count + 1, np.int64),
        )
        given = _Reads(
            bytes_of(reads.codes), read_only(reads.offsets), bytes_of(reads.name_bytes), read_only(reads.name_offsets)
        )
        used = _cut(given, self._first, self.k, self.step, start, cut)
        offsets = np.arange(count + 1, dtype=np.int64) * self.k
        return Queries(cut.codes[:-SLACK], offsets, cut.names[:used], cut.name_offsets, reads.source)


def cut_kmers(
    reads: Queries,
    *,
    k: int,
    count: int,
    seed: int,
    deduplicate: bool = False,
    traced: bool = False,
) -> Queries:
    """Cut k-mers at places drawn uniformly, without replacement, from all windows of all reads.

    Parameters
    ----------
    reads : Queries
        Reads shorter than `k` give none. Windows with code 4 are allowed.
    k : int
        Bases of a k-mer.
    count : int
        How many k-mers to cut; with `deduplicate`, how many different ones.
    seed : int
        The same seed and reads give the same k-mers.
    deduplicate : bool
        Keep only the first of equal k-mers (a k-mer and its reverse complement are not equal).
    traced : bool
        Whether to name the k-mers READ:OFFSET (0-based on the read as given).

    Returns
    -------
    Queries
        Named ``k0``, ``k1``, … if not `traced`, in random order.

    Raises
    ------
    InputError
        When the reads have fewer than `count` (different) windows: says how many.
    """
    if k < 1 or count < 1:
        raise InputError(f"k = {k} and count = {count} were asked for; both must be at least 1.")
    windows = borders_of(np.maximum(reads.lengths - k + 1, 0))
    total = int(windows[-1])
    generator = np.random.default_rng(seed)
    drawn = min(count, total)
    while True:
        chosen = _draw(generator, total, drawn)
        read = np.searchsorted(windows, chosen, side="right") - 1
        offset = chosen - windows[read]
        rows = np.empty((len(chosen), k), np.uint8)
        _gather_windows(reads.codes, reads.offsets[read] + offset, rows)
        if deduplicate:
            kept = _first_of_equal(rows)[:count]
            rows, read, offset = rows[kept], read[kept], offset[kept]
        if len(rows) == count or drawn == total:
            break
        drawn = min(total, 2 * drawn)
    if len(rows) < count:
        kind = "different windows" if deduplicate else "windows"
        raise InputError(
            f"{reads.source}: {count} k-mers of {k} bases were asked for, but the reads have only "
            f"{len(rows)} {kind} of that length; ask for fewer, or give more or longer reads."
        )
    names = _traced_names(reads, read, offset) if traced else Names.numbered(b"k", len(rows))
    return Queries(rows.ravel(), np.arange(len(rows) + 1, dtype=np.int64) * k, *names, reads.source)


def _traced_names(reads: Queries, read: np.ndarray, offset: np.ndarray) -> Names:
    """READ:OFFSET for each number of a read and first base."""
    text, ends = reads.name_bytes.tobytes(), reads.name_offsets
    names = [b"%s:%d" % (text[ends[i] : ends[i + 1]], at) for i, at in zip(read.tolist(), offset.tolist(), strict=True)]
    return Names.of(names)


def _draw(generator: np.random.Generator, total: int, count: int) -> np.ndarray:
    """Return `count` different int64 below `total`, in random order."""
    if 2 * count >= total:
        return generator.permutation(total)[:count]
    # generator.choice makes an array of `total` for some sizes; drawing again what came twice never does.
    chosen = np.empty(0, np.int64)
    while len(chosen) < count:
        more = generator.integers(total, size=count - len(chosen) + count // 8 + 1, dtype=np.int64)
        chosen = np.sort(np.concatenate((chosen, more)))  # np.unique hashes, which is ten times slower here
        chosen = chosen[np.append(True, chosen[1:] != chosen[:-1])]
    return generator.permutation(chosen)[:count]


def _first_of_equal(rows: np.ndarray) -> np.ndarray:
    """Return the row numbers (int64, increasing) of the first of each set of equal rows of uint8[n, k]."""
    words = np.zeros((-(-rows.shape[1] // 21), len(rows)), np.uint64)
    _pack_rows(rows, words)
    order = np.lexsort(words)  # stable: the first of equal rows comes first
    ordered = words[:, order]
    first = np.ones(len(rows), bool)
    first[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    return np.sort(order[first])


@scalar
def _cut(reads, first, k, step, start, cut):
    """Cut the k-mers from number `start` on, as many as `cut` has room for; returns the bytes of their names.

    Parameters
    ----------
    first : int64[n + 1], the number of each read's first k-mer
    """
    read = owner_of(first, int64(start))  # the read that the first one is of
    to = int64(0)
    cut.name_offsets[0] = to
    for i in range(cut.name_offsets.shape[0] - 1):
        while first[read + 1] <= start + i:
            read += 1
        offset = (start + i - first[read]) * step
        begin = reads.offsets[read] + offset
        put_bytes(cut.codes, i * k, reads.codes, begin, begin + k)
        to = put_bytes(cut.names, to, reads.names, reads.name_offsets[read], reads.name_offsets[read + 1])
        cut.names[to] = uint8(_COLON)
        to = put_number(cut.names, to + int64(1), uint64(offset))
        cut.name_offsets[i + 1] = to
    return to


@scalar
def _gather_windows(codes, starts, rows):
    """Copy the codes from each of `starts` (int64[n]) on into one of `rows` (uint8[n, k])."""
    for r in range(starts.size):
        for i in range(rows.shape[1]):
            rows[r, i] = codes[starts[r] + i]


@scalar
def _pack_rows(rows, words):
    """Pack rows of codes (uint8[n, k]) three bits a base, 21 bases a word, into `words` (uint64[…, n], zeros)."""
    n, k = rows.shape
    for r in range(n):
        for i in range(k):
            words[i // 21, r] = words[i // 21, r] << uint64(3) | uint64(rows[r, i])
