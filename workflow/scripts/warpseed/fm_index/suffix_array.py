"""Suffix arrays, through libdivsufsort. (Where another builder is to be used, it goes here.)"""

from __future__ import annotations

import numpy as np

from warpseed.compute.machine import usable_cores

__all__ = ["MAX_ROWS", "sort_suffixes"]

MAX_ROWS = (1 << 32) - 1
"""Rows and text positions are 32-bit words everywhere in the index."""


def sort_suffixes(text: np.ndarray, threads: int = 1) -> np.ndarray:
    """Suffix array of a byte text.

    Parameters
    ----------
    text : uint8[n], n at most MAX_ROWS; separators are 0 and sort below the bases 1..4
    threads : int, that the sorter may use; of more than there are cores it has no use

    Returns
    -------
    uint32[n]. Five bytes a base while it runs below 2**31 bases, nine above. The lock is released.
    """
    from pydivsufsort import divsufsort

    _limit_threads(threads)
    rows = divsufsort(text)
    return rows.view(np.uint32) if rows.dtype == np.int32 else rows.astype(np.uint32)


def _limit_threads(threads: int) -> None:
    """Set how many OpenMP threads what this thread calls next may start, at most one a core; by itself it takes all.

    The symbol is looked up through the sorter, so that it is the very OpenMP library that the sorter is linked to.
    A sorter that was compiled without OpenMP has none, and runs on one thread.
    """
    from pydivsufsort.dll import libdivsufsort, libdivsufsort64

    for library in (libdivsufsort, libdivsufsort64):
        limit = getattr(library, "omp_set_num_threads", None)
        if limit is not None:
            limit(min(threads, usable_cores()))
