"""Memory for results is locked while somebody holds it or it waits for others, and given back when it suits nobody."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles.pretend_gpu import install
from warpseed.compute import locked_memory
from warpseed.compute.locked_memory import is_locked, locked, locked_copy, parts_by_line
from warpseed.errors import MemoryLimitError

LEAST = 1 << 20
DRIVER_ERROR = type("CUDARuntimeError", (RuntimeError,), {"__module__": "cupy_backends.cuda.api.runtime"})


class Locks:
    """What is locked: bytes by address."""

    def __init__(self) -> None:
        self.held: dict[int, int] = {}
        self.made = 0

    def getDevice(self) -> int:
        return 0

    def hostRegister(self, address: int, size: int, flags: int) -> None:
        assert flags == 1 and not any(
            begin < address + size and address < begin + of for begin, of in self.held.items()
        )
        self.held[address] = size
        self.made += 1

    def hostUnregister(self, address: int) -> None:
        del self.held[address]

    memoryTypeHost = 1

    def pointerGetAttributes(self, address: int) -> Any:
        return SimpleNamespace(type=int(any(begin <= address < begin + size for begin, size in self.held.items())))

    def holds(self, array: np.ndarray) -> bool:
        address = array.ctypes.data
        return any(begin <= address and address + array.nbytes <= begin + size for begin, size in self.held.items())


@pytest.fixture
def locks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Locks]:
    package, _ = install(monkeypatch, None)
    package.cuda.runtime = Locks()
    monkeypatch.setattr(locked_memory, "_LEAST", LEAST)
    monkeypatch.setattr(locked_memory, "_told", [])
    yield package.cuda.runtime
    gc.collect()
    locked_memory._waiting.clear()
    assert not package.cuda.runtime.held


def drawn(seed: int, count: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << 62, count, np.uint64)


def test_pinned_memory_comes_in_few_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    package, _ = install(monkeypatch, None)
    asked: list[int] = []
    package.cuda.alloc_pinned_memory = lambda size: asked.append(size) or bytearray(size)
    for count in (1, 8192, 8193, 100_000, 0):
        numbers = locked_memory.pinned(count, np.uint64)
        numbers[...] = 7
        assert numbers.shape == (count,) and numbers.dtype == np.uint64 and numbers.flags.writeable
    assert asked == [1 << 16, 1 << 16, 1 << 17, 1 << 20]


def test_room_is_required_where_memory_is_new(locks: Locks) -> None:
    """Not of what waits; and nothing is taken where there is too little."""
    asked: list[int] = []

    def refuse() -> None:
        raise MemoryLimitError("too little")

    held = locked(2 * LEAST, np.uint8, require=lambda: asked.append(1))
    assert asked == [1]
    locked(10, np.uint8, require=lambda: asked.append(2))
    assert asked == [1, 2]
    del held
    locked(2 * LEAST, np.uint8, require=refuse)
    for count in (10, 40 * LEAST):
        with pytest.raises(MemoryLimitError):
            locked(count, np.uint8, require=refuse)
    assert locks.made == 1


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", [np.uint64, np.int64, np.dtype([("place", "<u8"), ("span", "<u8")])])
def test_memory_is_locked_where_it_is_large(locks: Locks, dtype: Any, threads: int) -> None:
    most = LEAST // np.dtype(dtype).itemsize
    for count in (0, 1, most, most + 1, 3 * most + 7):
        array = locked(count, dtype, threads)
        assert array.shape == (count,) and array.dtype == dtype and array.flags.writeable and type(array) is np.ndarray
        assert locks.holds(array) == (count > most)
        array[...] = drawn(1, count).view(array.dtype) if array.dtype.itemsize == 8 else 0


def test_who_asks_may_say_what_is_large(locks: Locks) -> None:
    for least, count in ((1 << 12, 1 << 12), (1 << 12, (1 << 12) + 1), (2 * LEAST, 2 * LEAST), (0, 0)):
        array = locked(count, np.uint8, 2, least)
        assert array.shape == (count,) and locks.holds(array) == (count > least)


class Arrays(NamedTuple):
    short: np.ndarray
    long: np.ndarray


@pytest.mark.parametrize("threads", [1, 3])
def test_copies_of_large_arrays_are_locked(locks: Locks, threads: int) -> None:
    values = Arrays(drawn(1, 9), drawn(2, 2 * LEAST).reshape(-1, 4)[: LEAST // 4])
    copied = locked_copy(values, threads)
    assert isinstance(copied, Arrays) and copied.short is values.short and not is_locked(values.long)
    assert is_locked(copied.long) and np.array_equal(copied.long, values.long) and copied.long.dtype == np.uint64


def test_memory_is_kept_for_others_when_no_part_of_it_is_held(locks: Locks) -> None:
    first = locked(LEAST, np.uint64)
    first[...] = drawn(1, LEAST)
    part = first[5:9].view(np.int64)
    second = locked(LEAST, np.uint64)
    second[...] = 0
    assert locks.made == 2 and np.array_equal(first, drawn(1, LEAST))
    address = first.ctypes.data
    del first
    gc.collect()
    third = locked(LEAST, np.uint64)
    third[...] = 0
    assert locks.made == 3 and np.array_equal(part, drawn(1, LEAST)[5:9].view(np.int64))
    del part
    gc.collect()
    assert locked(LEAST, np.uint64).ctypes.data == address and locks.made == 3


def test_memory_that_waits_serves_what_takes_nearly_all_of_it(locks: Locks) -> None:
    del_me = locked(2 * LEAST, np.uint8)
    address = del_me.ctypes.data
    del del_me
    for size in (8 * LEAST // 5 + 1, 17 * LEAST // 10, 2 * LEAST):
        array = locked(size, np.uint8)
        assert array.ctypes.data == address and array.shape == (size,)
        del array
    assert locks.made == 1


def test_memory_goes_back_when_it_suits_nobody(locks: Locks) -> None:
    """As much as is taken, what has waited longest first; so no more waits than was used at a time."""
    arrays = [locked(size * LEAST, np.uint8) for size in (2, 3, 9)]
    for waiting in range(1, 4):
        del arrays[0]
        gc.collect()
        assert len(locked_memory._waiting) == waiting
    new = locked(4 * LEAST, np.uint8)
    assert locks.holds(new) and sorted(size // LEAST for size in locks.held.values()) == [4, 9]


def test_no_more_memory_waits_than_a_part_of_what_was_free(locks: Locks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locked_memory, "_most_waiting", lambda: 5 * LEAST)
    arrays = [locked(size * LEAST, np.uint8) for size in (2, 3, 4, 6)]
    assert len(locks.held) == 4
    for left, waiting in ((3, [2]), (2, [2, 3]), (1, [4]), (0, [])):
        del arrays[0]
        gc.collect()
        assert sorted(block.size // LEAST for block in locked_memory._waiting) == waiting
        assert len(locks.held) == left + len(waiting)


def test_a_child_has_no_copy_of_what_waits(locks: Locks) -> None:
    del_me = locked(2 * LEAST, np.uint8)
    del del_me
    gc.collect()
    assert locks.held
    child = os.fork()
    if not child:
        os._exit(len(locks.held))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 and not locks.held


def test_a_device_that_has_failed_says_nothing_more(locks: Locks, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(address: int) -> None:
        raise DRIVER_ERROR("cudaErrorIllegalAddress")

    locks.hostUnregister = fail  # type: ignore[method-assign]
    del_me = locked(2 * LEAST, np.uint8)
    del del_me
    locked_memory._waiting.clear()
    gc.collect()
    assert capsys.readouterr().err == ""
    locks.held.clear()


def test_sizes_are_few(locks: Locks) -> None:
    sizes = set()
    for size in range(LEAST + 1, 2 * LEAST, LEAST // 50):
        array = locked(size, np.uint8)
        sizes |= set(locks.held.values())
        assert max(locks.held.values()) <= size + size // 8 + 4096
        del array
        gc.collect()
        locked_memory._waiting.clear()
    assert len(sizes) <= 9


def test_memory_that_cannot_be_locked_is_told_of_once(
    locks: Locks, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(address: int, size: int, flags: int) -> None:
        raise DRIVER_ERROR("cudaErrorNotSupported: operation\nnot supported")

    monkeypatch.setattr(locks, "hostRegister", refuse, raising=False)
    for count in (LEAST, 2 * LEAST):
        array = locked(count, np.uint64)
        array[...] = 7
        assert array.shape == (count,)
    told = capsys.readouterr().err
    assert told.count("cannot be locked (cudaErrorNotSupported: operation not supported)") == 1 == told.count("\n")


def test_what_is_no_error_of_the_device_is_raised(locks: Locks, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(address: int, size: int, flags: int) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(locks, "hostRegister", fail, raising=False)
    with pytest.raises(ZeroDivisionError):
        locked(LEAST, np.uint64)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint64])
@pytest.mark.parametrize("first", [0, 1, 7, 8, 63])
@pytest.mark.parametrize("count", [0, 1, 8, 200])
def test_what_begins_with_a_line_is_a_part(dtype: Any, first: int, count: int) -> None:
    memory = np.zeros(4096, dtype)
    array = memory[-memory.ctypes.data % 64 // memory.itemsize :][first : first + count]
    before, behind = parts_by_line(array)
    assert (before.start, before.stop, behind.stop) == (0, behind.start, count)
    assert len(array[before]) * array.itemsize < 64
    assert array[behind].ctypes.data % 64 == 0 or not len(array[behind])
