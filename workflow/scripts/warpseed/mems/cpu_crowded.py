"""Crowded seeds that come again: the rows of which a seed is the first, found once.

Where read and text have a run of one base, or of a short unit, a seed has a row for each place of the text's run; all
but a few of them are those of matches that seeds before it hold as well. Which are not is told by the seed's rows and
by the bases before it, as many as a step has. In a run of the read these come again and again: so the second time rows
are listed, and from then on no others are looked at. The matches of two runs are as many as their places together, and
so are then the candidates, where all rows of all seeds are as many as the product.
"""

from __future__ import annotations

from warpseed.compute.bits import fetch_word, prefix_mask
from warpseed.compute.compiled import inlined, int64, scalar, uint64
from warpseed.compute.intrinsics import prefetch
from warpseed.mems.cpu_block import CANDIDATES, FIRSTS
from warpseed.mems.fast import is_first

__all__ = ["candidates_of"]

_MANY = 1024
"""Rows from which on a seed is remembered."""
_MOST = 1 << 26
"""Rows up to which it is: as many are looked at in some tenths of a second, for which a signal waits."""
_SEEN, _TOO_MANY = -1, -2
_AHEAD = 16


@scalar
def _list_firsts(fast, block, length, item, slot):
    """List the rows of a crowded item of which its seed is the first; returns how many were looked at."""
    where = fast.text, fast.segments, int64(fast.suffix_array.shape[0])
    read = block.words, block.marks, int64(32), length
    firsts, seed, step, high = block.firsts, block.seed[item], block.step[item], block.high[item]
    count = int64(0)
    for row in range(block.low[item], high):
        ahead = int64(fast.suffix_array[min(int64(row) + int64(_AHEAD), high - int64(1))])
        prefetch(fast.text, max(ahead - int64(32), int64(0)) >> int64(5))
        place = int64(fast.suffix_array[row])
        if place >= where[2] or not is_first(where, read, seed, step, place):
            continue
        if count == int64(CANDIDATES):
            firsts.counts[slot] = int64(_TOO_MANY)
            return int64(row) - block.low[item]
        firsts.rows[slot, count] = int64(row)
        count += int64(1)
    firsts.counts[slot] = count
    return high - block.low[item]


@scalar
def _slot_of(fast, block, length, item):
    """Where the rows are listed of which an item's seed is the first, -1 where they are not; and the work."""
    seed, step, low, high = block.seed[item], block.step[item], block.low[item], block.high[item]
    before, mask, firsts = seed - step, prefix_mask(step), block.firsts
    if before < int64(0) or high - low > int64(_MOST):
        return int64(-1), int64(0)
    if block.marks.shape[0] and fetch_word(block.marks, int64(32) + before) & mask != uint64(0):
        return int64(-1), int64(0)
    rows, bases = uint64(low) << uint64(32) | uint64(high), fetch_word(block.words, int64(32) + before) & mask
    for slot in range(FIRSTS):
        if firsts.keys[slot, 0] == rows and firsts.keys[slot, 1] == bases and firsts.keys[slot, 2] == uint64(step):
            seen = firsts.counts[slot] == int64(_SEEN)
            work = _list_firsts(fast, block, length, item, int64(slot)) if seen else int64(0)
            return int64(slot) if firsts.counts[slot] >= int64(0) else int64(-1), work
    slot = firsts.oldest[0]
    firsts.keys[slot, 0], firsts.keys[slot, 1], firsts.keys[slot, 2] = rows, bases, uint64(step)
    firsts.counts[slot] = int64(_SEEN)
    firsts.oldest[0] = (slot + int64(1)) % int64(FIRSTS)
    return int64(-1), int64(0)


@scalar
def _listed(fast, block, length, item, skipped):
    """As `candidates_of`, of a crowded item."""
    slot, work = _slot_of(fast, block, length, item)
    if slot < int64(0):
        return slot, skipped, block.high[item] - block.low[item], work
    begin = int64(0)
    while begin < block.firsts.counts[slot] and block.firsts.rows[slot, begin] < block.low[item] + skipped:
        begin += int64(1)
    return slot, begin, block.firsts.counts[slot], work


@inlined
def candidates_of(fast, block, length, item, skipped):
    """The rows of an item to look at: all, or the listed ones.

    Parameters
    ----------
    skipped : int64, rows of the item that have been looked at

    Returns
    -------
    (slot, begin, end, work) : int64. Numbers [begin, end): of rows from the item's first on, where slot is -1, or else
        of `block.firsts.rows[slot]`; and how many rows were looked at for that
    """
    rows = block.high[item] - block.low[item]
    if rows < int64(_MANY):
        return int64(-1), skipped, rows, int64(0)
    return _listed(fast, block, length, item, skipped)
