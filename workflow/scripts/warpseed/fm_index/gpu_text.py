"""The reversed text on the current GPU, and the text with its reverse complement."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpseed.compute.bits import fetch_word, reverse_complement_word
from warpseed.compute.compiled import int64, uint64
from warpseed.compute.gpu import cuda, cupy, kernel, launch, to_device
from warpseed.fm_index.layout import PAD_WORDS, Segments
from warpseed.fm_index.text import PackedText, reverse_segments

__all__ = ["words_of_both_strands", "join_strands", "reverse_text_on_device", "reverse_words"]

_BLOCK = 256


@kernel
def reverse_words(words, length, complement, backwards):
    """A thread a word of the reversed string of `length` bases; all ones for `complement`, uint64, complement it."""
    word = int64(cuda.grid(1))
    if int64(32) * word < int64(length):
        backwards[word] = reverse_complement_word(words, int64(0), int64(length), word, complement)


@kernel
def join_strands(words, backwards, length, both):
    """A thread a word of two texts of `length` positions, one behind the other; each is zero behind its end."""
    word = int64(cuda.grid(1))
    begin = int64(32) * word
    if begin >= int64(2) * int64(length):
        return
    ahead = begin - int64(length)
    bases = words[word] if ahead < int64(0) else fetch_word(backwards, ahead)
    if int64(-32) < ahead < int64(0):
        bases |= backwards[0] >> uint64(int64(-2) * ahead)
    both[word] = bases


def reverse_text_on_device(text: PackedText, segments: Segments) -> PackedText:
    """What `warpseed.fm_index.text.reverse_text` makes, on the device.

    Parameters
    ----------
    text : PackedText, on the device
    segments : its segments on the host
    """
    return PackedText(_reversed(text, segments, np.uint64(0)), to_device(reverse_segments(segments)))


def _reversed(text: PackedText, segments: Segments, complement: np.uint64) -> Any:
    words = cupy().zeros(len(text.words), np.uint64)
    count = int(segments.text_start[-1]) - 1
    launch(reverse_words, -(-count // 32), _BLOCK, text.words, count, complement, words)
    return words


def words_of_both_strands(text: PackedText, segments: Segments) -> Any:
    """A text of n positions and its reverse complement behind it, of which position n + i is opposite n - 2 - i: packed
    words, uint64[2·n // 32 + PAD_WORDS], on the device.

    Parameters
    ----------
    text, segments : as in `reverse_text_on_device`
    """
    n = int(segments.text_start[-1])
    words = cupy().zeros(2 * n // 32 + PAD_WORDS, np.uint64)
    launch(join_strands, -(-n // 16), _BLOCK, text.words, _reversed(text, segments, ~np.uint64(0)), n, words)
    return words
