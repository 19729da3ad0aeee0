"""What is asked of a stream, checked, and what it adds up to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from warpseed.errors import InputError, check_flag, check_number
from warpseed.tree_bitmap.dictionary import Dictionary, check_dictionary, open_dictionary
from warpseed.tree_bitmap.edits import check_edits, check_edits_of
from warpseed.tree_bitmap.stream import MAX_K, Stream

if TYPE_CHECKING:
    from warpseed.batches import Options

__all__ = ["Request", "Tell", "Totals", "checked_request"]

Tell = Callable[[Callable[[], str], Iterable[Any]], Iterable[Any]]
"""What tells how much of a work is done while its parts pass."""
_DEFAULT_K = 15


class Request(NamedTuple):
    """What is asked of a stream (`checked_request` makes it of what callers give)."""

    k: int
    """bases of a k-mer"""
    known: np.ndarray
    """uint64[d], k-mers that are seen before the stream begins, ascending"""
    seed_length: int
    """bases of the stream whose k-mers are, too"""
    grows: bool
    """whether those of the stream are, from their first place on"""
    options: Options
    max_edits: int = 0
    """edits within which what ends at a place is near a k-mer; with 0, k-mers themselves are looked up"""

    @property
    def seed_places(self) -> int:
        """Places at the stream's beginning whose k-mers are those of the seed."""
        return max(0, self.seed_length - self.k + 1)


class Totals(NamedTuple):
    """What a stream adds up to."""

    records: int = 0
    bases: int = 0
    kmers: int = 0
    """places where a k-mer begins; with max_edits, those at which something ends that is near one"""
    new: int = 0
    """of these, places that are NEW; with max_edits, those at which no k-mer itself ends"""

    def numbers(self) -> dict[str, int]:
        """Every number under its name."""
        return self._asdict()

    def and_block(self, block: Stream, kmers: int, new: int) -> Totals:
        """These and those of another block."""
        bases = len(block.codes) - max(0, len(block.starts) - 1)
        return Totals(self.records + len(block.starts), self.bases + bases, self.kmers + kmers, self.new + new)


def checked_request(
    k: int | None, dictionary: Any, seed_length: int, grows: bool, options: Options, max_edits: int = 0
) -> Request:
    """A request as plain values.

    Parameters
    ----------
    k : bases of a k-mer; None takes those of the dictionary, or 15
    dictionary : path of a saved one, or Dictionary, or sorted numbers of k-mers, or None
    seed_length, grows, max_edits : as in Request
    options : Options, checked

    Raises
    ------
    InputError : one of them is of another kind or out of its range, or the dictionary has k-mers of another length
    """
    length = None if k is None else check_number("k", k, 1, MAX_K)
    seed_length = check_number("seed_length", seed_length, 0)
    grows = check_flag("grows", grows)
    max_edits = check_edits(max_edits, grows, options.tier)
    if length is not None or dictionary is None:
        check_edits_of(length or _DEFAULT_K, max_edits)
    if not grows and options.tier == "paper":
        raise InputError("the paper tier's dictionary grows with the stream; let it, or choose the fast tier.")
    if dictionary is None:
        return Request(length or _DEFAULT_K, np.empty(0, np.uint64), seed_length, grows, options, max_edits)
    if isinstance(dictionary, str | os.PathLike):
        there = open_dictionary(dictionary)
    elif isinstance(dictionary, Dictionary):
        there = check_dictionary(*dictionary)
    else:
        there = check_dictionary(length or _DEFAULT_K, dictionary)
    if length not in (None, there.k):
        raise InputError(f"k is {length}, but the dictionary has {there.k}-mers; ask for these, or give another one.")
    check_edits_of(there.k, max_edits)
    return Request(there.k, there.kmers, seed_length, grows, options, max_edits)
