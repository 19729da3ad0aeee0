"""This machine: its cores, memory, CPU and GPUs, and this process's share of them; each is read here alone.

Nothing here imports CUDA: the GPU is asked for through nvidia-smi.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

__all__ = [
    "available_memory",
    "cpu_model",
    "gpu_description",
    "machine_name",
    "memory_bytes",
    "output_of",
    "peak_memory",
    "usable_cores",
]

_TIMEOUT_S = 20


def output_of(command: list[str]) -> str | None:
    """Standard output of a command, or None where it is not installed, fails or hangs."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def cpu_model() -> str:
    """The CPU's model name as the operating system tells it ("unknown CPU" if it does not)."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", info.read_text(errors="replace"), re.MULTILINE)
        if found:
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
    for limit_file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        limit = Path(limit_file)
        if limit.exists():
            text = limit.read_text().strip()
            if text.isdigit():
                total = min(total, int(text))
    return int(total)


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


@lru_cache(maxsize=1)
def machine_name() -> str:
    """A short slug: the GPU's name ("nvidia-h200") where there is one, else the CPU's ("amd-epyc-9654")."""
    name = gpu_description()["gpu"] or re.sub(r"\(R\)|\(TM\)|@.*|\bCPU\b|\d+-Core Processor", " ", cpu_model())
    return re.sub(r"[^a-z0-9]+", "-", str(name).lower()).strip("-") or "unknown-machine"


def available_memory() -> int:
    """Bytes that can still be had: the kernel's estimate, or less where a control group limits us."""
    with open("/proc/meminfo") as lines:
        fields = dict(line.split(":", 1) for line in lines)
    available = int(fields["MemAvailable"].split()[0]) * 1024
    limit, used, parts = (Path("/sys/fs/cgroup") / f"memory.{name}" for name in ("max", "current", "stat"))
    if limit.exists() and used.exists() and (text := limit.read_text().strip()) != "max":
        # Pages of files that were read count as used, but are given back when they are wanted.
        cached = dict(line.split() for line in parts.read_text().splitlines()) if parts.exists() else {}
        available = min(available, int(text) - int(used.read_text()) + int(cached.get("inactive_file", 0)))
    return available


def peak_memory() -> int:
    """Peak resident memory of this process so far, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # ru_maxrss survives exec on Linux, so it may be the parent's peak; VmHWM is this program's own.
        for line in status.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)
