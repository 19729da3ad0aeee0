"""The fast tier of the eBWT on a GPU: orders, transforms and distances of words of all kinds are those of the
definitions, and of larger sets those of letters compared."""

from __future__ import annotations

import random

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles import ebwt as truth
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt import gpu, gpu_few
from warpseed.ebwt.transform import inverse
from warpseed.ebwt.words import Words, words_of
from warpseed.sequences.names import Names

pytestmark = pytest.mark.gpu


@pytest.fixture(params=["few", "many"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "many":
        monkeypatch.setattr(gpu_few, "MOST_FEW", 0)
    return str(request.param)


def drawn(seed: int) -> list[str]:
    """Words with copies, rotations, powers and prefixes of each other among them."""
    draw = random.Random(seed)
    letters = "acgtwxyz"[: draw.choice([1, 2, 2, 4, 5, 8])]
    words = [
        "".join(draw.choices(letters, k=draw.choice([1, 2, 3, 17, 33, 70, 300]))) for _ in range(draw.randint(1, 5))
    ]
    for _ in range(seed % 5):
        word, cut = draw.choice(words), draw.randint(0, 80)
        words.append(draw.choice([word, word[cut:] + word[:cut], word * draw.randint(1, 3), word[:cut] or word]))
    return words


@pytest.mark.parametrize("seed", range(30))
def test_all_that_comes_of_an_order_is_as_defined(way: str, seed: int) -> None:
    strings = drawn(seed)
    words = words_of(strings)
    found = gpu.find(words, order=True, transform=True, distances=True, watch=Stopwatch())
    assert found.order is not None and found.transform is not None and found.distances is not None
    expected = truth.ordered_conjugates(strings)
    assert found.order.tolist() == [int(words.offsets[word]) + offset for word, offset in expected]
    last, indices = truth.transform(strings)
    assert bytes(words.letters[code] for code in found.transform.last).decode() == last
    assert (found.transform.indices + 1).tolist() == indices
    back = inverse(found.transform)
    assert [back.word(i).decode() for i in range(len(strings))] == strings
    for i, u in enumerate(strings[:4]):
        for j, v in enumerate(strings[:4]):
            assert found.distances[i, j] == (truth.distance(u, v) if i != j else 0)


def neighbours_are_ordered(words: Words, order: np.ndarray) -> bool:
    """Whether each conjugate is below the one behind it, by their infinite words' first letters."""
    lengths = words.lengths
    word = np.searchsorted(words.offsets, order, side="right") - 1
    offset, first, length = order - words.offsets[word], words.offsets[word], lengths[word]
    undecided = np.arange(len(order) - 1)
    for _ in range(2 * int(lengths.max())):
        a, b = undecided, undecided + 1
        left, right = words.codes[first[a] + offset[a]], words.codes[first[b] + offset[b]]
        if (left > right).any():
            return False
        undecided = undecided[left == right]
        offset = (offset + 1) % length
    equal = order[undecided], order[undecided + 1], length[undecided], length[undecided + 1]
    return bool(((equal[2] < equal[3]) | ((equal[2] == equal[3]) & (equal[0] < equal[1]))).all())


@pytest.mark.parametrize(("count", "longest", "copies"), [(3000, 60, 1), (3000, 60, 7), (40, 4000, 1), (4, 40_000, 1)])
def test_many_conjugates(count: int, longest: int, copies: int) -> None:
    draw = np.random.default_rng(count)
    lengths = draw.integers(1, longest, count)
    text = draw.integers(0, 4, 2 * longest, np.uint8)
    places = draw.integers(0, longest, count)
    strings = [bytes(b"ACGT"[code] for code in text[p : p + n]) for p, n in zip(places, lengths, strict=True)] * copies
    words = words_of(strings)
    found = gpu.find(words, order=True, transform=True, watch=Stopwatch())
    assert found.order is not None and found.transform is not None
    assert np.array_equal(np.sort(found.order), np.arange(len(words.codes)))
    assert neighbours_are_ordered(words, found.order.astype(np.int64))
    back = inverse(found.transform)
    assert [back.word(i) for i in range(len(strings))] == strings


@pytest.mark.parametrize("repeats", [1, 40])
def test_the_memory_that_is_asked_for_suffices(repeats: int) -> None:
    """Random words, and words that all come again, in no more memory than `find` asks for."""
    from warpseed.compute import gpu as device

    size = 4_000_000 // repeats
    codes = np.tile(np.random.default_rng(3).integers(0, 4, size, np.uint8), repeats)
    offsets = np.arange(0, len(codes) + 1, 20_000)
    words = Words(b"ACGT", codes, offsets, Names.numbered(b"", len(offsets) - 1))
    pool = device.cupy().get_default_memory_pool()
    with device.on_device(0):
        device.give_back_memory()
        needed = gpu._BYTES * len(codes) + gpu._PAIR_BYTES * (len(offsets) - 1) ** 2
        pool.set_limit(size=pool.total_bytes() + int(needed / gpu._OF_FREE) + (1 << 20))
    try:
        found = gpu.find(words, transform=True, distances=True, watch=Stopwatch())
    finally:
        pool.set_limit(size=0)
    assert found.transform is not None and found.distances is not None
    assert np.array_equal(inverse(found.transform).codes, codes)
