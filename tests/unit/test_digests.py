"""Digests of files: of pieces, by several threads, and behind other work."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from warpseed.errors import InputError
from warpseed.fm_index import build, npy
from warpseed.fm_index.npy import HEADER_BYTES, digest_of_pieces, write_array
from warpseed.measure import digests as of_results
from warpseed.sequences import digests, reference
from warpseed.sequences.digests import digest_behind
from warpseed.sequences.reference import read_reference


def number_of(path: Path) -> int:
    return os.open(path, os.O_RDONLY)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("piece", [HEADER_BYTES, 200, 256, 1000, 1 << 24])
@pytest.mark.parametrize("values", [0, 1, 72, 73, 128, 129, 5000])
def test_a_file_s_digest_is_that_of_its_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, piece: int, values: int
) -> None:
    monkeypatch.setattr(npy, "PIECE_BYTES", piece)
    array = np.random.default_rng(values).integers(0, 256, values).astype(np.uint8)
    folder = os.open(tmp_path, os.O_RDONLY)
    entry = write_array("a.npy", folder, array, threads)
    os.close(folder)
    content = (tmp_path / "a.npy").read_bytes()
    assert entry.size == len(content) == HEADER_BYTES + values and content[HEADER_BYTES:] == array.tobytes()
    pieces = [hashlib.sha256(content[place : place + piece]).digest() for place in range(0, len(content), piece)]
    assert entry.sha256_of_pieces == hashlib.sha256(b"".join(pieces)).hexdigest()
    number = number_of(tmp_path / "a.npy")
    assert digest_of_pieces(number, threads) == entry.sha256_of_pieces
    os.close(number)


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 1000])
def test_a_digest_is_taken_behind_other_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Of the file that was open, whatever its descriptor's place, and whether that is closed meanwhile."""
    monkeypatch.setattr(digests, "_PIECE", 100)
    path = tmp_path / "file"
    path.write_bytes(content := os.urandom(size))
    number = number_of(path)
    os.lseek(number, size // 2, os.SEEK_SET)
    wait = digest_behind(number, "file")
    path.unlink()
    assert os.lseek(number, 0, os.SEEK_CUR) == size // 2
    os.close(number)
    assert wait() == wait() == hashlib.sha256(content).hexdigest()


def test_a_file_that_cannot_be_read_is_said_when_its_digest_is_wanted(tmp_path: Path) -> None:
    number = os.open(tmp_path / "file", os.O_WRONLY | os.O_CREAT)
    wait = digest_behind(number, "genome.fa")
    os.close(number)
    with pytest.raises(InputError, match=r"^genome\.fa: reading failed \(Bad file descriptor\)\.$"):
        wait()


def test_whatever_fails_reaches_who_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> int:
        raise MemoryError

    monkeypatch.setattr(os, "preadv", fail)
    (tmp_path / "file").write_bytes(b"")
    number = number_of(tmp_path / "file")
    wait = digest_behind(number, "file")
    os.close(number)
    with pytest.raises(MemoryError):
        wait()


def test_an_index_waits_for_the_digest_of_its_genome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "_LARGE_BYTES", 10)
    path = tmp_path / "genome.fa"
    path.write_text(">a\nGATTACAGATTACA\n")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert read_reference(path, 2).digest == read_reference(path, 1).digest == digest
    assert build.build_index(path, threads=2).digest == digest


@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 40, 41])
def test_results_have_the_digest_of_their_pieces(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Whichever type numbers had, and of few that of their bytes."""
    monkeypatch.setattr(of_results, "_PIECE", 10)
    numbers, two = np.random.default_rng(count).integers(0, 99, count).astype(np.int32), np.arange(2, dtype=np.int32)
    found = of_results.digest_of(numbers, two, dtype=np.int64)
    assert found == of_results.digest_of(numbers.astype(np.int64), two.astype(np.int64))
    pieces = [numbers[first : first + 10].astype(np.int64).tobytes() for first in range(0, count, 10)]
    pieces.append(two.astype(np.int64).tobytes())
    if count > 10:
        pieces = [hashlib.sha256(piece).digest() for piece in pieces]
    assert found == hashlib.sha256(b"".join(pieces)).hexdigest()
    for place in range(count):
        other = numbers.copy()
        other[place] += 1
        assert of_results.digest_of(other, two, dtype=np.int64) != found
    assert of_results.count_equal(numbers, 7) == numbers.tolist().count(7)
