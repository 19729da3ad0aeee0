"""Machine code on disk: one file for each function and kinds of arguments, checked, and linked by LLVM's loader.

Files lie in a folder for each state of the library's sources, compiler and processor, within the folder of the cache
(`warpseed.cache`). A file that is missing, damaged or cannot be written is no error: the function is compiled.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from warpseed.cache import digest_of_sources

__all__ = ["ENTRY", "Code", "link", "place_of", "read", "write"]

ENTRY = "entry"
"""The symbol of the one function that is called."""
_ENTRY_TYPE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p)
_DIGEST_BYTES = 32
_LOADER_BYTES = 168 << 20
"""Of address space, which LLVM's loader takes."""


class Code(NamedTuple):
    """One function for one set of types."""

    results: str
    """letters of `struct` for the numbers that it returns, in brackets where they are a tuple"""
    image: bytes
    """a relocatable object file with the symbol ENTRY"""


@cache
def _folder() -> str:
    """The folder of what this compiler makes of these sources for this processor."""
    from warpseed.compute.machine import require_address_space

    require_address_space(_LOADER_BYTES, "To load LLVM")
    import llvmlite
    from llvmlite import binding

    numba = find_spec("numba")
    assert numba is not None and numba.origin is not None
    with open(os.path.join(os.path.dirname(numba.origin), "_version.py"), "rb") as handle:
        version = handle.read()
    features = binding.get_host_cpu_features().flatten()
    switches = sorted((name, value) for name, value in os.environ.items() if name.startswith("NUMBA_"))
    told = (
        digest_of_sources(), version, llvmlite.__version__, np.__version__, sys.version, object.__basicsize__,
        binding.get_default_triple(), binding.get_host_cpu_name(), features,
        [each for each in switches if each[0] != "NUMBA_CACHE_DIR"],
    )  # fmt: skip
    digest = hashlib.sha256(repr(told).encode()).hexdigest()[:16]
    return os.path.join(os.environ["NUMBA_CACHE_DIR"], f"objects-{digest}")


def place_of(function: str, kinds: str) -> str:
    """The file of a function for arguments of some kinds."""
    return os.path.join(_folder(), f"{function}-{hashlib.sha256(kinds.encode()).hexdigest()[:16]}.o")


def read(place: str) -> Code | None:
    """What a file holds; None where it is not there or not as it was written."""
    try:
        with open(place, "rb") as handle:
            digest, content = handle.read(_DIGEST_BYTES), handle.read()
    except OSError:
        return None
    if hashlib.sha256(content).digest() != digest:
        return None
    results, _, image = content.partition(b"\n")
    return Code(results.decode(), image)


def write(place: str, code: Code) -> None:
    """Keep code for later processes, whole or not at all; where that cannot be, they compile it again."""
    content = code.results.encode() + b"\n" + code.image
    with suppress(OSError):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        number, temporary = tempfile.mkstemp(dir=os.path.dirname(place))
        try:
            with open(number, "wb") as handle:
                handle.write(hashlib.sha256(content).digest() + content)
            os.replace(temporary, place)
        except BaseException:
            os.unlink(temporary)
            raise


@cache
def _linker() -> Any:
    from llvmlite import binding

    binding.initialize_native_target()
    return binding.create_lljit_compiler(suppress_errors=True)


_linked: list[Any] = []
"""What keeps linked code in memory: all of it stays, as long as the process."""
_numbers = count()
"""Of what is linked: none comes twice, also where a signal ends the linking of one."""


def link(code: Code) -> Callable[[bytes, Any], int]:
    """The entry of code: a function of two blocks of memory that gives 0, or where it failed another number.

    Raises
    ------
    RuntimeError : it needs something that is in no library of this process, such as Numba's runtime
    """
    from llvmlite import binding

    builder = binding.JITLibraryBuilder().add_object_img(code.image).add_current_process().export_symbol(ENTRY)
    linked = builder.link(_linker(), f"{ENTRY}-{next(_numbers)}")
    _linked.append(linked)
    return _ENTRY_TYPE(linked[ENTRY])
