"""Hits that stay on a GPU as columns, and queries that lie there: equal to the host's, on any text."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from hostile_texts import HOSTILE
from oracles.kmers import reverse_complement
from warpseed import build_index, find_kmers, find_mems, find_reads
from warpseed.compute import device_batches
from warpseed.compute import gpu as device
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import InputError, MemoryLimitError
from warpseed.fm_index.device import tagged_on_device
from warpseed.fm_index.layout import SeedIndex
from warpseed.kmer_seeds.floors import measure_limits
from warpseed.sequences.reference import read_reference

pytestmark = pytest.mark.gpu

ON_GPU: dict[str, Any] = {"device": "gpu", "on_device": True}
FINDS = pytest.mark.parametrize(
    ("find", "asked"),
    [
        *(pytest.param(find_kmers, {"max_mismatches": most}, id=f"kmers-{most}") for most in (0, 1, 2, 3)),
        pytest.param(find_reads, {"max_edits": 0}, id="reads-0"),
        pytest.param(find_reads, {"max_edits": 1}, id="reads-1"),
        pytest.param(find_reads, {"max_edits": 2, "both_strands": False}, id="reads-2"),
        pytest.param(find_mems, {"min_length": 9, "kind": "super"}, id="mems-super"),
        pytest.param(find_mems, {"min_length": 12, "kind": "maximal"}, id="mems-maximal"),
        pytest.param(find_mems, {"min_length": 10, "kind": "paper", "max_occurrences": 4}, id="mems-paper"),
    ],
)


class OnlyDlpack:
    """An array of another library, which has nothing but DLPack."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **how: Any) -> Any:
        return self._array.__dlpack__(**how)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


def words_of(contigs: list[str], count: int, longest: int, seed: int) -> list[str]:
    """Words of contigs, of both strands, in either case, some changed, and some of nothing."""
    draw = random.Random(seed)
    words = ["A", "N", "ACGT" * 8, "GATTACA" * 20]
    while len(words) < count:
        contig = draw.choice(contigs)
        first = draw.randrange(len(contig))
        word = list(contig[first : first + draw.randint(1, longest)])
        word[draw.randrange(len(word))] = draw.choice("ACGTacgtNR")
        words.append("".join(word) if draw.random() < 0.5 else reverse_complement("".join(word).upper()))
    return words


def there(queries: list[str]) -> tuple[Any, Any]:
    """The letters of queries on the GPU, and the offsets between them."""
    xp = device.cupy()
    letters = np.frombuffer("".join(queries).encode(), np.uint8)
    return xp.asarray(letters), xp.asarray(np.cumsum([0, *map(len, queries)]))


@pytest.fixture(scope="module")
def genome(real_genome: Path) -> SeedIndex:
    return build_index(real_genome, threads=2)


def words_in(genome: Path, count: int, longest: int, seed: int) -> list[str]:
    """Words of a genome."""
    reference = read_reference(genome)
    bases = np.frombuffer(b"ACGTN", np.uint8)[np.minimum(reference.codes[:400_000], 4)].tobytes().decode()
    return words_of([bases], count, longest, seed)


@FINDS
def test_hostile_texts(write_reference: Callable[..., Path], find: Callable[..., Any], asked: dict[str, Any]) -> None:
    for name, contigs in HOSTILE.items():
        index = build_index(write_reference(contigs), table_length=4)
        queries = words_of(contigs, 100, 70, len(name))
        for max_hits in (None, 5):
            expected = find(index, queries, max_hits=max_hits, **asked)
            for source in (queries, there(queries)):
                assert find(index, source, max_hits=max_hits, **ON_GPU, **asked).to_host() == expected, name


@FINDS
def test_batches_of_any_size(
    genome: SeedIndex,
    real_genome: Path,
    monkeypatch: pytest.MonkeyPatch,
    find: Callable[..., Any],
    asked: dict[str, Any],
) -> None:
    queries = [word for word in words_in(real_genome, 20_000, 60, 3) if len(word) >= 20]
    asked = {**asked, "max_hits": 100}
    expected = find(genome, queries, **asked)
    assert len(expected) > 1000
    for largest in (1 << 25, len(queries) // 2 - 1, len(queries) // 25):
        monkeypatch.setattr(device_batches, "LARGEST_BATCH", largest)
        for source in (queries, there(queries)):
            found = find(genome, source, **ON_GPU, **asked)
            assert found.to_host() == expected
            assert all(column.flags.c_contiguous for column in found.columns.values())


def test_rows_of_letters_and_what_comes_by_dlpack(genome: SeedIndex, real_genome: Path) -> None:
    xp = device.cupy()
    for length in (20, 32, 33, 255):
        queries = [word for word in words_in(real_genome, 4000, 2 * length, 5) if len(word) >= length]
        queries = [word[:length] for word in queries]
        rows = there(queries)[0].reshape(-1, length)
        expected = find_kmers(genome, queries, max_mismatches=1, max_hits=50)
        for source in (rows, OnlyDlpack(rows), xp.asfortranarray(rows), rows[:, ::-1][:, ::-1]):
            found = find_kmers(genome, source, max_mismatches=1, max_hits=50, **ON_GPU)
            assert found.to_host() == expected
    again = xp.from_dlpack(found.start)
    assert again.data.ptr == found.start.data.ptr and np.array_equal(again.get(), expected.start)
    assert xp.bincount(found.contig, minlength=len(found.contig_names)).sum() == len(expected)


@FINDS
def test_no_queries_and_no_hits(genome: SeedIndex, find: Callable[..., Any], asked: dict[str, Any]) -> None:
    nothing = "ACGTNNNNNNNNNNNNACGTT"
    for queries in ([], [nothing], [nothing, "ACGTACGTACGTACG"]):
        for source in (queries, there(queries)):
            assert find(genome, source, **ON_GPU, **asked).to_host() == find(genome, queries, **asked)


def test_kmers_are_cut_from_reads(genome: SeedIndex, real_genome: Path) -> None:
    reads = [word for word in words_in(real_genome, 2000, 100, 4) if len(word) > 30]
    options: dict[str, Any] = {"k": 20, "step": 7, "max_mismatches": 1, "max_hits": 20}
    watch = Stopwatch()
    found = find_kmers(genome, reads, watch=watch, **ON_GPU, **options)
    assert found.to_host() == find_kmers(genome, reads, **options)
    assert {"read", "pack", "host_to_device", "kernel", "sort", "columns"} <= set(watch.seconds)


def test_work_goes_onto_the_stream_of_the_caller(genome: SeedIndex, real_genome: Path) -> None:
    """Letters are made, searched and counted one behind the other, and nothing is waited for between."""
    xp = device.cupy()
    queries = [word[:20] for word in words_in(real_genome, 40_000, 60, 8) if len(word) >= 20]
    expected = find_kmers(genome, queries, max_hits=50)
    rows = there(queries)[0].reshape(-1, 20)
    device.synchronize()  # what was made on another stream
    with xp.cuda.Stream(non_blocking=True) as stream:
        for _ in range(5):
            letters = xp.zeros((3000, len(queries)), xp.uint8)
            letters[:20] = rows.T
            found = find_kmers(genome, letters[:20].T, max_hits=50, **ON_GPU)
            counted = xp.bincount(found.query, minlength=len(queries))
        stream.synchronize()
    assert counted.get().tolist() == expected.counts.tolist() and found.to_host() == expected


def test_bytes_that_are_no_letters_are_told(genome: SeedIndex) -> None:
    queries = ["ACGTACGTAC"] * 5000
    queries[4321] = "ACGTACG-AC"
    queries[4400] = "ACGTACG*AC"
    with pytest.raises(InputError, match="number 4321: found '-' at position 7"):
        find_kmers(genome, there(queries), **ON_GPU)


@pytest.fixture
def leave(genome: SeedIndex) -> Iterator[Callable[[int], None]]:
    """A function that leaves so many bytes of the GPU's memory beside what is there by then, the index too."""
    pool = device.cupy().get_default_memory_pool()

    def limit(size: int) -> None:
        with device.on_device(0):
            tagged_on_device(genome, Stopwatch())
            device.give_back_memory()
            pool.set_limit(size=pool.total_bytes() + size)

    yield limit
    pool.set_limit(size=0)


def test_little_memory_makes_batches_small(
    genome: SeedIndex,
    real_genome: Path,
    leave: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    queries = [word[:20] for word in words_in(real_genome, 200_000, 60, 9) if len(word) >= 20]
    letters, expected = there(queries), find_kmers(genome, queries, max_hits=4)
    monkeypatch.setattr(device_batches, "_told", set())
    leave(24 << 20)
    assert find_kmers(genome, letters, max_hits=4, **ON_GPU).to_host() == expected
    assert "GPU 0 is short of memory" in capsys.readouterr().err


def test_what_does_not_fit_is_refused_and_leaves_the_gpu_usable(
    genome: SeedIndex, leave: Callable[[int], None]
) -> None:
    expected = find_kmers(genome, ["ACGTACGTACG"])
    leave(64 << 20)
    with pytest.raises(MemoryLimitError, match="do not fit the GPU's memory .* search fewer queries a call"):
        find_kmers(genome, ["A", "C", "G", "T"] * 4, **ON_GPU)
    assert find_kmers(genome, ["ACGTACGTACG"], **ON_GPU).to_host() == expected


def test_a_second_gpu_keeps_its_own(genome: SeedIndex) -> None:
    if device.device_count() < 2:
        pytest.skip("there is one GPU")
    queries = ["ACGTACGTACG", "GATTACAGATTACA"]
    with device.on_device(1):
        letters = there(queries)
    found = find_kmers(genome, letters, device="gpu:1", on_device=True)
    assert found.start.device.id == 1 and found.to_host() == find_kmers(genome, queries)
    with device.on_device(1):
        of_numba = device.cuda.as_cuda_array(letters[0])
        shared = SimpleNamespace(__dlpack__=letters[0].__dlpack__, __dlpack_device__=letters[0].__dlpack_device__)
    for source in (letters[0], of_numba, shared):
        with pytest.raises(InputError, match="lie on GPU 1, but GPU 0 is to search"):
            find_kmers(genome, (source, letters[1]), **ON_GPU)
    with pytest.raises(InputError, match="lie on GPU 1, but GPU 0 is to search"):
        find_kmers(genome, (there(queries)[0], letters[1]), **ON_GPU)


def test_what_is_timed_is_held_to_the_host(genome: SeedIndex, tmp_path: Path) -> None:
    genome.save(tmp_path / "index")
    cases = [
        {"k": k, "mismatches": d, "count": 20_000, "error_rate": 0.01, "tiers": ["fast"]} for k, d in [(20, 0), (30, 2)]
    ]
    rows = measure_limits(tmp_path / "index", cases, repeats=2, seed=1, max_hits=128)
    timed = [row for row in rows if row["metric"] == "time"]
    assert [row["case"].endswith("letters to columns") for row in timed] == [False, False, True, True] * 2
    assert len({row["results"] for row in timed if row["case"].startswith("k=20")}) == 1
