"""Lists of one launch: room that grows to what was asked for."""

from __future__ import annotations

from warpseed.compute.appended import with_room


def test_lists_grow_to_what_they_needed() -> None:
    asked = []

    def attempt(hits: int, crowded: int) -> tuple[tuple[int, ...], int]:
        asked.append((hits, crowded))
        # What a crowded bucket holds is known only once there was room for the bucket.
        return (5 if crowded < 4 else 20, 4), len(asked)

    assert with_room((8, 2), attempt) == 3
    assert asked == [(8, 2), (8, 4), (20, 4)]
