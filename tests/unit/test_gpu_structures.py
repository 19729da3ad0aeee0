"""Which structure keeps the k-mers of a stream on a GPU, and what it takes."""

from __future__ import annotations

import itertools

import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

import numpy as np
from oracles.pretend_stream import play_table
from warpseed.compute.bits import first_slot
from warpseed.tree_bitmap import gpu_memory, gpu_structures
from warpseed.tree_bitmap.gpu_fast import PLACES_A_PART
from warpseed.tree_bitmap.gpu_parts import hash_of, hashes_of_part, is_of_part, most_of_part
from warpseed.tree_bitmap.gpu_shares import largest_share, share_of_places
from warpseed.tree_bitmap.gpu_structures import DirectTable, HashTable, Kept, TurnTable, structure_for, table_bytes
from warpseed.tree_bitmap.slots import EMPTY

CELEGANS = 100_286_076


@pytest.mark.parametrize(
    ("kept", "kmers", "parts", "serves"),
    [
        (Kept(9), CELEGANS, 1, DirectTable),
        (Kept(13), CELEGANS, 1, DirectTable),
        (Kept(13), CELEGANS, 2, DirectTable),
        (Kept(14), CELEGANS, 1, TurnTable),  # whose bits are no longer in a cache
        (Kept(14), CELEGANS // 4, 1, HashTable),
        (Kept(15), CELEGANS, 1, HashTable),
        (Kept(15), CELEGANS, 4, TurnTable),
        (Kept(15), 1 << 29, 1, TurnTable),
        (Kept(15, counting=True), 1 << 29, 1, TurnTable),
        (Kept(16), 1 << 29, 1, HashTable),
        (Kept(31), CELEGANS, 1, HashTable),
        (Kept(31), CELEGANS, 8, HashTable),
        (Kept(9), 1 << 15, 1, HashTable),
        (Kept(9), 1 << 17, 1, DirectTable),
        (Kept(9, counting=True), 1 << 16, 1, HashTable),
        (Kept(9, counting=True), 1 << 17, 1, DirectTable),
        (Kept(15, grows=False), CELEGANS, 1, DirectTable),
        (Kept(15, grows=False), 100_000, 1, HashTable),
        (Kept(31, grows=False), 0, 1, HashTable),
    ],
)
def test_the_smaller_one_serves(
    monkeypatch: pytest.MonkeyPatch, kept: Kept, kmers: int, parts: int, serves: type
) -> None:
    play_table(monkeypatch)
    monkeypatch.setattr(gpu_structures, "_empty_words", lambda shape: np.broadcast_to(np.uint64(EMPTY), shape))
    assert type(structure_for(kept, min(kmers, 4**kept.k), parts - 1, parts)) is serves


@pytest.mark.parametrize("bits_k", [2, 13])
@pytest.mark.parametrize("kept", [Kept(1), Kept(4), Kept(6, counting=True), Kept(7, grows=False), Kept(12)])
@pytest.mark.parametrize("kmers", [0, 3, 300, 4**6])
@pytest.mark.parametrize("parts", [1, 3])
def test_it_takes_what_is_said(
    monkeypatch: pytest.MonkeyPatch, bits_k: int, kept: Kept, kmers: int, parts: int
) -> None:
    """The arrays have as many bytes as were counted, but for the number of slots that are used: those of the largest
    part, of turns by hash."""
    monkeypatch.setattr(gpu_structures, "_MOST_BITS_K", bits_k)
    play_table(monkeypatch)
    taken = []
    for part in range(parts):
        structure = structure_for(kept, kmers, part, parts)
        assert isinstance(structure, (DirectTable, HashTable, TurnTable))
        arrays = [np.asarray(array) for array in structure.table if not isinstance(array, int)]
        if not isinstance(structure, DirectTable):
            assert arrays.pop().nbytes == (8 if isinstance(structure, HashTable) else 0)
        taken.append(sum(array.nbytes for array in arrays))
    assert max(taken) == table_bytes(kept, kmers, parts)


@pytest.mark.parametrize("k", [1, 2, 5, 8, 9])
@pytest.mark.parametrize("parts", [1, 2, 3, 7, 64])
def test_each_kmer_has_a_hash_of_its_own_and_is_of_one_part(k: int, parts: int) -> None:
    """Parts have as many k-mers as each other; there may be more parts than k-mers."""
    kmers = np.arange(4**k, dtype=np.uint64)
    hashes = hash_of.py_func(kmers, k).tolist()
    assert sorted(hashes) == list(range(4**k))
    ranges = [range(4**k)[hashes_of_part(k, part, parts)] for part in range(parts)]
    assert [each for own in ranges for each in own] == list(range(4**k))
    assert max(map(len, ranges)) == most_of_part(k, parts) <= -(-(4**k) // parts) + 3
    for kmer in kmers[:: max(1, 4**k // 300)]:
        its = [part for part in range(parts) if is_of_part(kmer, k, part, parts)]
        assert its == [part for part, own in enumerate(ranges) if hashes[int(kmer)] in own]


@pytest.mark.parametrize("k", [1, 3, 9, 31])
@pytest.mark.parametrize("devices", [2, 3, 7])
@pytest.mark.parametrize("passes", [1, 2, 5])
def test_the_parts_of_a_pass_are_one_part(k: int, devices: int, passes: int) -> None:
    """Each device lists k-mers of all that its pass has."""
    need = gpu_memory.Need.of(k, 100)
    for number in range(passes):
        whole = hashes_of_part(k, number, passes)
        own = [
            hashes_of_part(k, need.part(devices, number, here), need.parts(devices, passes)) for here in range(devices)
        ]
        assert own[0].start == whole.start and own[-1].stop == whole.stop
        assert all(one.stop == two.start for one, two in itertools.pairwise(own))


@pytest.mark.parametrize("k", [12, 15, 31])
@pytest.mark.parametrize("parts", [2, 3, 8])
def test_kmers_are_dealt_out_evenly_and_go_to_all_slots(k: int, parts: int) -> None:
    """Also those that overlap in a stream, that lie beside each other, or differ in a base or two; those of a part go
    to as many slots of a hash table as others do."""
    draw, count = np.random.default_rng(k), 1 << 16
    in_a_row = np.arange(count, dtype=np.uint64) + draw.integers(0, 4**k, dtype=np.uint64) & np.uint64(4**k - 1)
    few_ones = np.unique(np.bitwise_or.reduce(np.uint64(1) << draw.integers(0, 2 * k, (count, 5), dtype=np.uint64), 1))
    bases, overlapping = draw.integers(0, 4, count + k - 1, dtype=np.uint64), np.zeros(count, np.uint64)
    for base in range(k):
        overlapping = overlapping << np.uint64(2) | bases[base : base + count]
    for kmers in (in_a_row, few_ones, np.unique(overlapping)):
        hashes = hash_of.py_func(kmers, k).astype(np.int64)
        for part in range(parts):
            mine = hashes_of_part(k, part, parts)
            of_part = kmers[(hashes >= mine.start) & (hashes < mine.stop)]
            assert abs(len(of_part) * parts / len(kmers) - 1) < 0.05
            slots = np.array([first_slot.py_func(kmer, np.int64(1 << 8)) for kmer in of_part[:4000].copy()])
            assert np.count_nonzero(np.bincount(slots, minlength=1 << 8)) > 250


def test_passes_never_take_more_than_the_whole() -> None:
    """So that k-mers are dealt out to so many parts that each has room; but for the bits that parts tell of a block."""
    for k in (1, 9, 12, 13, 14, 31):
        for counting in (False, True):
            for devices, factor in ((1, 1), (2, 1), (2, 4), (8, 1), (8, 16)):
                need = gpu_memory.Need.of(k, CELEGANS, counting=counting)._replace(block_factor=factor)
                bytes_of = [need.bytes(devices, passes) for passes in (*range(1, 40), 1000)]
                bits = need.block_bases // 8 * gpu_memory.IN_FLIGHT if devices == 1 else 0
                assert max(bytes_of) <= bytes_of[0] + bits and bytes_of[1:] == sorted(bytes_of[1:], reverse=True)
                assert min(bytes_of) == need.least(devices)


@pytest.mark.parametrize("mine", [1, 2, 5])
@pytest.mark.parametrize("block", [1, 7, 100])
def test_a_table_has_room_for_what_comes_and_is_seldom_asked(
    monkeypatch: pytest.MonkeyPatch, mine: int, block: int
) -> None:
    """Of k-mers of which every so many are its own: it is never fuller than it may be. Where it was made for them all,
    it stays, and each time that it is asked fewer are left."""
    play_table(monkeypatch)
    for told in (0, 10_000):
        structure = structure_for(Kept(31), told // mine + (block if told else 0), 0, 1)
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
    structure = structure_for(Kept(31, grows), 100, 0, parts)
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
