"""How many threads of a kernel a GPU holds at once, from the registers and the shared memory of the compiled kernel."""

from __future__ import annotations

from typing import Any

from warpseed.compute.gpu import cuda

__all__ = ["occupancy_of"]


def occupancy_of(kernel: Any, block: int) -> float:
    """The share of the threads that a multiprocessor of the current device has room for, 0 to 1, which are resident at
    once.

    Parameters
    ----------
    kernel : one that was launched; with arguments of several types, it is the last of its forms
    block : threads of a block
    """
    *_, compiled = kernel.overloads.values()
    device = cuda.get_current_device()
    blocks = compiled.max_cooperative_grid_blocks(block) // device.MULTIPROCESSOR_COUNT
    return blocks * block / float(device.MAX_THREADS_PER_MULTIPROCESSOR)
