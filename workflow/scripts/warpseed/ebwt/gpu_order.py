"""The ω-order on the current device: what is known of conjugates is doubled, or more, until no two are equal.

They are sorted by as many letters as a word of 64 bits holds; those that are equal then by the ranks of what is further
on in their words. Where ranks have few bits, a key holds several, and what is known grows as many times.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from warpseed.compute.device_ties import split_groups
from warpseed.compute.gpu import argsort, cupy, launch, multiprocessors
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt import gpu_few
from warpseed.ebwt.gpu_fast import first_keys, put_last_letters, rank_keys
from warpseed.ebwt.gpu_few import Layout
from warpseed.ebwt.gpu_few_words import bits_for, came_together, together
from warpseed.ebwt.words import Words

__all__ = ["DeviceWords", "order_of", "transform_of"]

BLOCK = 256


class DeviceWords(NamedTuple):
    """Words on the current device."""

    codes: Any
    """uint8[N]"""
    offsets: Any
    """int64[m + 1]"""
    words_of: Any
    """uint32[N], the word of each letter"""
    letters: int
    """that may occur"""
    longest: int
    """letters of the longest word"""

    @classmethod
    def of(cls, words: Words) -> DeviceWords:
        """Bring words there."""
        xp = cupy()
        codes, offsets, lengths = xp.asarray(words.codes), xp.asarray(words.offsets), words.lengths
        words_of = xp.zeros(len(words.codes), np.uint32)
        words_of[offsets[1:-1]] = 1
        xp.cumsum(words_of, dtype=np.uint32, out=words_of)
        return cls(codes, offsets, words_of, len(words.letters), int(lengths.max()))


def order_of(words: DeviceWords, watch: Stopwatch | None = None, *, at_once: bool = True) -> Any:
    """The conjugates of words in ω-order.

    Parameters
    ----------
    words : DeviceWords
    at_once : whether at most MOST_FEW may be ordered by one kernel, whose blocks wait for each other
    watch : counts, of more than MOST_FEW, the ``ranks`` that tied ones read further on in their words

    Returns
    -------
    uint32[N] on the current device, the position of the conjugate of each rank
    """
    order = _order_few(words) if at_once and len(words.codes) <= gpu_few.MOST_FEW else None
    return _order_many(words, watch or Stopwatch()) if order is None else order


def _order_few(words: DeviceWords) -> Any:
    """That of at most MOST_FEW, in one launch; None, and a line that says so, where its blocks did not run at once."""
    xp, count = cupy(), len(words.codes)
    layout = Layout.of(count, len(words.offsets) - 1)
    numbers = xp.zeros(layout.end, np.uint32)
    letters, codes = numbers.view(np.uint8), 4 * layout.codes
    header = layout.header(bits_for(words.letters), words.longest)
    numbers[: layout.offsets] = xp.asarray(np.array(header, np.uint32))
    numbers[layout.offsets : layout.codes] = words.offsets.astype(np.uint32)
    letters[codes : codes + count] = words.codes
    keys, work = xp.empty((2, count), np.uint64), xp.empty((gpu_few.ROWS, count), np.uint32)
    shape = together(count, multiprocessors())
    launch(gpu_few.order_few, *shape, letters, numbers, keys, work)
    return numbers[layout.order : layout.distances] if came_together(numbers[layout.state :][:4].get()) else None


def _order_many(words: DeviceWords, watch: Stopwatch) -> Any:
    xp = cupy()
    count = len(words.codes)
    of, offsets = words.words_of, words.offsets
    # Letters that do not occur take no bits.
    occurs = xp.zeros(256, np.bool_)
    occurs[words.codes] = True
    dense = xp.cumsum(occurs, dtype=np.int64) - 1
    bits, rank_bits = bits_for(int(dense[-1]) + 1), max(1, (count - 1).bit_length())
    keys, codes = xp.empty(count, np.uint64), dense.astype(np.uint8)[words.codes]
    launch(first_keys, count, BLOCK, codes, of, offsets, bits, keys)
    del codes
    order, ranks = xp.arange(count, dtype=np.uint32), xp.empty(count, np.uint32)
    split = split_groups(keys, xp.arange(count, dtype=np.uint32), order, ranks)
    known, parts = 64 // bits, 64 // rank_bits - 1
    while len(split.tied) and known < 2 * words.longest:
        keys = xp.empty(len(split.tied), np.uint64)
        how = known, parts, rank_bits
        watch.count("ranks", parts * len(keys))
        launch(rank_keys, len(keys), BLOCK, split.tied, order, ranks, of, offsets, how, keys)
        before, split = split, split_groups(keys, split.tied, order, ranks)
        known *= 1 + parts
        if split.groups == before.groups_tied:
            break  # what is not told apart once never is
    if len(split.tied):
        _order_powers(words, split.tied, order, ranks)
    return order


def _order_powers(words: DeviceWords, tied: Any, order: Any, ranks: Any) -> None:
    """Put conjugates whose infinite words are equal in the order of their lengths, which is that of their exponents."""
    places = order[tied]
    word = words.words_of[places]
    lengths = (words.offsets[word + 1] - words.offsets[word]).astype(np.uint64)
    order[tied] = places[argsort((ranks[places].astype(np.uint64) << np.uint64(32)) | lengths)]


def transform_of(words: DeviceWords, order: Any) -> tuple[Any, Any]:
    """L, uint8[N], and I, int64[m], 0-based, on the device."""
    xp = cupy()
    last, indices = xp.empty(len(order), np.uint8), xp.empty(len(words.offsets) - 1, np.int64)
    read = words.codes, words.words_of, words.offsets, order
    launch(put_last_letters, len(order), BLOCK, *read, last, indices)
    return last, indices
