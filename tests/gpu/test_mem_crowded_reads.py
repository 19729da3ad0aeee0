"""Reads of repeats with many copies on a GPU, or on one that the CPU plays: found by the longest match from every base
on, and as by seeds."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from gpu_systems import assert_same
from oracles.pretend_gpu import PretendGpu, install
from warpseed import build_index
from warpseed.compute import gpu as device
from warpseed.compute.resident import release
from warpseed.mems import cpu, gpu
from warpseed.mems.matches import MAXIMAL, PAPER, SUPER, Criteria
from warpseed.mems.reads import pack_long_reads
from warpseed.sequences.packed import Packed
from warpseed.sequences.queries import Queries

LENGTH = 18


def changed(draw: random.Random, piece: str) -> str:
    return "".join(draw.choice("ACGT") if draw.random() < 0.12 else base for base in piece)


@pytest.fixture(scope="module")
def drawn() -> tuple[str, Packed, Packed]:
    """A contig, reads of its first part, and reads of an element of which the second part is copies."""
    draw = random.Random(23)
    unique, element = ("".join(draw.choices("ACGT", k=bases)) for bases in (60_000, 200))
    contig = unique + "".join(changed(draw, element) for _ in range(3000))
    few = [changed(draw, unique[at : at + 700]) for at in range(0, 55_000, 5000)]
    many = [changed(draw, element * 3) for _ in few]
    return contig, *(pack_long_reads(Queries.from_sequences(reads)) for reads in (few, many))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, drawn: tuple[str, Packed, Packed]) -> Any:
    fasta = Path(tmp_path_factory.mktemp("genome") / "genome.fa")
    fasta.write_text(f">a\n{drawn[0]}\n")
    return build_index(fasta)


@pytest.fixture(params=["played", pytest.param("real", marks=pytest.mark.gpu)])
def played(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, index: Any) -> Iterator[PretendGpu | None]:
    """What plays a GPU, or None where there is one."""
    kernels = None
    if request.param == "played":
        _, kernels = install(monkeypatch, index)
        monkeypatch.setattr(device, "_probe", lambda size: None)
    yield kernels
    with device.on_device(0):
        release(index)


@pytest.mark.parametrize("kind", [MAXIMAL, PAPER, SUPER])
@pytest.mark.parametrize("crowded", [False, True])
def test_crowded_reads_are_searched_without_seeds(
    monkeypatch: pytest.MonkeyPatch,
    played: PretendGpu | None,
    index: Any,
    drawn: tuple[str, Packed, Packed],
    kind: int,
    crowded: bool,
) -> None:
    reads, launched, launch = drawn[1 + crowded], [], gpu.launch

    def noted(kernel: Any, *how: Any) -> None:
        launched.append(kernel.py_func.__name__)
        launch(kernel, *how)

    monkeypatch.setattr(gpu, "launch", noted)
    if played is not None:
        played.crowded = crowded
    criteria = Criteria(LENGTH, kind, 2)
    assert_same(gpu.find_fast(index, reads, criteria), cpu.find_fast(index, reads, criteria))
    assert ("sample_seeds" in launched) == (kind != MAXIMAL)
    assert ("note_longest" in launched) == (crowded and kind != MAXIMAL) == ("append_matches" not in launched)
