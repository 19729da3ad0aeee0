"""This machine: its cores, memory, CPU and GPUs, and this process's share of them; each is read here alone.

Nothing here imports CUDA: the GPU is asked for through nvidia-smi.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from warpseed.errors import MemoryLimitError

__all__ = [
    "UNKNOWN_CARD",
    "VISIBLE_VARIABLE",
    "available_memory",
    "card_uuids",
    "cpu_model",
    "driver_cuda_version",
    "gpu_description",
    "keep_what_is_freed",
    "machine_name",
    "memory_bytes",
    "name_of",
    "output_of",
    "peak_memory",
    "require_address_space",
    "require_memory",
    "return_freed_memory",
    "return_what_is_freed",
    "usable_cores",
    "visible_cards",
]

VISIBLE_VARIABLE = "CUDA_VISIBLE_DEVICES"
"""The variable that tells CUDA which GPUs a process may see, by numbers or UUIDs."""
UNKNOWN_CARD = "unknown"
"""A GPU whose UUID nobody told."""

_TIMEOUT_S = 20
_PROC = Path("/proc")
_M_MMAP_THRESHOLD = -3
"""Of mallopt(3), by <malloc.h>."""
_LARGE_BLOCK, _KEPT_BLOCK = 1 << 18, 31 << 20
_ALWAYS_THERE = 1 << 24
"""Bytes that nobody asks for: to ask takes half a millisecond."""


def output_of(command: list[str]) -> str | None:
    """Standard output of a command, or None where it is not installed, fails or hangs."""
    import subprocess

    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def cpu_model() -> str:
    """The CPU's model name as the operating system tells it ("unknown CPU" if it does not)."""
    for line in _lines(_PROC / "cpuinfo"):
        if found := re.match(r"model name\s*:\s*(.+)$", line):
            return " ".join(found.group(1).split())
    told = output_of(["sysctl", "-n", "machdep.cpu.brand_string"]) or platform.processor()
    return told.strip() or platform.machine() or "unknown CPU"


def usable_cores() -> int:
    """CPU cores this process may run on (a container or a scheduler may give fewer than the machine has)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_bytes() -> int:
    """Physical memory of the machine in bytes, or less where a control group's limit is lower."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([int(total), *(limit for limit, _ in _memory_limits())])


class _GroupFiles(NamedTuple):
    """Files of a control group: its limit, what it uses, and the line of its statistics that counts the file cache."""

    limit: str
    used: str
    cached: str


_VERSION_1 = _GroupFiles("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_VERSION_2 = _GroupFiles("memory.max", "memory.current", "inactive_file")


def _memory_groups() -> Iterator[tuple[Path, _GroupFiles]]:
    """Folders of the control groups that bound this process's memory: its own, and all above it that are mounted."""
    own = {}
    for line in _lines(_PROC / "self" / "cgroup"):
        _, controllers, path = line.split(":", 2)
        if not controllers:
            own[_VERSION_2] = path
        elif "memory" in controllers.split(","):
            own[_VERSION_1] = path
    for line in _lines(_PROC / "self" / "mountinfo"):
        mount, _, system = line.partition(" - ")
        kind, _, options = system.split(" ", 2)
        version = {"cgroup2": _VERSION_2, "cgroup": _VERSION_1}.get(kind)
        if version not in own or (kind == "cgroup" and "memory" not in options.split(",")):
            continue
        # A container may have mounted no more than its own part of the tree: what lies above it is not seen.
        root, point = mount.split(" ")[3:5]
        below = Path(os.path.relpath(own[version], root))
        if ".." in below.parts:
            below = Path()
        yield from ((Path(point) / part, version) for part in [below, *below.parents])


def _lines(path: Path) -> list[str]:
    """Lines of one of the kernel's files; none where it is not there or may not be read."""
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []


def _memory_limits() -> list[tuple[int, int]]:
    """(limit, bytes in use that cannot be had back) of every control group with a limit."""
    limits = []
    for folder, files in dict.fromkeys(_memory_groups()):
        limit, used, statistics = (_lines(folder / name) for name in (files.limit, files.used, "memory.stat"))
        if limit and used and limit[0] != "max":
            # Pages of files that were read count as used, but are given back when they are wanted.
            cached = dict(line.split() for line in statistics)
            limits.append((int(limit[0]), int(used[0]) - int(cached.get(files.cached, 0))))
    return limits


@lru_cache(maxsize=1)
def _gpus() -> tuple[dict[str, Any], ...]:
    query = "--query-gpu=name,driver_version,memory.total,compute_cap"
    told = output_of(["nvidia-smi", query, "--format=csv,noheader,nounits"])
    gpus = []
    for line in (told or "").splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == 4:
            memory = int(cells[2]) * 2**20 if cells[2].isdigit() else None
            gpus.append({"name": cells[0], "driver": cells[1], "memory": memory, "compute_capability": cells[3]})
    return tuple(gpus)


def gpu_description() -> dict[str, Any]:
    """The first GPU that nvidia-smi lists.

    Returns
    -------
    dict
        `gpu`, `gpu_count`, `gpu_memory_bytes`, `compute_capability`, `driver`; without a GPU the count is 0
        and the others are None.
    """
    gpus = _gpus()
    first = gpus[0] if gpus else {"name": None, "driver": None, "memory": None, "compute_capability": None}
    return {
        "gpu": first["name"],
        "gpu_count": len(gpus),
        "gpu_memory_bytes": first["memory"],
        "compute_capability": first["compute_capability"],
        "driver": first["driver"],
    }


def visible_cards() -> list[str]:
    """The GPUs that CUDA shows this process: what `VISIBLE_VARIABLE` calls them, or else the UUIDs of all."""
    told = _told_cards()
    return _listed_cards() if told is None else told


def _told_cards() -> list[str] | None:
    """What `VISIBLE_VARIABLE` has, if it is set."""
    told = os.environ.get(VISIBLE_VARIABLE)
    return None if told is None else [card.strip() for card in told.split(",") if card.strip()]


def _listed_cards() -> list[str]:
    return re.findall(r"UUID: ([\w-]+)\)", output_of(["nvidia-smi", "-L"]) or "")


def card_uuids(count: int) -> list[str]:
    """The UUIDs of the first GPUs that CUDA shows this process: those that a job on so many GPUs works on.

    Parameters
    ----------
    count : int
        GPUs; nothing is asked for none.

    Returns
    -------
    list of str
        As many, each as `nvidia-smi -L` calls it; one that `VISIBLE_VARIABLE` gives by a number is the one that has
        this place there. `UNKNOWN_CARD` for one that it does not list.
    """
    if count < 1:
        return []
    listed, told = _listed_cards(), _told_cards()
    whole = [uuid for uuid in listed if uuid.startswith("GPU-")]
    uuids = listed if told is None else [_uuid_of(card, whole, listed) for card in told]
    return [*uuids, *[UNKNOWN_CARD] * count][:count]


def _uuid_of(card: str, whole: list[str], listed: list[str]) -> str:
    """The UUID of a card by its number among whole ones, or by the beginning of its UUID, which CUDA takes, too."""
    if card.isdigit():
        return whole[int(card)] if int(card) < len(whole) else UNKNOWN_CARD
    return next((uuid for uuid in listed if uuid.startswith(card)), UNKNOWN_CARD)


def driver_cuda_version() -> str | None:
    """The newest CUDA version that the driver supports, as nvidia-smi tells it; None where it does not."""
    found = re.search(r"CUDA Version:\s*([\d.]+)", output_of(["nvidia-smi"]) or "")
    return found.group(1) if found else None


@lru_cache(maxsize=1)
def machine_name() -> str:
    """The `name_of` this machine, as this process sees it: a job that asked for no GPU may see none."""
    return name_of(cpu_model(), gpu_description()["gpu"])


def name_of(cpu: str, gpu: str | None) -> str:
    """A short slug: the GPU's name ("nvidia-h200") where there is one, else the CPU's ("amd-epyc-9654")."""
    name = gpu or re.sub(r"\(R\)|\(TM\)|@.*|\bCPU\b|\d+-Core Processor", " ", cpu)
    return re.sub(r"[^a-z0-9]+", "-", str(name).lower()).strip("-") or "unknown-machine"


def available_memory() -> int:
    """Bytes that can still be had: the kernel's estimate, or less where a control group (a job's), or the address
    space that is allowed, limits us."""
    fields = dict(line.split(":", 1) for line in _lines(_PROC / "meminfo"))
    available = int(fields["MemAvailable"].split()[0]) * 1024
    bounds = [max(0, limit - used) for limit, used in _memory_limits()]
    return min([available, *bounds, *_address_space()])


def _address_space() -> list[int]:
    """Bytes that this process may still map, in a list; none where no limit (`ulimit -v`) says so."""
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    pages = _lines(_PROC / "self" / "statm")
    if limit == resource.RLIM_INFINITY or not pages:
        return []
    return [max(0, limit - int(pages[0].split()[0]) * resource.getpagesize())]


def require_address_space(needed: int, what: str) -> None:
    """Go on only where so many bytes may still be mapped: LLVM ends the process, or hangs, where it gets none.

    Parameters
    ----------
    needed : bytes
    what : takes them, up to its verb: "To compile x"

    Raises
    ------
    MemoryLimitError : a limit leaves fewer
    """
    for free in _address_space():
        if needed > free:
            raise MemoryLimitError(
                f"{what} takes {needed / 1e9:.3g} GB of address space, but {free / 1e9:.3g} GB are left; raise the "
                "limit (ulimit -v)."
            )


def require_memory(needed: int, what: str, advice: str) -> None:
    """Go on only where so many bytes can still be had; a few megabytes always can.

    Parameters
    ----------
    needed : bytes
    what : takes them, up to its verb: "Sorting 10 words takes"
    advice : what to do where there are too few

    Raises
    ------
    MemoryLimitError : there are too few
    """
    if needed > _ALWAYS_THERE and needed > (free := available_memory()):
        raise MemoryLimitError(f"{what} {needed / 1e9:.3g} GB, but {free / 1e9:.3g} GB are free; {advice}.")


def return_freed_memory() -> None:
    """Give the system what was freed and is kept for later, by each thread that took it (malloc_trim(3)); a C library
    other than glibc keeps it."""
    _ask_c_library("malloc_trim", ctypes.c_size_t(0))


def return_what_is_freed() -> None:
    """From now on this process gives the system each large block as soon as it is freed, in the place of keeping those
    below 32 MiB for later, by each thread (mallopt(3), M_MMAP_THRESHOLD); a C library other than glibc does as it does.

    For a process whose peak memory matters, and whose arrays are few: each new one has its pages cleared. What
    `keep_what_is_freed` asks for is in vain from then on.
    """
    _ask_c_library("mallopt", _M_MMAP_THRESHOLD, _LARGE_BLOCK)


def _ask_c_library(name: str, *arguments: object) -> None:
    """Call a function that not every C library has, where it is there."""
    function = getattr(ctypes.CDLL(None), name, None)
    if function is not None:
        function(*arguments)


def keep_what_is_freed() -> None:
    """Let large arrays take the memory that earlier ones had, as those of one piece of a file after the other.

    glibc maps large blocks anew each time, and clearing their pages takes as long as parsing what they hold. A block of
    nearly 32 MiB that was freed, untouched, tells it that blocks up to that size come and go, and it keeps their memory
    from then on (mallopt(3), M_MMAP_THRESHOLD), unless the process has called `return_what_is_freed`.
    """
    import numpy as np

    np.empty(_KEPT_BLOCK, np.uint8)


def peak_memory() -> int:
    """Peak resident memory of this process so far, in bytes."""
    # ru_maxrss survives exec on Linux, so it may be the parent's peak; VmHWM is this program's own.
    for line in _lines(_PROC / "self" / "status"):
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)
