"""k-mers streamed through a GPU that the CPU plays: the same hits as at once, whatever pieces, rooms and devices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

import warpseed
from test_gpu_searches import SEARCHES, assert_same, index, kmers, pretended
from warpseed import batches
from warpseed.batches import Options
from warpseed.compute import device_stream
from warpseed.compute import gpu as device
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import InputError
from warpseed.kmer_seeds import cpu, iter_kmer_hits
from warpseed.kmer_seeds.gpu import stream_hits
from warpseed.output import from_device
from warpseed.output.rows import Found, Result
from warpseed.sequences.names import Names
from warpseed.sequences.packed import NamedSet, Packed, base_at, join_packed, part_of
from warpseed.sequences.pieces import open_pieces

__all__ = ["index", "pretended"]


def pieces(packed: Packed, size: int) -> Iterator[Packed]:
    for first in range(0, len(packed.lengths), size):
        yield part_of(packed, first, min(first + size, len(packed.lengths)))


def named(packed: Packed, size: int) -> Iterator[NamedSet]:
    for part in pieces(packed, size):
        yield NamedSet(part, Names.of([""] * len(part.lengths)))


def joined(results: Iterator[Result], sizes: list[int]) -> tuple[Found, list[int]]:
    """All results as one, and the hits of each; none of them holds k-mers of two pieces."""
    hits, counts, lengths = [], [], []
    dropped = np.zeros(2, np.int64)
    continued = False
    borders = set(np.cumsum([0, *sizes]).tolist())
    for found, continues, text in results:
        assert text is None
        if continued:
            counts[-1] += int(found.counts[0])
        first = len(counts) - continued
        assert not any(first < border < first + len(found.counts) for border in borders)
        counts += found.counts[int(continued) :].tolist()
        assert len(found.hits) == found.counts.sum()
        hits.append(found.hits.copy())
        lengths.append(len(found.hits))
        dropped += found.dropped_queries, found.dropped_hits
        continued = continues
    assert not continued
    return Found(np.concatenate(hits), np.array(counts), *map(int, dropped)), lengths


@SEARCHES
@pytest.mark.parametrize(("longest", "size", "max_hits"), [(28, 200, None), (70, 33, 40), (28, 1, 40), (70, 1, None)])
def test_hits_do_not_depend_on_the_pieces(
    index: Any,
    pretended: Any,
    monkeypatch: pytest.MonkeyPatch,
    tier: str,
    mismatches: int,
    longest: int,
    size: int,
    max_hits: int | None,
) -> None:
    packed = kmers(longest)
    expected = getattr(cpu, f"find_{tier}")(index, packed, mismatches, max_hits=max_hits)
    monkeypatch.setattr(device_stream, "LEAST_BATCH", 10)
    monkeypatch.setattr(device_stream, "LARGEST_BATCH", 50)
    sizes = [len(piece.lengths) for piece in pieces(packed, size)]
    for room, chunk in ((1 << 18, 1 << 20), (13, 100), (5, 5)):
        monkeypatch.setattr(from_device, "_ROOM", room)
        monkeypatch.setattr(from_device, "_CHUNK", chunk)
        for devices in ("gpu", "gpu:0,1"):
            watch = Stopwatch()
            options = Options(tier, devices, 1, max_hits)
            results = stream_hits(index, named(packed, size), mismatches, options, watch=watch)
            found, lengths = joined(results, sizes)
            assert_same(found, expected, tier)
            assert max(lengths) <= room
            assert {"join", "host_to_device", "kernel", "sort", "device_to_host"} <= set(watch.seconds)


@pytest.mark.parametrize(
    ("tier", "mismatches", "largest"), [("fast", 0, 20_000), ("fast", 2, 70_000), ("paper", 2, 526_000)]
)
def test_short_memory_makes_batches_smaller(
    index: Any,
    pretended: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tier: str,
    mismatches: int,
    largest: int,
) -> None:
    packed = kmers(28)
    expected = getattr(cpu, f"find_{tier}")(index, packed, mismatches, max_hits=40)
    list(stream_hits(index, named(packed, 200), mismatches, Options(tier, "gpu"), watch=Stopwatch()))
    monkeypatch.setattr(device, "_probe", lambda size: None)
    pretended[0].largest = largest
    results = stream_hits(index, named(packed, 50), mismatches, Options(tier, "gpu", 1, 40), watch=Stopwatch())
    assert_same(joined(results, [50] * 4)[0], expected, tier)
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "GPU 0 is short of memory" in told


def test_joined_sets_are_as_packed_together() -> None:
    """Of k-mers of one word and of several, with and without unknown bases."""
    for longest in (28, 70):
        packed = kmers(longest)
        for size in (200, 33, 1):
            for whole, part in zip(packed, join_packed(list(pieces(packed, size))), strict=True):
                assert whole.dtype == part.dtype and whole.tolist() == part.tolist()
    short, long = part_of(kmers(28), 3, 50), part_of(kmers(70), 0, 60)
    marked = join_packed([short, long, short])
    assert len(marked.first) == 47 + 60 + 47 + 1 and len(marked.marks) == len(marked.words)
    for begin, part in ((0, short), (47, long), (107, short)):
        again = part_of(marked, begin, begin + len(part.lengths))
        assert again.words.tolist() == part.words.tolist() and again.lengths.tolist() == part.lengths.tolist()
        assert again.marks.tolist() == (part.marks.tolist() or [0] * len(part.words))
    plain = short._replace(marks=np.empty(0, np.uint64))
    assert len(join_packed([plain, plain]).marks) == 0


@pytest.fixture
def fasta(tmp_path: Path) -> Path:
    """The 200 k-mers, three times over, as a file."""
    text = "".join(f">{name}\n{letters}\n" for name, letters in named_kmers() * 3)
    (tmp_path / "kmers.fa").write_text(text)
    return tmp_path / "kmers.fa"


def named_kmers() -> list[tuple[str, str]]:
    packed = kmers(28)
    letters = ["".join("ACGTN"[base_at(packed, i, 0, j)] for j in range(packed.lengths[i])) for i in range(200)]
    return [(f"k{i}", each) for i, each in enumerate(letters)]


@SEARCHES
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", ["gpu", "gpu:0,1"])
def test_files_are_searched_as_on_the_cpu(
    index: Any,
    pretended: Any,
    monkeypatch: pytest.MonkeyPatch,
    fasta: Path,
    tier: str,
    mismatches: int,
    threads: int,
    name: str,
) -> None:
    """In many pieces, with k-mers that have more hits than are handed on together."""
    options: dict[str, Any] = {"max_mismatches": mismatches, "tier": tier, "max_hits": 150}
    expected = warpseed.find_kmers(index, fasta, **options)
    monkeypatch.setattr(batches, "open_pieces", partial(open_pieces, piece_bytes=700))
    monkeypatch.setattr(from_device, "_ROOM", 40)
    monkeypatch.setattr(from_device, "_CHUNK", 90)
    monkeypatch.setattr(device_stream, "LEAST_BATCH", 30)
    watch = Stopwatch()
    found = warpseed.find_kmers(index, fasta, device=name, threads=threads, watch=watch, **options)
    assert replace(found, dropped_hits=0) == replace(expected, dropped_hits=0)
    assert tier == "paper" or found.dropped_hits == expected.dropped_hits
    assert {"read", "pack", "join", "host_to_device", "kernel", "sort", "device_to_host"} <= set(watch.seconds)
    parts = list(iter_kmer_hits(index, fasta, device=name, threads=threads, **options))
    assert len(parts) > 20 and max(map(len, parts)) <= 40
    assert np.concatenate([part.rows() for part in parts]).tolist() == expected.rows().tolist()


@pytest.mark.parametrize("kind", ["super", "paper", "maximal"])
def test_occurrences_and_their_limit_are_those_of_the_cpu(index: Any, pretended: Any, fasta: Path, kind: str) -> None:
    """Of reads in one batch, of which several have the same parts."""
    unit = "GATTACA" * 4
    reads = [unit, unit + "TTTT", "ACG" + unit, "GATTACA" * 9, *fasta.read_text().splitlines()[1:60:2]]
    whole = warpseed.find_mems(index, reads, kind=kind, min_length=9)
    assert len(set(whole.rows()["occurrences"].tolist())) > 2
    for options in ({}, {"max_occurrences": 1}, {"max_occurrences": 3, "max_hits": 40}):
        expected = warpseed.find_mems(index, reads, kind=kind, min_length=9, **options)
        assert warpseed.find_mems(index, reads, kind=kind, min_length=9, device="gpu", **options) == expected
        assert (expected.dropped_hits > 0) == bool(options)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_mistake_in_a_file_is_told_as_on_the_cpu(index: Any, pretended: Any, fasta: Path, threads: int) -> None:
    fasta.write_text(fasta.read_text() + ">bad\nAC!T\n")
    told = []
    for name in ("cpu", "gpu"):
        with pytest.raises(InputError) as caught:
            warpseed.find_kmers(index, fasta, device=name, threads=threads)
        told.append(str(caught.value))
    assert told[0] == told[1] and "bad" in told[0]
