"""Work that is handed to threads and comes back in the order in which it was handed over."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor
    from types import TracebackType

__all__ = ["Ahead"]

_Result = TypeVar("_Result")


class Ahead(Generic[_Result]):
    """A queue of calls that threads work on, and of their results, the first call's first.

    Used as a context manager: at its end calls that have not begun are dropped, and those that have are waited for.

    Parameters
    ----------
    threads : int
        1 does a call when it is submitted, in the thread that submits it, and begins no other thread.
    most : int
        Calls whose results may wait, unless more are asked for; 2 a thread where left out.
    """

    def __init__(self, threads: int, most: int | None = None) -> None:
        self._threads = threads
        self._most = 2 * threads if most is None else most
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
        while len(self._waiting) > (0 if everything else self._most):
            yield self._waiting.popleft().result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
