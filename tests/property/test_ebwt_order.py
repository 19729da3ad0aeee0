"""ω-order of the fast tier on the CPU, against its definition."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hostile_words import HOSTILE, word_sets
from hypothesis import given
from oracles import ebwt as truth
from warpseed.compute import machine
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt import cpu, fast
from warpseed.ebwt.words import words_of
from warpseed.errors import MemoryLimitError

SETTINGS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "groups without room": {"_ROOM": 4},
    "few groups have room": {"_ROOM": 30},
    "many buckets": {"_BUCKET": 1},
    "ties left to ranks": {"_LONG": 1},
    "64 bits": {"_WIDE": 1, "_ROOM": 30},
}


@pytest.fixture(params=SETTINGS.values(), ids=SETTINGS)
def setting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast, "A_THREAD", 1)
    for name, value in request.param.items():
        monkeypatch.setattr(cpu, name, value)


def true_order(words: list[str]) -> list[int]:
    starts = np.cumsum([0, *map(len, words)]).tolist()
    return [starts[number] + offset for number, offset in truth.ordered_conjugates(words)]


def order_of(words: list[str], threads: int) -> list[int]:
    return cpu.order_conjugates(words_of(words), threads=threads).tolist()


@pytest.mark.usefixtures("setting")
@pytest.mark.parametrize("words", HOSTILE.values(), ids=HOSTILE)
def test_hostile_sets(words: list[str]) -> None:
    expected = true_order(words)
    for threads in (1, 3):
        assert order_of(words, threads) == expected


@pytest.mark.usefixtures("setting")
@given(word_sets(150))
def test_words_of_each_other(words: list[str]) -> None:
    assert order_of(words, 2) == true_order(words)


def by_letters(words: list[str], depth: int) -> list[int]:
    """The order of words that differ, or are equal, within their first letters."""
    starts = np.cumsum([0, *map(len, words)]).tolist()
    places = [(number, offset) for number, word in enumerate(words) for offset in range(len(word))]

    def key(place: tuple[int, int]) -> tuple[str, int]:
        word = words[place[0]]
        return truth.infinite(truth.conjugate(word, place[1]), depth), len(word)

    return [starts[number] + offset for number, offset in sorted(places, key=key)]


@pytest.mark.usefixtures("setting")
def test_more_words_than_a_bucket_has_room_for() -> None:
    """Random words, copies of one, and one that differs from these in a letter, in several buckets."""
    draw = random.Random(4)
    words = ["".join(draw.choices("acgt", k=draw.randint(1, 40))) for _ in range(600)]
    repeat = "".join(draw.choices("acgt", k=60))
    words += [repeat] * 40 + [repeat[:30] + "a" + repeat[31:]] * 3 + ["a" * 400, "a" * 200 + "c"]
    expected = by_letters(words, 801)
    for threads in (1, 2):
        assert order_of(words, threads) == expected


@pytest.mark.parametrize("copies", [1, 3])
def test_long_repeats_are_left_to_ranks(copies: int) -> None:
    """Words whose conjugates differ after thousands of letters, or not at all."""
    draw = random.Random(copies)
    long = "".join(draw.choices("acgt", k=3000))
    words = [long] * copies + [long[:1500] + "acgt"[long[1500] == "a"] + long[1501:], "ac" * 2000]
    watch = Stopwatch()
    order = cpu.order_conjugates(words_of(words), threads=2, watch=watch)
    assert order.dtype == np.uint32 and order.tolist() == by_letters(words, 8000)
    assert list(watch.seconds) == ["lay_out", "deal_out", "letters", "ranks"]


def test_what_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_ALWAYS_THERE", 0)
    monkeypatch.setattr(machine, "available_memory", lambda: 1000)
    words = words_of(["acgt" * 1000])
    with pytest.raises(MemoryLimitError, match=r"words of 4,000 letters takes 1\.85e-05 GB, but 1e-06 GB are free"):
        cpu.order_conjugates(words)
