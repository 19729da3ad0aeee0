"""How one GPU orders conjugates: by keys of their first letters, then by letters, then by ranks of what is equal in
these."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from ebwt_on_gpus import drawn_words
from hostile_words import HOSTILE
from oracles.pretend_ebwt_fast import Played, play_fast_kernels, set_stretch
from warpseed.compute.stopwatch import Stopwatch
from warpseed.ebwt import cpu, gpu, gpu_few, gpu_groups, gpu_order, gpu_ranges
from warpseed.ebwt.words import words_of


@pytest.fixture(autouse=True)
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    """A GPU that the CPU plays, whose threads make five keys each, in blocks of 16."""
    return play_fast_kernels(monkeypatch)


def order_of(strings: list[str]) -> list[int]:
    order: list[int] = gpu_order.order_of(gpu_order.DeviceWords.of(words_of(strings)), at_once=False).tolist()
    return order


def expected_of(strings: list[str]) -> list[int]:
    return cpu.order_conjugates(words_of(strings)).tolist()


def sets() -> dict[str, list[str]]:
    """As many letters as whole blocks make, one more, and one less, too."""
    draw = np.random.default_rng(7)
    drawn = {sizes: ["".join(draw.choice([*"acgt"], size)) for size in sizes] for sizes in SIZES}
    return HOSTILE | {f"drawn {sum(sizes)}": strings for sizes, strings in drawn.items()}


SIZES = [(200, 1, 90, 33), (80,), (80, 1), (79,), (150, 9, 1)]


@pytest.mark.parametrize("name", sets())
def test_first_keys_are_letters_and_positions(name: str) -> None:
    """All in order, each once."""
    strings = sets()[name]
    words, alphabet = words_of(strings), sorted(set("".join(strings)))
    there = gpu_order.DeviceWords.of(words)
    letters = gpu_order._Dense.of(there, gpu_order.letters_in(there.codes))
    expected = []
    for string, first in zip(strings, words.offsets[:-1].tolist(), strict=True):
        for rotation in range(len(string)):
            written = ((string[rotation:] + string[:rotation]) * letters.known)[: letters.known]
            number = sum(alphabet.index(each) << letters.bits * i for i, each in enumerate(written[::-1]))
            expected.append(number << letters.place_bits | first + rotation)
    found = gpu_order._first_keys(there, letters)
    assert found.dtype == np.uint64 and found.tolist() == sorted(expected)


@pytest.mark.parametrize("seed", range(10))
def test_drawn_words_are_ordered_as_on_the_cpu(seed: int) -> None:
    """With copies, rotations, powers and prefixes of each other: letters alone do not tell all of them apart."""
    strings = drawn_words(seed, "acgt"[: 1 + seed % 3], (1, 3, 30, 75), 1 + seed % 4)
    strings = [string[:90] for string in strings] + ["a" * (seed % 3 * 40) + "c"]
    assert order_of(strings) == expected_of(strings)


def test_what_first_letters_tell_apart_is_put_in_order_once(played: Played) -> None:
    strings = ["acgtta", "ggc"]
    assert order_of(strings) == expected_of(strings)
    assert _lengths(played, "take_apart") == [9] and not _lengths(played, "next_keys")


SHARED = "abbabaabbaabab" * 5
DEEP = ["b" + SHARED + "aab", "a" + SHARED + "bba"]
"""Equal in the letters of one key, but not in those of two."""


def alike(count: int) -> list[str]:
    """Words that share 60 letters: groups of so many, and none of more."""
    draw = np.random.default_rng(9)
    shared, *own = ("".join(draw.choice([*"ab"], 60)) for _ in range(count + 1))
    return [shared + each[:30] for each in own]


@pytest.mark.parametrize("stretch", [3, 31, 32, 33, 100])
@pytest.mark.parametrize(
    ("strings", "has_many"),
    [
        (DEEP, False),
        (["a" * 99, "b"], True),
        *((alike(count), count > 31) for count in (31, 32, 33, 40)),
        (drawn_words(3, "ac", (1, 3, 30, 75), 4), False),
    ],
)
def test_warps_share_groups_of_any_size(
    monkeypatch: pytest.MonkeyPatch, played: Played, strings: list[str], has_many: bool, stretch: int
) -> None:
    """No group is looked at by two warps: what they count is the same, however they share."""
    watch, expected = Stopwatch(), Stopwatch()
    words = gpu_order.DeviceWords.of(words_of(strings))
    gpu_order.order_of(words, expected, at_once=False)
    set_stretch(monkeypatch, stretch)
    assert gpu_order.order_of(words, watch, at_once=False).tolist() == expected_of(strings)
    assert watch.counts == expected.counts
    compared = [arguments for _, kernel, arguments in played.launched if kernel == "take_apart"]
    assert any(bool(noted[1]) for *_, (*_, noted) in compared) == has_many


@pytest.mark.parametrize("rounds", [0, 1, 2, 5])
@pytest.mark.parametrize("letters", ["ab", "abc", "abcde", "abcdefghijklmnopq"])
def test_as_many_letters_are_compared_as_words_of_64_bits_hold(
    monkeypatch: pytest.MonkeyPatch, letters: str, rounds: int
) -> None:
    """Of 1, 2, 4 and 8 bits."""
    monkeypatch.setattr(gpu_groups, "ROUNDS", rounds)
    copied = "".join(letters[number * number % len(letters)] for number in range(70))
    others = drawn_words(rounds, letters, (1, 7, 30, 75), 3)
    strings = [copied + letters, copied, copied[9:] + copied[:9], copied[3:] + letters[-1], *others]
    assert order_of(strings) == expected_of(strings)


@pytest.mark.parametrize("rounds", [0, 1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_few_and_many_that_share_keys_go_on_together(monkeypatch: pytest.MonkeyPatch, rounds: int, seed: int) -> None:
    """Groups of few are tied still where those of many are told apart."""
    monkeypatch.setattr(gpu_groups, "ROUNDS", rounds)
    draw = np.random.default_rng(seed)
    pairs = [["".join(draw.choice([*"ab"], size)) for size in (110, 9)] for _ in range(3)]
    strings = [
        *alike(40 + seed),
        *(first[: 60 + 10 * seed] + end for first, last in pairs for end in (last, last[::-1])),
    ]
    assert order_of(strings) == expected_of(strings)


def test_what_few_leave_tied_is_not_stepped_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many are known by two keys, the few by one: ranks go on from the lesser."""
    monkeypatch.setattr(gpu_groups, "ROUNDS", 0)
    draw = np.random.default_rng(0)
    shared, one, two = ("".join(draw.choice([*"ab"], size)) for size in (120, 9, 9))
    strings = ["a" * 99, shared + "a" + one, shared + "b" + two]
    assert order_of(strings) == expected_of(strings)


def test_what_is_read_of_letters_is_counted_in_sectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two words that differ in one letter, each conjugate reads as many numbers of 64 letters as are equal behind
    its key, and the next one: four are a sector."""
    monkeypatch.setattr(gpu_groups, "ROUNDS", 9)
    shared, watch = "".join(np.random.default_rng(1).choice([*"ab"], 400)), Stopwatch()
    words = gpu_order.DeviceWords.of(words_of(["a" + shared, "b" + shared]))
    known = gpu_order._Dense.of(words, gpu_order.letters_in(words.codes)).known
    gpu_order.order_of(words, watch, at_once=False)
    equal = range(known, 401)  # letters up to the one that differs
    assert watch.counts == {"letters": 2 * sum(1 + (each - known) // 64 // 4 for each in equal)}


@pytest.mark.parametrize("rounds", [0, 1])
def test_where_few_share_a_key_the_next_letters_are_compared(
    monkeypatch: pytest.MonkeyPatch, played: Played, rounds: int
) -> None:
    """Of 74 letters two words have at most 71 in common, 57 of them in a key."""
    monkeypatch.setattr(gpu_groups, "ROUNDS", rounds)
    assert order_of(DEEP) == expected_of(DEEP)
    assert bool(_lengths(played, "rank_keys")) == (rounds == 0) and not _lengths(played, "next_keys")


def test_where_many_share_a_key_they_are_sorted_by_letters_again(played: Played) -> None:
    assert order_of(alike(40)) == expected_of(alike(40))
    [tied] = _lengths(played, "next_keys")
    assert tied in range(40, 12 * 40) and tied % 40 == 0 and not _lengths(played, "rank_keys")


def test_what_letters_do_not_tell_apart_ranks_do(played: Played) -> None:
    """Of what is tied, some are not: each of these is alone in its row, and its rank is read."""
    shared = "ab" * 70
    strings = [shared + "bbabbb", shared + "aabaaab", "bba"]
    assert order_of(strings) == expected_of(strings)
    [by_letters, *by_ranks] = _lengths(played, "mark_heads")
    assert len(words_of(strings).codes) > by_letters > by_ranks[0] > 0
    assert by_ranks == _lengths(played, "rank_keys")


def test_what_is_never_told_apart_does_not_end_the_rounds_of_others() -> None:
    """A word of one letter, and words that take two rounds."""
    strings = ["a" * 400, "b" * 200 + "c", "b" * 203 + "c"]
    assert order_of(strings) == expected_of(strings)


def _lengths(played: Played, name: str) -> list[int]:
    """How many a kernel was given, in each of its launches."""
    return [len(arguments[0]) for _, kernel, arguments in played.launched if kernel == name]


@pytest.mark.parametrize("devices", [2, 3, 5])
@pytest.mark.parametrize("seed", range(8))
def test_every_conjugate_is_in_one_range(monkeypatch: pytest.MonkeyPatch, seed: int, devices: int) -> None:
    """Behind those of all ranges before, whatever the sample was."""
    play_fast_kernels(monkeypatch)
    monkeypatch.setattr(gpu_order, "_SAMPLE", 2 + seed)
    words = words_of(drawn_words(seed, "acgt"[: 1 + seed % 4], (1, 3, 30, 75), 3))
    there = gpu_order.DeviceWords.of(words)
    letters = gpu_order._Dense.of(there, gpu_order.letters_in(there.codes))
    found, before = list[int](), 0
    for number in range(devices):
        keys, first = gpu_order._keys_of(there, letters, number, devices)
        assert first == before and sorted(keys.tolist()) == keys.tolist()
        before += len(keys)
        found += keys.tolist()
    assert found == gpu_order._first_keys(there, letters).tolist()


def test_devices_go_on_from_the_least_that_one_of_them_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """One knows 155 letters of what few share, up to a run of one letter. Of that the other knows 54, as many share it:
    so what differs behind it, and further on the other way round, is not to be stepped over."""
    play_fast_kernels(monkeypatch, devices=2)
    monkeypatch.setattr(gpu_few, "MOST_FEW", 0)
    monkeypatch.setattr(gpu_groups, "ROUNDS", 4)
    shared = "".join(np.random.default_rng(0).choice([*"ab"], 160)) + 80 * "d"
    words = words_of([shared + "c" + 120 * "d", shared + "d" + 120 * "c"])
    known, done = list[int](), gpu_ranges._order_by_ranks

    def noted(made: Any, devices: Any, watch: Stopwatch) -> bool:
        known.extend(each.known for each in made)
        return done(made, devices, watch)

    monkeypatch.setattr(gpu_ranges, "_order_by_ranks", noted)
    found = gpu.find(words, order=True, devices=(0, 1), watch=Stopwatch())
    assert found.order is not None and found.order.tolist() == cpu.order_conjugates(words).tolist()
    assert sorted(known) == [54, 155]
