"""Building an index on a GPU that the CPU plays: its kernels run as they are written, in small blocks."""

from __future__ import annotations

from typing import Any

from oracles.lockstep import run_kernel
from oracles.pretend_cupy import PretendCupy
from oracles.pretend_gpu import install

__all__ = ["play_build"]


def play_build(monkeypatch: Any, index: Any = None) -> PretendCupy:
    """Put a pretended CuPy, and kernels that run, where a build looks for them; searches of `index` are pretended."""
    from warpseed.compute import device_places, device_sorting, device_sums, device_ties, warp
    from warpseed.compute import gpu as device
    from warpseed.fm_index import (
        gpu_bwt,
        gpu_rows,
        gpu_suffix_array,
        gpu_suffix_letters,
        gpu_suffix_ranks,
        gpu_table,
        gpu_text,
    )

    package, _ = install(monkeypatch, index, devices=2)
    sorting, building = (
        (device_places, device_sorting, device_sums, device_ties, warp),
        (gpu_suffix_letters, gpu_suffix_ranks, gpu_table),
    )
    kernels = *sorting, *building, gpu_bwt, gpu_rows, gpu_text

    def launch(function: Any, threads: int, block: int, *arguments: Any) -> None:
        run_kernel(kernels, (device_places.eight_at, warp.warp_places), (function, threads, 32), *arguments)

    launchers = gpu_bwt, gpu_rows, gpu_suffix_array, gpu_suffix_ranks, gpu_text
    for module in (device_places, device_sums, device_ties, *launchers):
        monkeypatch.setattr(module, "launch", launch)
    monkeypatch.setattr(device, "_probe", lambda size: None)
    monkeypatch.setattr(gpu_bwt, "popcount", lambda word: int(word).bit_count())
    return package
