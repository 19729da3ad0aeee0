"""Reading an index: checksums, descriptors, and what is told apart from what."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import numpy as np
import pytest
from warpseed.errors import IndexFormatError
from warpseed.fm_index import npy, store
from warpseed.fm_index.build import build_index
from warpseed.fm_index.checksum import checksum
from warpseed.fm_index.store import open_index, save_index


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "genome.fa").write_text(">chr\nGATTACAGATTACANNGGCATTACGACCA\n>other\nACGT\n")
    save_index(build_index(tmp_path / "genome.fa", parts="fast,paper"), tmp_path / "index")
    return tmp_path / "index"


# ------------------------------------------------------------------------------------------ checksums


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64, np.int32, np.int64])
@pytest.mark.parametrize("size", [1, 2, 3, 15, 16, 17, 63, 64, 65, 200])
def test_every_single_bit_changes_the_checksum(dtype: type, size: int) -> None:
    array = np.random.default_rng(size).integers(0, 100, size).astype(dtype)
    seen = {checksum(array)}
    data = array.view(np.uint8)
    for bit in range(8 * len(data)):
        data[bit // 8] ^= 1 << bit % 8
        seen.add(checksum(array))
        data[bit // 8] ^= 1 << bit % 8
    assert len(seen) == 1 + 8 * len(data)


def test_order_and_size_change_the_checksum() -> None:
    arrays = [np.zeros(size, np.uint64) for size in range(1, 40)]
    arrays += [np.roll(np.arange(24, dtype=np.uint64), shift) for shift in range(24)]
    assert len({checksum(array) for array in arrays}) == len(arrays)


def test_threads_do_not_change_the_checksum(monkeypatch: pytest.MonkeyPatch) -> None:
    array = np.random.default_rng(3).integers(0, 1 << 32, (1 << 22) + 5, np.uint32)
    assert checksum(array) == checksum(array, 3)
    kept = checksum(array)
    array[1 << 21] ^= 1
    assert checksum(array, 2) != kept


# ------------------------------------------------------------------------------------------ what opening reads


def change(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def test_large_indexes_are_compared_when_it_is_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(folder / "fast.suffix_array.npy", -1)
    monkeypatch.setattr(store, "CHECKED_UP_TO", 10)
    assert open_index(folder).parts == ("fast", "forward", "reverse")
    for check in (True, None):
        monkeypatch.setattr(store, "CHECKED_UP_TO", 10 if check else 10**9)
        with pytest.raises(IndexFormatError, match="fast.suffix_array.npy: its checksum is not the recorded one"):
            open_index(folder, check=check)


def test_an_open_index_holds_no_descriptors(folder: Path) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = descriptors()
    opened = [open_index(folder) for _ in range(20)]
    assert descriptors() == before
    assert all(index.fast.suffix_array[0] == index.segments.text_start[1] - 1 for index in opened)


def test_a_mapping_ends_with_its_last_array(folder: Path) -> None:
    def mappings() -> int:
        return Path("/proc/self/maps").read_text().count(str(folder))

    array = open_index(folder).fast.suffix_array[3:]
    gc.collect()
    assert mappings() == 1 and array[-1] >= 0
    del array
    gc.collect()
    assert mappings() == 0


def test_all_files_are_of_one_folder(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another index takes the folder's name while it is being opened."""
    (tmp_path / "other.fa").write_text(">chr\nTATTACAGATTACANNGGCATTACGACCA\n>other\nACGT\n")
    other, expected = build_index(tmp_path / "other.fa", parts="fast,paper"), open_index(folder).arrays()

    def replace_first(name: str, number: int, *arguments: object) -> np.ndarray:
        if name.endswith("core.text.npy"):
            os.rename(folder, tmp_path / "old")
            save_index(other, folder)
        return npy.map_array(name, number, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "map_array", replace_first)
    opened = open_index(folder).arrays()
    assert all(np.array_equal(opened[name], array) for name, array in expected.items())


def test_a_folder_or_a_pipe_in_place_of_a_file(folder: Path) -> None:
    path = folder / "fast.table.npy"
    path.unlink()
    path.mkdir()
    with pytest.raises(IndexFormatError, match="fast.table.npy: is no plain file"):
        open_index(folder)
    path.rmdir()
    os.mkfifo(path)
    with pytest.raises(IndexFormatError, match="fast.table.npy: is no plain file"):
        open_index(folder)
