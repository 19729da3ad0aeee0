"""How the library's functions are compiled, in one place.

`scalar` is for functions that allocate nothing: they are compiled without reference counting, which otherwise costs
an atomic instruction for every array of every tuple that a function is handed. They run on both targets.
`looping` is for the few functions that allocate.
Compiled code is cached and releases the interpreter's lock.
"""

from __future__ import annotations

from typing import Any

import numba

__all__ = ["looping", "scalar"]

# Numba's types do not know the option that leaves out reference counting.
njit: Any = numba.njit

scalar = njit(cache=True, nogil=True, _nrt=False)
looping = njit(cache=True, nogil=True)
