"""What this machine has, and what each part of it means for a run: ``python -m warpseed check``."""

from __future__ import annotations

import os
import shutil
from importlib import metadata
from typing import Any

from warpseed.compute.machine import (
    available_memory,
    cpu_model,
    driver_cuda_version,
    gpu_description,
    memory_bytes,
    usable_cores,
)
from warpseed.errors import DeviceError
from warpseed.measure.peers.process import program_version
from warpseed.measure.provenance import CUPY_NAMES, machine_description, package_versions, peer_versions
from warpseed.version import __version__

__all__ = ["describe_machine", "largest_genome"]

_INSTALL_GPU = "install requirements-gpu.txt (pip install -r requirements-gpu.txt)"


def describe_machine() -> list[str]:
    """Say what there is, what is missing, and what to do about it.

    Returns
    -------
    list of str
        One line each for the version, CPU, memory, compiler, GPU, its packages, what a run will use, the peers,
        Snakemake and conda. Nothing here raises for something that is missing: saying so is the purpose.
    """
    versions = package_versions()
    gpu, gpu_works = _gpu(versions)
    return [
        f"warpseed {__version__} on Python {versions['python']}, {machine_description()['platform']}",
        _cpu(),
        _memory(),
        _compiler(versions["numba"]),
        *gpu,
        _devices(gpu_works),
        *_peers(),
        *_workflow(versions["snakemake"]),
    ]


def largest_genome(memory: int, parts: str = "fast") -> int:
    """Bases of the largest genome whose index can be built.

    Parameters
    ----------
    memory : int
        Bytes that the build may take.
    parts : str
        What the index is to hold: "fast", or "fast,paper" for both tiers.
    """
    from warpseed.fm_index.build import needed_memory
    from warpseed.fm_index.suffix_array import MAX_ROWS

    small, large = 0, MAX_ROWS
    while small < large:
        middle = (small + large + 1) // 2
        small, large = (middle, large) if needed_memory(middle, parts) <= memory else (small, middle - 1)
    return small


def _cpu() -> str:
    cores = usable_cores()
    return f"CPU: {cpu_model()}, {cores} {'core' if cores == 1 else 'cores'} that this process may use"


def _bases(count: int) -> str:
    for size, unit in ((10**9, "Gbp"), (10**6, "Mbp")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:,} bases"


def _memory() -> str:
    available = available_memory()
    line = f"Memory: {available / 1e9:.1f} GB available of {memory_bytes() / 1e9:.1f} GB"
    alone = largest_genome(available)
    if alone == 0:
        return f"{line}; too little to index any genome: free some, or use a machine with more"
    both = largest_genome(available, "fast,paper")
    return f"{line}; the largest genome that can be indexed is about {_bases(alone)} ({_bases(both)} for both tiers)"


def _compiler(numba: str | None) -> str:
    folder = os.environ.get("NUMBA_CACHE_DIR", "")
    line = f"Compiler: none needed; numba {numba} compiles each function once"
    if _writable(folder):
        return f"{line} and keeps it in {folder}"
    return f"{line}, but cannot keep it in {folder}: set NUMBA_CACHE_DIR to a folder that you may write to"


def _writable(folder: str) -> bool:
    """Whether a folder, or the nearest one above it that exists, can be written to."""
    while folder and not os.path.exists(folder):
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


def _gpu(versions: dict[str, str | None]) -> tuple[list[str], bool]:
    """Lines about the GPU and its packages, and whether warpseed can use it."""
    listed = bool(gpu_description()["gpu_count"])
    missing = f"not installed; {_INSTALL_GPU}" if listed else "not installed, which matters only where there is a GPU"
    trouble = _gpu_trouble()
    if trouble is None:
        kernels = "compiled and run, with the right result"
    elif listed:
        kernels = f"cannot run; {trouble}"
    else:
        kernels = "cannot run, for want of a GPU"
    lines = [
        _listed_gpu(),
        f"numba-cuda: {versions['numba-cuda'] or missing}",
        f"cupy: {_cupy_version() or missing}",
        f"GPU kernels: {kernels}",
    ]
    return lines, trouble is None


def _listed_gpu() -> str:
    found = gpu_description()
    if not found["gpu_count"]:
        missing = "lists none" if shutil.which("nvidia-smi") else "is not installed, so there is no NVIDIA driver"
        return f"GPU: none (nvidia-smi {missing}); everything runs on the CPU"
    parts = [f"{found['gpu_count']} x {found['gpu']}" if found["gpu_count"] > 1 else str(found["gpu"])]
    if found["gpu_memory_bytes"]:
        parts.append(f"{found['gpu_memory_bytes'] / 2**30:.0f} GiB")
    parts += [f"driver {found['driver']}", f"CUDA up to {driver_cuda_version() or 'unknown'}"]
    return "GPU: " + ", ".join(parts)


def _cupy_version() -> str | None:
    """Version of CuPy under whichever name it was installed: a wheel for one CUDA version, or conda's plain name."""
    for name in CUPY_NAMES:
        try:
            return f"{metadata.version(name)} ({name})"
        except metadata.PackageNotFoundError:
            continue
    return None


def _gpu_trouble() -> str | None:
    """Why a small computation on the GPU does not work, or None where it does.

    It is run, not only asked for: a driver that is too old for the packages answers, and fails at the first kernel.
    """
    try:
        _compute_on_gpu()
    except DeviceError as error:
        return str(error).rstrip(".")
    except Exception as error:  # whatever a driver or a compiler may raise is what the user needs to see
        reason = str(error).strip().splitlines() or [""]
        return (
            f"the GPU answers, but a test kernel failed ({type(error).__name__}: {reason[0][:200]}); update the "
            "driver, or reinstall requirements-gpu.txt"
        )
    return None


def _compute_on_gpu() -> None:
    """Add numbers with CuPy and with a Numba kernel; DeviceError where there is no GPU, or a wrong sum."""
    from warpseed.compute import gpu

    gpu.require_gpu()
    cuda: Any = gpu.cuda

    def add_one(numbers):
        i = cuda.grid(1)
        if i < numbers.shape[0]:
            numbers[i] += 1

    numbers = gpu.cupy().arange(1000)
    gpu.launch(gpu.Kernel(add_one), 1000, 64, numbers)  # (which is not kept: the compiler is tried, too)
    if int(numbers.sum()) != 1000 * 1001 // 2:
        raise DeviceError("a test kernel returned a wrong sum; use another GPU, or device cpu")


def _devices(gpu_works: bool) -> str:
    listed = bool(gpu_description()["gpu_count"])
    if gpu_works and listed:
        return "Devices: 'devices: auto' measures the CPU and the GPU, and --device gpu works"
    if gpu_works:
        return (
            "Devices: --device gpu works, but nvidia-smi lists no GPU, so 'devices: auto' measures the CPU only: "
            "write 'devices: [cpu, gpu]'"
        )
    if listed:
        return (
            "Devices: --device gpu is refused, and 'devices: auto' would choose the GPU and fail: mend what is said "
            "above, or write 'devices: [cpu]'"
        )
    return "Devices: 'devices: auto' measures the CPU only, and --device gpu is refused"


_CONDA = "it with apt-get or conda (envs/peers.yaml)"
_PEERS = {
    "bowtie": ("k-mers, reads", _CONDA),
    "bwa": ("matches, reads, the index", _CONDA),
    "mummer": ("matches", _CONDA),
    "mummer4": ("matches", "MUMmer 4, and link its mummer by that name"),
    "razers3": ("reads", "seqan-apps with apt-get, or razers3 with conda"),
    "yara": ("reads", "seqan-apps with apt-get, or yara with conda"),
    "ahocorasick_rs": ("k-mers in a stream", "it with pip"),
}
"""Other tools: what warpseed is measured beside each of, and what to install."""


def _peers() -> list[str]:
    versions = peer_versions()
    return [
        f"{tool}: {versions[tool]}; 'peers: auto' measures it beside warpseed: {what}"
        if versions[tool]
        else f"{tool}: not installed; install {how}, to have it beside warpseed: {what}"
        for tool, (what, how) in _PEERS.items()
    ]


def _workflow(snakemake: str | None) -> list[str]:
    conda = program_version(["conda", "--version"], r"conda\s+(\S+)")
    mamba = shutil.which("mamba") is not None
    if conda:
        tool = f"conda: {conda}{', with mamba' if mamba else ''}; snakemake --use-conda works"
    else:
        other = "only mamba is on PATH, and Snakemake calls conda" if mamba else "neither conda nor mamba is on PATH"
        tool = f"conda: {other}; use 'make run', which needs neither, or install conda for --use-conda"
    return [
        f"snakemake: {snakemake}"
        if snakemake
        else "snakemake: not installed; install requirements.txt for the workflow (the commands work without it)",
        tool,
    ]
