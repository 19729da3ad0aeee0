"""What a run finds on the machine where it starts, for the keys of the configuration that say `auto`."""

from __future__ import annotations

import shutil
from collections.abc import Iterable

from warpseed.compute.machine import gpu_description

__all__ = ["devices_to_measure", "is_peer_measured"]


def devices_to_measure(wanted: list[str] | str) -> list[str]:
    """Return the devices of `measure.devices`; 'auto' is the CPU, and a GPU where nvidia-smi lists one."""
    if wanted != "auto":
        return list(wanted)
    return ["cpu", "gpu"] if gpu_description()["gpu_count"] else ["cpu"]


def is_peer_measured(wanted: bool | str, programs: Iterable[str], *, by_conda: bool) -> bool:
    """Whether a peer is measured: as `peers` says; 'auto' is where its programs are installed or conda brings them."""
    if wanted != "auto":
        return bool(wanted)
    return by_conda or all(shutil.which(program) is not None for program in programs)
