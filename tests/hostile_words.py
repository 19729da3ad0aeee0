"""Sets of words that break weak code: equal and conjugate words, powers, one-letter words, prefixes of each other."""

from __future__ import annotations

from hypothesis import strategies as st

__all__ = ["HOSTILE", "word_sets"]

HOSTILE = {
    "one letter": ["a"],
    "one-letter words": ["b", "a", "b", "a", "a"],
    "equal words": ["abcab", "abcab", "abcab"],
    "conjugate words": ["abac", "baca", "acab", "caba"],
    "powers of one word": ["ab", "abab", "ababab", "ba", "baba", "ab"],
    "a word and its power": ["aaaaab", "aaaaab" * 6],
    "powers of conjugates": ["aabaab", "aba", "baabaabaa", "aab"],
    "prefixes of each other": ["a", "ab", "aba", "abaa", "abaab", "abaaba"],
    "homopolymers": ["a" * 300, "a", "a" * 7, "a" * 299],
    "homopolymer and a letter": ["a" * 200 + "b", "a" * 201, "a" * 100 + "b"],
    "lengths mixed": ["ab" * 150, "b", "ab" * 40 + "a", "ba" * 3, "a" * 33],
    "every byte": ["".join(map(chr, range(128))), "".join(map(chr, range(127, -1, -1)))],
    "nine letters": ["iabcdefgh", "gfedcba", "hi", "aabbccddeeffgghhii" * 5],
    "five letters": ["acgntacgnt", "nnnnnnnnn", "nnnnn", "acgn", "tttnttt"],
}
"""Each named by its fault."""


@st.composite
def word_sets(draw: st.DrawFn, most: int = 300) -> list[str]:
    """One to eight words of few letters; some are made of others: copies, rotations, powers, prefixes."""
    letters = draw(st.sampled_from(["a", "ab", "abc", "acgt", "acgnt", "abcdefghijklmnopqrstuvwxyz"]))
    words = draw(st.lists(st.text(letters, min_size=1, max_size=12), min_size=1, max_size=4))
    for _ in range(draw(st.integers(0, 4))):
        word = draw(st.sampled_from(words))
        kind = draw(st.sampled_from(["copy", "rotation", "power", "prefix", "long", "changed"]))
        place = draw(st.integers(0, len(word) - 1))
        made = {
            "copy": word,
            "rotation": word[place:] + word[:place],
            "power": word * draw(st.integers(1, 6)),
            "prefix": word[: place + 1],
            "long": word * 40 + word[: place + 1],
            "changed": word[:place] + letters[0] + word[place + 1 :],
        }[kind]
        words.append(made[:most])
    return words
