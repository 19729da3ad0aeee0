"""The paper tier of long reads on a GPU, or on one that the CPU plays: the CPU's matches, however stages are cut."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from gpu_systems import assert_same
from oracles.kmers import reverse_complement
from oracles.pretend_gpu import install
from warpseed import build_index, cli
from warpseed.compute import device_batches
from warpseed.compute import gpu as device
from warpseed.compute.resident import release
from warpseed.compute.stopwatch import Stopwatch
from warpseed.fm_index.binned import BinParameters
from warpseed.mems import cpu, gpu, gpu_stages
from warpseed.mems.matches import PAPER, Criteria
from warpseed.mems.reads import pack_long_reads
from warpseed.sequences.packed import Packed
from warpseed.sequences.queries import Queries, write_fasta

STAGES = {"pack", "intervals", "filter", "split", "locate", "sort"}


def bases_of() -> str:
    return "".join(random.Random(7).choices("ACGT", k=3000))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Two contigs in three segments, with a repeat, a tandem repeat and a homopolymer."""
    fasta, bases = Path(tmp_path_factory.mktemp("genome") / "genome.fa"), bases_of()
    fasta.write_text(f">a\n{bases[:1200]}NN{bases[1200:]}{bases[300:420]}\n>b\n{'GATTACA' * 30}{'A' * 60}\n")
    return build_index(fasta)


def some_reads() -> Queries:
    """Reads of 1 to 500 bases with errors, some of the other strand, some with an N; a palindrome, repeats."""
    draw, bases = random.Random(3), bases_of()
    reads = ["GATTACA" * 12, "A" * 70, "NNN", "A", bases[:1300], bases[40:70] + reverse_complement(bases[40:70])]
    while len(reads) < 60:
        first = draw.randrange(2900)
        piece = bases[first : first + draw.randint(8, 500)]
        read = "".join(draw.choice(["A", "C", "N", "", "GT"]) if draw.random() < 0.04 else base for base in piece)
        reads.append((read if draw.random() < 0.5 else reverse_complement(read)) or "C")
    return Queries.from_sequences(reads)


@pytest.fixture(scope="module")
def reads() -> Packed:
    return pack_long_reads(some_reads())


@pytest.fixture(params=["played", pytest.param("real", marks=pytest.mark.gpu)])
def searched(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, index: Any) -> Iterator[Any]:
    """The index, which lies on no device yet, on a GPU or on one that is played."""
    monkeypatch.setattr(device_batches, "_told", set())
    if request.param == "played":
        install(monkeypatch, index, devices=2)
    yield index
    for number in range(device.device_count()):
        with device.on_device(number):
            release(index)


@pytest.mark.parametrize("length", [1, 3, 9, 14, 20, 33])
@pytest.mark.parametrize("strands", [1, 2])
def test_both_devices_find_the_same(searched: Any, reads: Packed, length: int, strands: int) -> None:
    criteria, watch = Criteria(length, PAPER, strands), Stopwatch()
    for limit in (None, 7):
        expected = cpu.find_paper(searched, reads, criteria, max_hits=limit)
        found = gpu.find_paper(searched, reads, criteria, max_hits=limit, watch=watch)
        assert_same(found, expected)
        assert found.hits.dtype == expected.hits.dtype and found[2:] == expected[2:]
        counted = gpu.find_paper(searched, reads, criteria, max_hits=limit, count_only=True)
        assert counted.counts.tolist() == expected.counts.tolist() and not len(counted.hits)
    assert not (STAGES | {"index_to_device", "host_to_device", "device_to_host"}) - set(watch.seconds)


@pytest.mark.parametrize("starts", [128, 1024])
@pytest.mark.parametrize("rows", [1, 100])
def test_launches_of_a_few_find_the_same(
    searched: Any, reads: Packed, monkeypatch: pytest.MonkeyPatch, starts: int, rows: int
) -> None:
    """What is redundant is found between launches, too."""
    few = Packed(reads.words, reads.marks, reads.first[:31], reads.lengths[:30])
    criteria = Criteria(9 if rows > 1 else 24, PAPER, 2)
    expected = cpu.find_paper(searched, few, criteria)
    monkeypatch.setattr(gpu_stages, "STARTS_A_LAUNCH", starts)
    monkeypatch.setattr(gpu_stages, "ROWS_A_LAUNCH", rows)
    assert_same(gpu.find_paper(searched, few, criteria), expected)


@pytest.mark.parametrize(
    "parameters", [BinParameters(16, 1, 1), BinParameters(32, 2, 3), BinParameters(128, 7, 13), BinParameters(256, 12)]
)
def test_a_run_on_the_device_counts_its_matches(
    searched: Any, reads: Packed, monkeypatch: pytest.MonkeyPatch, parameters: BinParameters
) -> None:
    """Whatever the index is made with, and whatever parts the reads are searched in."""
    criteria, watch = Criteria(12, PAPER, 2), Stopwatch()
    expected = len(cpu.find_paper(searched, reads, criteria).hits)
    for bases in (1 << 25, 900):
        monkeypatch.setattr(gpu_stages, "_BASES_A_RUN", bases)
        with device.on_device(0):
            run = gpu.device_run(searched, reads, criteria, tier="paper", parameters=parameters, watch=watch)
            assert run() == run() == expected
    assert not STAGES - set(watch.seconds)


def test_matches_that_do_not_fit_together_come_in_windows_of_the_text(
    searched: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One read with thousands of matches, and memory for some hundred; around it reads with few."""
    long = "".join(random.Random(2).choices("ACGT", k=1500))
    queries = Queries.from_sequences(["ACGTACGATTACAGATT", long, bases_of()[40:90], "GATTACAGATTACAG"])
    reads, criteria = pack_long_reads(queries), Criteria(4, PAPER, 2)
    in_windows, cut = gpu_stages._in_windows, []
    monkeypatch.setattr(gpu_stages, "_in_windows", lambda *search: cut.append(search) or in_windows(*search))
    monkeypatch.setattr(gpu_stages, "free_memory", lambda: 1 << 18)
    monkeypatch.setattr(device_batches, "LARGEST_BATCH", 1)
    monkeypatch.setattr(gpu_stages, "_BASES_A_RUN", 10)
    assert len(cpu.find_paper(searched, reads, criteria).hits) > 3000
    for limit in (None, 200, 1):
        expected = cpu.find_paper(searched, reads, criteria, max_hits=limit)
        assert_same(gpu.find_paper(searched, reads, criteria, max_hits=limit), expected)
        with device.on_device(0):
            assert gpu.device_run(searched, reads, criteria, tier="paper", max_hits=limit)() == len(expected.hits)
    assert len(cut) == 2
    rare = criteria._replace(max_occurrences=2)
    expected = cpu.find_paper(searched, reads, rare)
    assert_same(gpu.find_paper(searched, reads, rare), expected)
    counted = gpu.find_paper(searched, reads, rare, count_only=True)
    assert counted.counts.tolist() == expected.counts.tolist() and not len(counted.hits)
    assert counted.dropped_hits == expected.dropped_hits > 0 and len(cut) == 4


@pytest.mark.parametrize("ending", ["tsv", "paf"])
def test_files_have_the_bytes_that_they_have_from_the_cpu(searched: Any, tmp_path: Path, ending: str) -> None:
    searched.save(tmp_path / "index")
    write_fasta(some_reads(), tmp_path / "reads.fa")
    how = ["--tier", "paper", "--kind", "paper", "--min-length", "13", "-q", "--device"]
    for target in ("cpu", "gpu"):
        output = str(tmp_path / f"{target}.{ending}")
        assert cli.main(["mems", str(tmp_path / "index"), str(tmp_path / "reads.fa"), "-o", output, *how, target]) == 0
    assert (tmp_path / f"gpu.{ending}").read_bytes() == (tmp_path / f"cpu.{ending}").read_bytes()
