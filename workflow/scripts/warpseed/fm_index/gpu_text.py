"""The reversed text on the current GPU."""

from __future__ import annotations

import numpy as np

from warpseed.compute.bits import reverse_complement_word
from warpseed.compute.compiled import int64, uint64
from warpseed.compute.gpu import cuda, cupy, kernel, launch, to_device, view
from warpseed.fm_index.layout import Segments
from warpseed.fm_index.text import PackedText, reverse_segments

__all__ = ["reverse_text_on_device", "reverse_words"]

_BLOCK = 256


@kernel
def reverse_words(words, length, backwards):
    """A thread a word of the reversed string of `length` bases."""
    word = int64(cuda.grid(1))
    if int64(32) * word < int64(length):
        backwards[word] = reverse_complement_word(words, int64(0), int64(length), word, uint64(0))


def reverse_text_on_device(text: PackedText, segments: Segments) -> PackedText:
    """What `warpseed.fm_index.text.reverse_text` makes, on the device.

    Parameters
    ----------
    text : PackedText, on the device
    segments : its segments on the host
    """
    words = view(cupy().zeros(len(text.words), np.uint64))
    count = int(segments.text_start[-1]) - 1
    launch(reverse_words, -(-count // 32), _BLOCK, text.words, count, words)
    return PackedText(words, to_device(reverse_segments(segments)))
