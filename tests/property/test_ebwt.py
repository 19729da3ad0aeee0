"""The extended Burrows-Wheeler transform, against its definitions."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hostile_words import HOSTILE, word_sets
from hypothesis import given
from oracles import ebwt as truth
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
    letters = "".join(sorted(set(text)))
    indices = draw.sample(range(len(text)), draw.randint(1, min(4, len(text))))
    codes = np.array([letters.index(letter) for letter in last], np.uint8)
    transform = Transform(codes, np.array(sorted(indices), np.int64), letters.encode())
    try:
        back = texts_of(inverse(transform))
    except InputError:
        return
    # (Indices of powers of one root may stand in another order than that of their exponents.)
    assert truth.transform(back)[0] == "".join(last)
