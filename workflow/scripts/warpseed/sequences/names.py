"""Names of sequences, back to back as they stand in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from warpseed.compute.ranges import borders_of

__all__ = ["Names"]


class Names(NamedTuple):
    """Names back to back; they may repeat and may be empty."""

    text: np.ndarray
    """uint8[]"""
    offsets: np.ndarray
    """int64[n + 1], name i is text[offsets[i]:offsets[i + 1]]"""

    @classmethod
    def of(cls, names: Iterable[str | bytes]) -> Names:
        """These names, letters as UTF-8."""
        encoded = [name.encode() if isinstance(name, str) else name for name in names]
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        return cls(np.frombuffer(b"".join(encoded), np.uint8), borders_of(lengths))

    @classmethod
    def numbered(cls, prefix: bytes, count: int) -> Names:
        """``prefix0``, ``prefix1``, …."""
        names = np.char.add(prefix, np.arange(count).astype("S"))
        letters = names.view(np.uint8).reshape(count, names.dtype.itemsize)
        used = letters != 0
        return cls(letters[used], borders_of(used.sum(axis=1)))

    @classmethod
    def joined(cls, parts: Sequence[Names], empty: Callable[[int, type], np.ndarray] = np.empty) -> Names:
        """The names of all parts, at least one, in their order.

        Parameters
        ----------
        parts : whose offsets begin at 0 and end with the text
        empty : function of a length and a type that makes an array, for the text
        """
        ends, size = [np.zeros(1, np.int64)], 0
        for part in parts:
            ends.append(part.offsets[1:] + size)
            size += len(part.text)
        return cls(np.concatenate([part.text for part in parts], out=empty(size, np.uint8)), np.concatenate(ends))

    def slice(self, start: int, stop: int) -> Names:
        """The names ``[start, stop)``: the text is a view, offsets are rebased."""
        if stop - start == len(self.offsets) - 1:
            return self
        offsets = self.offsets[start : stop + 1]
        return Names(self.text[offsets[0] : offsets[-1]], offsets - offsets[0])

    def decoded(self) -> np.ndarray:
        """All names, object[n]: one decoding and one cut for all, as a name holds no white space."""
        ends = np.insert(self.text, self.offsets[1:-1], ord("\n"))
        names = ends.tobytes().decode("utf-8", "replace").split("\n")
        return np.array(names[: len(self.offsets) - 1], dtype=object)
