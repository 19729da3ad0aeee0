"""The worked examples of paper 003, digit by digit, in this project's order of the bases (the paper has a, c, t, g)."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.kmers import codes_of
from oracles.tree_bitmap import codes_of_words, words_at
from warpseed.tree_bitmap.bitmap import TreeBitmap
from warpseed.tree_bitmap.dynamic import chunks_of
from warpseed.tree_bitmap.growing import STRUCTURES, Growing

# Figure 3: the suffix trie of actca with k = 3. Its k-mers are act, ctc and tca; with the suffix that is shorter, ca.
ACTCA = "actca"
KMERS = ["act", "ctc", "tca"]
# Of the root's trie-node: itself; a, c and t; ac, ct and tc, which are 4 a + b.
ROOT, DEPTH_1, DEPTH_2 = 1, 0b1011 << 1, (1 << 1 | 1 << 7 | 1 << 13) << 5
EXMAP = 1 << 0b000111 | 1 << 0b011101 | 1 << 0b110100
CA = 1 << 4 << 5


def of_actca(structure: str) -> tuple[Growing, TreeBitmap]:
    dictionary = Growing(3, structure)
    codes = codes_of_words(word for _, word in words_at(codes_of(ACTCA, 4), 3))
    assert dictionary.insert(np.array(codes, np.uint64)).all()
    return dictionary, dictionary.to_bitmap()


@pytest.mark.parametrize("structure", STRUCTURES)
def test_figure_3(structure: str) -> None:
    """Its k-mers; the node ca, from which no k-mer begins, is left out."""
    dictionary, bitmap = of_actca(structure)
    spelt = ["".join("acgt"[kmer >> shift & 3] for shift in (4, 2, 0)) for kmer in dictionary.kmers().tolist()]
    assert spelt == KMERS
    assert bitmap.inmaps.tolist() == [ROOT | DEPTH_1 | DEPTH_2, ROOT, ROOT, ROOT]
    assert not int(bitmap.inmaps[0]) & CA
    assert bitmap.exmaps.tolist() == [EXMAP, 0, 0, 0]
    assert bitmap.prefix_sums.tolist() == [1, 4, 4, 4]
    assert bitmap.level_offsets.tolist() == [0, 1, 4]


# Figure 10: a stream in chunks that overlap by k - 1 symbols, for k = 4.
STREAM = "acagtcacgggataggcttatcag"
CHUNKS = ["acagtc", "gtcacggga", "ggataggct", "gcttatcag"]


def test_figure_10() -> None:
    assert [STREAM[first:last] for first, last in chunks_of(len(STREAM), 6, 4)] == CHUNKS
