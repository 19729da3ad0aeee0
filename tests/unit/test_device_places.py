"""Places of flags in device memory, with kernels that the CPU plays."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from oracles.pretend_cupy import Array
from oracles.pretend_ebwt_fast import play_fast_kernels
from warpseed.compute import device_places


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 511, 512, 513, 1000, 1543])
def test_places_of_flags(monkeypatch: pytest.MonkeyPatch, count: int, share: float) -> None:
    """Whole tiles and words of them, and what is left behind the last."""
    play_fast_kernels(monkeypatch)
    flags, told = np.random.default_rng(count).random(count) < share, list[bool]()
    places = device_places.flagged_places(flags.view(Array), lambda: told.append(True))
    assert places.dtype == np.uint32 and places.tolist() == np.flatnonzero(flags).tolist() and told == [True]
