"""Machine code on disk: one file for each function and kinds of arguments, checked; that of the CPU is linked by LLVM's
loader.

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

__all__ = ["ENTRY", "Code", "folder_of", "host_folder", "link", "place_of", "read", "toolkit", "write"]

ENTRY = "entry"
"""The symbol of the one function that is called."""
_ENTRY_TYPE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p)
_DIGEST_BYTES = 32
_NO_SWITCHES = "NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER"
"""Settings of Numba that change no code."""
_COMPILERS = (
    "llvmlite", "cuda-bindings", "cuda-core", "cuda-toolkit", "nvidia-cuda-nvcc", "nvidia-cuda-nvcc-cu12",
    "nvidia-nvvm", "nvidia-nvjitlink", "nvidia-nvjitlink-cu12", "nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12",
)  # fmt: skip
"""Packages that make machine code of what Numba makes; some of them are there."""
_LOADER_BYTES = 168 << 20
"""Of address space, which LLVM's loader takes."""


class Code(NamedTuple):
    """One function for one set of types."""

    call: str
    """how it is called: of one for the CPU letters of `struct` for the numbers that it returns, in brackets where they
    are a tuple; of a kernel its symbol"""
    image: bytes
    """a relocatable object file with the symbol ENTRY; of a kernel what the driver loads"""


@cache
def folder_of(name: str, compiler: str, *processor: Any) -> str:
    """The folder of what a compiler makes of these sources for a processor.

    Parameters
    ----------
    name : how it begins
    compiler : a package, in whose folder its version is told
    processor : and what else the code depends on
    """
    package, numba = find_spec(compiler), find_spec("numba")
    assert package is not None and package.origin is not None and numba is not None and numba.origin is not None
    versions = []
    for path in sorted({os.path.dirname(each) for each in (package.origin, numba.origin)}):
        for file in ("_version.py", "VERSION"):  # (Numba's, and numba-cuda's)
            with suppress(FileNotFoundError), open(os.path.join(path, file), "rb") as handle:
                versions.append(handle.read())
    switches = sorted(
        (switch, value)
        for switch, value in os.environ.items()
        if switch.startswith("NUMBA_") and switch not in _NO_SWITCHES
    )
    named_by = digest_of_sources(), versions, np.__version__, sys.version, switches, processor
    digest = hashlib.sha256(repr(named_by).encode()).hexdigest()[:16]
    return os.path.join(os.environ["NUMBA_CACHE_DIR"], f"{name}-{digest}")


@cache
def toolkit() -> tuple[str, ...]:
    """What of CUDA makes machine code of what Numba makes: versions of the packages that are there, and folders."""
    from importlib import metadata  # (which takes twenty milliseconds, and only kernels need)

    told = [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH")]
    for package in _COMPILERS:
        with suppress(metadata.PackageNotFoundError):
            told.append(f"{package} {metadata.version(package)}")
    return tuple(told)


@cache
def host_folder() -> str:
    """That of this processor."""
    from warpseed.compute.machine import require_address_space

    require_address_space(_LOADER_BYTES, "To load LLVM")
    import llvmlite
    from llvmlite import binding

    features = binding.get_host_cpu_features().flatten()
    processor = binding.get_default_triple(), binding.get_host_cpu_name(), features
    return folder_of("objects", "numba", llvmlite.__version__, object.__basicsize__, *processor)


def place_of(folder: str, function: str, kinds: str) -> str:
    """The file of a function for arguments of some kinds."""
    return os.path.join(folder, f"{function}-{hashlib.sha256(kinds.encode()).hexdigest()[:16]}.o")


def read(place: str) -> Code | None:
    """What a file holds; None where it is not there or not as it was written."""
    try:
        with open(place, "rb") as handle:
            digest, content = handle.read(_DIGEST_BYTES), handle.read()
    except OSError:
        return None
    if hashlib.sha256(content).digest() != digest:
        return None
    call, _, image = content.partition(b"\n")
    return Code(call.decode(), image)


def write(place: str, code: Code) -> None:
    """Keep code for later processes, whole or not at all; where that cannot be, they compile it again."""
    content = code.call.encode() + b"\n" + code.image
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
