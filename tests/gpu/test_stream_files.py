"""`warpseed stream` on a GPU, or on one that the CPU plays: byte for byte what the CPU writes, in whatever memory."""

from __future__ import annotations

import itertools
import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from command_line import fasta, save
from oracles.pretend_stream import play_table
from warpseed import cli
from warpseed.compute import gpu as device_module
from warpseed.compute.stopwatch import Stopwatch
from warpseed.sequences import queries
from warpseed.tree_bitmap import cpu, gpu, gpu_flight, gpu_memory, gpu_structures, search
from warpseed.tree_bitmap.dictionary import Dictionary, save_dictionary

K = 11
REAL = pytest.mark.gpu


@pytest.fixture(params=["played", pytest.param("real", marks=REAL)])
def played(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the CPU plays three GPUs. Blocks are small."""
    monkeypatch.setattr(gpu_memory, "BLOCK_BASES", 512)
    if request.param == "played":
        play_table(monkeypatch, devices=3)
    return bool(request.param == "played")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With records of 5,000 bases, and a dictionary."""
    draw = random.Random(3)
    text = "".join(draw.choices("ACGT", k=1500))
    records = {
        "chr1": text[:900] + "NNN" + text[100:400],
        "short": "ACG",
        "": "T" * 60 + text[450:] + "R" + text[:90],
        "empty": "N",
        **{f"read{first}": text[first : first + 80] for first in range(0, 1400, 60)},
    }
    save(tmp_path, "records.fa", fasta(records))
    known = np.unique(np.array([draw.randrange(4**K) for _ in range(90)], np.uint64))
    save_dictionary(Dictionary(K, known), tmp_path / "known")
    return tmp_path


def written(folder: Path, name: str, *given: str, source: str | None = None) -> dict[str, bytes]:
    """What a run writes: the output and the dictionary that it saves, if that is asked for."""
    arguments = [str(folder / each) if each in ("known", "saved") else each for each in given]
    assert cli.main(["stream", "-q", source or str(folder / "records.fa"), "-o", str(folder / name), *arguments]) == 0
    files = [folder / name, folder / "saved"]
    result = {each.name: each.read_bytes() for each in files if each.exists()}
    for each in files:
        each.unlink(missing_ok=True)
    return result


ASKED = {
    "plain": ["-k", str(K)],
    "long": ["-k", "31", "--seed-length", "300"],
    "short": ["-k", "1"],
    "short on the way": ["-k", "5", "--seed-length", "300", "--save-dictionary", "saved"],
    "seed": ["-k", str(K), "--seed-length", "1000", "--save-dictionary", "saved"],
    "all is seed": ["-k", str(K), "--seed-length", "1000000"],
    "dictionary": ["--dictionary", "known", "--seed-length", "40", "--save-dictionary", "saved"],
    "fixed": ["--dictionary", "known", "--seed-length", "700", "--fixed"],
}
FORMS = list(itertools.product(("kmers", "places"), ("o.tsv", "o.bin")))


def several(played: bool) -> str:
    """GPUs that share the work."""
    if played:
        return "gpu:2,0,1"
    if device_module.device_count() < 2:
        pytest.skip("one GPU answers")
    return "gpu:0,1"


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("blocks", [1 << 27, 700], ids=["one block", "many blocks"])
@pytest.mark.parametrize("cards", ["one", "several"])
def test_files_are_those_of_the_cpu(
    played: bool, folder: Path, monkeypatch: pytest.MonkeyPatch, asked: str, blocks: int, cards: str
) -> None:
    """From a file, of which is known how much room it takes, and from a pipe: its table grows."""
    there = ["--device", "gpu" if cards == "one" else several(played)]
    for (report, name), threads in zip(FORMS, "1221", strict=True):
        given = [*ASKED[asked], "--report", report]
        monkeypatch.setattr(cpu, "BLOCK_PLACES", 1 << 27)
        expected = written(folder, name, *given)
        monkeypatch.setattr(cpu, "BLOCK_PLACES", blocks)
        monkeypatch.setattr(queries, "_PIECE_BYTES", min(blocks, 1 << 20))
        assert written(folder, name, *given, *there, "--threads", threads) == expected
        with piped(folder) as pipe:
            assert written(folder, name, *given, *there, "--threads", threads, source=pipe) == expected


@pytest.mark.parametrize("asked", ASKED)
def test_little_memory_and_several_devices_write_the_same(
    played: bool, folder: Path, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    """K-mers in several parts, one after the other on a device, or on each of them."""
    found = gpu_memory.passes_for
    passes: list[int] = []

    def noted(*asked: Any) -> int:
        passes.append(found(*asked))
        return passes[-1]

    monkeypatch.setattr(gpu_memory, "passes_for", noted)
    devices = [several(played)] if played or device_module.device_count() > 1 else []
    for report, name in FORMS:
        given = [*ASKED[asked], "--report", report]
        expected = written(folder, name, *given)
        for device in devices:
            assert written(folder, name, *given, "--device", device) == expected
        with monkeypatch.context() as patch:
            patch.setattr(gpu_memory, "free_memory", lambda: 90_000)
            for device in ("gpu", *devices):
                assert written(folder, name, *given, "--device", device) == expected
    # Short k-mers, or a dictionary that stays, take a small table.
    assert max(passes, default=1) > 1 or asked.startswith(("short", "fixed"))


@pytest.mark.parametrize("k", [3, 21])
def test_tables_of_parts_do_not_grow(monkeypatch: pytest.MonkeyPatch, k: int) -> None:
    """They have room from the start for what may come, so that two of them are never there together."""
    play_table(monkeypatch)
    monkeypatch.setattr(gpu_memory, "BLOCK_BASES", 512)
    grown: list[str] = []
    launch = gpu_structures.launch
    moving = gpu_structures.move_slots, gpu_structures.spread_slots

    def noted(function: Any, *arguments: Any) -> None:
        grown.extend([function.py_func.__name__] if function in moving else [])
        launch(function, *arguments)

    monkeypatch.setattr(gpu_structures, "launch", noted)
    codes = np.random.default_rng(k).integers(0, 4, 6000, np.uint8)
    whole = gpu.count_kmers(codes, k, watch=Stopwatch())
    monkeypatch.setattr(gpu_memory, "free_memory", lambda: 90_000)
    in_parts = gpu.count_kmers(codes, k, watch=Stopwatch())
    assert grown == [] and all(map(np.array_equal, in_parts, whole))


class Noted:
    """Where searches go, and what comes there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.whole: list[bool] = []
        self.bases: list[int] = []
        """of each block of a file, with the place behind it"""
        found, take = search.target_for, gpu_flight.Flight.take

        def target_for(*asked: Any, **named: Any) -> Any:
            target = found(*asked, **named)
            self.whole.append(target.whole)
            return target

        def noted(flight: gpu_flight.Flight, codes: np.ndarray, *answers: Any) -> None:
            self.bases.append(len(codes))
            take(flight, codes, *answers)

        monkeypatch.setattr(search, "target_for", target_for)
        monkeypatch.setattr(gpu_flight.Flight, "take", noted)


def long_file(folder: Path, records: int, length: int) -> None:
    """Records of random bases, every tenth of which is the one before, reversed; and a dictionary of some k-mers."""
    draw = np.random.default_rng(23)
    texts = np.frombuffer(b"ACGT", np.uint8)[draw.integers(0, 4, (records, length), np.uint8)]
    texts[9::10] = texts[8::10, ::-1]
    texts[::7, length // 2] = ord("N")
    save(folder, "records.fa", "".join(f">{i}\n{text.tobytes().decode()}\n" for i, text in enumerate(texts)))
    seen = "".join(text.tobytes().decode() for text in texts[1:3, : min(length, 400)])
    codes = np.array(["ACGTN".index(letter) for letter in seen], np.uint8)
    save_dictionary(Dictionary(K, cpu.find_answers(codes, K, watch=Stopwatch())[1]()), folder / "known")


FEW = {
    "fixed": (["--dictionary", "known", "--seed-length", "100", "--fixed"], ["places"]),
    "few": (["-k", "4", "--seed-length", "300"], ["kmers", "places"]),
}
"""What takes a small table, however long the stream is."""


@pytest.mark.parametrize("asked", FEW)
def test_a_stream_of_any_length_goes_through_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    """In one pass, block by block, where what is known of its k-mers has room."""
    play_table(monkeypatch)
    long_file(tmp_path, 400, 700)
    monkeypatch.setattr(gpu_memory, "BLOCK_BASES", 512)
    monkeypatch.setattr(gpu_memory, "free_memory", lambda: 36_000)
    monkeypatch.setattr(cpu, "BLOCK_PLACES", 4000)
    monkeypatch.setattr(queries, "_PIECE_BYTES", 4000)
    given, reports = FEW[asked]
    for report, threads in itertools.product(reports, "12"):
        expected = written(tmp_path, "o.bin", *given, "--report", report)
        with monkeypatch.context() as patch:
            noted = Noted(patch)
            told = written(tmp_path, "o.bin", *given, "--report", report, "--device", "gpu", "--threads", threads)
            assert told == expected
        # Each base comes once; and none of the blocks that come is more than a part of the file.
        assert noted.whole == [False]
        assert sum(noted.bases) == 400 * 701 and max(noted.bases) < 10_000


def test_kmers_of_a_long_stream_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dozens of parts, of which each goes over all of the stream, and that is whole on the host."""
    play_table(monkeypatch)
    long_file(tmp_path, 20, 700)
    monkeypatch.setattr(gpu_memory, "BLOCK_BASES", 256)
    monkeypatch.setattr(cpu, "BLOCK_PLACES", 4000)
    monkeypatch.setattr(queries, "_PIECE_BYTES", 4000)
    for given, free in ((["--report", "places"], 14_500), (["--report", "kmers"], 50_000)):
        given = ["--dictionary", "known", "--seed-length", "900", *given, "--save-dictionary", "saved"]
        expected = written(tmp_path, "o.bin", *given)
        with monkeypatch.context() as patch:
            patch.setattr(gpu_memory, "free_memory", lambda free=free: free)
            noted = Noted(patch)
            assert written(tmp_path, "o.bin", *given, "--device", "gpu") == expected
        assert noted.whole == [True]
        assert len(noted.bases) > 5 and set(noted.bases) == {20 * 701 - 1}


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """48 MB of a GPU, and blocks that leave most of it to k-mers."""
    monkeypatch.setattr(gpu_memory, "BLOCK_BASES", 1 << 18)
    pool = device_module.cupy().get_default_memory_pool()
    with device_module.on_device(0):
        device_module.give_back_memory()
        pool.set_limit(size=pool.total_bytes() + 48_000_000)
    yield
    pool.set_limit(size=0)


@REAL
def test_a_gpu_that_is_full(little: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a file k-mers go there in parts. A pipe, of which nobody knows how long it is, ends in a sentence."""
    text = "".join(random.Random(8).choices("ACGT", k=4_000_000))
    save(tmp_path, "records.fa", fasta({"a": text, "b": text[:5000]}))
    for report in ("kmers", "places"):
        given = ["-k", "21", "--report", report]
        expected = written(tmp_path, "o.bin", *given)
        assert written(tmp_path, "o.bin", *given, "--device", "gpu") == expected
        with piped(tmp_path) as pipe:
            out = str(tmp_path / "o.bin")
            assert cli.main(["stream", "-q", pipe, "-o", out, "--device", "gpu", *given]) == 1
        said = capsys.readouterr().err
        assert "memory does not suffice" in said and said.count("\n") == 1
        assert not (tmp_path / "o.bin").exists()


@REAL
@pytest.mark.parametrize("asked", FEW)
def test_a_stream_longer_than_a_gpu(little: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    """160 million bases go through 48 MB in one pass, from a file and from a pipe, where their k-mers have room."""
    long_file(tmp_path, 400, 400_000)
    monkeypatch.setattr(cpu, "BLOCK_PLACES", 1 << 24)
    asked_for, reports = FEW[asked]
    for report in reports:
        given = [*asked_for, "--report", report, *(["-k", "9"] if asked == "few" else [])]
        expected = written(tmp_path, "o.bin", *given)
        with monkeypatch.context() as patch:
            noted = Noted(patch)
            assert written(tmp_path, "o.bin", *given, "--device", "gpu") == expected
            with piped(tmp_path) as pipe:
                assert written(tmp_path, "o.bin", *given, "--device", "gpu", source=pipe) == expected
        assert noted.whole == [False] * 2
        assert sum(noted.bases) == 2 * 400 * 400_001 and max(noted.bases) < 40_000_000


class piped:
    """The records through a named pipe."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._pipe = folder, folder / "pipe"

    def __enter__(self) -> str:
        os.mkfifo(self._pipe)
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()
        return str(self._pipe)

    def _write(self) -> None:
        with self._pipe.open("wb") as handle:
            handle.write((self._folder / "records.fa").read_bytes())

    def __exit__(self, *error: object) -> None:
        self._thread.join(60)
        self._pipe.unlink()
