"""Which structure keeps the k-mers of a stream on a GPU, and what it takes."""

from __future__ import annotations

import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

import numpy as np
from oracles.pretend_stream import play_table
from warpseed.compute.bits import mixed
from warpseed.tree_bitmap import gpu_memory, gpu_structures
from warpseed.tree_bitmap.gpu_fast import PLACES_A_PART
from warpseed.tree_bitmap.gpu_shares import largest_share, share_of_places
from warpseed.tree_bitmap.gpu_structures import DirectTable, HashTable, Kept, structure_for, table_bytes

CELEGANS = 100_286_076


@pytest.mark.parametrize(
    ("kept", "kmers", "is_direct"),
    [
        (Kept(9), CELEGANS, True),
        (Kept(13), CELEGANS, True),
        (Kept(14), 1 << 31, False),  # whose bits are no longer in a cache
        (Kept(31), CELEGANS, False),
        (Kept(9), 1 << 15, False),
        (Kept(9), 1 << 17, True),
        (Kept(9, counting=True), 1 << 16, False),
        (Kept(9, counting=True), 1 << 17, True),
        (Kept(15, grows=False), CELEGANS, True),
        (Kept(15, grows=False), 100_000, False),
        (Kept(31, grows=False), 0, False),
    ],
)
def test_the_smaller_one_serves(kept: Kept, kmers: int, is_direct: bool) -> None:
    held = min(kmers, 4**kept.k)
    slots = gpu_structures.slots_for(held)
    direct, hashed = gpu_structures._direct_bytes(kept), gpu_structures._hashed_bytes(kept, slots)
    assert gpu_structures._is_direct(kept, slots) == is_direct
    assert table_bytes(kept, held) == (direct if is_direct else hashed) <= hashed


@pytest.mark.parametrize("kept", [Kept(1), Kept(4), Kept(6, counting=True), Kept(7, grows=False), Kept(12)])
@pytest.mark.parametrize("kmers", [0, 3, 300, 4**6])
def test_it_takes_what_is_said(monkeypatch: pytest.MonkeyPatch, kept: Kept, kmers: int) -> None:
    """Its arrays have as many bytes as were counted, but for the number of slots that are used."""
    play_table(monkeypatch)
    structure = structure_for(kept, kmers)
    assert isinstance(structure, (DirectTable, HashTable))
    arrays = [np.asarray(array) for array in structure.table[:-1]]
    if isinstance(structure, HashTable):
        assert arrays.pop().nbytes == 8
    assert sum(array.nbytes for array in arrays) == table_bytes(kept, kmers)


@pytest.mark.parametrize("k", [5, 8, 9])
def test_no_part_has_more_than_its_most(k: int) -> None:
    """Of all k-mers that there can be; also of very many parts."""
    shares = _shares_of(np.arange(4**k, dtype=np.uint64))
    for parts in (2, 3, 7, 64):
        assert np.bincount(shares * parts >> 16).max() <= gpu_structures.most_of_part(k, parts) < 4**k


def _shares_of(kmers: np.ndarray) -> np.ndarray:
    """What deals k-mers out, int64[…], of 65,536."""
    return (mixed.py_func(kmers) >> np.uint64(16) & np.uint64(0xFFFF)).astype(np.int64)


def test_passes_never_take_more_than_the_whole() -> None:
    """So that k-mers are dealt out to so many parts that each has room."""
    for k in (1, 9, 12, 13, 14, 31):
        for counting in (False, True):
            for devices, factor in ((1, 1), (2, 1), (2, 4), (8, 1), (8, 16)):
                need = gpu_memory.Need.of(k, CELEGANS, counting=counting)._replace(block_factor=factor)
                bytes_of = [need.bytes(devices, passes) for passes in (*range(1, 40), 1000)]
                assert max(bytes_of) == bytes_of[0] and bytes_of[-1] <= need.least(devices)


@pytest.mark.parametrize("mine", [1, 2, 5])
@pytest.mark.parametrize("block", [1, 7, 100])
def test_a_table_has_room_for_what_comes_and_is_seldom_asked(
    monkeypatch: pytest.MonkeyPatch, mine: int, block: int
) -> None:
    """Of k-mers of which every so many are its own: it is never fuller than it may be. Where it was made for them all,
    it stays, and each time that it is asked fewer are left."""
    play_table(monkeypatch)
    for told in (0, 10_000):
        structure = structure_for(Kept(31), told // mine + (block if told else 0))
        first, used, asked = structure, 0, 0
        assert isinstance(structure, HashTable)
        for came in range(0, 10_000, block):
            before = structure._most_used
            structure = structure.with_room(block)
            assert isinstance(structure, HashTable)
            asked += structure._most_used != before + block
            used += (came + block) // mine - came // mine
            structure.table.used[0] = used
            assert used <= structure._most_used and used <= 0.8 * len(structure.table.slots)
        assert (structure is first) == bool(told)
        assert asked <= (0 if told and mine == 1 else 1.4 * mine if told else 14 * 1.4 * mine)


@pytest.mark.parametrize("parts", [1, 2, 3, 8])
@pytest.mark.parametrize("grows", [False, True])
def test_each_place_of_a_stretch_is_looked_at(monkeypatch: pytest.MonkeyPatch, parts: int, grows: bool) -> None:
    """By a thread of its own, or, where k-mers have parts, by one for some places of each part."""
    launched: list[tuple[str, int]] = []
    play_table(monkeypatch)
    structure = structure_for(Kept(31, grows), 100)
    noted = lambda function, threads, *_: launched.append((function.py_func.__name__, threads))  # noqa: E731
    monkeypatch.setattr(gpu_structures, "launch", noted)
    structure.insert(None, gpu_structures.Stretch(7, 1007, 0, parts), None)  # type: ignore[arg-type]
    plain = ("insert_kmers" if grows else "look_up_kmers", 1000)
    queued = ("insert_kmers_of_part", -(-1000 // (PLACES_A_PART * parts)))
    assert launched == [plain if parts == 1 or not grows else queued]


@pytest.mark.parametrize("of", [1, 2, 3, 5, 8])
def test_no_share_is_larger_than_the_largest(of: int) -> None:
    for places in (0, 1, 7, 8, 9, 64, 100, 511, 512):
        shares = [share_of_places(places, number, of) for number in range(of)]
        assert max(share.stop - share.start for share in shares) <= largest_share(places, of)
        assert [place for share in shares for place in range(places)[share]] == list(range(places))
        assert all(share.start % 8 == 0 for share in shares if share.start < share.stop)
