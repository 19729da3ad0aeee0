"""The worked examples of paper 004, and the statements of its Proposition 25."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import ebwt as truth
from warpseed.ebwt.transform import Transform, inverse, transform_of
from warpseed.ebwt.words import letters_of, words_of

EXAMPLE_5 = ["abac", "cbab", "bca", "cba"]
FIGURE_2 = ["abac", "abc", "abcb", "acab", "acb", "babc", "baca", "bac", "bca", "bcba", "caba", "cab", "cbab", "cba"]


def order_of(words: list[str]) -> np.ndarray:
    """The positions of the ordered conjugates, by their definition."""
    starts = np.cumsum([0, *map(len, words)])
    return np.array([starts[number] + offset for number, offset in truth.ordered_conjugates(words)], np.uint32)


def transformed(words: list[str]) -> tuple[str, list[int]]:
    """(L, I) as in print."""
    given = words_of(words)
    transform = transform_of(given, order_of(words))
    return letters_of(transform.last, transform.letters).decode(), (transform.indices + 1).tolist()


def test_figure_1() -> None:
    assert truth.transform(["banana"]) == transformed(["banana"]) == ("nnbaaa", [4])


def test_figure_2() -> None:
    order = truth.ordered_conjugates(EXAMPLE_5)
    assert [truth.conjugate(EXAMPLE_5[number], offset) for number, offset in order] == FIGURE_2
    assert truth.prefix_length(EXAMPLE_5) == 6
    last, indices = truth.transform(EXAMPLE_5)
    assert (last, indices) == transformed(EXAMPLE_5)
    assert last == "ccbbbcacaaabba" and sorted(indices) == [1, 9, 13, 14]


def test_proposition_6() -> None:
    given = words_of(EXAMPLE_5)
    back = inverse(transform_of(given, order_of(EXAMPLE_5)))
    assert [back.word(number).decode() for number in range(4)] == EXAMPLE_5
    # By the indices as a set, as in print, the words come in the order of their ranks.
    last = np.frombuffer(b"ccbbbcacaaabba", np.uint8) - ord("a")
    back = inverse(Transform(last, np.array([1, 9, 13, 14]) - 1, b"abc"))
    assert [back.word(number).decode() for number in range(4)] == ["abac", "bca", "cbab", "cba"]
    assert truth.inverse("ccbbbcacaaabba", [1, 9, 13, 14]) == ["abac", "bca", "cbab", "cba"]


def test_example_2() -> None:
    """u = aba and v = abaa: v comes first, and they differ in the 6th letter."""
    assert truth.compare("abaa", "aba") < 0
    assert "ab" < "aba" and truth.compare("aba", "ab") < 0


def test_figure_5() -> None:
    """The words of Example 23; their conjugates' colours are those of the column M_γ."""
    words = ["aaabbbb", "abaabbb", "abababb"]
    colours = "".join("UVZ"[number] for number in truth.colouring(words))
    assert colours == "UVUVZZZVUUVVZZZUVZUVU"
    assert truth.transform(words) == transformed(words) == ("bbabbbbaababbaabbabaa", [1, 4, 5])


def test_example_26() -> None:
    assert "".join("UV"[number] for number in truth.colouring(["bcaa", "ccbab"])) == "UUVVUVUVV"
    assert truth.distance("bcaa", "ccbab") == 3


@pytest.mark.parametrize(("u", "v"), [("bcaa", "ccbab"), ("banana", "ananas"), ("aab", "aba"), ("a", "b"), ("a", "ab")])
def test_proposition_25(u: str, v: str) -> None:
    assert truth.distance(u, v) == truth.distance(v, u)
    for offset in range(len(u)):
        assert truth.distance(u, truth.conjugate(u, offset)) == 0
        for other in range(len(v)):
            assert truth.distance(truth.conjugate(u, offset), truth.conjugate(v, other)) == truth.distance(u, v)
