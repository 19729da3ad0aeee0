"""The pointer trie, the Hybrid Tree Bitmap and the Tree Bitmap: the same words, whatever they were inserted into."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from oracles.tree_bitmap import bitmap_of, codes_of_words, trie_of, words_at, words_of_codes
from warpseed.errors import MemoryLimitError
from warpseed.tree_bitmap import growing
from warpseed.tree_bitmap.bitmap import TreeBitmap, child_of, kmers_of, levels_of
from warpseed.tree_bitmap.growing import STRUCTURES, Growing
from warpseed.tree_bitmap.stream import MAX_K

EACH_STRUCTURE = pytest.mark.parametrize("structure", STRUCTURES)
LENGTHS = (1, 2, 3, 4, 5, 6, 9, 15, 30, MAX_K)


def drawn(k: int, count: int, seed: int = 1) -> np.ndarray:
    """K-mers of a stream with repeats, Ns and a homopolymer, as they come."""
    draw = random.Random(100 * k + seed)
    stream = draw.choices(range(5), [9, 9, 9, 9, 1], k=count) + [0] * (k + 9)
    stream += stream[: count // 2] + [3] * (k + 2)
    return as_kmers([word for _, word in words_at(stream, k)])


def as_kmers(words: Sequence[tuple[int, ...]]) -> np.ndarray:
    return np.array(codes_of_words(words), np.uint64)


def grown(structure: str, k: int, kmers: np.ndarray, room: int = 1) -> Growing:
    dictionary = Growing(k, structure, room)
    dictionary.insert(kmers)
    return dictionary


def lists_of(bitmap: TreeBitmap) -> tuple[list[int], ...]:
    return tuple(array.tolist() for array in bitmap)


@EACH_STRUCTURE
@pytest.mark.parametrize("k", LENGTHS)
@pytest.mark.parametrize("count", [0, 1, 40, 600])
def test_both_convert_to_the_tree_bitmap_of_the_definition(structure: str, k: int, count: int) -> None:
    kmers = drawn(k, count) if count else np.empty(0, np.uint64)
    bitmap = grown(structure, k, kmers).to_bitmap()
    assert lists_of(bitmap) == bitmap_of(trie_of(words_of_codes(kmers.tolist(), k)), k)
    assert [array.dtype.name for array in bitmap] == ["uint32", "uint64", "uint32", "uint32"]
    assert len(bitmap.level_offsets) == levels_of(k) + 1
    assert kmers_of(bitmap, k).tolist() == np.unique(kmers).tolist()


@EACH_STRUCTURE
@pytest.mark.parametrize("k", LENGTHS)
def test_what_is_new_is_said_once(structure: str, k: int) -> None:
    kmers, known, expected = drawn(k, 300), set(), []
    for kmer in kmers.tolist():
        expected.append(int(kmer not in known))
        known.add(kmer)
    dictionary = Growing(k, structure)
    parts = [dictionary.insert(part).tolist() for part in np.array_split(kmers, 7)]
    assert sum(parts, []) == expected
    assert not dictionary.insert(kmers).any()
    assert dictionary.kmers().tolist() == sorted(known)
    assert dictionary.trie_nodes == len(dictionary.to_bitmap().inmaps)


@EACH_STRUCTURE
@pytest.mark.parametrize("k", [1, 4, 31])
@pytest.mark.parametrize("room", [0, 1, 3, 50])
def test_pools_grow(structure: str, k: int, room: int) -> None:
    kmers = drawn(k, 500)
    small, large = Growing(k, structure, room), Growing(k, structure, 1 << 16)
    first_room = small.room
    assert small.insert(kmers).tolist() == large.insert(kmers).tolist()
    assert lists_of(small.to_bitmap()) == lists_of(large.to_bitmap())
    assert large.room == 1 << 16
    # An array of siblings of the root has room for all words of four bases.
    assert small.room > first_room or not (k == 31 or (structure == "tree" and room < 5))


@EACH_STRUCTURE
def test_a_pool_that_32_bits_cannot_point_into_is_refused(structure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "_MOST_ENTRIES", 200)
    with pytest.raises(MemoryLimitError, match="more than 32 bits can count"):
        grown(structure, 20, drawn(20, 100))


@pytest.mark.parametrize("k", [3, 4, 8])
def test_equation_2_leads_to_each_child(k: int) -> None:
    """From the root by three bases at a time to the trie-node of each word's prefix, by the order of the words."""
    words = sorted(set(words_of_codes(drawn(k, 200).tolist(), k)))
    bitmap = grown("tree", k, as_kmers(words)).to_bitmap()
    roots = sorted((node for node in trie_of(words) if len(node) % 3 == 0), key=lambda node: (len(node), node))
    for word in words:
        node = 0
        for depth in range(3, k + 1, 3):
            a, b, c = word[depth - 3 : depth]
            node = child_of(bitmap, node, 16 * a + 4 * b + c)
            assert roots[node] == word[:depth]


def test_one_array_of_siblings_serves_all_children_of_a_hybrid_node() -> None:
    """Words that differ in their first three bases take the root and one allocation, of the pointer trie 148."""
    kmers = np.arange(64, dtype=np.uint64) << np.uint64(2)
    assert grown("hybrid", 4, kmers, 3).room == 3
    assert grown("tree", 4, kmers, 2).room > 64
