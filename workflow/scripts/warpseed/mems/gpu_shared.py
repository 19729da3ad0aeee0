"""What both tiers of long reads share on the GPU: what is asked of a read, and the order in which matches go out."""

from __future__ import annotations

from typing import Any, NamedTuple

from warpseed.compute.gpu import argsort, cupy, launch, view
from warpseed.compute.sink import limit_of
from warpseed.compute.warp import BLOCK
from warpseed.mems.gpu_fast import order_matches, put_matches
from warpseed.mems.matches import Criteria

__all__ = ["Request", "in_order", "request_for"]


class Request(NamedTuple):
    """What is asked of every read."""

    criteria: Criteria
    max_hits: int
    """a read with more matches loses them all"""
    count_only: bool = False


def request_for(criteria: Criteria, max_hits: int | None, count_only: bool = False) -> Request:
    """What users ask for, as kernels take it."""
    return Request(criteria, limit_of(max_hits), count_only)


def in_order(keys: Any, spans: Any) -> Any:
    """Matches read by read in output order: uint64[2·h]."""
    xp = cupy()
    hits = xp.empty(2 * len(keys), xp.uint64)
    order = view(argsort(keys))
    launch(put_matches, len(keys), BLOCK, view(keys), view(spans), order, view(hits))
    launch(order_matches, len(keys), BLOCK, view(keys), order, view(spans), view(hits))
    return hits
