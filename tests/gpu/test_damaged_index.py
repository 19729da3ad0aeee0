"""On a GPU: whatever an index holds, kernels neither read outside its arrays nor run for ever."""

from __future__ import annotations

import dataclasses
import gc

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from gpu_systems import KMERS, MEMS, READS, SYSTEMS, Genome, System
from warpseed import build_index
from warpseed.compute import gpu as device
from warpseed.errors import IndexFormatError
from warpseed.fm_index import device as parts
from warpseed.fm_index.layout import SeedIndex
from warpseed.output.rows import Found
from warpseed.sequences.reference import read_reference

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def genome(tmp_path_factory: pytest.TempPathFactory) -> Genome:
    draw = np.random.default_rng(1)
    fasta = tmp_path_factory.mktemp("genome") / "genome.fa"
    contigs = ["".join(np.array(list("ACGT"))[draw.integers(0, 4, 60_000)]) for _ in range(3)]
    fasta.write_text("".join(f">c{i}\n{contig}\n" for i, contig in enumerate(contigs)))
    reference = read_reference(fasta)
    return Genome(reference, build_index(reference, parts=("fast", "paper")), False)


def with_array(index: SeedIndex, part: str, name: str, array: np.ndarray) -> SeedIndex:
    """A copy of the index, in memory, in which one array is another."""
    arrays = {**index.arrays_of, part: {**index.arrays_of[part], name: array}}
    return dataclasses.replace(index, arrays_of=arrays)


def replacements(array: np.ndarray) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(2)
    high = int(np.iinfo(array.dtype).max)
    flipped = array.copy()
    flipped[draw.integers(0, len(array), 3)] ^= array.dtype.type(1 << 20)
    return {
        "largest": np.full_like(array, high),
        "random": draw.integers(0, high, len(array), dtype=array.dtype, endpoint=True),
        "reversed": array[::-1].copy(),
        "zeros": np.zeros_like(array),
        "shuffled": draw.permutation(array),
        "three bits": flipped,
    }


def assert_within(index: SeedIndex, system: System, found: Found) -> None:
    """Hits are as many as was counted, and begin somewhere in the text."""
    assert len(found.hits) == int(found.counts.sum())
    assert int(system.places(found.hits).max(initial=0)) < index.rows


def assert_in_order(genome: Genome, system: System, tier: str) -> None:
    """The device answers, and rightly."""
    found = system.find(genome.index, system.draw(genome, 100, 1), tier, 1)
    expected = getattr(system.on_cpu, f"find_{tier}")(genome.index, system.draw(genome, 100, 1), system.asked(1))
    assert np.array_equal(found.hits, expected.hits) and len(found.hits) > 50


KINDS = pytest.mark.parametrize("kind", ["largest", "random", "reversed", "zeros", "shuffled", "three bits"])


@KINDS
@pytest.mark.parametrize("name", ["suffix_array", "table"])
@pytest.mark.parametrize(("system", "most"), [(KMERS, 3), (READS, 2), (MEMS, 2)], ids=["kmers", "reads", "mems"])
def test_fast_tier(genome: Genome, system: System, most: int, name: str, kind: str) -> None:
    """The search ends, with hits somewhere in the text, or the index is refused."""
    index = genome.index
    queries = system.draw(genome, 20_000, 1)
    damaged = with_array(index, "fast", name, replacements(index.arrays_of["fast"][name])[kind])
    for distance in range(most + 1):
        try:
            found = system.find(damaged, queries, "fast", distance, max_hits=1000)
        except IndexFormatError as error:
            assert name == "suffix_array" and "damaged" in str(error)
        else:
            assert_within(index, system, found)
    assert_in_order(genome, system, "fast")


@KINDS
@pytest.mark.parametrize("name", ["rocc", "bwt", "rsa"])
@pytest.mark.parametrize(
    ("system", "direction"),
    [(KMERS, "forward"), (KMERS, "reverse"), (READS, "forward")],
    ids=["kmers-forward", "kmers-reverse", "reads-forward"],
)
def test_paper_tier(genome: Genome, system: System, direction: str, name: str, kind: str) -> None:
    index = genome.index
    queries = system.draw(genome, 500, 1)
    damaged = with_array(index, direction, name, replacements(index.arrays_of[direction][name])[kind])
    for distance in system.tiers["paper"]:
        assert_within(index, system, system.find(damaged, queries, "paper", distance, max_hits=200))
    assert_in_order(genome, system, "paper")


@KINDS
@pytest.mark.parametrize("name", ["suffix_array", "table"])
def test_paper_tier_of_long_reads(genome: Genome, name: str, kind: str) -> None:
    """What it makes of these two arrays is within its own, or the index is refused."""
    index = genome.index
    damaged = with_array(index, "fast", name, replacements(index.arrays_of["fast"][name])[kind])
    try:
        assert_within(index, MEMS, MEMS.find(damaged, MEMS.draw(genome, 500, 1), "paper", 1, max_hits=200))
    except IndexFormatError as error:
        assert name == "suffix_array" and "damaged" in str(error)
    assert_in_order(genome, MEMS, "paper")


@SYSTEMS
def test_a_refused_index_leaves_no_memory_taken(
    genome: Genome, monkeypatch: pytest.MonkeyPatch, system: System
) -> None:
    """k-mers meet a suffix array where memory does not hold the rows of both strands, which are made of the text."""
    monkeypatch.setattr(parts, "_has_room_for_both", lambda index: False)
    index, pool = genome.index, device.cupy().get_default_memory_pool()
    gc.collect()  # the damaged indexes of other tests
    with device.on_device(0):
        before = pool.used_bytes()
    damaged = with_array(index, "fast", "suffix_array", index.fast.suffix_array[::-1].copy())
    with pytest.raises(IndexFormatError):
        system.find(damaged, system.draw(genome, 10, 1), "fast", 1)
    del damaged
    gc.collect()
    with device.on_device(0):
        assert pool.used_bytes() == before
