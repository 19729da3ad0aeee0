"""Arguments of compiled code taken apart: what tells their types apart, and the words that the code is handed.

Numba can do that, too, but takes a tenth of a millisecond for an index of thirty arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["letter_of", "take"]

_PAST_INT64 = 1 << 63
_NUMBERS = {bool: np.bool_, float: np.float64}


def take(
    values: tuple[Any, ...],
    kinds: list[Any],
    words: list[Any],
    arrays: tuple[type, ...],
    take_array: Callable[[Any, list[Any], list[Any]], None],
) -> None:
    """Append what tells types apart, as finely as Numba does, to `kinds`, and what the code is handed to `words`.

    Parameters
    ----------
    arrays : the types of arrays that the code takes
    take_array : appends the same for one of them

    Raises
    ------
    TypeError : a value is neither an array nor a number nor a tuple of them
    """
    for value in values:
        kind = type(value)
        if kind in arrays or isinstance(value, arrays):
            take_array(value, kinds, words)
        elif isinstance(value, tuple):
            kinds += kind, len(value)
            take(value, kinds, words, arrays, take_array)
        elif kind is int:
            kinds.append(np.int64 if -_PAST_INT64 <= value < _PAST_INT64 else np.uint64)
            words.append(value)
        elif kind in _NUMBERS:
            kinds.append(_NUMBERS[kind])
            words.append(value)
        elif isinstance(value, np.bool_ | np.integer | np.floating):
            kinds.append(kind)
            words.append(value.item())
        else:
            raise TypeError(f"a compiled function takes arrays, numbers and tuples of them, not {kind.__name__}")


def letter_of(kind: Any) -> str:
    """How a number of this kind, or what follows from it, is packed by `struct`: a word; nothing where it is none."""
    if isinstance(kind, type) and issubclass(kind, np.generic):
        return {"f": "d", "u": "Q"}.get(np.dtype(kind).kind, "q")
    return ""
