"""A line of tasks on several threads: they are worked on side by side, and their results come out in their order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeAlias, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor
    from types import TracebackType

__all__ = ["Ahead", "GivenUp", "behind", "check_wanted", "fed", "mapped", "ordered", "wanted_by_this_thread"]

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")
_Run: TypeAlias = "Callable[[_Task], tuple[_Result, Iterable[_Task] | None]]"


def ordered(tasks: Iterable[_Task], run: _Run, threads: int, ahead: int = 2) -> Iterator[_Result]:
    """The results of tasks in their order, worked out on `threads` threads.

    A task may find that it is too large to be done at once. It then returns what it has done and the tasks that do the
    rest: their results come right behind its own.

    Parameters
    ----------
    tasks : taken one by one, by the thread that takes the results; few more than are being worked on
    run : function of a task, called from any thread, that returns its result and the rest, or None for none
    threads : 1 calls `run` in the thread that takes the results, when the next one is asked for
    ahead : a task begins when fewer than so many for each thread stand before it whose results are not taken

    Yields
    ------
    what `run` returned

    Raises
    ------
    whatever `run` raised for the first task that failed, in its place among the results; later tasks are given up
    """
    if threads == 1:
        waiting = [iter(tasks)]
        while waiting:
            for task in waiting[-1]:
                result, rest = run(task)
                yield result
                if rest is not None:
                    waiting.append(iter(rest))
                    break
            else:
                waiting.pop()
        return
    yield from _on_threads(iter(tasks), run, threads, ahead * threads)


def mapped(
    tasks: Iterable[_Task], function: Callable[[_Task], _Result], threads: int, ahead: int = 2
) -> Iterator[_Result]:
    """As `ordered`, of a function that does each task at once and returns its result."""
    return ordered(tasks, lambda task: (function(task), None), threads, ahead)


class GivenUp(Exception):
    """What a task raises whose result nobody takes any more."""


_mine = threading.local()


def check_wanted() -> None:
    """Give up the task that this thread is at, of `ordered`, `mapped` or `behind`, where it is not wanted any more:
    some other has failed, or a signal has come. What takes long calls it now and then.

    Raises
    ------
    GivenUp
    """
    wanted_by_this_thread()()


def wanted_by_this_thread() -> Callable[[], None]:
    """`check_wanted` of the task that this thread is at, for other threads that work for it."""
    belonging = getattr(_mine, "stopped", ())

    def check() -> None:
        if any(stopped.is_set() for stopped in belonging):
            raise GivenUp

    return check


def _belong_to(stopped: tuple[threading.Event, ...]) -> None:
    """This thread's tasks are given up when one of these is set."""
    _mine.stopped = stopped


class _Finished(NamedTuple):
    """A task that has been done; the rest of it stands behind it."""

    result: Any


_Line: TypeAlias = "deque[Future[Any] | _Finished | Iterator[Any]]"
"""What is to come out, in its order: tasks that have been begun, done or not, and iterators of those that have not."""


def _on_threads(tasks: Iterator[_Task], run: _Run, threads: int, most: int) -> Iterator[_Result]:
    from concurrent.futures import ThreadPoolExecutor

    line: _Line = deque([tasks])
    stopped = threading.Event()
    # (Threads that a task begins belong to it.)
    belonging = (*getattr(_mine, "stopped", ()), stopped)
    pool = ThreadPoolExecutor(threads, initializer=_belong_to, initargs=(belonging,))
    try:
        while line := _begun(line, lambda task: pool.submit(run, task), most, tasks):
            head = line.popleft()
            assert not isinstance(head, Iterator)  # its first task would stand there
            if isinstance(head, _Finished):
                result = head.result
            else:
                result, rest = head.result()
                if rest is not None:
                    line.appendleft(iter(rest))
            del head
            yield result
            del result
    finally:
        stopped.set()
        pool.shutdown(wait=True, cancel_futures=True)


def _begun(line: _Line, submit: Callable[[_Task], Future[Any]], most: int, source: Iterator[_Task]) -> _Line:
    """A line in which all is begun that may be, which is what has fewer than `most` tasks before it.

    So a thread that becomes free finds the next task, be it of a rest or of the source; but while a result can be
    handed on, the source is not waited for.
    """
    now: _Line = deque()
    tasks = 0
    while line:
        entry = line.popleft()
        if isinstance(entry, Iterator):
            while tasks < most and not (entry is source and _is_ready(now)):
                try:
                    now.append(submit(next(entry)))
                except StopIteration:
                    break
                tasks += 1
            else:
                now.append(entry)
            continue
        tasks += 1
        if not isinstance(entry, _Finished) and entry.done() and entry.exception() is None:
            result, rest = entry.result()
            entry = _Finished(result)
            if rest is not None:
                line.appendleft(iter(rest))
        now.append(entry)
    return now


def _is_ready(line: _Line) -> bool:
    """Whether a result can be handed on at once."""
    return bool(line) and (isinstance(line[0], _Finished) or line[0].done())  # type: ignore[union-attr]


def fed(tasks: Iterator[_Task], run: Callable[[_Task], _Result], threads: int) -> Iterator[_Result]:
    """The results of tasks in their order, worked out on `threads` threads; another thread waits for the tasks.

    So a result is handed on as soon as it is there, however long the next task is in coming.

    Parameters
    ----------
    tasks : a generator, run and closed in the thread that waits for it
    run : function of a task, called from any of the threads

    Raises
    ------
    whatever a task raised, or what gives them, in its place among the results
    """
    from concurrent.futures import ThreadPoolExecutor
    from queue import Queue
    from threading import Semaphore, Thread

    line: Queue[Future[_Result] | BaseException | None] = Queue()
    room, stopped = Semaphore(2 * threads), False
    pool = ThreadPoolExecutor(threads)

    def feed() -> None:
        end: BaseException | None = None
        try:
            for task in tasks:
                line.put(pool.submit(run, task))
                room.acquire()
                if stopped:
                    break
        except BaseException as error:  # raised again where results are wanted
            end = error
        finally:
            tasks.close()  # type: ignore[attr-defined]
            line.put(end)

    feeder = Thread(target=feed, name="warpseed feeding", daemon=True)
    feeder.start()
    try:
        while (head := line.get()) is not None:
            if isinstance(head, BaseException):
                raise head
            result = head.result()
            del head
            room.release()
            yield result
    finally:
        stopped = True
        room.release()
        feeder.join()
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def behind(take: Callable[[_Task], object], most: int = 4) -> Generator[Callable[[_Task], None], None, None]:
    """A function that hands tasks to a thread, which takes them in order; all have been taken when the block ends.

    Parameters
    ----------
    take : called in that thread; it should not wait for long, and where it works for long call `check_wanted`, as
        nothing else interrupts it
    most : tasks that wait at most; the function waits while there are more

    Raises
    ------
    whatever `take` raised, with the next task or at the end; later tasks are given up, as all are where the block fails
    """
    from queue import Queue
    from threading import Event, Thread

    end = object()
    line: Queue[_Task | object] = Queue(most)
    failures: list[BaseException] = []
    given_up = Event()
    belonging = (*getattr(_mine, "stopped", ()), given_up)

    def serve() -> None:
        _belong_to(belonging)
        while (task := line.get()) is not end:
            if not failures and not given_up.is_set():
                try:
                    take(task)  # type: ignore[arg-type]
                except BaseException as error:  # raised again where tasks are handed over
                    failures.append(error)

    def put(task: _Task) -> None:
        if failures:
            raise failures[0]
        line.put(task)

    thread = Thread(target=serve, name="warpseed taking", daemon=True)
    thread.start()
    try:
        yield put
        line.put(end)
        thread.join()
    except BaseException:  # a signal may also come while the last tasks are waited for
        given_up.set()
        line.put(end)
        thread.join()
        raise
    if failures:
        raise failures[0]


class Ahead(Generic[_Result]):
    """For one who is given tasks and cannot take them: a queue of calls that threads work on, and of their results,
    the first call's first.

    Used as a context manager: at its end calls that have not begun are dropped, and those that have are waited for.

    Parameters
    ----------
    threads : int
        1 does a call when it is submitted, in the thread that submits it, and begins no other thread.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: deque[Future[_Result]] = deque()
        self._done: deque[_Result] = deque()

    def submit(self, function: Callable[..., _Result], *arguments: Any) -> None:
        """Do a call as soon as a thread is free, or now; what another thread raises is raised with its result."""
        if self._threads == 1:
            self._done.append(function(*arguments))
            return
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(self._threads)
        self._waiting.append(self._pool.submit(function, *arguments))

    def taken(self, everything: bool = False) -> Iterator[_Result]:
        """Results, in order, until few enough calls wait, or none."""
        while self._done:
            yield self._done.popleft()
        while len(self._waiting) > (0 if everything else 2 * self._threads):
            yield self._waiting.popleft().result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
