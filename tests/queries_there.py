"""Queries for searches that leave their hits on a GPU, and letters of them on one that the CPU plays."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from oracles.pretend_cupy import TheirArray

__all__ = ["letters_of", "there", "words"]


def words(count: int, longest: int, seed: int = 3) -> list[str]:
    """Words of the index's first contig and of nothing, in either case, some with another letter."""
    draw = random.Random(seed)
    bases = "".join(random.Random(7).choices("ACGT", k=2000))
    some = []
    for _ in range(count):
        first, length = draw.randrange(1100), draw.randint(8, longest)
        word = list(bases[first : first + length])
        word[draw.randrange(length)] = draw.choice("ACGTNacgtnR")
        some.append("".join(word))
    return some


def there(values: Any, dtype: Any = np.uint8) -> TheirArray:
    """An array on the pretended device."""
    return np.array(values, dtype).view(TheirArray)


def letters_of(queries: list[str]) -> tuple[TheirArray, np.ndarray]:
    """The letters of queries on the device, and the offsets between them."""
    return there(bytearray("".join(queries), "ascii")), np.cumsum([0, *map(len, queries)])
