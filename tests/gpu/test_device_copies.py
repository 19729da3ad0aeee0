"""Large arrays go to a device and back in pieces, and are what they were; on a GPU, and on one that the CPU plays."""

from __future__ import annotations

import ctypes
import random
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles.pretend_cupy import OutOfMemoryError
from oracles.pretend_gpu import install
from warpseed import build_index, open_index
from warpseed.compute import device_copies
from warpseed.compute import gpu as device
from warpseed.compute.device_copies import copied_from_host, copied_to_host, sent_from_host
from warpseed.compute.locked_memory import is_locked, locked_copy
from warpseed.compute.resident import release
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import DeviceError, MemoryLimitError
from warpseed.fm_index import device as parts
from warpseed.fm_index.binned import PAPER_PARAMETERS, binned_index

PIECE = 512
"""Bytes, where pieces are small."""
LARGE = 300_000_000
"""Bytes of an array that goes in pieces of the usual size."""
DRIVER_ERROR = type("CUDARuntimeError", (RuntimeError,), {"__module__": "cupy_backends.cuda.api.runtime"})


def threads_of_others() -> set[threading.Thread]:
    """All but those that wait for copies."""
    return {thread for thread in threading.enumerate() if not thread.name.startswith("copying")}


class There:
    """A device's array: what the library uses of CuPy's, which is no array of the host."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.shape, self.dtype, self.nbytes = values, values.shape, values.dtype, values.nbytes

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.values.ctypes.data)

    def get(self, out: np.ndarray | None = None) -> np.ndarray:
        if out is None:
            return self.values.copy()
        out[...] = self.values
        return out

    def set(self, values: np.ndarray) -> None:
        self.values[...] = values


class LateStream:
    """A stream on which nothing is done before somebody waits for it."""

    made: list[LateStream] = []

    def __init__(self, non_blocking: bool, priority: int = 0) -> None:
        assert non_blocking
        self.waiting: list[Callable[[], None]] = []
        self.doing = threading.RLock()
        self.ptr = id(self)
        self.made.append(self)

    def __enter__(self) -> LateStream:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def put(self, copy: Callable[[], None]) -> None:
        self.waiting.append(copy)

    def record(self) -> Any:
        before = list(self.waiting)
        return SimpleNamespace(synchronize=lambda: [self._do(copy) for copy in before])

    def synchronize(self) -> None:
        for copy in list(self.waiting):
            self._do(copy)

    def _do(self, copy: Callable[[], None]) -> None:
        with self.doing:
            if copy in self.waiting:
                self.waiting.remove(copy)
                copy()


class EarlyStream(LateStream):
    """A stream on which everything is done at once."""

    def put(self, copy: Callable[[], None]) -> None:
        copy()


def copy_late(to: int, of: int, size: int, kind: int, stream: int) -> None:
    current = device.cupy().cuda.get_current_stream()
    [on] = [made for made in (current, *LateStream.made) if made.ptr == stream]
    on.put(partial(ctypes.memmove, to, of, size))


@pytest.fixture
def pinned(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all buffers of pinned memory that copies ask for, in values."""
    sizes: list[int] = []
    give = device_copies.pinned
    monkeypatch.setattr(device_copies, "pinned", lambda count, dtype: sizes.append(count) or give(count, dtype))
    return sizes


def play(monkeypatch: pytest.MonkeyPatch, stream: type[LateStream]) -> Any:
    """What plays CuPy, with streams of this kind."""
    package, _ = install(monkeypatch, None)
    current = stream(True)
    monkeypatch.setattr(LateStream, "made", [])
    package.cuda.Stream, package.cuda.get_current_stream = stream, lambda: current
    package.cuda.runtime.memcpyAsync = copy_late
    package.empty = lambda shape, dtype: There(np.full(shape, 1, dtype))
    package.asarray = lambda values: values if isinstance(values, There) else There(values.copy())
    return package


@pytest.fixture(params=[EarlyStream, LateStream, pytest.param(None, id="real", marks=pytest.mark.gpu)])
def on_any(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """On a GPU, or on one that is played."""
    if request.param is not None:
        play(monkeypatch, request.param)
    with device.on_device(0):
        yield


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_copies, "_PIECE", PIECE)


def drawn(count: int, dtype: Any) -> np.ndarray:
    return np.frombuffer(random.Random(count).randbytes(count * np.dtype(dtype).itemsize), dtype)


def assert_comes_and_goes(values: np.ndarray, threads: int) -> None:
    there = device.cupy().asarray(copied_from_host(values, threads))
    assert there.shape == values.shape and there.dtype == values.dtype and not isinstance(there, np.ndarray)
    assert there.get().tobytes() == values.tobytes()
    back, given = copied_to_host(there, threads), np.zeros_like(values)
    assert copied_to_host(there, threads, out=given) is given and np.array_equal(given, values)
    assert back.shape == values.shape and back.dtype == values.dtype and back.tobytes() == values.tobytes()
    assert copied_to_host(values, threads) is values


@pytest.mark.usefixtures("on_any", "small_pieces")
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint32, np.uint64])
@pytest.mark.parametrize("threads", [1, 2, 3, 20])
def test_arrays_of_any_length_come_and_go(dtype: Any, threads: int) -> None:
    piece = PIECE // np.dtype(dtype).itemsize
    for count in (0, 1, piece - 1, piece, piece + 1, 2 * piece, 3 * piece - 1, 7 * piece + 5, 40 * piece):
        assert_comes_and_goes(drawn(count, dtype), threads)


@pytest.mark.usefixtures("on_any", "small_pieces")
def test_arrays_of_any_kind_come_and_go(tmp_path: Path) -> None:
    """Of two dimensions, mapped from a file, of every third value."""
    values = drawn(3000, np.uint32)
    np.save(tmp_path / "values.npy", values)
    for array in (values.reshape(300, 10), np.load(tmp_path / "values.npy", mmap_mode="r"), values[::3]):
        assert_comes_and_goes(array, 3)


@pytest.mark.gpu
def test_a_large_array_comes_and_goes(tmp_path: Path) -> None:
    """In pieces of the usual size, and a mapped one."""
    values = np.random.default_rng(1).integers(0, 1 << 32, LARGE // 4 + 1, np.uint32)
    np.save(tmp_path / "values.npy", values)
    with device.on_device(0):
        locked = locked_copy(values, 2)
        assert is_locked(locked) and is_locked(locked[5:-7]) and not is_locked(values)
        mapped = np.load(tmp_path / "values.npy", mmap_mode="r")
        for array, threads in ((values, 1), (values, 8), (mapped, 3), (locked, 1), (locked, 8)):
            there = device.cupy().asarray(copied_from_host(array, threads))
            assert np.array_equal(there.get(), values)
            assert np.array_equal(copied_to_host(there, threads), values)
        few = drawn(9, np.uint8)
        for beside in (locked, values):
            there = copied_from_host(Inner(few, beside), 8)
            assert np.array_equal(there.short.get(), few) and np.array_equal(there.long.get(), beside)
    device.give_back_memory()


class Inner(NamedTuple):
    short: np.ndarray
    long: np.ndarray


class Outer(NamedTuple):
    inner: Inner
    number: int
    long: np.ndarray


@pytest.mark.usefixtures("on_any", "small_pieces")
def test_tuples_of_arrays_come(pinned: list[int]) -> None:
    """In small pieces those that are large, the others at once; what is no array stays."""
    values = Outer(Inner(drawn(9, np.uint8), drawn(2000, np.uint8)), 7, drawn(1000, np.uint64))
    there = copied_from_host(values, 2)
    assert isinstance(there, Outer) and isinstance(there.inner, Inner) and there.number == 7
    for mine, theirs in zip((*there.inner, there.long), (*values.inner, values.long), strict=True):
        assert np.array_equal(device.cupy().asarray(mine).get(), theirs)
    assert pinned == 4 * [PIECE]


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(("pieces", "threads", "buffers"), [(40, 1, 2), (40, 3, 6), (40, 20, 16), (3, 8, 3), (9, 8, 9)])
def test_no_more_memory_is_pinned_than_is_used(
    monkeypatch: pytest.MonkeyPatch, pinned: list[int], pieces: int, threads: int, buffers: int
) -> None:
    play(monkeypatch, LateStream)
    with device.on_device(0):
        copied_from_host(drawn(pieces * PIECE, np.uint8), threads)
        assert len(pinned) == buffers
        copied_to_host(There(drawn(pieces * PIECE, np.uint8)), threads)
        assert pinned == 2 * buffers * [PIECE]


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("threads", [1, 4])
def test_locked_memory_is_copied_as_it_is(monkeypatch: pytest.MonkeyPatch, pinned: list[int], threads: int) -> None:
    """Beside what is not locked, which goes in pieces; memory that is locked in part is not taken for locked."""
    package = play(monkeypatch, LateStream)
    values = Inner(drawn(9 * PIECE, np.uint8), drawn(8 * PIECE, np.uint64))
    begin, end = values.long.ctypes.data, values.long.ctypes.data + values.long.nbytes
    package.cuda.runtime.pointerGetAttributes = lambda address: SimpleNamespace(type=int(begin <= address < end))
    with device.on_device(0):
        there = copied_from_host(values, threads)
        assert len(pinned) == (2 if threads == 1 else 8)
        for mine, theirs in zip(there, values, strict=True):
            assert np.array_equal(mine.get(), theirs)
        del pinned[:]
        assert np.array_equal(copied_from_host(values.long, threads).get(), values.long) and not pinned
        end -= 1
        assert np.array_equal(copied_from_host(values.long, threads).get(), values.long) and pinned


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("copy", [copied_from_host, sent_from_host])
@pytest.mark.parametrize("also", [1, PIECE, 8 * PIECE])
def test_locked_memory_alone_is_sent_and_the_host_goes_on(
    monkeypatch: pytest.MonkeyPatch, copy: Callable[..., Any], also: int
) -> None:
    """What is small goes at once; what is large and not locked is waited for, and all with it."""
    package = play(monkeypatch, LateStream)
    values = Inner(drawn(also, np.uint8), drawn(8 * PIECE, np.uint64))
    begin, end = values.long.ctypes.data, values.long.ctypes.data + values.long.nbytes
    package.cuda.runtime.pointerGetAttributes = lambda address: SimpleNamespace(type=int(begin <= address < end))
    with device.on_device(0):
        there = copy(values, 4)
        assert np.array_equal(there.short.get(), values.short)
        is_there = np.array_equal(there.long.get(), values.long)
        assert is_there == (copy is copied_from_host or also > PIECE)
        device.synchronize()
        assert np.array_equal(there.long.get(), values.long)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("direction", [copied_from_host, copied_to_host])
@pytest.mark.parametrize(
    ("raised", "expected", "told"),
    [
        (OutOfMemoryError("out of memory"), MemoryLimitError, "does not suffice"),
        (DRIVER_ERROR("cudaErrorECCUncorrectable: uncorrectable\nECC error"), DeviceError, "uncorrectable ECC error"),
        (ZeroDivisionError("mine"), ZeroDivisionError, "mine"),
    ],
)
def test_what_fails_in_a_thread_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, threads: int, direction: Any, raised: Any, expected: Any, told: str
) -> None:
    """Nothing is left: no thread, and no copy that would still use memory which others are given."""
    copies: list[object] = []

    class Failing(LateStream):
        def put(self, copy: Callable[[], None]) -> None:
            copies.append(copy)
            if len(copies) == 5:
                raise raised
            super().put(copy)

    play(monkeypatch, Failing)
    before = threads_of_others()
    values = drawn(40 * PIECE, np.uint8)
    with pytest.raises(expected) as caught, device.on_device(0):
        direction(values if direction is copied_from_host else There(values), threads)
    assert type(caught.value) is expected and told in str(caught.value) and "\n" not in str(caught.value)
    assert threads_of_others() == before
    assert 1 <= len(Failing.made) <= threads and not any(stream.waiting for stream in Failing.made)


@pytest.mark.usefixtures("small_pieces")
def test_arrays_stay_while_threads_copy_them_after_an_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Ctrl-C comes while work is handed to the threads: those that have some end before the arrays go."""
    play(monkeypatch, EarlyStream)
    threads, submit, begun = device_copies._copying_threads(), device_copies._copying_threads().submit, []

    def interrupted(task: Any, worker: int) -> Any:
        if begun:
            raise KeyboardInterrupt
        begun.append(submit(task, worker))
        return begun[0]

    monkeypatch.setattr(threads, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt), device.on_device(0):
        copied_from_host(drawn(4000 * PIECE, np.uint8), 4)
    assert begun[0].done()


def test_the_parts_of_an_index_come_in_pieces(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, small_pieces: None, pinned: list[int]
) -> None:
    """Of one that is mapped from a folder: each part has the host's arrays."""
    (tmp_path / "genome.fa").write_text(">a\n" + "".join(random.Random(3).choices("ACGT", k=20_000)) + "\n")
    build_index(tmp_path / "genome.fa", parts=("fast", "paper")).save(tmp_path / "index")
    index, watch = open_index(tmp_path / "index"), Stopwatch()
    install(monkeypatch, index)

    def assert_comes(bring: Callable[[], Any], here: Any) -> None:
        before = len(pinned)
        assert all(np.array_equal(mine, theirs) for mine, theirs in zip(bring(), here, strict=True))
        assert len(pinned) > before

    with device.on_device(0):
        assert_comes(lambda: parts.text_on_device(index, watch)[:1], [index.text])
        # Rows are played: they are those of the suffix array, without tags.
        assert_comes(lambda: [parts.tagged_on_device(index, watch).rows], [index.fast.suffix_array])
        assert_comes(lambda: parts.bwt_on_device(index, "forward", watch), index.forward)
        assert_comes(lambda: parts.bwt_on_device(index, "reverse", watch), index.reverse)
        binned = binned_index(index, 20, PAPER_PARAMETERS)
        assert_comes(lambda: parts.binned_on_device(index, 20, PAPER_PARAMETERS, watch), binned)
        release(index)
