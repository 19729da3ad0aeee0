"""K-mers of repeats, on a GPU: buckets of thousands of rows, which are read, searched, or avoided."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from warpseed import build_index
from warpseed.kmer_seeds import cpu, gpu
from warpseed.kmer_seeds.kmers import pack_kmers
from warpseed.sequences.queries import Queries
from warpseed.sequences.reference import Reference

pytestmark = pytest.mark.gpu
COPIES, UNIT = 6000, 50


def changed(chance: random.Random, bases: str, rate: float) -> str:
    return "".join(chance.choice("ACGT") if chance.random() < rate else base for base in bases)


@pytest.fixture(scope="module")
def genome() -> list[str]:
    """A young family and an old one, side by side with bases of their own; contigs end within copies."""
    chance = random.Random(7)
    units = ["".join(chance.choices("ACGT", k=UNIT)) for _ in range(2)]
    copies = [
        changed(chance, units[i % 2], 0.15 if i % 2 else 0.03) + "".join(chance.choices("ACGT", k=20))
        for i in range(COPIES)
    ]
    text = "".join(copies)
    borders = sorted(chance.sample(range(len(text)), 40))
    return [text[first:last] for first, last in zip([0, *borders], [*borders, len(text)], strict=True)]


@pytest.fixture(scope="module")
def index(genome: list[str]) -> Any:
    codes = np.array(["ACGTN".index(base) for contig in genome for base in contig], np.uint8)
    lengths = np.array([len(contig) for contig in genome], np.int64)
    return build_index(Reference(tuple(map(str, range(len(genome)))), lengths, codes, str, "contigs"))


def kmers_of(genome: list[str], lengths: list[int], unknown: bool) -> Any:
    """K-mers of the genome with a mismatch or two, some reverse complements, and with `unknown` some with an N."""
    chance = random.Random(str(lengths))
    text = max(genome, key=len)
    kmers = []
    for i in range(240):
        k = lengths[i % len(lengths)]
        begin = chance.randrange(len(text) - k)
        kmer = changed(chance, text[begin : begin + k], 0.02)
        kmer = kmer[::-1].translate(str.maketrans("ACGT", "TGCA")) if i % 3 else kmer
        kmers.append(kmer[: k // 2] + "N" + kmer[k // 2 + 1 :] if unknown and i % 5 == 0 else kmer)
    return pack_kmers(Queries.from_sequences(kmers), 0)


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize(
    "lengths, mismatches",
    [([20], 0), ([20], 1), ([32], 1), ([18], 2), ([20], 2), ([20], 3), ([24], 3), ([40], 2), ([18, 20, 26, 33], 2)],
)
def test_hits_are_those_of_the_cpu(
    index: Any, genome: list[str], lengths: list[int], mismatches: int, unknown: bool
) -> None:
    kmers = kmers_of(genome, lengths, unknown)
    whole = cpu.find_fast(index, kmers, mismatches)
    assert whole.counts.max() > 400
    for max_hits in (None, 1, 60, 1500):
        expected = cpu.find_fast(index, kmers, mismatches, max_hits=max_hits)
        found = gpu.find_fast(index, kmers, mismatches, max_hits=max_hits)
        assert found.counts.tolist() == expected.counts.tolist()
        assert np.array_equal(found.hits, expected.hits)
        dropped = int((whole.counts > max_hits).sum()) if max_hits else 0
        assert (found.dropped_queries, found.dropped_hits) == (dropped, dropped * ((max_hits or 0) + 1))
        counted = gpu.find_fast(index, kmers, mismatches, max_hits=max_hits, count_only=True)
        assert counted.counts.tolist() == expected.counts.tolist()


def test_hits_of_most_kinds_of_buckets_are_looked_for(index: Any) -> None:
    """Otherwise the test above would not be about them: strings in tags, and those of the window before."""
    from warpseed.compute.stopwatch import Stopwatch
    from warpseed.fm_index.device import tagged_on_device
    from warpseed.kmer_seeds import gpu_ways

    table_length = tagged_on_device(index, Stopwatch()).table_length
    for k, mismatches in ((20, 1), (20, 2), (18, 2)):
        scheme = gpu.make_scheme(np.array([k], np.uint32), mismatches, index.rows, table_length, gpu.COSTS)
        ways = gpu_ways.ways_of(scheme, True).tolist()
        assert any(gpu_ways.is_framed(way) for way in ways)
        assert any(gpu_ways.spare_of(way) == 1 and gpu_ways.bases_behind(way) > 0 for way in ways)
        assert scheme.length[k, 0] == table_length == scheme.offset[k, 1]
        assert any(gpu_ways.spare_of(way) == 0 and gpu_ways.window_of(way) == 1 for way in ways)
