"""How several devices share the places of a block: in whole words of answers."""

from __future__ import annotations

from warpseed.compute.ranges import equal_share
from warpseed.tree_bitmap.gpu_answers import ANSWERS_A_WORD

__all__ = ["largest_share", "share_of_places"]


def share_of_places(places: int, number: int, of: int) -> slice:
    """One of so many equal shares of a block's places, which begins with a word of answers."""
    words = equal_share(-(-places // ANSWERS_A_WORD), number, of)
    return slice(ANSWERS_A_WORD * words.start, min(ANSWERS_A_WORD * words.stop, places))


def largest_share(places: int, of: int) -> int:
    """Answers that the largest of so many shares has room for: whole words."""
    return ANSWERS_A_WORD * -(-places // (ANSWERS_A_WORD * of))
