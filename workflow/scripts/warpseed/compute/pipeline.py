"""A line of tasks on several threads: they are worked on side by side, and their results come out in their order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor
    from types import TracebackType

__all__ = ["Ahead", "GivenUp", "behind", "check_wanted", "fed", "mapped", "ordered"]

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
    ahead : tasks for each thread that are begun before the first one's result is taken

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
    """Give up the task that this thread is at, of `ordered` or `mapped`, where its result is not wanted any more: some
    other has failed, or a signal has come. What takes long calls it now and then.

    Raises
    ------
    GivenUp
    """
    if any(stopped.is_set() for stopped in getattr(_mine, "stopped", ())):
        raise GivenUp


def _belong_to(stopped: tuple[threading.Event, ...]) -> None:
    """This thread's tasks are given up when one of these is set."""
    _mine.stopped = stopped


def _on_threads(tasks: Iterator[_Task], run: _Run, threads: int, most: int) -> Iterator[_Result]:
    from concurrent.futures import Future, ThreadPoolExecutor

    # What is to come out next stands first: begun tasks, and rests of which no task has begun.
    line: deque[Future[tuple[_Result, Iterable[_Task] | None]] | Iterator[_Task]] = deque()
    stopped = threading.Event()
    # (Threads that a task begins belong to it.)
    belonging = (*getattr(_mine, "stopped", ()), stopped)
    pool = ThreadPoolExecutor(threads, initializer=_belong_to, initargs=(belonging,))
    more = True
    try:
        while more or line:
            while more and len(line) < most and not _is_ready(line):
                for task in tasks:
                    line.append(pool.submit(run, task))
                    break
                else:
                    more = False
            if not line:
                break
            head = line.popleft()
            if not isinstance(head, Future):
                _begin(head, line, lambda task: pool.submit(run, task), threads)
                continue
            result, rest = head.result()
            del head
            yield result
            if rest is not None:
                line.appendleft(iter(rest))
    finally:
        stopped.set()
        pool.shutdown(wait=True, cancel_futures=True)


def _is_ready(line: deque) -> bool:
    """Whether a result can be handed on at once. (A rest has no `done`: its tasks come first.)"""
    return bool(line) and getattr(line[0], "done", lambda: True)()


def _begin(
    rest: Iterator[_Task], line: deque, submit: Callable[[_Task], Future[tuple[_Result, Iterable[_Task] | None]]],
    count: int,
) -> None:  # fmt: skip
    """Begin the first `count` tasks of a rest, which go to the head of the line with what is left of it."""
    begun: list[Future[tuple[_Result, Iterable[_Task] | None]]] = []
    for task in rest:
        begun.append(submit(task))
        if len(begun) == count:
            line.appendleft(rest)
            break
    line.extendleft(reversed(begun))


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
    take : called in that thread; it should not wait for long, as nothing interrupts it
    most : tasks that wait at most; the function waits while there are more

    Raises
    ------
    whatever `take` raised, with the next task or at the end; later tasks are given up, as all are where the block fails
    """
    from queue import Queue
    from threading import Thread

    end = object()
    line: Queue[_Task | object] = Queue(most)
    failures: list[BaseException] = []
    given_up = False

    def serve() -> None:
        while (task := line.get()) is not end:
            if not failures and not given_up:
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
    except BaseException:
        given_up = True
        raise
    finally:
        line.put(end)
        thread.join()
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
