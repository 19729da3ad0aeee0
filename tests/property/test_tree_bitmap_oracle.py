"""The oracle of k-mers in a stream, against what is worked out by hand and against its own definitions."""

from __future__ import annotations

import random

import pytest
from oracles.kmers import codes_of
from oracles.tree_bitmap import (
    NEW,
    NO_EDITS,
    NO_KMER,
    SEEN,
    Word,
    answers_to,
    automaton_edits,
    codes_of_words,
    edit_distance,
    least_edits,
    suffix_trie,
    trie_of,
    words_at,
    words_of_codes,
)


def codes(text: str) -> list[int]:
    return [int(code) for code in codes_of(text, 4)]


def words(*texts: str) -> list[Word]:
    return [tuple(codes(text)) for text in texts]


def spelt(nodes: set[Word]) -> set[str]:
    return {"".join("acgt"[code] for code in word) for word in nodes}


def drawn(seed: int, count: int, holes: int = 1) -> list[int]:
    return random.Random(seed).choices(range(5), [6, 6, 6, 6, holes], k=count)


def test_answers_by_hand() -> None:
    """ACG and CGA are in the seed, GAC is new once; N breaks k-mers."""
    answers, dictionary = answers_to(codes("ACGACGANGAC"), 3, 4)
    assert answers == [SEEN, SEEN, NEW, SEEN, SEEN, 0, 0, 0, SEEN, 0, 0]
    assert dictionary == sorted(codes_of_words(words("ACG", "CGA", "GAC"))) == [0b000110, 0b011000, 0b100001]
    assert answers_to(codes("ACGT"), 5) == ([NO_KMER] * 4, [])
    assert answers_to([], 1, 0, [2]) == ([], [2])


def test_words_and_numbers() -> None:
    some = words("ACGTTGCA", "AAAAAAAA", "TTTTTTTT")
    assert words_of_codes(codes_of_words(some), 8) == some
    assert codes_of_words(words("", "T", "CA")) == [0, 3, 4]


def test_figure_3() -> None:
    """The suffix trie of actca with k = 3: its three k-mers and their prefixes, and the suffix ca, which is shorter."""
    text = codes("actca")
    kmers = trie_of(word for _, word in words_at(text, 3))
    assert spelt(kmers) == {"", "a", "c", "t", "ac", "ct", "tc", "act", "ctc", "tca"}
    assert spelt(suffix_trie(text, 3)) == spelt(kmers) | {"ca"}
    # Section 2.3's example has all suffixes.
    assert suffix_trie([0, 1, 2, 2, 3, 0], 6) >= {(0, 1, 2, 2, 3, 0), (2, 2, 3, 0), (2, 3, 0), (3, 0)}


def test_figure_6() -> None:
    assert edit_distance("GRAB", "GAB") == 1
    assert edit_distance("bubble", "babble") == edit_distance("babble", "blabble") == 1
    assert edit_distance("", "act") == 3 and edit_distance("act", "act") == 0


@pytest.mark.parametrize(
    ("stream", "accepted"),
    [
        ("act", 0b01), ("agt", 0b10), ("acgt", 0b10), ("ac", 0b01), ("at", 0), ("ct", 0), ("agg", 0), ("acc", 0b10),
        ("cact", 0b11), ("acNt", 0),
    ],
)  # fmt: skip
def test_figure_23_without_its_closures(stream: str, accepted: int) -> None:
    """The automaton of act with one edit: a substitution, an insertion, and the last base left out; other deletions
    are those that section 3.3.15 leaves to the future."""
    assert automaton_edits(codes(stream), 3, words("act"), 1)[0][-1] == accepted


def test_mismatches_are_of_level_0() -> None:
    """At g no state of level 0 has a child: the root's, and that of a."""
    _, missed = automaton_edits(codes("acagN"), 3, words("act", "cat"), 1)
    assert missed == [0, 0, 1 << 3, 1 << 1 | 1 << 2 | 1 << 3, 0]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("k", [1, 3, 4, 6])
def test_without_edits_both_say_where_kmers_of_the_dictionary_end(seed: int, k: int) -> None:
    stream, known = drawn(seed, 120), {word for _, word in words_at(drawn(seed + 100, 30), k)}
    ends = {place + k - 1 for place, word in words_at(stream, k) if word in known}
    accepted, missed = automaton_edits(stream, k, known, 0)
    assert {place for place, bits in enumerate(accepted) if bits == 1} == ends
    assert {place for place, edits in enumerate(least_edits(stream, known, 0)) if edits == 0} == ends
    begun = {place - (e - 1) for place, bits in enumerate(missed) for e in range(1, k + 1) if bits >> e & 1}
    assert begun >= {place for place, word in words_at(stream, k) if word not in known}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("k", "edits"), [(3, 1), (4, 2), (5, 3), (6, 2)])
def test_what_the_automaton_accepts_is_that_near(seed: int, k: int, edits: int) -> None:
    """Its matches are some of those within the distance, and all that need no deletion before the last base."""
    stream, known = drawn(seed, 60), {word for _, word in words_at(drawn(seed + 50, k + 4, 0), k)}
    least, (accepted, _) = least_edits(stream, known, edits), automaton_edits(stream, k, known, edits)
    for place, (bits, near) in enumerate(zip(accepted, least, strict=True)):
        assert not bits or near <= edits
        window = stream[max(place - k + 1, 0) : place + 1]
        apart = min(sum(a != b for a, b in zip(window, word, strict=True)) for word in known) if len(window) == k else k
        if 4 not in window and apart <= edits:
            assert bits & ((2 << apart) - 1)


@pytest.mark.parametrize("seed", range(4))
def test_least_edits_are_those_of_every_substring(seed: int) -> None:
    stream, known = drawn(seed, 40, 2), {word for _, word in words_at(drawn(seed + 9, 8, 0), 4)}
    for place, least in enumerate(least_edits(stream, known, 3)):
        ending = [stream[first : place + 1] for first in range(place + 1)]
        distances = [edit_distance(word, part) for part in ending if 4 not in part for word in known]
        nearest = min(distances, default=NO_EDITS)
        assert least == (nearest if nearest <= 3 else NO_EDITS)
    assert least_edits(stream, (), 2) == [NO_EDITS] * len(stream)
