"""What both tiers of long reads share on the GPU: what is asked of a read, and the order in which matches go out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

from warpseed.compute.gpu import argsort, cupy, launch, view
from warpseed.compute.sink import NO_LIMIT, limit_of
from warpseed.compute.warp import BLOCK
from warpseed.mems.gpu_fast import order_matches, put_matches
from warpseed.mems.matches import MATCH, MOST_OCCURRENCES, PLACE_BITS, Criteria
from warpseed.output.from_device import DeviceHits

__all__ = ["Occurrences", "Request", "hits_of", "occurrences_in", "occurrences_together", "request_for"]


class Request(NamedTuple):
    """What is asked of every read."""

    criteria: Criteria
    max_hits: int
    """a read with more matches loses them all"""
    count_only: bool = False


def request_for(criteria: Criteria, max_hits: int | None, count_only: bool = False) -> Request:
    """What users ask for, as kernels take it."""
    return Request(criteria, limit_of(max_hits), count_only)


Occurrences: TypeAlias = "Callable[[Any, Any], Any]"
"""Function of matches in output order, uint64[2·h], and the read of each, int64[h], that gives the occurrences of each
(see `warpseed.mems.matches.MATCH`), int64[h]."""


def occurrences_together(hits: Any, queries: Any) -> Any:
    """Occurrences among matches that are all that their reads have."""
    xp = cupy()
    order = argsort(hits[1::2])
    order = order[argsort(queries[order])]  # stable
    spans, queries = hits[1::2][order], queries[order]
    group = xp.zeros(len(order), xp.int64)
    xp.cumsum((spans[1:] != spans[:-1]) | (queries[1:] != queries[:-1]), out=group[1:])
    occurrences = xp.empty(len(order), xp.int64)
    occurrences[order] = xp.bincount(group, minlength=1)[group]
    return occurrences


def occurrences_in(parts: Iterable[tuple[Any, Any]], hits: Any) -> Any:
    """Occurrences of some matches of a read among all that it has, which come in parts: keys and spans of each."""
    xp = cupy()
    spans = hits[1::2][argsort(hits[1::2])]
    wanted = xp.concatenate([spans[:-1][spans[1:] != spans[:-1]], spans[-1:]])
    counts = xp.zeros(len(wanted), xp.int64)
    for _, others in parts if len(wanted) else ():
        at = xp.searchsorted(wanted, others)
        at -= at == len(wanted)
        counts += xp.bincount(at[wanted[at] == others], minlength=len(wanted))
    return counts[xp.searchsorted(wanted, hits[1::2])]


def _in_order(keys: Any, spans: Any) -> tuple[Any, Any]:
    """Matches read by read in output order, uint64[2·h], and the read of each, int64[h]."""
    xp = cupy()
    hits = xp.empty(2 * len(keys), xp.uint64)
    order = argsort(keys)
    launch(put_matches, len(keys), BLOCK, view(keys), view(spans), view(order), view(hits))
    launch(order_matches, len(keys), BLOCK, view(keys), view(order), view(spans), view(hits))
    return hits, (keys >> xp.uint64(PLACE_BITS)).astype(xp.int64)[order]


def hits_of(
    keys: Any,
    spans: Any,
    counts: Any,
    dropped: tuple[int, int],
    request: Request,
    occurrences_of: Occurrences = occurrences_together,
) -> DeviceHits:
    """Matches in any order as hits in output order, with their occurrences, without what has too many of these.

    Parameters
    ----------
    keys, spans : uint64[h] each; none where only counts are asked for and none can be left out
    counts : int64[n], matches of each read
    dropped : reads that were dropped, and their matches
    """
    xp = cupy()
    most = request.criteria.max_occurrences
    if request.count_only and most == NO_LIMIT:
        return DeviceHits(xp.empty(0, xp.uint64), counts, int(counts.sum()), *dropped, MATCH)
    hits, queries = _in_order(keys, spans)
    del keys, spans
    occurrences = occurrences_of(hits, queries)
    if most != NO_LIMIT:
        rare = occurrences <= most
        dropped = dropped[0], dropped[1] + len(rare) - int(rare.sum())
        hits, queries, occurrences = hits.reshape(-1, 2)[rare].reshape(-1), queries[rare], occurrences[rare]
        counts = xp.bincount(queries, minlength=len(counts))
    occurrences[occurrences > MOST_OCCURRENCES] = MOST_OCCURRENCES
    hits[::2] |= occurrences.astype(xp.uint64) << xp.uint64(PLACE_BITS)
    return DeviceHits(hits[:0] if request.count_only else hits, counts, len(queries), *dropped, MATCH)
