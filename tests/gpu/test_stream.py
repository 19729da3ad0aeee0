"""K-mers of a stream on a GPU: what each place is, the dictionary and the counts, however the stream is cut."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles import tree_bitmap as truth
from warpseed.batches import Options
from warpseed.compute.stopwatch import Stopwatch
from warpseed.tree_bitmap import cpu, cpu_edits, gpu, gpu_edits, gpu_memory, gpu_structures, gpu_table
from warpseed.tree_bitmap.search import checked_request, write_stream
from warpseed.tree_bitmap.stream import NO_BASE

pytestmark = pytest.mark.gpu


def codes_of(draw: random.Random, length: int, letters: int = 4) -> np.ndarray:
    return np.array([draw.randrange(letters) for _ in range(length)], np.uint8)


def streams(k: int) -> dict[str, np.ndarray]:
    draw = random.Random(k)
    some = codes_of(draw, 640)
    return {
        "random": codes_of(draw, 3000),
        "no bases among them": codes_of(draw, 2000, 5),
        "homopolymer": np.zeros(1500, np.uint8),
        "tandem repeat": np.tile(np.array([0, 1, 3], np.uint8), 500),
        "long repeat": np.tile(some, 4),
        "no base": np.full(100, 4, np.uint8),
        "shorter than a k-mer": some[: k - 1],
        "one k-mer": some[:k],
        "nothing": some[:0],
    }


@pytest.mark.parametrize("k", [1, 3, 4, 5, 12, 15, 30, 31])
@pytest.mark.parametrize("block", [64, 1 << 24])
@pytest.mark.parametrize("devices", [[0], [0, 0], [0, 0, 0]])
def test_answers_and_dictionary(monkeypatch: pytest.MonkeyPatch, k: int, block: int, devices: list[int]) -> None:
    """A GPU can be several of those that share the work."""
    monkeypatch.setattr(gpu_memory, "BLOCK_BASES", block)
    draw = random.Random(9)
    for name, codes in streams(k).items():
        for seed_length in sorted({0, min(100, len(codes)), len(codes)}):
            known = np.unique([draw.randrange(4**k) for _ in range(40 if seed_length else 0)]).astype(np.uint64)
            expected = truth.answers_to(codes.tolist(), k, seed_length, known.tolist())
            answers, dictionary = gpu.find_answers(
                codes, k, seed_length=seed_length, dictionary=known, devices=devices, watch=Stopwatch()
            )
            assert answers.tolist() == list(expected[0]), (name, seed_length)
            assert dictionary().tolist() == list(expected[1]), (name, seed_length)
            fixed, _ = gpu.find_answers(
                codes, k, seed_length=seed_length, dictionary=known, grows=False, devices=devices, watch=Stopwatch()
            )
            held, _ = cpu.find_answers(
                codes, k, seed_length=seed_length, dictionary=known, grows=False, watch=Stopwatch()
            )
            assert fixed.tolist() == held.tolist(), (name, seed_length)


@pytest.mark.parametrize(("k", "bits_k"), [(7, 13), (7, 0), (17, 13)])
def test_a_table_grows(monkeypatch: pytest.MonkeyPatch, k: int, bits_k: int) -> None:
    """From one for no k-mers at all; short ones go to places of their own then, with bits or without."""
    monkeypatch.setattr(gpu_memory, "BLOCK_BASES", 4096)
    monkeypatch.setattr(gpu_structures, "_MOST_BITS_K", bits_k)
    draw = random.Random(5)
    codes = codes_of(draw, 60_000)
    codes[30_000:40_000] = codes[:10_000]
    blocks = np.array_split(codes, 7)
    stream = np.concatenate([part for block in blocks for part in (block, np.full(1, NO_BASE))]).tolist()
    counts = gpu.DeviceCounts(gpu_memory.Need.of(k, 0, counting=True), [0], 1)
    answers = gpu.DeviceAnswers(gpu_memory.Need.of(k, 0), [0], 1, np.empty(0, np.uint64))
    told: list[np.ndarray] = []
    for number, block in enumerate(blocks, 1):
        counts.take(block, number < len(blocks))
        told += answers.take(block, number < len(blocks))
    between = np.full(1, truth.NO_KMER)
    assert (
        np.concatenate([part for block in told for part in (block, between)]).tolist() == truth.answers_to(stream, k)[0]
    )
    places: dict[Any, list[int]] = {}
    for place, word in truth.words_at(stream, k):
        places.setdefault(word, []).append(place)
    counted = counts.counted()
    assert counted.codes.tolist() == truth.codes_of_words(places)
    assert counted.places.tolist() == [held[0] for held in places.values()]
    assert counted.counts.tolist() == [len(held) for held in places.values()]


@pytest.mark.parametrize("k", [1, 3, 6, 7, 9, 14, 31])
@pytest.mark.parametrize("block", [4096, 1 << 20])
def test_kmers_are_counted(monkeypatch: pytest.MonkeyPatch, k: int, block: int) -> None:
    """Short ones by blocks of threads for themselves, and by all together; few are added to by all threads."""
    monkeypatch.setattr(gpu_memory, "BLOCK_BASES", block)
    draw = np.random.default_rng(k)
    for codes in (draw.integers(0, 5, 300_000, np.uint8), np.full(300_000, 2, np.uint8), np.arange(300_000) % 3):
        codes = codes.astype(np.uint8)
        expected = cpu.HostCounts(k, places=len(codes))
        expected.take(codes, False)
        wanted = expected.counted()
        for devices in ([0], [0, 0, 0]):
            counted = gpu.count_kmers(codes, k, devices=devices, threads=2, watch=Stopwatch())
            for mine, true in zip(counted, wanted, strict=True):
                assert mine.tolist() == true.tolist()


@pytest.mark.parametrize("k", [3, 5, 8])
@pytest.mark.parametrize("devices", [[0], [0, 0], [0, 0, 0]])
def test_turns_by_hash(monkeypatch: pytest.MonkeyPatch, k: int, devices: list[int]) -> None:
    """Of short k-mers, as no others have so few that a small stream has most of them."""
    monkeypatch.setattr(gpu_structures, "_MOST_BITS_K", 0)
    monkeypatch.setattr(gpu_memory, "BLOCK_BASES", 4096)
    draw = np.random.default_rng(k)
    known = np.unique(draw.integers(0, 4**k, 40, np.uint64))
    for codes in (draw.integers(0, 5, 90_000, np.uint8), np.resize(draw.integers(0, 4, 700, np.uint8), 90_000)):
        expected, _ = cpu.find_answers(codes, k, dictionary=known, watch=Stopwatch())
        found, _ = gpu.find_answers(codes, k, dictionary=known, devices=devices, watch=Stopwatch())
        assert found.tolist() == expected.tolist()
        counts = cpu.HostCounts(k, places=len(codes))
        counts.take(codes, False)
        counted = gpu.count_kmers(codes, k, devices=devices, threads=2, watch=Stopwatch())
        for mine, true in zip(counted, counts.counted(), strict=True):
            assert mine.tolist() == true.tolist()


@pytest.mark.parametrize("devices", [[0], [0, 0]])
def test_many_short_kmers_have_turns_by_hash(monkeypatch: pytest.MonkeyPatch, devices: list[int]) -> None:
    """With nothing patched that decides on it, and blocks of full size."""
    k, made = 14, list[type]()
    codes = np.random.default_rng(k).integers(0, 4, 90_000_000, np.uint8)
    codes[60_000_000:70_000_000] = codes[:10_000_000]
    structure_for = gpu_table.structure_for

    def noting(*asked: Any) -> Any:
        structure = structure_for(*asked)
        made.append(type(structure))
        return structure

    monkeypatch.setattr(gpu_table, "structure_for", noting)
    expected, _ = cpu.find_answers(codes, k, threads=8, watch=Stopwatch())
    found, _ = gpu.find_answers(codes, k, devices=devices, threads=4, watch=Stopwatch())
    assert made == [gpu_structures.TurnTable] * len(devices)
    assert np.array_equal(found, expected)


def test_kmers_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = codes_of(random.Random(6), 20_000)
    expected = truth.answers_to(codes.tolist(), 7, 500)
    monkeypatch.setattr(gpu_memory, "passes_for", lambda *asked: 3)
    answers, dictionary = gpu.find_answers(codes, 7, seed_length=500, watch=Stopwatch())
    assert answers.tolist() == expected[0]
    assert dictionary().tolist() == expected[1]


@pytest.mark.parametrize(("k", "max_edits"), [(3, 1), (5, 0), (5, 2), (7, 3), (12, 2), (20, 1), (27, 3)])
@pytest.mark.parametrize("block", [64, 1 << 24])
def test_distances(monkeypatch: pytest.MonkeyPatch, k: int, max_edits: int, block: int) -> None:
    monkeypatch.setattr(gpu_edits, "BLOCK_BASES", block)
    draw = random.Random(k)
    some = codes_of(draw, 400)
    words = sorted({word for _, word in truth.words_at(some.tolist(), k)})[:: 1 if max_edits < 3 else 50]
    kmers = np.array(truth.codes_of_words(words), np.uint64)
    for codes in (*streams(k).values(), np.delete(some, [30, 80, 81, 150, 390])):
        codes = codes[:500]
        found = gpu_edits.DeviceDistances(kmers, k, max_edits, watch=Stopwatch()).find(codes)
        assert found.tolist() == cpu_edits.HostDistances(kmers, k, max_edits, watch=Stopwatch()).find(codes).tolist()


@pytest.mark.parametrize("max_edits", [1, 2, 3])
@pytest.mark.parametrize("ending", ["tsv", "bin"])
def test_what_is_near_is_written_as_by_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_edits: int, ending: str
) -> None:
    monkeypatch.setattr(gpu_edits, "BLOCK_BASES", 4096)
    draw = random.Random(max_edits)
    text = "".join(draw.choices("ACGTACGTACGTN", k=20_000))
    records = [text[first : first + draw.randrange(1, 900)] for first in range(0, len(text), 450)]
    (tmp_path / "s.fa").write_text("".join(f">{i}\n{bases}\n" for i, bases in enumerate(records)))
    codes = np.array(["ACGTN".index(letter) for letter in text], np.uint8)
    words = sorted({word for _, word in truth.words_at(codes.tolist(), 13)})[::90]
    known = np.array(truth.codes_of_words(words), np.uint64)
    totals = []
    for device in ("cpu", "gpu", "gpu:all"):
        options = Options("fast", device, 2).checked()
        request = checked_request(13, known, 300, False, options, max_edits)
        path = tmp_path / f"{device}.{ending}"
        totals.append(write_stream(tmp_path / "s.fa", path, request, report="places", watch=Stopwatch()))
        assert path.read_bytes() == (tmp_path / f"cpu.{ending}").read_bytes()
    assert totals[0] == totals[1] == totals[2] and totals[0].new > 0
