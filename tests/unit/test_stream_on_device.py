"""What is known of a stream's places and stays on a GPU, on one that the CPU plays: what the host has."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import warpseed

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles.lockstep import run_kernel
from oracles.pretend_cupy import PretendCupy
from oracles.pretend_stream import play_table
from queries_there import letters_of, there
from test_docs import ROOT, block_of
from warpseed import match_stream
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import InputError, MemoryLimitError
from warpseed.sequences import device_queries
from warpseed.tree_bitmap import gpu_edits, gpu_memory, gpu_packed

ON_GPU: dict[str, Any] = {"device": "gpu", "on_device": True}


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> PretendCupy:
    monkeypatch.setattr(gpu_memory, "BLOCK_BASES", 64)
    return play_table(monkeypatch, devices=2)


def records(seed: int, count: int = 4) -> list[str]:
    """Some that repeat each other, with letters that are no base, one of a single base."""
    draw = random.Random(seed)
    some = "".join(draw.choices("ACGT", k=150))
    made = [some[draw.randrange(60) :] + "".join(draw.choices("ACGTNac", k=draw.randint(1, 40))) for _ in range(count)]
    return [*made, "A", some[:100]]


def assert_same(found: Any, expected: Any) -> None:
    """Whether both know the same of the same stream."""
    found = found.to_host()
    for mine, theirs in zip(found.stream[:2], expected.stream[:2], strict=True):
        assert mine.dtype == theirs.dtype and mine.tolist() == theirs.tolist()
    assert found.stream.names.decoded().tolist() == expected.stream.names.decoded().tolist()
    assert found.k == expected.k and found.answers.dtype == expected.answers.dtype == np.uint8
    assert found.answers.tolist() == expected.answers.tolist()
    assert found.dictionary.kmers.tolist() == expected.dictionary.kmers.tolist()
    assert (found.distances is None) == (expected.distances is None)
    assert found.distances is None or found.distances.tolist() == expected.distances.tolist()


@pytest.mark.parametrize("k", [1, 5, 14, 31])
@pytest.mark.parametrize("grows", [True, False])
@pytest.mark.parametrize("seed_length", [0, 70, 5000])
def test_answers_are_the_hosts(played: Any, k: int, grows: bool, seed_length: int) -> None:
    stream = records(k)
    known = np.sort(np.random.default_rng(k).choice(4 ** min(k, 9), 3, replace=False)).astype(np.uint64)
    for dictionary in (None, known):
        asked: dict[str, Any] = {"seed_length": seed_length, "dictionary": dictionary, "grows": grows}
        expected = match_stream(stream, k, **asked)
        for source in (stream, letters_of(stream)):
            watch = Stopwatch()
            found = match_stream(source, k, watch=watch, **ON_GPU, **asked)
            assert_same(found, expected)
            assert "kernel" in watch.seconds
        assert found.starts.tolist() == expected.stream.starts.tolist()


@pytest.mark.parametrize("stream", [["ACGT"], ["A", "C", "G"], ["ACGTACGTAC"] * 5, []])
def test_short_streams(played: Any, stream: list[str]) -> None:
    for source in (stream, letters_of(stream)):
        assert_same(match_stream(source, 7, **ON_GPU), match_stream(stream, 7))
    if len(set(map(len, stream))) == 1:
        rows = there([list(record.encode()) for record in stream])
        assert_same(match_stream(rows, 7, **ON_GPU), match_stream(stream, 7))


def test_distances_are_the_hosts(played: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def launch(function: Any, threads: int, block: int, *arguments: Any) -> None:
        run_kernel((gpu_edits, gpu_packed), (gpu_edits._put,), (function, threads, 32), *arguments)

    monkeypatch.setattr(gpu_edits, "launch", launch)
    monkeypatch.setattr(gpu_edits, "BLOCK_BASES", 96)
    draw = random.Random(2)
    stream = ["".join(draw.choices("ACGT", k=70)), "".join(draw.choices("ACGTN", k=60))]
    asked: dict[str, Any] = {"dictionary": np.array([6, 300], np.uint64), "grows": False, "max_edits": 1}
    expected = match_stream(stream, 5, **asked)
    assert set(expected.distances.tolist()) == {0, 1, 255} or set(expected.distances.tolist()) == {1, 255}
    for source in (stream, letters_of(stream)):
        watch = Stopwatch()
        assert_same(match_stream(source, 5, watch=watch, **ON_GPU, **asked), expected)
        assert {"kernel", "build", "search"} <= set(watch.seconds)


def test_the_kernel_spreads_codes_as_the_host() -> None:
    stream = ["ACGTN", "g", "ttRacgU"]
    letters, offsets = letters_of(stream)
    codes, seen = np.full(len(letters) + 2, 4, np.uint8), np.array([99])
    arguments = letters.view(np.ndarray), offsets, codes, seen
    run_kernel([device_queries], (), (device_queries.spread_codes, len(letters), 32), *arguments)
    assert codes.tolist() == match_stream(stream, 3).stream.codes.tolist() and seen.tolist() == [99]
    letters[[3, 9]] = ord("-")
    run_kernel([device_queries], (), (device_queries.spread_codes, len(letters), 32), *arguments)
    assert seen.tolist() == [3]


def test_what_does_not_fit_is_told(played: Any) -> None:
    played.free = 4000
    with pytest.raises(MemoryLimitError, match="do not fit the GPU's memory .* where on_device=True leaves them"):
        match_stream(records(3), 15, **ON_GPU)


def test_mistakes_are_one_sentence(played: Any) -> None:
    with pytest.raises(InputError, match="number 1: found '-' at position 2"):
        match_stream(letters_of(["ACGT", "AC-T"]), 3, **ON_GPU)
    with pytest.raises(InputError, match=r"record number 2 \('1'\) has 0 bases"):
        match_stream(letters_of(["ACGT", "", "AC"]), 3, **ON_GPU)
    for options in ({}, {"device": "gpu:0,1"}, {"device": "gpu", "tier": "paper"}):
        with pytest.raises(InputError, match="on_device=True leaves results on the one GPU that finds them"):
            match_stream(["ACGT"], 3, on_device=True, **options)
    with pytest.raises(InputError, match="the queries lie on a GPU, where .*match_stream take them"):
        match_stream(letters_of(["ACGT"]), 3)
    with pytest.raises(InputError, match="on_device is 'no', but True or False was expected"):
        match_stream(["ACGT"], 3, on_device="no")  # type: ignore[call-overload]


def test_the_example_of_the_docs_runs(played: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    stream = records(8)
    (tmp_path / "reads.fq.gz").write_text("".join(f">{i}\n{record}\n" for i, record in enumerate(stream)))
    monkeypatch.setattr(played, "searchsorted", np.searchsorted)
    names: dict[str, Any] = {"ws": warpseed}
    exec(block_of(ROOT / "docs" / "tree_bitmap.md", "python", "on_device=True"), names)
    expected = match_stream(stream, 21)
    placed, _ = expected.stream.records_of(np.flatnonzero(expected.answers == 2))
    assert names["per_record"].tolist() == np.bincount(placed, minlength=len(stream)).tolist()
    assert names["per_record"].sum() > 0
