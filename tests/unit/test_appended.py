"""Lists of one launch: room that grows to what was asked for, and runs of rows that all parts share."""

from __future__ import annotations

import numpy as np
import pytest
from warpseed.compute.appended import with_room


def test_lists_grow_to_what_they_needed() -> None:
    asked = []

    def attempt(hits: int, crowded: int) -> tuple[tuple[int, ...], int]:
        asked.append((hits, crowded))
        # What a crowded bucket holds is known only once there was room for the bucket.
        return (5 if crowded < 4 else 20, 4), len(asked)

    assert with_room((8, 2), attempt) == 3
    assert asked == [(8, 2), (8, 4), (20, 4)]


def test_a_crowded_bucket_is_shared_by_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """One lane sets all of it aside, runs of 5 rows; each part of the list has as many of them as the others, or one
    more."""
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from oracles.lockstep import run_kernel
    from warpseed.compute import appended

    monkeypatch.setattr(appended, "SEGMENTS", 4)
    cursors, crowded = np.zeros(8, np.uint64), np.zeros((4 * 3, 4), np.uint32)
    first = 1003
    run_kernel((appended,), (), (appended.set_aside, 1, 1), cursors, crowded, (7, 3), (first, first + 42), 5)
    assert cursors[:4].tolist() == [0] * 4 and sorted(cursors[4:].tolist()) == [2, 2, 2, 3]
    found = []
    for part, count in enumerate(cursors[4:].tolist()):
        found += [tuple(map(int, appended.run_at(crowded, 3 * part + i))) for i in range(count)]
    assert sorted(found, key=lambda run: run[2]) == [
        (7, 3, begin, min(begin + 5, first + 42)) for begin in range(first, first + 42, 5)
    ]
