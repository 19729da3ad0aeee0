"""How many threads of a kernel a GPU holds at once, from the registers and the shared memory of the compiled kernel."""

from __future__ import annotations

from warpseed.compute.gpu import Kernel, cupy, current_device

__all__ = ["occupancy_of"]


def occupancy_of(kernel: Kernel, block: int) -> float:
    """The share of the threads that a multiprocessor of the current device has room for, 0 to 1, which are resident at
    once.

    Parameters
    ----------
    kernel : one that was launched there; with arguments of several types, the form that was loaded last
    block : threads of a block
    """
    package = cupy().cuda
    blocks = package.driver.occupancyMaxActiveBlocksPerMultiprocessor(kernel.handles[current_device()], block, 0)
    return blocks * block / float(package.Device().attributes["MaxThreadsPerMultiProcessor"])
