"""Where a measurement comes from: machine, versions, commit, configuration and seeds.

Nothing here imports CUDA or another heavy package: versions are read from the installed metadata, and the GPU
is asked for through nvidia-smi.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from warpseed.files import atomic_path
from warpseed.version import __version__

__all__ = [
    "commit",
    "cpu_model",
    "gpu_description",
    "machine_description",
    "machine_name",
    "memory_bytes",
    "package_versions",
    "peer_versions",
    "seeds",
    "usable_cores",
    "write_provenance",
]

PACKAGES = (
    "numba",
    "llvmlite",
    "numba-cuda",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "numpy",
    "pandas",
    "pysam",
    "matplotlib",
    "pydivsufsort",
    "snakemake",
)
PEERS = ("bowtie",)
_TIMEOUT_S = 20


def _output_of(command: list[str]) -> str | None:
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
    told = _output_of(["sysctl", "-n", "machdep.cpu.brand_string"]) or platform.processor()
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
    told = _output_of(["nvidia-smi", query, "--format=csv,noheader,nounits"])
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


def package_versions() -> dict[str, str | None]:
    """Versions of Python, warpseed and the packages it stands on; None for one that is not installed."""
    versions: dict[str, str | None] = {"python": platform.python_version(), "warpseed": __version__}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    return versions


def peer_versions() -> dict[str, str | None]:
    """Versions of the tools that we compare with; None for one that is not installed."""
    versions: dict[str, str | None] = {}
    for name in PEERS:
        told = _output_of([name, "--version"])
        found = re.search(r"version\s+(\S+)", told or "")
        versions[name] = found.group(1) if found else None
    return versions


@lru_cache(maxsize=1)
def commit() -> str:
    """The library's commit: from git, else from WARPSEED_COMMIT, else "unknown".

    "+changes" follows where tracked files differ from the commit.
    """
    here = Path(__file__).resolve()
    git = ["git", "-C", str(here.parent)]
    # An installed copy may lie inside somebody else's repository: that one does not track this file.
    if _output_of([*git, "ls-files", "--error-unmatch", here.name]) is not None:
        head = (_output_of([*git, "rev-parse", "HEAD"]) or "").strip()
        if head:
            changes = _output_of([*git, "status", "--porcelain", "--untracked-files=no"])
            return head + ("+changes" if changes else "")
    return os.environ.get("WARPSEED_COMMIT", "").strip() or "unknown"


def machine_description() -> dict[str, Any]:
    """Describe this machine and what runs on it.

    Returns
    -------
    dict
        `machine` (slug), `cpu`, `cores` (usable), `memory_bytes`, the keys of `gpu_description`, `platform`,
        `commit`, `versions` (packages) and `peers` (tools), the last two as dicts with None where something
        is not installed.
    """
    return {
        "machine": machine_name(),
        "cpu": cpu_model(),
        "cores": usable_cores(),
        "memory_bytes": memory_bytes(),
        **gpu_description(),
        "platform": _platform(),
        "commit": commit(),
        "versions": package_versions(),
        "peers": peer_versions(),
    }


def _platform() -> str:
    # The full kernel release may carry a host's own build name; major and minor are what a reader needs.
    release = ".".join(platform.release().split("-")[0].split(".")[:2])
    libc = "".join(platform.libc_ver())
    return " ".join(part for part in (platform.system(), release, platform.machine(), libc) if part)


@lru_cache(maxsize=1)
def machine_name() -> str:
    """A short slug: the GPU's name ("nvidia-h200") where there is one, else the CPU's ("amd-epyc-9654")."""
    name = gpu_description()["gpu"] or re.sub(r"\(R\)|\(TM\)|@.*|\bCPU\b|\d+-Core Processor", " ", cpu_model())
    return re.sub(r"[^a-z0-9]+", "-", str(name).lower()).strip("-") or "unknown-machine"


def seeds(config: Mapping[str, Any]) -> dict[str, Any]:
    """Every seed in a configuration, by its dotted key ("simulate.seed")."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            found.update({f"{key}.{inner}": seed for inner, seed in seeds(value).items()})
        elif str(key) == "seed" or str(key).endswith("_seed"):
            found[str(key)] = value
    return found


def _without_folders(value: Any) -> Any:
    """The same configuration with the last part of every path that is there, in place of the path."""
    if isinstance(value, Mapping):
        return {key: _without_folders(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_folders(item) for item in value]
    if isinstance(value, str) and os.sep in value and Path(value).expanduser().exists():
        return Path(value).name
    return value


def write_provenance(path: str | Path, config: Mapping[str, Any] | None = None, *, names_only: bool = False) -> None:
    """Write machine, versions, commit, configuration and seeds as JSON, under a temporary name first.

    Parameters
    ----------
    path : path
        The JSON file to write.
    config : mapping, optional
        The run's whole configuration; kept as it is.
    names_only : bool
        Keep the names of the configuration's files, not where they lie: for what is published.
    """
    config = dict(config or {})
    if names_only:
        config = _without_folders(config)
    document = {
        "format": 1,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        **machine_description(),
        "seeds": seeds(config),
        "config": config,
    }
    with atomic_path(path) as temporary:
        Path(temporary).write_text(json.dumps(document, indent=2, default=str) + "\n", encoding="utf-8")
