"""Suffix arrays, through libdivsufsort. (Where another builder is to be used, it goes here.)"""

from __future__ import annotations

import numpy as np

__all__ = ["MAX_ROWS", "sort_suffixes"]

MAX_ROWS = (1 << 32) - 1
"""Rows and text positions are 32-bit words everywhere in the index."""


def sort_suffixes(text: np.ndarray) -> np.ndarray:
    """Suffix array of a byte text.

    Parameters
    ----------
    text : uint8[n], n at most MAX_ROWS; separators are 0 and sort below the bases 1..4

    Returns
    -------
    uint32[n]. Five bytes a base while it runs below 2**31 bases, nine above. The lock is released.
    """
    from pydivsufsort import divsufsort

    rows = divsufsort(text)
    return rows.view(np.uint32) if rows.dtype == np.int32 else rows.astype(np.uint32)
