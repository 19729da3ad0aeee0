"""The fast tier of the eBWT on a GPU: orders, transforms and distances of words of all kinds are those of the
definitions, and of larger sets those of letters compared."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from ebwt_on_gpus import check_all_of_an_order, drawn_words
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt import cpu, gpu, gpu_few, gpu_few_words
from warpseed.ebwt.timed import Case, works_of
from warpseed.ebwt.transform import inverse, transform_of
from warpseed.ebwt.words import Words, words_of
from warpseed.sequences.names import Names

pytestmark = pytest.mark.gpu


@pytest.fixture(params=["few", "of many words", "many"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "many":
        monkeypatch.setattr(gpu_few, "MOST_FEW", 0)
    elif request.param == "of many words":
        monkeypatch.setattr(gpu_few_words, "MOST_WORDS", 0)
    return str(request.param)


@pytest.mark.parametrize("seed", range(30))
def test_all_that_comes_of_an_order_is_as_defined(way: str, seed: int) -> None:
    letters = "acgtwxyz"[: (1, 2, 2, 4, 5, 8)[seed % 6]]
    check_all_of_an_order(drawn_words(seed, letters, (1, 2, 3, 17, 33, 70, 300), seed % 5))


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


def few() -> dict[str, list[bytes]]:
    """Sets of up to 65,536 conjugates, in many tiles."""
    draw = np.random.default_rng(6)

    def word(letters: bytes, length: int) -> bytes:
        return bytes(letters[code] for code in draw.integers(0, len(letters), length))

    long = word(b"ACGT", 20_000)
    return {
        "random": [word(b"ACGT", 100) for _ in range(655)],
        "one word": [word(b"AC", 65_536)],
        "rotations of one": [long, long[7_000:] + long[:7_000], long[:19_999] + b"A"],
        "one letter": [b"A" * 65_536],
        "homopolymers and a letter": [b"A" * 30_000 + b"C", b"A" * 30_001, b"A"],
        "words of one letter": [b"A", b"C"] * 32_768,
        "as many words as have distances": [word(b"ACGT", 64) for _ in range(1024)],
        "a word more": [word(b"ACG", 60) for _ in range(1025)],
        "two words": [word(b"AC", 32_768), word(b"AC", 32_768)],
        "powers": [b"ACG" * 9_000, b"CGA" * 3_000, b"GAC" * 9_000],
        "a letter too many for a tile": [word(b"AC", 513)],
        "every byte": [bytes(range(256)) * 100, bytes(range(255, -1, -1))],
    }


@pytest.mark.parametrize("name", few())
def test_few_conjugates_in_many_tiles_are_ordered_as_on_the_cpu(name: str) -> None:
    words = words_of(few()[name])
    pairs = len(words.lengths) <= 1025
    found = gpu.find(words, order=True, distances=pairs, watch=Stopwatch())
    expected = cpu.order_conjugates(words)
    assert np.array_equal(found.order, expected)
    if pairs:
        assert np.array_equal(found.distances, cpu.distances(words, expected))


def test_what_is_kept_of_words_before_does_no_harm() -> None:
    """Large and small sets by turns, what is wanted by turns, and by two threads at once; twice the same, too."""
    wanted = [words_of(few()[name]) for name in ("random", "powers", "one word", "a letter too many for a tile")]
    wanted += [words_of(["banana"]), words_of(["a"])]
    expected = [cpu.order_conjugates(words) for words in wanted]

    def check(number: int) -> None:
        words, order = wanted[number % len(wanted)], expected[number % len(wanted)]
        found = gpu.find(words, order=number % 2 == 0, transform=number % 3 == 0, distances=True, watch=Stopwatch())
        assert (found.order is None) == (number % 2 == 1) and (found.transform is None) == (number % 3 > 0)
        assert found.order is None or np.array_equal(found.order, order)
        if found.transform is not None:
            there, here = found.transform, transform_of(words, order)
            assert np.array_equal(there.last, here.last) and np.array_equal(there.indices, here.indices)
        assert np.array_equal(found.distances, cpu.distances(words, order))

    for number in range(3 * len(wanted)):
        check(number)
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(check, range(12 * len(wanted))))


def test_solid_sequences_are_ordered_as_on_the_cpu() -> None:
    """As Tables 1 to 3 have them."""
    for work in works_of(Case([50, 100, 260])):
        found = gpu.find(work.words, order=True, distances=True, watch=Stopwatch())
        expected = cpu.order_conjugates(work.words)
        assert np.array_equal(found.order, expected)
        assert np.array_equal(found.distances, cpu.distances(work.words, expected))


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
        needed = gpu.bytes_needed(len(codes), len(offsets) - 1, len(codes))
        pool.set_limit(size=pool.total_bytes() + int(needed / gpu._OF_FREE) + (1 << 20))
    try:
        found = gpu.find(words, transform=True, distances=True, watch=Stopwatch())
    finally:
        pool.set_limit(size=0)
    assert found.transform is not None and found.distances is not None
    assert np.array_equal(inverse(found.transform).codes, codes)
