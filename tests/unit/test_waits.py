"""What is waited for to its end, whatever comes between."""

from __future__ import annotations

import contextlib

import pytest
from warpseed.compute.waits import wait_for_all
from warpseed.workflow.program import Stopped


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, Stopped, SystemExit])
def test_all_are_waited_for(interrupt: type[BaseException]) -> None:
    """One that fails fails once, one that is interrupted is called until it ends; the first error is told."""
    called: list[str] = []

    def waiting(name: str, *raised: type[BaseException]) -> None:
        called.append(name)
        if called.count(name) <= len(raised):
            raise raised[called.count(name) - 1](len(called))

    wait_for_all([lambda: waiting("a"), lambda: waiting("b")])
    assert called == ["a", "b"]
    called.clear()
    with pytest.raises(interrupt) as told:
        wait_for_all(
            [
                lambda: waiting("interrupted", interrupt, interrupt),
                lambda: waiting("failed", ValueError),
                lambda: waiting("last"),
            ]
        )
    assert called == ["interrupted", "interrupted", "interrupted", "failed", "last"] and told.value.args == (1,)
    wait_for_all([])


def test_an_interrupt_does_not_end_the_wait_for_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is on it may still go to memory that is given up behind it."""
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from warpseed.compute import gpu

    waits = iter([KeyboardInterrupt, KeyboardInterrupt, None])

    class Stream(contextlib.nullcontext[None]):
        def synchronize(self) -> None:
            if (raised := next(waits)) is not None:
                raise raised

    monkeypatch.setattr(gpu, "kept_stream", lambda _: Stream())
    with pytest.raises(KeyboardInterrupt), gpu.on_own_stream(0):
        pass
    assert not list(waits)
