"""Rows of any type: one order, one digest, and parts of a search joined."""

from __future__ import annotations

import hashlib
import random
import struct

import numpy as np
import pytest
from warpseed.output.rows import HIT_ORDER, HIT_ROW, Found, digest_rows, join_found, joined_parts, order_rows

MATCHES = np.dtype([("read", "<u4"), ("length", "<u2"), ("place", "<i8")])
"""A type that no system has: another set of fields, of other sizes."""


def random_rows(dtype: np.dtype, count: int, below: int = 5) -> np.ndarray:
    draw = random.Random(count)
    rows = np.empty(count, dtype)
    for name in dtype.names or ():
        rows[name] = [draw.randrange(below) for _ in range(count)]
    return rows


def test_the_digest_of_hits_is_that_of_their_packed_bytes() -> None:
    rows = random_rows(HIT_ROW, 100)
    packed = b"".join(struct.pack("<qiqqbb", *row) for row in rows.tolist())
    assert digest_rows(rows) == hashlib.sha256(packed).hexdigest()


@pytest.mark.parametrize("dtype", [HIT_ROW, MATCHES])
def test_padding_byte_order_and_strides_do_not_change_a_digest(dtype: np.dtype) -> None:
    rows = random_rows(dtype, 50)
    fields = [(name, dtype[name]) for name in dtype.names or ()]
    for other in (np.dtype(fields, align=True), np.dtype([(name, kind.newbyteorder(">")) for name, kind in fields])):
        assert other != dtype
        assert digest_rows(rows.astype(other)) == digest_rows(rows)
    assert digest_rows(np.repeat(rows, 2)[::2]) == digest_rows(rows)
    changed = rows.copy()
    changed[dtype.names[-1]][7] += 1
    assert digest_rows(changed) != digest_rows(rows)
    assert digest_rows(rows[:0]) == hashlib.sha256(b"").hexdigest()


@pytest.mark.parametrize(("dtype", "by"), [(HIT_ROW, HIT_ORDER), (MATCHES, ("place", "read"))])
def test_rows_are_ordered_by_the_named_fields_and_else_stay(dtype: np.dtype, by: tuple[str, ...]) -> None:
    rows = random_rows(dtype, 300, below=3)
    expected = sorted(rows, key=lambda row: tuple(row[name] for name in by))
    assert order_rows(rows, by).tolist() == [row.tolist() for row in expected]


def test_joined_parts_are_one_search() -> None:
    one = Found(np.array([5, 9], np.uint64), np.array([2, 0]), 1, 7)
    two = Found(np.array([1], np.uint64), np.array([0, 0, 1]), 2, 30)
    joined = join_found([one, two])
    assert joined.hits.tolist() == [5, 9, 1] and joined.counts.tolist() == [2, 0, 0, 0, 1]
    assert (joined.dropped_queries, joined.dropped_hits) == (3, 37)
    assert join_found([one]) is one
    nothing = join_found([])
    assert (len(nothing.hits), len(nothing.counts), nothing.dropped_queries, nothing.dropped_hits) == (0, 0, 0, 0)


@pytest.mark.parametrize("dtype", [np.dtype(np.uint64), HIT_ROW])
@pytest.mark.parametrize("threads", [1, 3])
def test_large_parts_are_joined_by_threads(dtype: np.dtype, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpseed.output.rows._PIECE", 100)
    draw = np.random.default_rng(threads)
    parts = [draw.integers(0, 256, size * dtype.itemsize, np.uint8).view(dtype) for size in (0, 1, 40, 7, 300, 0)]
    joined = joined_parts(parts, dtype, threads)
    assert joined.dtype == dtype and joined.tobytes() == b"".join(part.tobytes() for part in parts)
