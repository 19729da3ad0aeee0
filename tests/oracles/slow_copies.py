"""What copies within the host's memory, slowly: so that who goes on before it has, is seen to."""

from __future__ import annotations

import ctypes
import os
import select
import struct
import threading
import time

import pytest
from warpseed.compute import host_copies

__all__ = ["SlowCopies"]

_JOB = struct.Struct("8Q")


class SlowCopies:
    """One thread in the place of those of `host_copies`; it rests before each copy."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, rest: float = 0.01) -> None:
        self._reader, self._pipe = os.pipe()
        self._rest, self._copying = rest, False
        monkeypatch.setattr(host_copies, "_LEAST_SHARED", 16)
        monkeypatch.setattr(host_copies, "_pipe_to_threads", lambda: self._pipe)
        self._thread = threading.Thread(target=self._serve, name="copying slowly", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while job := os.read(self._reader, _JOB.size):
            self._copying = True
            to, source, size, counts, event, *_ = _JOB.unpack(job)
            time.sleep(self._rest)
            ctypes.memmove(to, source, size)
            self._copying = False
            ctypes.c_uint64.from_address(counts + 8).value += 1
            os.eventfd_write(event, 1)

    def are_done(self) -> bool:
        """Whether all that was asked for has been copied."""
        return not (select.select([self._reader], [], [], 0)[0] or self._copying)

    def end(self) -> None:
        """Let the thread end."""
        os.close(self._pipe)
        self._thread.join(60)
        os.close(self._reader)
