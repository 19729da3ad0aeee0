"""What is known of the places of a stream, left on the GPU that found it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from warpseed.tree_bitmap.search import Matches
from warpseed.tree_bitmap.seeds import grown_from
from warpseed.tree_bitmap.stream import Stream

if TYPE_CHECKING:
    from warpseed.sequences.names import Names

__all__ = ["DeviceMatches"]


class DeviceMatches:
    """What is known of every place of a stream, on a GPU: CuPy arrays, which are the caller's.

    Attributes
    ----------
    codes : uint8[n], the stream as `warpseed.tree_bitmap.stream.Stream` has it
    starts : int64[r], where each record begins
    answers, distances, k : as those of `warpseed.tree_bitmap.search.Matches`

    Parameters
    ----------
    names_of : function that gives the records' Names
    known : uint64[m], sorted, on the host: the k-mers that are known before the stream
    in_seed : CuPy int64[s], places where what the seed has stands first, where the dictionary grows; None where not
    """

    def __init__(
        self,
        codes: Any,
        starts: Any,
        names_of: Callable[[], Names],
        answers: Any,
        k: int,
        known: np.ndarray,
        in_seed: Any,
        distances: Any | None,
    ) -> None:
        self.codes = codes
        self.starts = starts
        self.answers = answers
        self.k = k
        self.distances = distances
        self._names_of = names_of
        self._known = known
        self._in_seed = in_seed

    def to_host(self) -> Matches:
        """The same on the host, as `match_stream` gives it without on_device; the dictionary is made there."""
        stream = Stream(self.codes.get(), self.starts.get(), self._names_of())
        answers, in_seed = self.answers.get(), None if self._in_seed is None else self._in_seed.get()
        grown = partial(np.asarray, self._known)
        if in_seed is not None:
            grown = partial(grown_from, self._known, stream.codes, self.k, answers, in_seed)
        return Matches(stream, answers, self.k, grown, None if self.distances is None else self.distances.get())
