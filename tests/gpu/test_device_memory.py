"""On a GPU: small batches, little memory, several devices give the same hits; what lies there is shared and freed."""

from __future__ import annotations

import gc
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import warpseed

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from warpseed import build_index, find_kmers
from warpseed.compute import device_batches, device_stream
from warpseed.compute import gpu as device
from warpseed.compute.stopwatch import Stopwatch
from warpseed.fm_index.device import bwt_on_device, tagged_on_device, text_on_device
from warpseed.kmer_seeds import cpu, gpu
from warpseed.kmer_seeds.floors import draw_kmers
from warpseed.kmer_seeds.gpu import stream_hits
from warpseed.output.rows import Found, join_found
from warpseed.sequences.packed import Packed, part_of

pytestmark = pytest.mark.gpu

SEARCHES = [(tier, mismatches) for tier in ("fast", "paper") for mismatches in (0, 1, 2)]


@pytest.fixture(scope="module")
def index(real_genome: Path) -> Any:
    return build_index(real_genome, parts=("fast", "paper"), threads=2)


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing has been said of short memory yet."""
    monkeypatch.setattr(device_batches, "_told", set())


@pytest.fixture
def short_memory(index: Any) -> Iterator[Any]:
    """A function that leaves so many bytes of device memory beside what the fast tier has brought there."""
    pool = device.cupy().get_default_memory_pool()

    def leave(size: int) -> None:
        with device.on_device(0):
            tagged_on_device(index, Stopwatch())
            device.give_back_memory()
            pool.set_limit(size=pool.total_bytes() + size)

    yield leave
    pool.set_limit(size=0)


def assert_same(found: Found, expected: Found) -> None:
    assert np.array_equal(found.counts, expected.counts) and np.array_equal(found.hits, expected.hits)
    assert found.dropped_queries == expected.dropped_queries


def find(index: Any, kmers: Packed, tier: str, mismatches: int, **options: Any) -> Found:
    return (gpu.find_fast if tier == "fast" else gpu.find_paper)(index, kmers, mismatches, **options)


@pytest.mark.parametrize(("tier", "mismatches"), SEARCHES)
def test_small_batches_find_the_same(index: Any, monkeypatch: pytest.MonkeyPatch, tier: str, mismatches: int) -> None:
    kmers = draw_kmers(index, 24, 20_000, 0.02, seed=mismatches)
    for options in ({}, {"max_hits": 3}, {"count_only": True}):
        monkeypatch.setattr(device_batches, "LARGEST_BATCH", 1 << 25)
        whole = find(index, kmers, tier, mismatches, **options)
        for largest in (9_999, 777):
            monkeypatch.setattr(device_batches, "LARGEST_BATCH", largest)
            assert_same(find(index, kmers, tier, mismatches, **options), whole)


@pytest.mark.parametrize("mismatches", [0, 1, 2])
def test_intervals_of_small_batches_locate_to_the_same(
    index: Any, monkeypatch: pytest.MonkeyPatch, mismatches: int
) -> None:
    kmers = draw_kmers(index, 24, 5_000, 0.02, seed=3)
    expected = cpu.find_paper(index, kmers, mismatches, max_hits=50)
    for largest in (1 << 25, 999):
        monkeypatch.setattr(device_batches, "LARGEST_BATCH", largest)
        intervals = gpu.search_paper(index, kmers, mismatches, max_hits=50)
        assert_same(cpu.locate_intervals(index, kmers, intervals, mismatches), expected)


def streamed(index: Any, kmers: Packed, tier: str, mismatches: int, size: int, **options: Any) -> Found:
    """The hits of pieces of `size` k-mers, joined; a k-mer's hits may come in several parts."""
    works = (
        part_of(kmers, first, min(first + size, len(kmers.lengths))) for first in range(0, len(kmers.lengths), size)
    )
    options.setdefault("watch", Stopwatch())
    parts: list[Found] = []
    continued = False
    for found, continues in stream_hits(index, works, mismatches, tier=tier, **options):
        hits, counts = found.hits.copy(), found.counts.copy()
        if continued:
            before = parts.pop()
            counts = np.concatenate([before.counts[:-1], [before.counts[-1] + counts[0]], counts[1:]])
            hits = np.concatenate([before.hits, hits])
        parts.append(found._replace(hits=hits, counts=counts))
        continued = continues
    return join_found(parts)


@pytest.mark.parametrize(("tier", "mismatches"), SEARCHES)
def test_streamed_kmers_find_the_same(index: Any, monkeypatch: pytest.MonkeyPatch, tier: str, mismatches: int) -> None:
    """Pieces of several sizes on one and more devices; many small batches, so that two are always in flight."""
    kmers = draw_kmers(index, 24, 100_000, 0.02, seed=mismatches)
    device_numbers = {(0,), tuple(range(device.device_count()))}
    for options in ({"max_hits": None}, {"max_hits": 3}):
        whole = find(index, kmers, tier, mismatches, **options)
        for least, largest in ((1 << 18, 1 << 20), (500, 2000)):
            monkeypatch.setattr(device_stream, "LEAST_BATCH", least)
            monkeypatch.setattr(device_stream, "LARGEST_BATCH", largest)
            for size, devices in ((100_000, (0,)), (30_011, (0,)), *((997, numbers) for numbers in device_numbers)):
                assert_same(streamed(index, kmers, tier, mismatches, size, devices=devices, **options), whole)


def test_streamed_kmers_in_little_memory(
    index: Any, short_memory: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The estimate sees plenty; CuPy refuses memory to one batch beside another, then to one alone."""
    kmers = draw_kmers(index, 20, 3_000_000, 0.01, seed=7)
    whole = find(index, kmers, "fast", 1, max_hits=128)
    capsys.readouterr()
    short_memory(200 << 20)
    monkeypatch.setattr(device_stream, "free_memory", lambda: 1 << 40)
    assert_same(streamed(index, kmers, "fast", 1, 100_000, max_hits=128), whole)
    assert capsys.readouterr().err.count("\n") == 1


def test_four_million_kmers_in_one_gigabyte(index: Any, short_memory: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The estimate says that they do not fit together: batches are smaller, and one line says so."""
    kmers = draw_kmers(index, 20, 4_000_000, 0.01, seed=1)
    whole = gpu.find_fast(index, kmers, 1, max_hits=128)
    assert capsys.readouterr().err == ""
    short_memory(1 << 30)
    assert_same(gpu.find_fast(index, kmers, 1, max_hits=128), whole)
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "GPU 0 is short of memory" in told


@pytest.mark.parametrize("mismatches", [0, 1])
def test_batches_that_fail_are_halved(
    index: Any, short_memory: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], mismatches: int
) -> None:
    """CuPy refuses memory in the middle of a batch, since the estimate is made to see plenty."""
    kmers = draw_kmers(index, 20, 2_000_000, 0.01, seed=2)
    whole = gpu.find_fast(index, kmers, mismatches, max_hits=128)
    capsys.readouterr()
    short_memory(200 << 20)
    monkeypatch.setattr(device_batches, "free_memory", lambda: 1 << 40)
    assert_same(gpu.find_fast(index, kmers, mismatches, max_hits=128), whole)
    assert capsys.readouterr().err.count("\n") == 1


def test_several_devices_find_the_same(index: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if device.device_count() < 2:
        pytest.skip("one GPU is visible, and this needs two")
    kmers = draw_kmers(index, 24, 300_000, 0.02, seed=4)
    for largest in (1 << 25, 10_000):
        monkeypatch.setattr(device_batches, "LARGEST_BATCH", largest)
        for tier, mismatches in (("fast", 0), ("fast", 2), ("paper", 1)):
            one = find(index, kmers, tier, mismatches)
            assert_same(find(index, kmers, tier, mismatches, devices=(0, 1)), one)
            assert_same(find(index, kmers, tier, mismatches, devices=(1,)), one)
    # By the public call, which names them.
    words = ["ACGTTGCAAGCTTACGGATC", "TTTTTTTT", "GATTACA"] * 1000
    one = warpseed.find_kmers(index, words, device="gpu", max_hits=1000)
    for name in ("gpu:1", "gpu:0,1", "gpu:all"):
        assert warpseed.find_kmers(index, words, device=name, max_hits=1000) == one


def test_what_lies_on_a_device_is_shared_and_freed(real_genome: Path) -> None:
    pool = device.cupy().get_default_memory_pool()
    with device.on_device(0):
        before, watch = pool.used_bytes(), Stopwatch()
        index = build_index(real_genome, parts=("fast", "paper"), threads=2)
        tagged, (text, segments) = tagged_on_device(index, watch), text_on_device(index, watch)
        assert tagged.text is text and tagged.segments is segments
        assert tagged_on_device(index, watch) is tagged
        assert bwt_on_device(index, "forward", watch) is bwt_on_device(index, "forward", watch)
        held = pool.used_bytes()
        device.release(index, "forward")
        assert before < pool.used_bytes() < held
        del tagged, text, segments, index
        gc.collect()
        assert pool.used_bytes() == before


def test_few_kmers_warn_of_nothing(index: Any) -> None:
    from numba.cuda.core.errors import NumbaPerformanceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("error", NumbaPerformanceWarning)
        kmers = draw_kmers(index, 24, 3, 0.0, seed=5)
        for tier, mismatches in SEARCHES:
            assert int(find(index, part_of(kmers, 0, 3), tier, mismatches).counts.min()) > 0


def test_a_crowded_kmer_among_many(tmp_path: Path) -> None:
    """A k-mer with many more hits than there is room for at first, in both lists."""
    draw = random.Random(6)
    unit = "".join(draw.choices("ACGT", k=171))
    copies = ["".join(draw.choice("ACGT") if draw.random() < 0.01 else base for base in unit) for _ in range(4000)]
    fasta = tmp_path / "satellite.fa"
    fasta.write_text(">satellite\n" + "".join(copies) + "\n")
    index = build_index(fasta)
    kmers = [unit[i : i + 20] for i in range(0, 150, 5)] + ["".join(draw.choices("ACGT", k=20)) for _ in range(500)]
    for mismatches in range(4):
        on_cpu, on_gpu = (find_kmers(index, kmers, max_mismatches=mismatches, device=name) for name in ("cpu", "gpu"))
        assert on_gpu.digest() == on_cpu.digest() and len(on_cpu) > 20 * len(kmers)
