"""The way of a stream through GPUs that the CPU plays: what comes back, wherever it is cut, and from however many."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles import tree_bitmap as truth
from oracles.pretend_cupy import PretendCupy
from streams_on_gpus import DEVICES, NONE, K, known_kmers, noted, play, stream
from warpseed.compute.gpu import current_device
from warpseed.compute.host_copies import HostCopies
from warpseed.compute.ranges import equal_share
from warpseed.compute.stopwatch import Stopwatch
from warpseed.tree_bitmap import cpu, gpu, gpu_flight, gpu_lanes, gpu_memory, gpu_rooms, gpu_table
from warpseed.tree_bitmap.gpu_flight import Flight
from warpseed.tree_bitmap.gpu_memory import Need
from warpseed.tree_bitmap.gpu_shares import share_of_places
from warpseed.tree_bitmap.gpu_structures import HashTable, Kept


@pytest.fixture(autouse=True)
def played(monkeypatch: pytest.MonkeyPatch) -> PretendCupy:
    return play(monkeypatch)


def pieces_of(array: np.ndarray, draw: random.Random) -> list[np.ndarray]:
    """An array in pieces of some lengths, none among them."""
    cuts = sorted(draw.choices(range(len(array) + 1), k=9))
    return np.split(array, cuts)


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("grows", [True, False])
@pytest.mark.parametrize("locked", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_answers_come_wherever_they_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, devices: tuple[int, ...], grows: bool, locked: bool, threads: int
) -> None:
    """Bases in pieces of any lengths, and their answers in other ones; `answered` says how many."""
    monkeypatch.setattr(gpu_flight, "is_locked", lambda array: locked)
    codes, known, draw = stream(), known_kmers(), random.Random(len(devices))
    expected, _ = cpu.find_answers(codes, K, dictionary=known, grows=grows, watch=Stopwatch())
    answers = np.full(len(codes), 77, np.uint8)
    wanted = pieces_of(answers, draw)
    flight = Flight(devices, Need.of(K, len(codes), len(known), grows=grows), known, threads=threads)
    for place in wanted[:-1]:
        flight.take(codes[:0], place)
    for number, part in enumerate(pieces_of(codes, draw)):
        flight.take(part, None if number else wanted[-1])
        assert answers[: flight.answered].tolist() == expected[: flight.answered].tolist()
    assert 0 < flight.answered < len(codes)
    flight.end()
    assert flight.answered == len(codes) and answers.tolist() == expected.tolist()


@pytest.mark.parametrize(("devices", "blocks"), [((0,), 1), ((1, 0), 3), ((1, 0, 2), 3), ((4, 2, 0, 1, 3), 3)])
@pytest.mark.parametrize("grows", [True, False])
def test_long_streams_go_in_larger_blocks(
    monkeypatch: pytest.MonkeyPatch, devices: tuple[int, ...], blocks: int, grows: bool
) -> None:
    """To several devices, if there is room for them."""
    made: list[int] = []
    noted(monkeypatch, Flight, "__init__", lambda flight, devices, need, *_: made.append(need.block_factor))
    monkeypatch.setattr(gpu_memory, "_LEAST_BLOCKS", 5)
    codes, known = stream(8000), known_kmers()  # (fifteen blocks, of 512 bases, and some)
    assert gpu_memory.plan_of((0, 1), Need.of(K, 99), 99 * 512)[0].block_factor == 4  # (at most)
    asked: dict[str, Any] = {"dictionary": known, "grows": grows}
    expected, _ = cpu.find_answers(codes, K, watch=Stopwatch(), **asked)
    sizes: list[int] = []
    noted(monkeypatch, Flight, "_bring", lambda _, codes, *__: sizes.append(len(codes)))
    need = Need.of(K, len(codes), len(known), grows=grows)
    rooms = [1 << 40, int(need._replace(block_factor=blocks).bytes(len(devices)) / 0.9) - 2]
    for there in rooms[: len(devices)]:
        monkeypatch.setattr(gpu_memory, "free_memory", lambda there=there: there)
        found, _ = gpu.find_answers(codes, K, devices=devices, threads=2, watch=Stopwatch(), **asked)
        assert found.tolist() == expected.tolist()
        largest, first = 512 * made[-1], 128 * made[-1]
        assert sizes[:3] == [first, 2 * first, largest] and max(sizes) == largest and sum(sizes) == 8000
        if made[-1] > 1:
            # The last ones are shorter and shorter, and there are few more of them.
            assert sizes[2:] == sorted(sizes[2:], reverse=True) and min(sizes[2:-1]) >= largest // 2
            assert sum(sizes[-2:]) <= largest and len(sizes) <= 8000 // largest + 4
        else:
            assert set(sizes[2:-1]) == {largest}
        sizes.clear()
    assert made == [blocks, 1][: len(devices)]


@pytest.mark.parametrize("devices", [(0,), (1, 0), (0, 1, 2), (4, 2, 0, 1, 3)])
@pytest.mark.parametrize("told", [0, 8000])
@pytest.mark.parametrize("again", [0.0, 0.5, 1.0])
def test_a_table_is_never_too_full(
    monkeypatch: pytest.MonkeyPatch, devices: tuple[int, ...], told: int, again: float
) -> None:
    """Whatever comes, and how much was told of: the host knows at least how many slots are used, and of a full table
    kernels would never come back. Where it was told, devices are hardly asked."""
    draw, asked = np.random.default_rng(3), []
    few = draw.integers(0, 4, 100)
    codes = np.where(np.arange(8000) < 8000 * (1 - again), draw.integers(0, 4, 8000), np.resize(few, 8000))
    insert, with_room = HashTable.insert, HashTable.with_room

    def insert_and_look(table: HashTable, *given: Any) -> None:
        insert(table, *given)
        assert int(table.table.used[0]) <= table._most_used
        assert int(table.table.used[0]) <= 0.8 * len(table.table.slots)

    def with_room_and_note(table: HashTable, kmers: int) -> Any:
        if table._most_used + kmers > int(0.8 * len(table.table.slots)):
            asked.append(1)
        return with_room(table, kmers)

    monkeypatch.setattr(HashTable, "insert", insert_and_look)
    monkeypatch.setattr(HashTable, "with_room", with_room_and_note)
    with Flight(devices, Need.of(31, told), NONE, threads=2) as flight:
        flight.take(codes.astype(np.uint8))
        flight.end()
    assert len(asked) <= len(devices) if told else asked or again == 1


@pytest.mark.parametrize("devices", [(0,), (1, 0, 2)])
def test_what_lies_locked_is_not_copied(monkeypatch: pytest.MonkeyPatch, devices: tuple[int, ...]) -> None:
    """But what fills no block, and what is not one behind the other."""
    codes, copied = stream(4001), list[int]()
    monkeypatch.setattr(gpu_flight, "is_locked", lambda array: True)
    noted(monkeypatch, HostCopies, "begin", lambda copies, out, value, threads: copied.append(len(value)))
    expected, _ = cpu.find_answers(codes, K, watch=Stopwatch())
    blocks = [128, 256, *[512] * 7]  # (the first one is a quarter)
    for given, of_it in ((codes, [len(codes) - sum(blocks)]), (np.repeat(codes, 2)[::2], [*blocks, 33])):
        copied.clear()
        found, _ = gpu.find_answers(given, K, devices=devices, threads=3, watch=Stopwatch())
        assert found.tolist() == expected.tolist() and copied == of_it


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("length", [0, 1, K - 1, K, 31, 32, 33, 511, 512, 513, 1055, 3000])
def test_streams_of_any_length(devices: tuple[int, ...], length: int) -> None:
    codes = stream()[:length]
    for grows in (True, False):
        asked: dict[str, Any] = {"dictionary": known_kmers(), "grows": grows, "seed_length": length // 3}
        expected = cpu.find_answers(codes, K, watch=Stopwatch(), **asked)
        found = gpu.find_answers(codes, K, devices=devices, threads=2, watch=Stopwatch(), **asked)
        assert found[0].tolist() == expected[0].tolist()
        assert found[1]().tolist() == expected[1]().tolist()


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("bases", [32, 64, 96, 160])
@pytest.mark.parametrize("k", [1, 2, 30, 31])
@pytest.mark.parametrize("grows", [True, False])
def test_blocks_of_any_size(
    monkeypatch: pytest.MonkeyPatch, devices: tuple[int, ...], bases: int, k: int, grows: bool
) -> None:
    """A share's k-mers begin and end anywhere in a word, and in the block before."""
    monkeypatch.setattr(gpu_memory, "BLOCK_BASES", bases)
    codes = np.concatenate([stream()[:600], stream()[100:700]])
    known = np.unique(known_kmers() % np.uint64(4**k))
    asked: dict[str, Any] = {"dictionary": known, "grows": grows, "watch": Stopwatch()}
    expected, _ = cpu.find_answers(codes, k, **asked)
    assert gpu.find_answers(codes, k, devices=devices, threads=2, **asked)[0].tolist() == expected.tolist()


@pytest.mark.parametrize("k", [1, 2, 17, 30, 31])
@pytest.mark.parametrize("bases", [32, 64, 96, 512, 1024])
def test_bases_have_room_where_they_come(k: int, bases: int) -> None:
    """Whatever a device brings of a block, which may be shorter than others, wherever the one before has ended."""
    for devices, size, behind in itertools.product(range(1, 9), range(1, bases // 32 + 1), range(k)):
        kmers, room = gpu_table.DeviceKmers(Kept(k), 9), gpu_memory.codes_of(bases, devices)
        kmers.bases, kmers.searched = 320, 320 - behind
        places = kmers.places_behind(size, 10**6)
        shares = [share_of_places(places, number, devices) for number in range(devices)]
        brought = [kmers.words_of(share) for share in shares]
        equal = [equal_share(size + 1, number, devices) for number in range(devices)]
        for words in (*brought, *equal):
            assert words.start >= 0 and words.stop <= size + 1 and 32 * (words.stop - words.start) <= room
        assert [word for words in equal for word in range(words.start, words.stop)] == [*range(size + 1)]


def test_memory_of_the_host_is_asked_for_on_the_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are others, nothing is begun there."""
    there: list[int] = []
    for module in (gpu_lanes, gpu_rooms):
        pinned = module.pinned
        note = lambda *asked, pinned=pinned: there.append(current_device()) or pinned(*asked)  # noqa: E731
        monkeypatch.setattr(module, "pinned", note)
    gpu.find_answers(stream(), K, devices=(1,), watch=Stopwatch())
    assert set(there) == {1}


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("passes", [2, 3])
@pytest.mark.parametrize("grows", [True, False])
def test_passes_are_joined(monkeypatch: pytest.MonkeyPatch, devices: tuple[int, ...], passes: int, grows: bool) -> None:
    """Of which each is for other k-mers, also of a dictionary that stays as it is."""
    codes, known = stream(), known_kmers()
    expected, _ = cpu.find_answers(codes, K, dictionary=known, grows=grows, watch=Stopwatch())
    monkeypatch.setattr(gpu_memory, "passes_for", lambda *_: passes)
    asked: dict[str, Any] = {"dictionary": known, "grows": grows, "devices": devices}
    found, _ = gpu.find_answers(codes, K, watch=Stopwatch(), **asked)
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize(("grows", "counting"), [(True, False), (False, False), (True, True)])
def test_blocks_take_what_is_said(devices: tuple[int, ...], grows: bool, counting: bool) -> None:
    flight = Flight(devices, Need.of(31, 4000, grows=grows, counting=counting), NONE)
    flight.take(stream())
    for number in range(len(devices)):
        rooms = [block.rooms[number] for block in flight._blocks]
        arrays = [(room.codes, room.answers, room.seen, room._theirs, *room.block[:2]) for room in rooms]
        spare = 4 * 8 * len(rooms)  # (a word before, and one behind)
        wanted = gpu_memory.block_bytes(512, len(devices), with_bits=grows and len(devices) > 1) + spare
        assert sum(array.nbytes for of_room in arrays for array in of_room) == wanted


def test_the_first_blocks_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that devices begin soon; a stream that is shorter than a block takes no more room than it has bases."""
    sizes: list[int] = []
    noted(monkeypatch, gpu_table.DeviceKmers, "search", lambda _, __, words, *___: sizes.append(32 * words))
    rooms: list[int] = []
    noted(monkeypatch, gpu_rooms.Room, "__init__", lambda _, __, bases, *___: rooms.append(bases))
    gpu.find_answers(stream(), K, watch=Stopwatch())
    assert sizes == [128, 256, *[512] * 7, 32] and set(rooms) == {512}
    sizes.clear(), rooms.clear()
    gpu.find_answers(stream()[:100], K, watch=Stopwatch())
    assert sizes == [128] and rooms == [128]


@pytest.mark.parametrize("devices", [(0,), (1, 0, 2)])
@pytest.mark.parametrize("grows", [True, False])
def test_no_block_waits_for_the_answers_before_it(
    monkeypatch: pytest.MonkeyPatch, devices: tuple[int, ...], grows: bool
) -> None:
    """Which devices make behind what brings the next block; those of one device go at once."""
    done: list[tuple[str, int, int]] = []
    blocks: list[int] = []
    joins = grows and len(devices) > 1
    first = "_exchange" if joins else "_search"

    def note(name: str) -> Callable[..., None]:
        def told(flight: Flight, block: Any, number: int, *_: Any) -> None:
            if name == first and not number:
                blocks.append(id(block))
            # (blocks are used again)
            place = len(blocks) - 1 - blocks[::-1].index(id(block))
            done.append((name, place, number))

        return told

    for name in (first, "_give"):
        noted(monkeypatch, Flight, name, note(name))
    gpu.find_answers(stream(), K, devices=devices, grows=grows, watch=Stopwatch())
    last, numbers = len(blocks) - 1, range(len(devices))
    assert last > 5
    for place in range(last + 1):
        for number in numbers:
            given = done.index(("_give", place, number))
            if not joins:
                assert done[given - 1] == (first, place, number)
            elif place < last:
                assert done[given - 1] == (first, place + 1, number)
    assert len(done) == 2 * len(blocks) * len(devices)


def test_a_fixed_dictionary_takes_no_bases_from_other_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each brings those of its places, and of the word before where these begin there."""
    brought: dict[int, list[int]] = {}

    def note(room: Any, before: Any, codes: Any, words: slice) -> None:
        brought.setdefault(id(room), []).append(words.stop - words.start)

    noted(monkeypatch, gpu_rooms.Room, "bring", note)
    monkeypatch.setattr(gpu_rooms, "from_device", None)
    codes, known = stream(), known_kmers()
    asked: dict[str, Any] = {"dictionary": known, "grows": False}
    expected, _ = cpu.find_answers(codes, K, watch=Stopwatch(), **asked)
    found, _ = gpu.find_answers(codes, K, devices=(0, 1, 2), watch=Stopwatch(), **asked)
    assert found.tolist() == expected.tolist()
    assert len(brought) == 9 and all(max(words) <= 7 for words in brought.values())  # (of 16)


@pytest.mark.parametrize("grows", [True, False])
def test_each_device_does_its_share(monkeypatch: pytest.MonkeyPatch, grows: bool) -> None:
    """Of a dictionary that grows all look at all places for k-mers of their own; else each at a share of the places."""
    stretches: dict[int, list[Any]] = {}

    def note(structure: Any, block: Any, stretch: Any, answers: Any) -> None:
        stretches.setdefault(id(structure), []).append(stretch)

    noted(monkeypatch, HashTable, "insert", note)
    codes, known = stream(), np.arange(40, dtype=np.uint64)
    gpu.find_answers(codes, 31, dictionary=known, grows=grows, devices=(0, 1, 2), watch=Stopwatch())
    assert len(stretches) == 3
    places = len(codes) - 30
    for own in stretches.values():
        looked_at = sum(stretch.last - stretch.first for stretch in own)
        assert (
            looked_at >= places if grows else places // 3 - 80 < looked_at < places // 3 + 80
        )  # (whole words of answers)
        assert {stretch.parts for stretch in own} == ({3} if grows else {1})
    assert {own[0].part for own in stretches.values()} == ({0, 1, 2} if grows else {0})


def test_seconds_are_those_of_stages() -> None:
    watch = Stopwatch()
    gpu.find_answers(stream(), K, watch=watch)
    assert set(watch.seconds) == {"host_to_device", "kernel", "device_to_host"}
    gpu.count_kmers(stream(), K, devices=(0, 1), watch=watch)
    assert set(watch.seconds) == {"host_to_device", "kernel", "device_to_host", "look_up"}


def test_what_fits_two_gpus_and_not_one(monkeypatch: pytest.MonkeyPatch) -> None:
    need = Need.of(31, 1_000_000)
    room = int((need.bytes(2) + 3 * 512) / 0.9) + 2  # (of a block one takes all codes itself)
    monkeypatch.setattr(gpu_memory, "free_memory", lambda: room)
    assert gpu_memory.has_room((0, 1), need) and not gpu_memory.has_room((0,), need)
    assert (gpu_memory.passes_for((0, 1), need), gpu_memory.passes_for((0,), need)) == (1, 2)


def test_a_pass_has_gone_when_the_next_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tables would take the memory that the next one is counted to have."""
    import gc
    import weakref

    there: list[Any] = []

    def note(flight: Flight, *_: Any) -> None:
        gc.collect()
        assert all(other() is None for other in there)
        there.append(weakref.ref(flight))

    noted(monkeypatch, Flight, "__init__", note)
    monkeypatch.setattr(gpu_memory, "passes_for", lambda *_: 4)
    codes = stream()
    answers, _ = gpu.find_answers(codes, K, watch=Stopwatch())
    assert answers.tolist() == list(truth.answers_to(codes.tolist(), K)[0]) and len(there) == 4
    there.clear()
    assert len(gpu.count_kmers(codes, K, watch=Stopwatch()).codes) == int((answers == truth.NEW).sum())
    assert len(there) == 4
