"""How the library's functions are compiled, kept and called, in one place.

A `scalar` function is compiled for the types of its arguments when it is first called with such, by Numba
(compiler.py), and what comes out is kept on disk as machine code (objects.py). A later process links that with LLVM's
loader alone and does without Numba, whose import takes longer than the search of a thousand k-mers.

A function is called through one C function, its *entry*, with two blocks of memory: 64 bits for every array and every
number among the arguments, tuples taken apart, and 64 bits for every number that it returns. The interpreter's lock is
released meanwhile.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from functools import cached_property, partial, update_wrapper
from struct import Struct
from typing import Any

import numpy as np

from warpseed.compute import objects
from warpseed.compute.arguments import letter_of, take
from warpseed.compute.first_compilation import tell_of_compilation

__all__ = [
    "Compiled",
    "Intrinsic",
    "cgutils",
    "extending",
    "float64",
    "inlined",
    "int32",
    "int64",
    "intrinsic",
    "scalar",
    "types",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

# In compiled functions NumPy's types do what Numba's do; nothing is known of them, so that any number may be cast.
float64: Any = np.float64
int32: Any = np.int32
int64: Any = np.int64
uint8: Any = np.uint8
uint16: Any = np.uint16
uint32: Any = np.uint32
uint64: Any = np.uint64

_C, _F, _ALIGNED, _WRITEABLE = 0x1, 0x2, 0x100, 0x400
"""NumPy's flags of an array that Numba's types tell apart."""
_DIMENSION = 0x1000
_C_ORDER, _OTHER_ORDER = _C | _ALIGNED | _WRITEABLE, _F | _ALIGNED | _WRITEABLE
_ARRAYS = (np.ndarray,)

_loading = threading.RLock()
"""Held where a function is compiled and loaded."""
_NUMBA_BYTES, _FUNCTION_BYTES = 128 << 20, 48 << 20
"""Of address space: what Numba takes with the first function, and each function that follows."""


def _renew_lock() -> None:
    """A child has none of the threads that may have held it."""
    global _loading
    _loading = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)


def _take_array(array: Any, kinds: list[Any], words: list[Any]) -> None:
    """NumPy's arrays, whose entry is handed the address of the object."""
    flags = array.flags.num
    kinds += array.dtype, array.ndim * _DIMENSION | (flags & (_C_ORDER if flags & _C else _OTHER_ORDER))
    words.append(id(array))


def _layout(kinds: tuple[Any, ...]) -> Struct:
    """How the words of arguments of these kinds lie in memory."""
    return Struct("".join("P" if isinstance(kind, np.dtype) else letter_of(kind) for kind in kinds))


class Compiled:
    """A function that runs as machine code. It takes arrays, numbers and tuples of them, and gives numbers.

    Attributes
    ----------
    py_func : the function as it is written
    """

    def __init__(self, py_func: Callable[..., Any], *, inline: bool = False) -> None:
        update_wrapper(self, py_func)
        self.py_func = py_func
        self._inline = inline
        self.name = f"{py_func.__module__}.{py_func.__qualname__}"
        self._runs: dict[tuple[Any, ...], Callable[[list[Any]], Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        kinds: list[Any] = []
        words: list[Any] = []
        take(arguments, kinds, words, _ARRAYS, _take_array)
        key = tuple(kinds)
        return (self._runs.get(key) or self._load(key, arguments))(words)

    @cached_property
    def dispatcher(self) -> Any:
        """What Numba knows it as."""
        from warpseed.compute.compiler import dispatcher_of

        return dispatcher_of(self.py_func, self._inline)

    def _load(self, key: tuple[Any, ...], arguments: tuple[Any, ...]) -> Callable[[list[Any]], Any]:
        """What runs it with arguments of these kinds: from the disk, or compiled and put there."""
        with _loading:  # two threads do not compile the same
            if key not in self._runs:
                is_kept = self.name.startswith("warpseed.")  # of others nobody knows when they change
                place = objects.place_of(objects.host_folder(), self.name, repr(key)) if is_kept else None
                code = objects.read(place) if place else None
                if code is None:
                    _require_compiler(self.py_func.__name__)
                    tell_of_compilation()
                    from warpseed.compute.compiler import compile_entry

                    code = compile_entry(self, arguments)
                    if place:
                        objects.write(place, code)
                self._runs[key] = _runner(self.name, code, _layout(key))
            return self._runs[key]


def _require_compiler(function: str) -> None:
    """Go on only where a function can be compiled (see `require_address_space`)."""
    from warpseed.compute.machine import require_address_space

    require_address_space(_FUNCTION_BYTES if "numba" in sys.modules else _NUMBA_BYTES, f"To compile {function}")


def _runner(name: str, code: objects.Code, layout: Struct) -> Callable[[list[Any]], Any]:
    """What calls the entry of some code with words that lie as `layout` says."""
    entry = objects.link(code)
    letters = code.call.strip("()")
    returned, is_tuple = Struct("=" + letters), code.call != letters
    room = ctypes.c_char * returned.size

    def run(words: list[Any]) -> Any:
        out = room()
        if entry(layout.pack(*words), out):
            raise RuntimeError(f"{name} failed: it divided by zero, or raised an exception")
        values = returned.unpack(out)
        return values if is_tuple else values[0] if values else None

    return run


class _Later:
    """A module that is imported when something of it is used."""

    def __init__(self, load: Callable[[], Any]) -> None:
        self._load = load

    def __getattr__(self, name: str) -> Any:
        return getattr(self._load(), name)


def _types() -> Any:
    from numba import types

    return types


def _cgutils() -> Any:
    from numba.core import cgutils

    return cgutils


def _extending() -> Any:
    from numba import extending

    return extending


class Intrinsic:
    """An instruction that compiled functions can use; Numba sees what its definition makes of it."""

    def __init__(self, definition: Callable[..., Any]) -> None:
        self.__doc__ = definition.__doc__
        self.definition = definition

    @cached_property
    def real(self) -> Any:
        """What Numba knows it as."""
        from numba.extending import intrinsic

        return intrinsic(self.definition)


scalar: Any = Compiled
"""Decorator of functions that allocate nothing. They are compiled without reference counting, which otherwise costs an
atomic instruction for every array of every tuple that a function is handed, and run on both targets."""
inlined: Any = partial(Compiled, inline=True)
"""As `scalar`, for what is called a million times a second with arrays in tuples: its code becomes part of every
caller, where a call would hand over seven numbers an array."""
intrinsic: Any = Intrinsic
"""Decorator of a definition as `numba.extending.intrinsic` takes it, which runs when Numba compiles what uses it."""
types: Any = _Later(_types)
cgutils: Any = _Later(_cgutils)
extending: Any = _Later(_extending)
"""What such definitions need of Numba."""
