"""Work on one or more GPUs that comes piece by piece: gathered to batches, two at a time on each device, in order.

Each device is served by two host threads, each with a stream of its own. What one of them joins, copies and waits for
is hidden behind what the other has the device do.
"""

from __future__ import annotations

import gc
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from warpseed.compute.device_batches import refuse_one_query, tell_short_memory
from warpseed.compute.gpu import free_memory, give_back_memory, is_out_of_memory, on_device, on_own_stream
from warpseed.compute.stopwatch import Stopwatch

__all__ = ["CHUNKS_AHEAD", "LARGEST_BATCH", "LEAST_BATCH", "Share", "Source", "StreamRun", "stream_batches"]

LARGEST_BATCH = 1 << 20
"""Short queries that are run together at most: their work is some milliseconds, beside which a launch is nothing."""
LEAST_BATCH = 1 << 18
"""Short queries that a device which is busy with others waits for: fewer would not repay the calls that they cost."""
CHUNKS_AHEAD = 4
"""Chunks of a batch that wait on the host to be taken; those behind them stay on the device."""
_LANES = 2
"""Batches that are in flight on a device, each in a thread and on a stream of its own."""

_Work = TypeVar("_Work")
_Result = TypeVar("_Result")


class Share(NamedTuple, Generic[_Work]):
    """Queries [begin, end) of a piece of work: all of it, unless it alone is larger than a batch."""

    work: _Work
    begin: int
    end: int


StreamRun: TypeAlias = "Callable[[list[Share[_Work]]], Iterable[Sequence[_Result]]]"
"""What runs shares of works on the current device and stream. When it returns, the device has nothing left to
allocate; as its results are asked for, they come to the host chunk by chunk, in the order of the queries."""


class Source(NamedTuple, Generic[_Work]):
    """What is to be run."""

    works: Generator[_Work, None, None]
    """in their order; run, and closed, in a thread of its own"""
    size_of: Callable[[_Work], int]
    """queries of a work"""
    weight_of: Callable[[_Work], int]
    """short queries that one of a work counts for, at least 1"""
    bytes_each: Callable[[_Work], int]
    """device memory that a query of a work and its results take, about"""


class _Batch(Generic[_Work, _Result]):
    """Shares that are run together, and what has come of them."""

    def __init__(self, shares: list[Share[_Work]]) -> None:
        self.shares = shares
        self.chunks: deque[Sequence[_Result]] = deque()
        self.done = False


class _Device:
    """A device and what is on it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.starting = threading.Lock()
        self.watches: list[Stopwatch] = []
        self.running = 0
        self.waiting: list[_Batch] = []
        """batches that found no memory beside others, in the order of the line"""
        self.alone = False
        """whether memory has been too short for two batches at a time"""
        self.fits: int | None = None
        """short queries that fit its memory, as far as is known"""
        self.most = LARGEST_BATCH
        """short queries whose results should not have to wait on the device"""


def stream_batches(
    source: Source[_Work],
    start: Callable[[Stopwatch], StreamRun[_Work, _Result]],
    *,
    watch: Stopwatch,
    devices: Sequence[int] = (0,),
) -> Iterator[_Result]:
    """Run works as they come, on one or more devices.

    A device that has nothing to do takes what there is: it has nothing to gain by waiting, and while it is busy more
    comes together. A second batch is put on it as soon as LEAST_BATCH queries are there, or the last.

    Parameters
    ----------
    source : Source
    start : called twice on each device, one call at a time, each in the thread that runs the batches, with the
        stopwatch to use there: brings there what all batches share, and returns what runs one of them
    watch : takes the seconds of each stage when all is done. Those of batches that are on a device together are added
        up, though they may pass at the same time; of several devices those of the slowest count
    devices : numbers of the devices

    Yields
    ------
    the results of the works in their order, whatever the devices; at most CHUNKS_AHEAD chunks of each of a few batches
    are held on the host

    Raises
    ------
    MemoryLimitError : what all batches share, or a single query, does not fit
    DeviceError : a device does not answer
    whatever `works` raises, behind the results of the works before
    """
    line = _Line(source, start, [_Device(number) for number in devices])
    threads = [
        threading.Thread(target=line.serve, args=(device, lane), daemon=True)
        for device in line.devices
        for lane in range(_LANES)
    ]
    threads.append(threading.Thread(target=line.feed, daemon=True))
    try:
        for thread in threads:
            thread.start()
        while (chunk := line.next_chunk()) is not None:
            yield from chunk
    finally:
        line.close()
        for thread in threads:
            thread.join()
        line.add_times(watch)


class _Line(Generic[_Work, _Result]):
    """Works that wait for a device, and batches in their order until their results are taken."""

    def __init__(
        self, source: Source[_Work], start: Callable[[Stopwatch], StreamRun[_Work, _Result]], devices: list[_Device]
    ) -> None:
        self.devices = devices
        self._source = source
        self._start = start
        self._lanes = _LANES * len(devices)
        self._changed = threading.Condition()
        self._queue: deque[Share[_Work]] = deque()
        self._queued = 0
        self._ended = self._closed = False
        self._line: deque[_Batch[_Work, _Result]] = deque()
        self._failure: Exception | None = None
        self._broken: BaseException | None = None

    # -------------------------------------------------------------------- in the thread that takes the results

    def next_chunk(self) -> Sequence[_Result] | None:
        """The next results, or None behind the last ones."""
        with self._changed:
            while True:
                self._changed.wait_for(lambda: self._broken or self._line_moves() or self._finished())
                if self._broken is not None:
                    raise self._broken
                if not self._line:
                    if self._failure is not None:
                        raise self._failure
                    return None
                head = self._line[0]
                chunk = head.chunks.popleft() if head.chunks else None
                if chunk is None:
                    self._line.popleft()
                self._changed.notify_all()
                if chunk is not None:
                    return chunk

    def _line_moves(self) -> bool:
        return bool(self._line) and (bool(self._line[0].chunks) or self._line[0].done)

    def _finished(self) -> bool:
        return self._ended and not self._queue and not self._line

    def close(self) -> None:
        """Let the threads of the devices end as soon as they have done what they are at."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def add_times(self, watch: Stopwatch) -> None:
        """Add the seconds that the slowest device spent in each stage."""
        devices = [Stopwatch() for _ in self.devices]
        for both, device in zip(devices, self.devices, strict=True):
            for each in device.watches:
                both.take(each)
        watch.take_slowest(devices)

    # -------------------------------------------------------------------- in the thread that takes the works

    def feed(self) -> None:
        """Take works as long as there are some and room for them; the thread may have to wait for each."""
        failure = None
        try:
            for work in self._source.works:
                share = Share(work, 0, self._source.size_of(work))
                with self._changed:
                    self._queue.append(share)
                    self._queued += self._weight([share])
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: self._closed or self._hungry())
                    if self._closed:
                        break
        except Exception as error:
            failure = error
        finally:
            self._source.works.close()
        with self._changed:
            self._ended, self._failure = True, failure
            self._changed.notify_all()

    def _hungry(self) -> bool:
        return self._queued < self._lanes * LARGEST_BATCH

    # -------------------------------------------------------------------- in a thread of a device

    def serve(self, device: _Device, lane: int) -> None:
        """Run batches on a device, on a stream of its own, until no works are left."""
        try:
            with on_device(device.number):
                with device.starting:
                    device.watches.append(Stopwatch())
                    run = self._start(device.watches[-1])
                with on_own_stream(lane):
                    while (batch := self._take(device)) is not None:
                        self._put_results(device, batch, self._run_fitting(device, batch, run))
        except BaseException as error:
            with self._changed:
                self._broken = self._broken or error
                self._changed.notify_all()

    def _take(self, device: _Device) -> _Batch[_Work, _Result] | None:
        """The next batch for a device, as soon as it is worth while; None where no works are left."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._is_over() or self._is_worthwhile(device))
            if self._closed or self._is_over():
                return None
            each = self._source.weight_of(self._queue[0].work)
            if device.fits is None:
                needed = 2 * _LANES * self._source.bytes_each(self._queue[0].work)
                device.fits = max(1, free_memory() // needed) * each
            most = min(LARGEST_BATCH, device.most)
            batch: _Batch[_Work, _Result] = _Batch(self._gather(min(most, device.fits)))
            short = device.fits < most and bool(self._queue)
            self._line.append(batch)
            device.running += 1
            self._changed.notify_all()
        if short:
            tell_short_memory(device.number, max(1, device.fits // each))
        return batch

    def _weight(self, shares: Iterable[Share[_Work]]) -> int:
        """Short queries that some shares count for."""
        return sum((share.end - share.begin) * self._source.weight_of(share.work) for share in shares)

    def _is_over(self) -> bool:
        return self._broken is not None or (self._ended and not self._queue)

    def _is_worthwhile(self, device: _Device) -> bool:
        if not self._queue or device.waiting or len(self._line) >= 2 * self._lanes:
            return False
        if device.running == 0:
            return True
        return not device.alone and (self._ended or self._queued >= LEAST_BATCH)

    def _gather(self, most: int) -> list[Share[_Work]]:
        """Shares from the head of the queue, of `most` short queries or one query, which leave others to the other
        threads."""
        enough = max(LEAST_BATCH, -(-self._queued // self._lanes))
        shares: list[Share[_Work]] = []
        size = 0
        while self._queue and size < enough:
            share = self._queue[0]
            if shares and size + self._weight([share]) > most:
                break
            end = min(share.end, share.begin + max(1, most // self._source.weight_of(share.work)))
            shares.append(share._replace(end=end))
            size += self._weight(shares[-1:])
            if end < share.end:
                self._queue[0] = share._replace(begin=end)
            else:
                self._queue.popleft()
        self._queued -= size
        return shares

    def _run_fitting(
        self, device: _Device, batch: _Batch[_Work, _Result], run: StreamRun[_Work, _Result]
    ) -> Iterator[Sequence[_Result]]:
        """The results of a batch; where memory does not suffice, alone on the device, then in halves of halves."""
        todo = [batch.shares]
        while todo:
            shares = todo.pop()
            try:
                chunks = run(shares)
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                size = sum(share.end - share.begin for share in shares)
                with self._changed:
                    crowded = device.running > 1
                if size == 1 and not crowded:
                    refuse_one_query(error)
            else:
                yield from chunks
                continue
            # Only here is the exception gone, whose traceback held the arrays of the batch that failed.
            gc.collect()
            give_back_memory()
            if crowded:
                todo.append(shares)
                self._wait_until_alone(device, batch)
            else:
                device.fits = -(-self._weight(shares) // 2)
                todo += reversed(_halves(shares, -(-size // 2)))
                tell_short_memory(device.number, -(-size // 2))

    def _wait_until_alone(self, device: _Device, batch: _Batch[_Work, _Result]) -> None:
        """Step aside until what else is on the device is done with, which need not wait to be taken meanwhile."""
        with self._changed:
            device.alone = True
            device.running -= 1
            device.waiting.append(batch)
            device.waiting.sort(key=self._line.index)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._closed or (not device.running and device.waiting[0] is batch))
            device.waiting.remove(batch)
            device.running += 1

    def _put_results(self, device: _Device, batch: _Batch[_Work, _Result], chunks: Iterator[Sequence[_Result]]) -> None:
        """Hand on what a batch gives, as the host has room for it."""
        count = 0
        for chunk in chunks:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._closed or device.waiting or len(batch.chunks) < CHUNKS_AHEAD
                )  # fmt: skip
                if self._closed:
                    return
                batch.chunks.append(chunk)
                self._changed.notify_all()
            count += 1
        weight = self._weight(batch.shares)
        with self._changed:
            batch.done = True
            device.running -= 1
            if 2 * count > CHUNKS_AHEAD:
                device.most = max(1, weight * CHUNKS_AHEAD // count)
            elif weight >= device.most:
                device.most *= 2
            self._changed.notify_all()


def _halves(shares: list[Share[_Work]], half: int) -> list[list[Share[_Work]]]:
    """The first `half` queries of shares, and the others."""
    first: list[Share[_Work]] = []
    for i, share in enumerate(shares):
        size = share.end - share.begin
        if size >= half:
            middle = share.begin + half
            rest = [share._replace(begin=middle)] if middle < share.end else []
            return [[*first, share._replace(end=middle)], [*rest, *shares[i + 1 :]]]
        first.append(share)
        half -= size
    return [first]
