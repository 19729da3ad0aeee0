"""Saved dictionaries: whole or not at all, and refused in a sentence where they are not what was written."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import warpseed
from warpseed.errors import InputError
from warpseed.tree_bitmap.dictionary import HEAD, Dictionary, check_dictionary, open_dictionary, save_dictionary

KMERS = np.array([0, 3, 17, 4**5 - 1], np.uint64)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "five.kmers"
    save_dictionary(Dictionary(5, KMERS), path)
    return path


@pytest.mark.parametrize(("k", "kmers"), [(5, KMERS), (31, np.array([4**31 - 1], np.uint64)), (1, KMERS[:0])])
def test_what_is_saved_is_opened(tmp_path: Path, k: int, kmers: np.ndarray) -> None:
    save_dictionary(Dictionary(k, kmers), tmp_path / "d")
    found = open_dictionary(tmp_path / "d")
    assert found.k == k
    assert found.kmers.dtype == np.uint64
    assert found.kmers.tolist() == kmers.tolist()


def test_a_file_is_a_head_and_numbers(saved: Path) -> None:
    data = saved.read_bytes()
    assert data[:16] == b"warpseed k-mers\n"
    assert len(data) == 64 + 8 * len(KMERS)
    assert np.frombuffer(data, "<u8", offset=64).tolist() == KMERS.tolist()


@pytest.mark.parametrize(
    ("k", "kmers", "said"),
    [
        (2, [3, 3], "entry 1 is 3"),
        (2, [3, 1], "entry 1 is 1"),
        (2, [3, 16], "entry 1 is 16"),
        (0, [], "k is 0"),
        (32, [], "k is 32"),
        (2, [[1]], "no row of whole numbers"),
        (2, [1.5], "no row of whole numbers"),
        (2, [-1], "no row of whole numbers"),
    ],
)
def test_what_is_no_dictionary_is_not_saved(tmp_path: Path, k: int, kmers: list, said: str) -> None:
    values = np.array(kmers, np.int64 if not kmers else None)
    with pytest.raises(InputError, match=said):
        save_dictionary(Dictionary(k, values), tmp_path / "d")
    assert list(tmp_path.iterdir()) == []


def test_an_older_one_stays_where_it_cannot_be_written(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()
    monkeypatch.setattr("warpseed.tree_bitmap.dictionary.HEAD", None)
    with pytest.raises(AttributeError):
        save_dictionary(Dictionary(5, KMERS), saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def _flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


@pytest.mark.parametrize("place", range(96))
def test_a_flipped_bit_is_refused(saved: Path, place: int) -> None:
    saved.write_bytes(_flipped(saved.read_bytes(), place))
    with pytest.raises(InputError, match=r"five\.kmers: .*\.$"):
        open_dictionary(saved)


@pytest.mark.parametrize("size", [0, 10, 30, HEAD.size - 1, HEAD.size, HEAD.size + 31])
def test_a_cut_file_is_refused(saved: Path, size: int) -> None:
    saved.write_bytes(saved.read_bytes()[:size])
    with pytest.raises(InputError, match=r"five\.kmers: "):
        open_dictionary(saved)


def test_another_k_is_refused(saved: Path) -> None:
    """Numbers of 5-mers are numbers of 7-mers, too."""
    data = bytearray(saved.read_bytes())
    data[20] = 7
    saved.write_bytes(data)
    with pytest.raises(InputError, match="checksum of its head"):
        open_dictionary(saved)


def test_numbers_that_are_no_kmers_are_refused_with_a_right_checksum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("warpseed.tree_bitmap.dictionary.check_dictionary", Dictionary)
        save_dictionary(Dictionary(6, np.array([4**6], np.uint64)), tmp_path / "d")
    with pytest.raises(InputError, match="entry 0 is 4096, but the numbers of distinct 6-mers were expected"):
        open_dictionary(tmp_path / "d")


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        open_dictionary(tmp_path / "none")
    with pytest.raises(InputError, match="this is a folder"):
        open_dictionary(tmp_path)


def test_a_pipe_is_no_dictionary(saved: Path) -> None:
    os.mkfifo(pipe := saved.parent / "pipe")  # which nobody writes: nothing waits for it
    with pytest.raises(InputError, match="pipe: this is no plain file, but a dictionary is mapped from a plain file;"):
        open_dictionary(pipe)


@pytest.mark.parametrize("given", [[[1], [2, 3]], (3, (1, 2)), Dictionary(3, [[1], [2, 3]])])
def test_rows_of_several_lengths_are_no_dictionary(given: object) -> None:
    with pytest.raises(InputError, match="^dictionary: it is no row of whole numbers from 0 on"):
        warpseed.match_stream(["ACGT"], 3, dictionary=given)


def test_numbers_of_any_whole_type_are_taken() -> None:
    assert check_dictionary(3, np.array([1, 2], np.int32)).kmers.dtype == np.uint64
