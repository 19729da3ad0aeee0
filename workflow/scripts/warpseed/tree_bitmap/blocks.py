"""Blocks of whole records, which a file is read in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from warpseed.compute.stopwatch import Stopwatch
from warpseed.sequences.queries import Queries, iter_queries
from warpseed.tree_bitmap import cpu
from warpseed.tree_bitmap.room import require_room
from warpseed.tree_bitmap.stream import Stream, stream_of

__all__ = ["iter_blocks"]


def iter_blocks(source: Any, size: Callable[[], int], watch: Stopwatch) -> Iterator[tuple[Stream, bool]]:
    """A file's records as streams of about as many places as `size` says then, or more; each with whether another
    follows. `watch` takes the seconds in which they are read, and knows the share of the file that has been."""
    reading = _with_more(_blocks(source, size, watch))
    while True:
        with watch.stage("read"):
            block = next(reading, None)
        if block is None:
            return
        yield block


def _blocks(source: Any, size: Callable[[], int], watch: Stopwatch) -> Iterator[Stream]:
    """Whole records as streams of about as many places as `size` says then, or more."""
    waiting: list[Queries] = []
    bases = 0
    for records in iter_queries(source, batch_bases=cpu.BLOCK_PLACES // 2, watch=watch):
        waiting.append(records)
        bases += len(records.codes) + len(records)
        if bases >= size():
            yield stream_of(_joined(waiting))
            waiting, bases = [], 0
    if waiting:
        yield stream_of(_joined(waiting))


def _joined(parts: list[Queries]) -> Queries:
    """Records together, of which a stream is made then; their parts are there, too, until both are."""
    bases = sum(len(part.codes) for part in parts)
    require_room(2 * bases, f"To put {bases:,} bases together")
    return parts[0].concatenate(parts)


def _with_more(blocks: Iterable[Stream]) -> Iterator[tuple[Stream, bool]]:
    """Blocks, each with whether another follows."""
    before: Stream | None = None
    for block in blocks:
        if before is not None:
            yield before, True
        before = block
    if before is not None:
        yield before, False
