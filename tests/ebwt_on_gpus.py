"""What a GPU makes of words, held to the definitions: on one that answers, and on one that the CPU plays."""

from __future__ import annotations

import random
from collections.abc import Sequence

from oracles import ebwt as truth
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt.transform import inverse
from warpseed.ebwt.words import words_of

__all__ = ["check_all_of_an_order", "drawn_words"]


def drawn_words(seed: int, letters: str, lengths: Sequence[int], others: int) -> list[str]:
    """Up to five words, and others: copies, rotations, powers and prefixes of these."""
    draw = random.Random(seed)
    words = ["".join(draw.choices(letters, k=draw.choice(lengths))) for _ in range(draw.randint(1, 5))]
    for _ in range(others):
        word, cut = draw.choice(words), draw.randint(0, max(lengths) // 4)
        words.append(draw.choice([word, word[cut:] + word[:cut], word * draw.randint(1, 3), word[:cut] or word]))
    return words


def check_all_of_an_order(strings: Sequence[str]) -> None:
    """Order, transform, its inverse and all distances of the fast tier on the GPU that there is."""
    from warpseed.ebwt import gpu

    words = words_of(strings)
    found = gpu.find(words, order=True, transform=True, distances=True, watch=Stopwatch())
    assert found.order is not None and found.transform is not None and found.distances is not None
    expected = truth.ordered_conjugates(strings)
    assert found.order.tolist() == [int(words.offsets[word]) + offset for word, offset in expected]
    last, indices = truth.transform(strings)
    assert bytes(words.letters[code] for code in found.transform.last).decode() == last
    assert (found.transform.indices + 1).tolist() == indices
    back = inverse(found.transform)
    assert [back.word(i).decode() for i in range(len(strings))] == list(strings)
    assert found.distances.tolist() == [
        [truth.distance(u, v) if i != j else 0 for j, v in enumerate(strings)] for i, u in enumerate(strings)
    ]
