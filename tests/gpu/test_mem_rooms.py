"""The fast tier of long reads on a GPU, or on one that the CPU plays: lists that are too short at first."""

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
from warpseed import build_index
from warpseed.compute import gpu as device
from warpseed.compute.appended import SEGMENTS
from warpseed.compute.resident import release
from warpseed.mems import cpu, fast, gpu
from warpseed.mems.matches import MAXIMAL, PAPER, SUPER, Criteria
from warpseed.mems.reads import pack_long_reads
from warpseed.sequences.packed import Packed
from warpseed.sequences.queries import Queries

LARGE = 1 << 22
"""Entries that are always enough."""


def bases_of() -> str:
    return "".join(random.Random(7).choices("ACGT", k=3000)) + "GATTACA" * 200 + "A" * 1500


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A contig with repeats that make seeds crowded."""
    fasta = Path(tmp_path_factory.mktemp("genome") / "genome.fa")
    fasta.write_text(f">a\n{bases_of()}\n")
    return build_index(fasta)


@pytest.fixture(scope="module")
def reads() -> Packed:
    """Reads with errors from all over the contig, of both strands."""
    draw, bases, reads = random.Random(3), bases_of(), []
    for _ in range(60):
        first = draw.randrange(len(bases) - 100)
        piece = bases[first : first + draw.randint(60, 200)]
        read = "".join(draw.choice("ACGT") if draw.random() < 0.05 else base for base in piece)
        reads.append(read if draw.random() < 0.5 else reverse_complement(read))
    return pack_long_reads(Queries.from_sequences(reads))


@pytest.fixture(params=["played", pytest.param("real", marks=pytest.mark.gpu)])
def on_any(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, index: Any) -> Iterator[None]:
    """On a GPU, or on one that is played."""
    if request.param == "played":
        install(monkeypatch, index)
        monkeypatch.setattr(device, "_probe", lambda size: None)
    yield
    with device.on_device(0):
        release(index)


@pytest.mark.usefixtures("on_any")
@pytest.mark.parametrize("room", [(SEGMENTS, SEGMENTS), (LARGE, SEGMENTS), (SEGMENTS, LARGE)])
@pytest.mark.parametrize(("kind", "longest"), [(MAXIMAL, False), (PAPER, False), (PAPER, True), (SUPER, False)])
def test_what_finds_no_room_at_first_is_searched_again(
    monkeypatch: pytest.MonkeyPatch, index: Any, reads: Packed, kind: int, longest: bool, room: tuple[int, int]
) -> None:
    """In lists of matches, of crowded seeds, or of both. No end is noted of a match that was not tried."""
    monkeypatch.setattr(fast, "finds_longest", lambda *_: longest)
    append, needed = gpu._append, []

    def noted(*how: Any) -> Any:
        appended = append(*how)
        needed.append(appended.needed)
        return appended

    monkeypatch.setattr(gpu, "_first_room", lambda *_: gpu._Room(*room))
    monkeypatch.setattr(gpu, "_append", noted)
    criteria = Criteria(9, kind, 2)
    assert_same(gpu.find_fast(index, reads, criteria), cpu.find_fast(index, reads, criteria))
    short = [entries > there for entries, there in zip(needed[0], room, strict=True)]
    # Which part of a list a match is in depends on the GPU's turns: the next attempt may be short by a few again.
    assert short == [there == SEGMENTS for there in room] and 1 < len(needed) < 8


@pytest.mark.parametrize(("kind", "longest"), [(MAXIMAL, False), (SUPER, True)])
def test_what_was_needed_is_remembered(
    monkeypatch: pytest.MonkeyPatch, index: Any, reads: Packed, kind: int, longest: bool
) -> None:
    """The next search like it has room at once, for what is crowded too; one of other matches has not."""
    install(monkeypatch, index)
    monkeypatch.setattr(device, "_probe", lambda size: None)
    monkeypatch.setattr(fast, "finds_longest", lambda *_: longest)
    monkeypatch.setattr(gpu, "_FIRST_GUESS", (0.0, 0.0))
    append, rooms = gpu._append, []

    def noted(search: Any, way: Any, room: Any) -> Any:
        rooms.append(room)
        return append(search, way, room)

    def short_room(guess: list[float], bases: int) -> Any:
        return gpu._Room(*(SEGMENTS * (1 + round(each * bases) // SEGMENTS) for each in guess))

    monkeypatch.setattr(gpu, "_append", noted)
    monkeypatch.setattr(gpu, "_first_room", short_room)
    try:
        for length, is_like in ((9, False), (9, True), (10, False)):
            rooms.clear()
            gpu.find_fast(index, reads, Criteria(length, kind, 2))
            assert (len(rooms) == 1) == is_like
            assert (min(rooms[0]) > SEGMENTS) == is_like
    finally:
        with device.on_device(0):
            release(index)
