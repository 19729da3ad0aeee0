"""On a GPU: whatever an index holds, kernels neither read outside its arrays nor run for ever."""

from __future__ import annotations

import dataclasses
import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from warpseed import build_index
from warpseed.compute import gpu as device
from warpseed.errors import IndexFormatError
from warpseed.fm_index.layout import SeedIndex
from warpseed.kmer_seeds import gpu
from warpseed.kmer_seeds.floors import draw_kmers

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> SeedIndex:
    draw = np.random.default_rng(1)
    fasta = tmp_path_factory.mktemp("genome") / "genome.fa"
    contigs = ["".join(np.array(list("ACGT"))[draw.integers(0, 4, 60_000)]) for _ in range(3)]
    Path(fasta).write_text("".join(f">c{i}\n{contig}\n" for i, contig in enumerate(contigs)))
    return build_index(fasta, parts=("fast", "paper"))


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


KINDS = pytest.mark.parametrize("kind", ["largest", "random", "reversed", "zeros", "shuffled", "three bits"])


@KINDS
@pytest.mark.parametrize("name", ["suffix_array", "table"])
def test_fast_tier(index: SeedIndex, name: str, kind: str) -> None:
    """The search ends, with hits somewhere in the text, or the index is refused."""
    kmers = draw_kmers(index, 20, 20_000, 0.02, seed=1)
    damaged = with_array(index, "fast", name, replacements(index.arrays_of["fast"][name])[kind])
    for mismatches in range(4):
        try:
            found = gpu.find_fast(damaged, kmers, mismatches, max_hits=1000)
        except IndexFormatError as error:
            assert name == "suffix_array" and "damaged" in str(error)
        else:
            assert int((found.hits >> np.uint64(3)).max(initial=0)) < index.rows
    # The device is in order: it answers, and rightly.
    assert int(gpu.find_fast(index, draw_kmers(index, 20, 100, 0.0, seed=1), 0).counts.min()) > 0


@KINDS
@pytest.mark.parametrize("name", ["rocc", "bwt", "rsa"])
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_paper_tier(index: SeedIndex, direction: str, name: str, kind: str) -> None:
    kmers = draw_kmers(index, 20, 500, 0.02, seed=1)
    damaged: Any = with_array(index, direction, name, replacements(index.arrays_of[direction][name])[kind])
    for mismatches in range(3):
        found = gpu.find_paper(damaged, kmers, mismatches, max_hits=200)
        assert len(found.hits) == int(found.counts.sum())
    assert int(gpu.find_paper(index, draw_kmers(index, 20, 100, 0.0, seed=1), 0).counts.min()) > 0


def test_a_refused_index_leaves_no_memory_taken(index: SeedIndex) -> None:
    pool = device.cupy().get_default_memory_pool()
    with device.on_device(0):
        before = pool.used_bytes()
    damaged = with_array(index, "fast", "suffix_array", index.fast.suffix_array[::-1].copy())
    with pytest.raises(IndexFormatError):
        gpu.find_fast(damaged, draw_kmers(index, 20, 10, 0.0, seed=1), 0)
    del damaged
    gc.collect()
    with device.on_device(0):
        assert pool.used_bytes() == before
