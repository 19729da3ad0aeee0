"""Phrases of a text: the text again, cut by what stands there alone; and their dictionary, as defined."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hostile_texts import DRAW, HOSTILE, bases, text_of
from hypothesis import given
from hypothesis import strategies as st
from oracles.suffix_array import joined
from warpseed.fm_index import phrases
from warpseed.fm_index.parse import NO_PHRASE, Parse, name_phrases, parse_text
from warpseed.fm_index.phrases import WINDOW
from warpseed.fm_index.table import choose_table_length
from warpseed.fm_index.text import PackedText, unpack_text

SPANS = [20, 1 << 22]


@pytest.fixture(autouse=True)
def _any_density(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phrases, "_MOST", 1 << 20)
    monkeypatch.setattr(phrases, "_ROOM", 1)


def cut_text(text: PackedText, conditions: int, threads: int) -> np.ndarray:
    """As it is cut where triggers meet so many conditions."""
    places = phrases.cut_text(text, conditions, threads)
    assert places is not None
    return places


def letters_of(text: PackedText) -> str:
    """The text again, with ``$`` for separators."""
    return "".join("$ACGT"[letter] for letter in unpack_text(text.words, text.segments))


def words_of(found: Parse) -> list[str]:
    """The different phrases, by their numbers."""
    return letters_of(found.dictionary.text)[:-1].split("$")


def check_phrases(segments: list[str], conditions: int, threads: int) -> None:
    text, whole = text_of(segments), joined(segments)
    places = cut_text(text, conditions, threads)
    assert places.dtype == np.uint32 and np.all(np.diff(places.astype(np.int64)) > 0)
    found = name_phrases(text, places, 100 * len(whole), threads)
    assert found is not None
    words, overlaps = words_of(found), found.dictionary.overlaps.tolist()
    # Phrases, one behind the other, are the text, and overlap by a window, or end with their segment.
    again = ""
    for number, name in enumerate(found.names.tolist()):
        place = int(places[number])
        assert place == len(again)
        if name == NO_PHRASE:
            assert whole[place] == "$"
            again += "$"
            continue
        word, overlap = words[name], overlaps[name]
        assert whole[place : place + len(word)] == word and overlap in (0, WINDOW)
        assert overlap or whole[place + len(word)] == "$"
        again += word[: len(word) - overlap]
    assert again == whole
    assert found.counts.tolist() == [found.names.tolist().count(name) for name in range(len(words))]
    check_dictionary(found)


def check_dictionary(found: Parse) -> None:
    """Each phrase once, those that end alike side by side, and in heads each string that ends some of them once."""
    words, (text, joined_segments, overlaps, common, head_ends) = words_of(found), found.dictionary
    starts = text.segments.text_start.astype(np.int64)
    assert len(set(words)) == len(words) == len(overlaps) == len(head_ends) == len(common) - 1
    assert common[0] == common[-1] == 0 and list(overlaps) == sorted(overlaps, reverse=True)
    whole = int(np.count_nonzero(overlaps))
    assert joined_segments.text_start.tolist() == [0, *starts[max(whole, 1) :].tolist()]
    strings: dict[tuple[int, str], list[int]] = {}
    for name, (word, overlap) in enumerate(zip(words, overlaps.tolist(), strict=True)):
        for at in range(len(word) - overlap):
            strings.setdefault((overlap, word[at:]), []).append(name)
    expected = {(names[0], string) for (_, string), names in strings.items()}
    told = {
        (name, word[at:])
        for name, word in enumerate(words)
        for at in range(int(head_ends[name]) - int(starts[name]))
    }  # fmt: skip
    assert told == expected
    for (_, string), names in strings.items():
        last = names[0]
        while int(common[last + 1]) >= len(string):
            last += 1
        assert names == list(range(names[0], last + 1))
    # Of strings that end phrases with a window none is the beginning of another.
    with_window = sorted(string for overlap, string in strings if overlap)
    assert not any(two.startswith(one) for one, two in pairwise(with_window))


@pytest.mark.parametrize("most", SPANS)
@pytest.mark.parametrize("conditions", [1, 2, 3, 6])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts(name: str, conditions: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phrases, "spans_of", lambda count, threads: spans_of_at_most(count, most))
    for threads in (1, 3):
        check_phrases(HOSTILE[name], conditions, threads)


def spans_of_at_most(count: int, most: int) -> list[tuple[int, int]]:
    return [(first, min(first + most, count)) for first in range(0, count, most)]


@given(st.lists(st.text("ACGT", min_size=1, max_size=90) | st.text("AC", min_size=1, max_size=90), min_size=1))
def test_any_text(segments: list[str]) -> None:
    check_phrases([*segments, *segments[::2]], 2, 2)


@pytest.mark.parametrize("conditions", [3, 6])
def test_phrases_begin_by_what_stands_there(conditions: int) -> None:
    """A stretch is cut in the same places wherever it stands, at any place in a word, but for its first and its end."""
    stretch = bases(3_000)
    cuts = []
    for before in range(35):
        places = cut_text(text_of([bases(before + 40) + stretch + bases(50)]), conditions, 1)
        within = places[(places > before + 40) & (places < before + 40 + len(stretch) - WINDOW)]
        cuts.append((within - np.uint32(before + 40)).tolist())
    assert all(cut == cuts[0] for cut in cuts) and len(cuts[0]) > 3_000 // 2**conditions // 2


@pytest.mark.parametrize("conditions", [3, 4, 5, 6])
def test_one_window_of_so_many_is_a_trigger(conditions: int) -> None:
    places = cut_text(text_of([bases(200_000)]), conditions, 2)
    assert abs(len(places) / (200_000 / 2**conditions) - 1) < 0.1


@pytest.mark.parametrize("base", "ACGT")
def test_a_run_of_one_base_is_one_phrase(base: str) -> None:
    places = cut_text(text_of([base * 100_000]), 6, 2)
    assert places.tolist() == [0, 100_000]


WHOLE = bases(100_000)


def copies_that_differ(distance: int) -> list[str]:
    """Six, each of which has another base in places of its own, some distance apart on average."""
    copies = [list(WHOLE) for _ in range(6)]
    for copy in copies:
        for place in DRAW.sample(range(len(copy)), len(copy) // distance):
            copy[place] = "ACGT"["ACGT".index(copy[place]) - 1]
    return ["".join(copy) for copy in copies]


@pytest.mark.parametrize(
    "segments",
    [[WHOLE] * 2, [WHOLE * 3], [bases(900) * 200], [WHOLE, bases(20_000), WHOLE]],
    ids=["copies", "copies in one contig", "long unit", "mostly copies"],
)
def test_texts_that_repeat_are_cut(segments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert parse_text(text_of(segments), 2) is not None


@pytest.mark.parametrize(
    "segments",
    [
        [WHOLE],
        [bases(150_000), WHOLE[:30_000]],
        [WHOLE[:20_000]] * 3,
        ["A" * 100_000],
        [bases(8)] * 20_000,
        copies_that_differ(120),
    ],
    ids=["random", "a copied part", "small", "one base", "small contigs", "differences close together"],
)
def test_others_are_not(segments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither what hardly repeats, or in short stretches, nor small texts, nor those of which there is nothing to
    cut."""
    monkeypatch.undo()
    assert parse_text(text_of(segments), 2) is None


@pytest.mark.parametrize(("distance", "is_shorter"), [(1_000, False), (200, True)])
def test_phrases_are_shorter_where_differences_lie_close(
    distance: int, is_shorter: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is, where the dictionary gets shorter by it."""
    monkeypatch.undo()
    text = text_of(copies_that_differ(distance))
    found = parse_text(text, 2)
    assert found is not None
    letters = {}
    for conditions in (6, 5):
        places = cut_text(text, conditions, 1)
        named = name_phrases(text, places, 10**9, 1)
        assert named is not None
        letters[len(places)] = int(named.dictionary.text.segments.text_start[-1])
    long, short = letters
    assert letters[len(found.places)] == int(found.dictionary.text.segments.text_start[-1])
    assert len(found.places) == (short if is_shorter else long)
    assert (letters[short] < letters[long]) or not is_shorter


def test_a_dictionary_that_would_be_too_long() -> None:
    text = text_of([bases(3_000), bases(2_000)])
    places = cut_text(text, 4, 1)
    found = name_phrases(text, places, 100_000, 1)
    assert found is not None
    letters = int(found.dictionary.text.segments.text_start[-1])
    assert name_phrases(text, places, letters, 1) is not None
    assert name_phrases(text, places, letters - 1, 1) is None


def test_a_string_of_the_table_lies_in_a_window() -> None:
    """So that whatever begins in a phrase, and does not end with its segment, has all bases of such a string."""
    assert choose_table_length(1 << 32) <= WINDOW
