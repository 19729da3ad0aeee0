"""The extended Burrows-Wheeler transform, against its definitions."""

from __future__ import annotations

import random
from itertools import combinations, pairwise, permutations, product

import numpy as np
import pytest
from hostile_words import HOSTILE, word_sets
from hypothesis import given
from oracles import ebwt as truth
from warpseed.ebwt import fast
from warpseed.ebwt.transform import Transform, inverse, transform_of
from warpseed.ebwt.words import Words, letters_of, words_of
from warpseed.errors import InputError

EACH_SET = pytest.mark.parametrize("words", HOSTILE.values(), ids=HOSTILE)


def order_of(words: list[str]) -> np.ndarray:
    """The positions of the ordered conjugates, by their definition."""
    starts = np.cumsum([0, *map(len, words)])
    return np.array([starts[number] + offset for number, offset in truth.ordered_conjugates(words)], np.uint32)


def texts_of(words: Words) -> list[str]:
    return [words.word(number).decode() for number in range(len(words.lengths))]


def check_transform(words: list[str]) -> None:
    made = words_of(words)
    assert texts_of(made) == words
    last, indices = truth.transform(words)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fast, "A_THREAD", 1)
        for threads in (1, 3):
            transform = transform_of(made, order_of(words), threads=threads)
            assert letters_of(transform.last, transform.letters).decode() == last
            assert (transform.indices + 1).tolist() == indices
    assert texts_of(inverse(transform)) == words


@EACH_SET
def test_transforms_of_hostile_sets_and_back(words: list[str]) -> None:
    check_transform(words)


@given(word_sets(60))
def test_transforms_and_back(words: list[str]) -> None:
    check_transform(words)


@given(word_sets(12))
def test_the_oracles_inverse_is_another(words: list[str]) -> None:
    """Without Proposition 6 the same words come."""
    last, indices = truth.transform(words)
    assert truth.inverse(last, indices) == words


@given(word_sets(20))
def test_what_is_no_transform_is_refused(words: list[str]) -> None:
    """Letters and indices at random: either they are the transform of what comes, or they are refused."""
    draw = random.Random(repr(words))
    text = "".join(words)
    last = draw.sample(text, len(text))
    indices = draw.sample(range(len(text)), draw.randint(1, min(4, len(text))))
    check_pair("".join(last), indices)


def test_every_small_pair_is_a_transform_or_refused() -> None:
    """All letters and indices, up to five ranks and three words: as many are taken as are transforms of words."""
    taken = sum(
        check_pair("".join(letters), list(indices))
        for size in range(1, 6)
        for letters in product("ab", repeat=size)
        for count in range(1, 4)
        for indices in permutations(range(size), count)
    )
    made = {
        (last, tuple(indices))
        for size in range(1, 6)
        for letters in product("ab", repeat=size)
        for count in range(1, 4)
        for cuts in combinations(range(1, size), count - 1)
        for last, indices in [truth.transform(["".join(letters)[i:j] for i, j in pairwise([0, *cuts, size])])]
    }
    assert taken == len(made)


def check_pair(last: str, indices: list[int]) -> bool:
    """Whether L and 0-based indices are taken: they are the transform of what comes then."""
    letters = "".join(sorted(set(last)))
    codes = np.array([letters.index(letter) for letter in last], np.uint8)
    try:
        back = texts_of(inverse(Transform(codes, np.array(indices, np.int64), letters.encode())))
    except InputError:
        return False
    assert truth.transform(back) == (last, [index + 1 for index in indices])
    return True
