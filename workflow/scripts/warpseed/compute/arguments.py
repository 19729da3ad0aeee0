"""Arguments of compiled code taken apart: what tells their types apart, and the words that the code is handed.

Numba can do that, too, but takes a tenth of a millisecond for an index of thirty arrays.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from struct import Struct
from typing import Any

import numpy as np

__all__ = ["kernel_runner", "letter_of", "take", "with_arrays"]

_WORD = 8
"""Bytes of a word that a kernel is handed."""
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
        elif isinstance(value, np.bool_ | np.integer | np.float32 | np.float64):
            kinds.append(kind)
            words.append(value.item())
        else:
            raise TypeError(f"a compiled function takes arrays, numbers and tuples of them, not {kind.__name__}")


def letter_of(kind: Any) -> str:
    """How `struct` packs a number of this kind, as a word; nothing where the kind is not a number's."""
    if isinstance(kind, type) and issubclass(kind, np.generic):
        return {"f": "d", "u": "Q"}.get(np.dtype(kind).kind, "q")
    return ""


def _letters(kind: Any) -> str:
    """How the words of an argument are packed by `struct`."""
    if kind is np.float32:
        return "f4x"
    return "q" * (5 + 2 * kind[1]) if isinstance(kind, tuple) else letter_of(kind)


def kernel_runner(handle: int, kinds: Iterable[Any], package: Any) -> Callable[[int, int, list[Any]], None]:
    """What hands the words of a kernel's arguments to the driver: where each lies, after the words themselves.

    Parameters
    ----------
    handle : the kernel, as the driver knows it
    package : cupy.cuda
    """
    layout = Struct("".join(map(_letters, kinds)))
    packed = Struct(f"{layout.format}{layout.size // _WORD}Q")
    room = ctypes.c_char * packed.size
    driver, stream_here = package.driver, package.get_current_stream

    def run(blocks: int, block: int, words: list[Any]) -> None:
        here = room()
        first = ctypes.addressof(here)
        packed.pack_into(here, 0, *words, *range(first, first + layout.size, _WORD))
        driver.launchKernel(handle, blocks, 1, 1, block, 1, 1, 0, stream_here().ptr, first + layout.size, 0)

    return run


def with_arrays(value: Any, arrays: tuple[type, ...], change: Callable[[Any], Any]) -> Any:
    """An array of these types changed, or every one in a tuple, those in it too; the rest stays."""
    if isinstance(value, arrays):
        return change(value)
    if isinstance(value, tuple):
        parts = tuple(with_arrays(part, arrays, change) for part in value)
        return parts if type(value) is tuple else type(value)(*parts)
    return value
