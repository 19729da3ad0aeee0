"""What both tiers of long reads share on the GPU: what is asked of a read, and the order in which matches go out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias, TypeVar

import numpy as np

from warpseed.compute.device_sums import borders_of
from warpseed.compute.gpu import argsort, cupy, launch
from warpseed.compute.sink import NO_LIMIT
from warpseed.compute.warp import BLOCK
from warpseed.errors import MemoryLimitError
from warpseed.mems.gpu_order import SLOTS_A_MATCH, count_spans, order_matches, put_counted, put_matches
from warpseed.mems.matches import MATCH, MOST_OCCURRENCES, PLACE_BITS, Criteria
from warpseed.output.from_device import DeviceHits, Request, packed_bytes
from warpseed.sequences.packed import Packed

__all__ = [
    "BYTES_A_MATCH",
    "MatchRequest",
    "PutOccurrences",
    "bytes_each",
    "hits_of",
    "in_windows",
    "put_occurrences_among",
    "put_occurrences_together",
    "results_of",
]

_Found = TypeVar("_Found")


MatchRequest: TypeAlias = Request[Criteria]
"""What is asked of every read."""
BYTES_A_MATCH = 80
"""Device memory of a match while it is put in order with others, about."""
PutOccurrences: TypeAlias = "Callable[[Any, Any, Any], None]"
"""Function of matches in output order, uint64[2·h], the read of each, uint32[h], and the matches of each read,
int64[n], that puts its occurrences above the place of each, where none are yet (see
`warpseed.mems.matches.MATCH`)."""


def put_occurrences_together(hits: Any, queries: Any, counts: Any) -> None:
    """Put the occurrences of matches that are all that their reads have, counted in a hash table for each read."""
    xp = cupy()
    slots = SLOTS_A_MATCH * len(queries)
    table = borders_of(counts), xp.zeros(slots, xp.uint64), xp.zeros(slots, xp.uint32)
    launch(count_spans, len(queries), BLOCK, hits, queries, *table)
    launch(put_counted, len(queries), BLOCK, hits, queries, *table)


def put_occurrences_among(parts: Iterable[Any], hits: Any) -> None:
    """Put the occurrences of some matches of a read among all that it has, whose spans come in parts, uint64[...]."""
    xp = cupy()
    spans = hits[1::2][argsort(hits[1::2])]
    wanted = xp.concatenate([spans[:-1][spans[1:] != spans[:-1]], spans[-1:]])
    counts = xp.zeros(len(wanted), xp.int64)
    for others in parts if len(wanted) else ():
        at = xp.searchsorted(wanted, others)
        at -= at == len(wanted)
        counts += xp.bincount(at[wanted[at] == others], minlength=len(wanted))
    counts[counts > MOST_OCCURRENCES] = MOST_OCCURRENCES
    hits[::2] |= counts[xp.searchsorted(wanted, hits[1::2])].astype(xp.uint64) << xp.uint64(PLACE_BITS)


def _in_order(keys: Any, spans: Any) -> tuple[Any, Any]:
    """Matches read by read in output order, uint64[2·h], and the read of each, uint32[h]."""
    xp = cupy()
    hits, queries = xp.empty(2 * len(keys), xp.uint64), xp.empty(len(keys), xp.uint32)
    order = argsort(keys)
    launch(put_matches, len(keys), BLOCK, keys, spans, order, hits, queries)
    launch(order_matches, len(keys), BLOCK, keys, order, spans, hits)
    return hits, queries


def hits_of(
    keys: Any,
    spans: Any,
    counts: Any,
    dropped: tuple[int, int],
    request: MatchRequest,
    put_occurrences: PutOccurrences = put_occurrences_together,
) -> DeviceHits:
    """Matches in any order as hits in output order, with their occurrences, without what has too many of these.

    Parameters
    ----------
    keys, spans : uint64[h] each; none where only counts are asked for and none can be left out
    counts : int64[n], matches of each read: those that are here
    dropped : reads that were dropped, and their matches
    put_occurrences : where the matches here are not all that their reads have, what puts the occurrences among all
    """
    xp = cupy()
    most = request.criteria.max_occurrences
    if request.count_only and most == NO_LIMIT:
        return DeviceHits(xp.empty(0, xp.uint64), counts, int(counts.sum()), *dropped, MATCH)
    hits, queries = _in_order(keys, spans)
    put_occurrences(hits, queries, counts)
    if most != NO_LIMIT:
        rare = hits[::2] >> xp.uint64(PLACE_BITS) <= xp.uint64(most)
        dropped = dropped[0], dropped[1] + len(rare) - int(rare.sum())
        hits, queries = hits.reshape(-1, 2)[rare].reshape(-1), queries[rare]
        counts = xp.diff(xp.searchsorted(queries, xp.arange(len(counts) + 1, dtype=xp.uint32)))
    return DeviceHits(hits[:0] if request.count_only else hits, counts, len(queries), *dropped, MATCH)


def bytes_each(reads: Packed, bytes_a_base: int) -> int:
    """Device memory that a read and its matches take, about; `bytes_a_base`: without the packed read itself."""
    bases = int(reads.lengths.sum(dtype=np.int64)) // max(1, len(reads.lengths))
    return 3 * packed_bytes(reads) + bytes_a_base * bases


def results_of(found: DeviceHits | Iterable[DeviceHits]) -> int:
    """How many matches there are, of a single read in all parts of the text."""
    return found.results if isinstance(found, DeviceHits) else sum(part.results for part in found)


def in_windows(end: int, found_in: Callable[[int, int], _Found | None]) -> Iterator[_Found]:
    """What is found of a single read in windows of the text [0, end), one after the other, of which each is as large as
    there is room for what begins there: a half of one that was too large.

    Parameters
    ----------
    found_in : function of a window's first position and the one behind its last; None for more than there is room for

    Raises
    ------
    MemoryLimitError : a single position is too much
    """
    waiting = [(0, end)]
    while waiting:
        first, behind = waiting.pop()
        found = found_in(first, behind)
        if found is not None:
            yield found
        elif behind - first == 1:
            raise MemoryLimitError("Too many matches of one read begin at one place; use device cpu.")
        else:
            middle = (first + behind) // 2
            waiting += [(middle, behind), (first, middle)]
