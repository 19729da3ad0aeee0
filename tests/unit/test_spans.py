"""Ranges that threads work on: they cover everything, and no more threads are begun than there is work for."""

from __future__ import annotations

import pytest
from warpseed.compute.ranges import STEP, spans_of


@pytest.mark.parametrize(
    ("count", "threads", "most", "expected"),
    [
        (0, 4, STEP, 1),
        (3, 8, STEP, 3),
        (40, 8, STEP, 8),
        (40_000, 99_999, STEP, 64),
        (10 * STEP, 4, STEP, 12),
        (10 * STEP, 99_999, STEP, 40_960),
        (1000, 3, 1, 1000),
        (1000, 200, 1000, 200),
    ],
)
def test_spans(count: int, threads: int, most: int, expected: int) -> None:
    spans = spans_of(count, threads, most)
    assert len(spans) == expected
    assert [last for _, last in spans[:-1]] == [first for first, _ in spans[1:]]
    assert spans[0][0] == 0 and spans[-1][1] == count and max(last - first for first, last in spans) <= most
