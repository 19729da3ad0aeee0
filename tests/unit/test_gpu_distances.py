"""True Levenshtein distances on GPUs that the CPU plays: what is written is what the CPU writes, however it is cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles import tree_bitmap as truth
from oracles.pretend_tree_bitmap import play_distances
from test_cli_stream_edits import KNOWN, K, _stream, kept, lines_of, run, sequences
from warpseed import cli
from warpseed.sequences import queries
from warpseed.tree_bitmap import cpu, gpu_edits

__all__ = ["kept", "sequences"]


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Any:
    return play_distances(monkeypatch, devices=3)


@pytest.mark.parametrize("max_edits", [1, 2])
@pytest.mark.parametrize(("device", "block"), [("gpu", 64), ("gpu:1", 1 << 24), ("gpu:0,2", 96), ("gpu:all", 64)])
def test_a_stream_is_dealt_out(
    tmp_path: Path,
    sequences: str,
    kept: str,
    played: Any,
    monkeypatch: pytest.MonkeyPatch,
    max_edits: int,
    device: str,
    block: int,
) -> None:
    monkeypatch.setattr(gpu_edits, "BLOCK_BASES", block)
    given = ["--dictionary", kept, "--fixed", "--report", "places", "--max-edits", str(max_edits)]
    for ending in ("tsv", "bin"):
        assert run(sequences, "-o", str(tmp_path / f"gpu.{ending}"), *given, "--device", device) == 0
        assert run(sequences, "-o", str(tmp_path / f"cpu.{ending}"), *given) == 0
        assert (tmp_path / f"gpu.{ending}").read_bytes() == (tmp_path / f"cpu.{ending}").read_bytes()
    assert (tmp_path / "gpu.tsv").read_text().splitlines()[1:] == lines_of(KNOWN, max_edits)
    numbers = {"gpu": {0}, "gpu:1": {1}, "gpu:0,2": {0, 2}, "gpu:all": {0, 1, 2}}[device]
    assert {number for number, _ in played[1].places} == numbers
    assert max(places for _, places in played[1].places) <= block


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_file_is_read_block_by_block(
    tmp_path: Path, sequences: str, kept: str, played: Any, monkeypatch: pytest.MonkeyPatch, threads: str
) -> None:
    """The neighbourhood is made once; no block is the whole stream."""
    given = ["--dictionary", kept, "--fixed", "--report", "places", "--max-edits", "2"]
    assert run(sequences, "-o", str(tmp_path / "cpu.tsv"), *given) == 0
    monkeypatch.setattr(cpu, "BLOCK_PLACES", 60)
    monkeypatch.setattr(queries, "_PIECE_BYTES", 60)
    made: list[int] = []
    blocks: list[int] = []
    neighbourhood, find = gpu_edits._neighbourhood, gpu_edits.DeviceDistances.find

    def noted(near: gpu_edits.DeviceDistances, codes: np.ndarray) -> np.ndarray:
        blocks.append(len(codes))
        return find(near, codes)

    def counted(kmers: np.ndarray, k: int, max_edits: int) -> Any:
        made.append(len(kmers))
        return neighbourhood(kmers, k, max_edits)

    monkeypatch.setattr(gpu_edits.DeviceDistances, "find", noted)
    monkeypatch.setattr(gpu_edits, "_neighbourhood", counted)
    asked = [*given, "--device", "gpu:0,2", "--threads", threads]
    assert run(sequences, "-o", str(tmp_path / "gpu.tsv"), *asked) == 0
    assert (tmp_path / "gpu.tsv").read_bytes() == (tmp_path / "cpu.tsv").read_bytes()
    assert made == [len(KNOWN)] * 2
    assert len(blocks) > 2 and sum(blocks) + len(blocks) - 1 == len(_stream().codes)


def test_totals_and_a_seed(tmp_path: Path, sequences: str, played: Any, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["-k", str(K), "--seed-length", "90", "--fixed", "--report", "places", "--max-edits", "1"]
    told = []
    for device in ("cpu", "gpu"):
        assert cli.main(["stream", sequences, "-o", str(tmp_path / device) + ".tsv", *given, "--device", device]) == 0
        (line,) = [line for line in capsys.readouterr().err.splitlines() if "exact ones at" in line]
        told.append(line.replace(device, ""))
    assert told[0] == told[1]
    assert (tmp_path / "gpu.tsv").read_bytes() == (tmp_path / "cpu.tsv").read_bytes()


def test_a_dictionary_too_large_for_the_device(
    tmp_path: Path, sequences: str, kept: str, played: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    played[0].free = 100_000
    given = ["--dictionary", kept, "--fixed", "--report", "places", "--max-edits", "1", "--device", "gpu"]
    assert run(sequences, "-o", str(tmp_path / "p.tsv"), *given) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and f"All strings within 1 edits of {len(KNOWN)} {K}-mers may take" in error
    assert not (tmp_path / "p.tsv").exists()


def test_distances_are_the_oracles_whatever_the_blocks(played: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from warpseed.compute.stopwatch import Stopwatch

    monkeypatch.setattr(gpu_edits, "BLOCK_BASES", 32)
    codes = np.random.default_rng(3).integers(0, 4, 150).astype(np.uint8)
    codes[[40, 90, 91]] = 4
    words = [word for _, word in truth.words_at(codes.tolist(), 5)][::25]
    kmers = np.unique(np.array(truth.codes_of_words(words), np.uint64))
    watch = Stopwatch()
    found = gpu_edits.DeviceDistances(kmers, 5, 1, devices=(0, 1, 2), watch=watch).find(codes)
    assert found.tolist() == truth.least_edits(codes.tolist(), words, 1)
    assert set(watch.seconds) == {"build", "host_to_device", "search", "device_to_host"}
