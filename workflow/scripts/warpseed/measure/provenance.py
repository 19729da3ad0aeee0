"""Where a measurement comes from: machine, versions, commit, configuration and seeds.

Nothing here imports CUDA or another heavy package: versions are read from the installed metadata, and the GPU
is asked for through nvidia-smi.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from warpseed.compute.machine import cpu_model, gpu_description, machine_name, memory_bytes, output_of, usable_cores
from warpseed.sequences.files import atomic_path
from warpseed.version import __version__

__all__ = [
    "CHANGED",
    "CUPY_NAMES",
    "commit",
    "machine_description",
    "package_versions",
    "peer_versions",
    "seeds",
    "write_provenance",
]

CHANGED = "+changes"
"""What follows a commit from which tracked files differed."""
_NO_RECORDS = ":(exclude,top)resources/measurements"
CUPY_NAMES = ("cupy-cuda12x", "cupy-cuda13x", "cupy-cuda11x", "cupy")
"""What CuPy is installed as: a wheel for one version of CUDA, or conda's plain name."""
PACKAGES = (
    "deflate",
    "isal",
    "numba",
    "llvmlite",
    "numba-cuda",
    *CUPY_NAMES,
    "numpy",
    "pandas",
    "matplotlib",
    "snakemake",
)


def package_versions() -> dict[str, str | None]:
    """Versions of Python, warpseed and the packages it stands on; None for one that is not installed."""
    versions: dict[str, str | None] = {"python": platform.python_version(), "warpseed": __version__}
    return versions | {name: _version_of(name) for name in PACKAGES}


def _version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def peer_versions() -> dict[str, str | None]:
    """Versions of the tools that we compare with; None for one that is not installed."""
    from warpseed.measure.peers.bowtie import bowtie_version
    from warpseed.measure.peers.bwa import bwa_version
    from warpseed.measure.peers.mummer import PROGRAMS, mummer_version
    from warpseed.measure.peers.razers3 import razers3_version
    from warpseed.measure.peers.yara import yara_version

    return {
        "bowtie": bowtie_version(),
        "bwa": bwa_version(),
        **{program: mummer_version(program) for program in PROGRAMS},
        "razers3": razers3_version(),
        "yara": yara_version(),
        "ahocorasick_rs": _version_of("ahocorasick_rs"),
    }


@lru_cache(maxsize=1)
def commit() -> str:
    """The library's commit: from git, else from WARPSEED_COMMIT, else "unknown".

    `CHANGED` follows where tracked files differ from the commit, other than records: those of a run published before.
    """
    here = Path(__file__).resolve()
    git = ["git", "-C", str(here.parent)]
    # An installed copy may lie inside somebody else's repository: that one does not track this file.
    if output_of([*git, "ls-files", "--error-unmatch", here.name]) is not None:
        head = (output_of([*git, "rev-parse", "HEAD"]) or "").strip()
        if head:
            changes = output_of([*git, "status", "--porcelain", "--untracked-files=no", "--", ":/", _NO_RECORDS])
            return head + (CHANGED if changes else "")
    return os.environ.get("WARPSEED_COMMIT", "").strip() or "unknown"


def machine_description() -> dict[str, Any]:
    """Describe this machine and what runs on it, as this process sees them.

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


def seeds(config: Mapping[str, Any]) -> dict[str, Any]:
    """Every seed in a configuration, by its dotted key ("simulated_reference.seed")."""
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


def write_provenance(
    path: str | Path, machine: Mapping[str, Any], config: Mapping[str, Any] | None = None, *, names_only: bool = False
) -> None:
    """Write machine, versions, commit, configuration and seeds as JSON, under a temporary name first.

    Parameters
    ----------
    path : path
        The JSON file to write.
    machine : mapping
        What measured: `machine_description`, or of a run's jobs `warpseed.measure.machines.describe_run`.
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
        **machine,
        "seeds": seeds(config),
        "config": config,
    }
    with atomic_path(path) as temporary:
        Path(temporary).write_text(json.dumps(document, indent=2, default=str) + "\n", encoding="utf-8")
