"""The distances of all pairs by several GPUs: every gap of every word is counted once, and what comes to each GPU."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import warpseed

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from ebwt_on_gpus import drawn_words
from hostile_words import HOSTILE
from oracles.pretend_ebwt_fast import Played, play_fast_kernels, set_chunks
from warpseed.compute import device_copies
from warpseed.compute.stopwatch import Stopwatch
from warpseed.compute.warp import LANES
from warpseed.ebwt import (
    cpu,
    gpu,
    gpu_between,
    gpu_counts,
    gpu_distances,
    gpu_few,
    gpu_few_words,
    gpu_order,
    gpu_parts,
    gpu_ranges,
    gpu_sets,
)
from warpseed.ebwt.gpu_parts import Part
from warpseed.ebwt.words import words_of

SIZES = [
    (40_000_000, 2_000), (20_000_000, 2_000), (10_000_000, 1_000), (23_000_000, 5), (1_000_000, 2), (70_000, 1),
    (1_025, 1_025), (100_000_000, 1_000_000), (2, 2), (5, 3),
]  # fmt: skip
"""Conjugates, and words."""
LONG = {
    "a long word and short ones": ["abbab" * 12, "ba", "a", "bab", "abb", "b"],
    "short words and a long one": ["ba", "a", "bab", "abb", "b", "abbab" * 12],
    "two words": ["abbab" * 6, "babba" * 5],
    "one word": ["abaab"],
}


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Played:
    """Five GPUs that the CPU plays, and no words that are few."""
    played = play_fast_kernels(monkeypatch, devices=5)
    monkeypatch.setattr(gpu_few, "MOST_FEW", 0)
    return played


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    set_chunks(monkeypatch, 32)


@pytest.mark.parametrize(("count", "words"), SIZES)
def test_sets_take_little_memory_whatever_the_words_are(count: int, words: int) -> None:
    """Those of the members of two slabs, of as many stretches as fit. Of each stretch every word has enough ranks."""
    stretch = gpu_counts._stretch_for(words)
    assert stretch % gpu_sets.RANKS == 0 and stretch >= 192 * words
    of_slab = min(count, max(stretch, 1 << 23))
    levels = gpu_counts._levels_for(words, of_slab)
    smallest, largest = gpu_sets.RANKS, gpu_sets.RANKS << (levels - 1)
    # Two of the largest sets are four gaps of words of one length, about; no gap has more than 32,768 of them.
    members = min(words, gpu_sets.WORDS)
    assert 2 * members <= largest and of_slab <= largest << 15
    assert largest == smallest or largest < 4 * members or largest << 14 < of_slab
    assert levels * (of_slab // smallest) * LANES < 1 << 32  # (places in them)
    of_slabs = min(count, 2 * of_slab)
    assert gpu_counts.bytes_of_sets(count, words) <= levels * (of_slabs // smallest) * 8 * LANES
    assert gpu_counts.bytes_of_sets(count, words) <= 16 * levels * count


@pytest.mark.parametrize("devices", [1, 2, 3, 4])
@pytest.mark.parametrize("name", [*HOSTILE, *LONG])
def test_every_gap_is_looked_at_once(monkeypatch: pytest.MonkeyPatch, name: str, devices: int) -> None:
    """The kernels as they are written: by devices of which each has a part of the gaps, in how many of one word of a
    pair the other is."""
    strings = [word[:70] for word in (HOSTILE | LONG)[name]]
    words, m = words_of(strings), len(strings)
    play_fast_kernels(monkeypatch)
    there = gpu_order.DeviceWords.of(words)
    order = gpu_order.order_of(there, at_once=False)
    colours = there.words_of[order].astype(gpu_counts.colours_type(m))
    ranked = gpu_counts.rank_words(colours, there.offsets)
    assert sorted(ranked.ranks_by_word.tolist()) == list(range(len(order)))
    for word in range(m):
        ranks = np.flatnonzero(colours == word)
        assert ranked.ranks_by_word[ranked.cuts[word, 0] : ranked.cuts[word, -1]].tolist() == ranks.tolist()
        assert (ranked.firsts[word], ranked.lasts[word]) == (ranks[0], ranks[-1])
    total, every = np.zeros((m, m), np.int64), gaps_with(np.asarray(colours), m)
    for part in (part for parts in gpu_parts.parts_of(words.lengths, devices) for part in parts):
        counts = np.asarray(gpu_counts.count_gaps(ranked, part.split(1 + devices))).astype(np.int64)
        complete = part.complete_words
        assert counts[complete].tolist() == every[complete].tolist()
        assert not counts[[word for word in range(m) if word not in {*range(m)[complete], *part.split_words}]].any()
        total += counts
    assert total.tolist() == every.tolist()


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("at_once", [2, 5])
@pytest.mark.parametrize("seed", range(6))
def test_gaps_of_colours_that_are_drawn(monkeypatch: pytest.MonkeyPatch, seed: int, at_once: int) -> None:
    """More words than a warp sees, gaps of more sets than the largest has, and words that hardly ever come."""
    played, draw = play_fast_kernels(monkeypatch), np.random.default_rng(seed)
    for module in (gpu_between, gpu_counts):
        monkeypatch.setattr(module, "GAPS", 2 + at_once)
    for module in (gpu_counts, gpu_sets):
        monkeypatch.setattr(module, "RANKS", 4)
    for module in (gpu_between, gpu_sets):
        monkeypatch.setattr(module, "RANKS_BITS", 2)
    monkeypatch.setattr(gpu_counts, "_GAPS_OF_SET", 1 / at_once)
    monkeypatch.setattr(gpu_counts, "_MOST_SETS", 1 << at_once)
    monkeypatch.setattr(gpu_counts, "_SLAB", 40 * at_once)
    monkeypatch.setattr(gpu_counts, "_FEW_WORDS", seed % 2 << 16)
    m = 40 + 10 * seed
    weights = draw.random(m) ** 6 + 1e-3
    colours = np.concatenate([draw.choice(m, 260 - m, p=weights / weights.sum()), draw.permutation(m)])
    colours = colours.astype(gpu_counts.colours_type(m))
    assert colours.itemsize == (2 if seed % 2 else 4)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(colours))]).astype(np.int64)
    ranked = gpu_counts.rank_words(*map(played.package.asarray, (colours, offsets)))
    counts = [gpu_counts.count_gaps(ranked, [Part(first_word, (0, 0), (m, 0))]) for first_word in range(0, m, 32)]
    assert np.concatenate(counts, axis=1).tolist() == gaps_with(colours, m).tolist()
    made = [arguments[1].nbytes for _, kernel, arguments in played.launched if kernel == "make_sets"]
    assert 0 < max(made) <= gpu_counts.bytes_of_sets(len(colours), m)
    # As many warps as can be needed: one that is not full for each stretch and word whose gaps are counted.
    for _, kernel, arguments in played.launched:
        if kernel == "count_between":
            (owners, ends, _, _), (first_word, *_) = arguments[6], arguments[7]
            are_counted = sum(gpu_between.is_counted.py_func(word, first_word, m) for word in range(m))
            stretches = len(ends) // m
            assert int(ends[-1]) <= len(owners) <= int(ends[-1]) + stretches * min(-(-are_counted // 32) * 32, m)


@pytest.mark.parametrize(
    "members", [[0], [5], [0, 0, 0], [60, 50, 1], [50, 50, 50], [101, 99, 2, 300, 1, 1], [1] * 110, [3] * 99]
)
def test_slabs_have_few_members_or_one_stretch(monkeypatch: pytest.MonkeyPatch, members: list[int]) -> None:
    monkeypatch.setattr(gpu_counts, "_SLAB", 100)
    slabs = gpu_counts._cut_in_slabs(np.array(members))
    assert [rank for slab in slabs for rank in range(*slab)] == list(range(len(members)))
    for number, (begin, end) in enumerate(slabs):
        assert sum(members[begin:end]) <= 100 or end == begin + 1
        # About as many: no more slabs than need be, where stretches are small.
        least = min(100 - max(members), sum(members) // -(-max(1, sum(members)) // 100))
        assert number + 1 == len(slabs) or sum(members[begin:end]) >= least


def gaps_with(colours: np.ndarray, m: int) -> np.ndarray:
    """int64[m, m], of each word in how many of its gaps each other one is, if they are counted, by looking at all."""
    found, is_counted = np.zeros((m, m), np.int64), gpu_between.is_counted.py_func
    for word in range(m):
        for first, last in pairwise(np.flatnonzero(colours == word)):
            for member in set(colours[first + 1 : last].tolist()):
                found[word, member] += is_counted(word, member, m)
    return found


@pytest.mark.parametrize("devices", [(0, 1), (1, 0, 2), (0, 1, 2, 3, 4)])
@pytest.mark.parametrize("seed", range(10))
def test_drawn_words_are_measured_as_on_the_cpu(gpus: Played, seed: int, devices: tuple[int, ...]) -> None:
    """With copies, rotations, powers and prefixes of each other, so that shares begin and end among any of them."""
    strings = drawn_words(seed, "acgt"[: 1 + seed % 3], (1, 3, 30, 75), 1 + seed % 4)
    words = words_of([string[:90] for string in strings] + ["a" * (seed % 3 * 40) + "c"])
    found = gpu.find(words, distances=True, devices=devices, watch=Stopwatch())
    assert found.distances is not None
    assert found.distances.tolist() == cpu.distances(words, cpu.order_conjugates(words)).tolist()
    assert set(gpus.where("count_between")) == set(devices)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("are_locked", [False, True])
@pytest.mark.parametrize("devices", [(0,), (1, 0), (2, 0, 1)])
@pytest.mark.parametrize("count", [33, 64, 100])
def test_many_members_are_counted_one_after_the_other(
    gpus: Played, monkeypatch: pytest.MonkeyPatch, count: int, devices: tuple[int, ...], are_locked: bool
) -> None:
    """And what was counted for some is on its way to the host, to memory that is locked or not, by rows and columns."""
    monkeypatch.setattr(device_copies, "is_locked", lambda array: are_locked)
    draw = np.random.default_rng(count)
    words = words_of(["".join(draw.choice([*"ab"], draw.integers(1, 9))) for _ in range(count)])
    found = gpu.find(words, distances=True, devices=devices, watch=Stopwatch())
    assert found.distances is not None
    assert found.distances.tolist() == cpu.distances(words, cpu.order_conjugates(words)).tolist()
    counted = [arguments[7][0] for _, kernel, arguments in gpus.launched if kernel == "count_between"]
    assert set(counted) == set(range(0, count, 32))


@pytest.mark.parametrize("strings", [["a" * 60], ["a" * 30, "a" * 31], ["ab" * 20, "ba" * 21], ["a", "a", "a"], ["b"]])
def test_what_is_equal_is_shared_and_some_may_have_nothing(gpus: Played, strings: list[str]) -> None:
    words = words_of(strings)
    expected = cpu.distances(words, cpu.order_conjugates(words)).tolist()
    for devices in ((0, 1), (0, 1, 2, 3, 4)):
        gpus.launched.clear()
        found = gpu.find(words, distances=True, devices=devices, watch=Stopwatch())
        assert found.distances is not None and found.distances.tolist() == expected
        parts = gpu_parts.parts_of(words.lengths, len(devices))
        at_work = {device for device, mine in zip(devices, parts, strict=True) if mine}
        assert set(gpus.where("count_between")) == at_work and len(at_work) >= min(len(devices), len(words.codes))


@pytest.mark.parametrize("are_locked", [False, True])
@pytest.mark.parametrize("devices", [(0,), (0, 1), (3, 1, 4, 0, 2)])
def test_what_devices_bring_each_other(
    gpus: Played, monkeypatch: pytest.MonkeyPatch, devices: tuple[int, ...], are_locked: bool
) -> None:
    """Letters, of which each takes a part from the host or the first all, positions and ranks of what is tied, the
    words of all ranks, and what others lay out by words; and, of words that are cut, what those behind have counted."""
    taken, done = dict[int, list[int]](), gpu_ranges.sent_from_host

    def noted(value: Any, threads: int) -> Any:
        taken[int(gpus.package.cuda.runtime.getDevice())] = [len(each) for each in value]
        return done(value, threads)

    monkeypatch.setattr(gpu_ranges, "is_locked", lambda array: are_locked)
    monkeypatch.setattr(gpu_ranges, "sent_from_host", noted)
    words = words_of(["abcab", "cab" * 19, "c", "bca" * 15])
    order, m = cpu.order_conjugates(words), len(words.lengths)
    colours = np.repeat(range(m), words.lengths)[order]
    assert gpu.find(words, distances=True, devices=devices, watch=Stopwatch()).distances is not None
    parts, cut, several = gpu_parts.parts_of(words.lengths, len(devices)), list[int](), len(devices) > 1
    laid_out = list[int]()
    for device in devices:
        brought = [value for to, value in gpus.brought if to == device]
        of_types = {
            dtype: [
                letter for value in brought if value.dtype == dtype and value.ndim == 1 for letter in value.tolist()
            ]
            for dtype in (np.uint8, np.int64, np.uint16)
        }
        joined = {np.uint8: words.codes, np.int64: words.offsets, np.uint16: colours}
        # (The first, which has taken all letters from ordinary memory, has them.)
        has = () if are_locked or device != devices[0] else (np.uint8, np.int64)
        assert of_types == {dtype: values.tolist() * (several and dtype not in has) for dtype, values in joined.items()}
        behind = max((number for number, value in enumerate(brought) if value.dtype == np.uint16), default=0)
        told, by_words = (
            [value for value in some if value.dtype == np.uint32 and value.ndim == 1]
            for some in (brought[:behind], brought[behind:])
        )
        laid_out += map(len, by_words)
        assert all(len(places) == len(ranks) for places, ranks in zip(told[::2], told[1::2], strict=True))
        assert len(told) >= 2 * (len(devices) - 1)
        rows = [value for value in brought if value.ndim == 2]
        assert {(value.dtype, value.shape) for value in rows} <= {(np.dtype(np.uint32), (1, m))}
        cut += [len(rows)]
    assert sum(laid_out) == (len(devices) - 1) * len(words.codes)
    if several:
        letters, ends = ([taken[device][which] for device in devices] for which in (0, 1))
        for parts_taken, values in ((letters, words.codes), (ends, words.offsets)):
            most = -(-len(values) // len(devices)) if are_locked else len(values)
            assert sum(parts_taken) == len(values) and max(parts_taken) == most
    # Of a word that is cut, by as many devices as have it, less the first, which adds up.
    having = [word for mine in parts for part in mine for word in part.split_words]
    assert sum(cut) == len(having) - len(set(having)) and cut[-1] == 0
    keyed = gpus.where("keys_between" if several else "first_keys")
    assert sorted(keyed) == sorted(devices)


@pytest.mark.usefixtures("gpus")
def test_what_is_told_of_the_order_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may still read it when a device goes on, and changes its order."""
    told, done = list[tuple[Any, Any]](), gpu_ranges._positions_and_ranks

    def noted(made: Any, places: Any) -> Any:
        told.append((made.order, places))
        return done(made, places)

    monkeypatch.setattr(gpu_ranges, "_positions_and_ranks", noted)
    words = words_of(["abcab", "cab" * 19, "c", "bca" * 15])
    found = gpu.find(words, order=True, devices=(0, 1, 2), watch=Stopwatch())
    assert found.order is not None and found.order.tolist() == cpu.order_conjugates(words).tolist()
    assert len(told) >= 6 and not any(np.shares_memory(order, places) for order, places in told)


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize("device", ["gpu", "gpu:0,1"])
def test_threads_of_a_call_copy(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    asked: dict[str, set[int]] = {}
    for module, name in (
        (gpu_ranges, "sent_from_host"),
        (gpu_distances, "sent_to_host"),
        (gpu_ranges, "sent_to_host"),
        (gpu_ranges, "copied_to_host"),
    ):
        done = getattr(module, name)

        def noted(*given: Any, done: Any = done, name: str = name, **how: Any) -> Any:
            asked.setdefault(name, set()).add(given[1 + (name == "sent_to_host")])
            return done(*given, **how)

        monkeypatch.setattr(module, name, noted)
    for call, also in ((warpseed.ebwt_distances, {}), (warpseed.ebwt_transform, {"copied_to_host": {7}})):
        asked.clear()
        call(["abcab", "cabba" * 9], device=device, threads=7)
        assert asked == {"sent_from_host": {7}, "sent_to_host": {7}, **also}


def test_what_the_page_says_is_shared() -> None:
    page = " ".join((Path(__file__).resolve().parents[2] / "docs" / "ebwt.md").read_text(encoding="utf-8").split())
    letters, words = f"{gpu_few.MOST_FEW:,}", f"{gpu_few_words.MOST_WORDS:,}"
    assert f"words are few: up to {letters} letters, and up to {words} words." in page
    assert f"Each takes up to {gpu._BYTES} bytes a letter" in page
    of_words = {m: gpu_distances.bytes_of_distances(0, m, 0) for m in (gpu_sets.WORDS, 10 * gpu_sets.WORDS)}
    small, large = (of_words[m] / m for m in of_words)
    assert f"({small / gpu_sets.WORDS:.0f} for each entry of up to {gpu_sets.WORDS:,} words)" in page
    assert f"4 for each entry of their matrix and {(large - 40 * gpu_sets.WORDS) / 1024:.0f} kB a word" in page
    assert gpu_counts.bytes_of_sets(1 << 32, 60_000) == 144 * 2 * 192 * 60_000
    assert f"no gap has more than {gpu_counts._MOST_SETS:,} of the largest sets" in page
    assert "at most 144 bytes a letter, but of no more than sixteen million letters, or 384 times" in page
    assert f"more than {letters} letters, and the distances of more than {words} words." in " ".join(
        str(warpseed.ebwt_transform.__doc__).split()
    )
