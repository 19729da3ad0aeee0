"""Matches in order, whatever order they had, in n log n."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
from warpseed.mems.matches import MATCH, PLACE_BITS
from warpseed.mems.order import sort_by_part, sort_matches


def against_the_median(count: int) -> np.ndarray:
    """Numbers of which the first and the middle one are the two least of what is left each time: a quicksort by the
    median of the first, the middle and the last one puts no more than these two aside."""
    values, at = np.full(count, count), np.arange(count)
    for first in range(0, count - 2, 2):
        middle = (first + count) >> 1
        values[at[first]], values[at[middle]] = first, first + 1
        at[[first + 1, middle]] = at[[middle, first + 1]]
    return values


ORDERS: dict[str, Callable[[int], np.ndarray]] = {
    "ascending": np.arange,
    "descending": lambda count: np.arange(count)[::-1],
    "equal": lambda count: np.full(count, 7),
    "two values": lambda count: np.arange(count) % 2,
    "up and down": lambda count: np.minimum(np.arange(count), np.arange(count)[::-1]),
    "saw": lambda count: np.arange(count) % 19,
    "least last": lambda count: np.roll(np.arange(count), -1),
    "against the median": against_the_median,
    "random": lambda count: np.random.default_rng(count).integers(0, 1 << 31, count),
    "few values": lambda count: np.random.default_rng(count).integers(0, 9, count),
}


def matches_of(places: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """Matches with occurrences, which do not count in their order."""
    hits = np.empty(len(places), MATCH)
    occurrences = np.arange(len(places), dtype=np.uint64)[::-1]
    hits["place"], hits["span"] = places.astype(np.uint64) | occurrences << np.uint64(PLACE_BITS), spans
    return hits


@pytest.mark.parametrize("count", [0, 1, 2, 3, 16, 17, 18, 40, 333, 5000])
@pytest.mark.parametrize("order", ORDERS)
def test_any_order(order: str, count: int) -> None:
    """Of all matches those between the two others that stand around them; both words of each stay together."""
    first, second = ORDERS[order](count), np.random.default_rng(1).integers(0, 5, count)
    for places, spans in ((first, second), (second, first)):
        hits = matches_of(np.concatenate([[9], places, [0]]), np.concatenate([[9], spans, [0]]))
        true, inner = hits.copy(), hits[1:-1]
        by_place = inner["place"] & np.uint64((1 << PLACE_BITS) - 1)
        true[1:-1] = inner[np.lexsort([inner["span"], by_place])]
        mine, by_part = hits.copy(), hits.copy()
        sort_matches(mine, 1, count + 1)
        sort_by_part(by_part, 1, count + 1)
        assert (mine["span"] == true["span"]).all()
        assert ((mine["place"] ^ true["place"]) << np.uint64(64 - PLACE_BITS) == 0).all()
        assert by_part["span"].tolist() == [9, *sorted(spans.tolist()), 0]
        assert np.sort(mine).tolist() == np.sort(by_part).tolist() == np.sort(hits).tolist()


@pytest.mark.parametrize("sort", [sort_matches, sort_by_part])
def test_no_order_takes_squares(sort: Callable[..., None]) -> None:
    """Every hostile order takes less than some times as long as a random one; with squares, a hundred times."""
    count, taken = 1 << 17, {}
    sort(matches_of(np.arange(3), np.arange(3)), 0, 3)
    for order, values_of in ORDERS.items():
        values = values_of(count)
        hits = matches_of(values, values)
        begin = time.thread_time()
        sort(hits, 0, count)
        taken[order] = time.thread_time() - begin
        assert (np.diff(hits["span"].astype(np.int64)) >= 0).all()
    assert max(taken.values()) < 15 * taken["random"], taken
