"""What `warpseed check` says about machines of every kind."""

from __future__ import annotations

import re
import types
from importlib import metadata

import pytest
from warpseed.errors import DeviceError
from warpseed.fm_index.build import needed_memory
from warpseed.workflow import check
from warpseed.workflow.check import describe_machine, largest_genome

NO_GPU = {"gpu": None, "gpu_count": 0, "gpu_memory_bytes": None, "compute_capability": None, "driver": None}
H200 = {
    "gpu": "NVIDIA H200", "gpu_count": 1, "gpu_memory_bytes": 139 << 30, "compute_capability": "9.0",
    "driver": "570.1",
}  # fmt: skip
PEERS = ("bowtie", "bwa", "mummer", "mummer4", "razers3", "yara", "ahocorasick_rs")
VERSIONS = {"python": "3.11.7", "numba": "0.68.1", "numba-cuda": "0.30.4", "snakemake": "9.27.1"}


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    """A machine whose parts a test chooses; `said(...)` gives the lines by their first word."""
    parts = types.SimpleNamespace(
        gpu=NO_GPU,
        versions=dict(VERSIONS),
        cupy="14.2.0",
        trouble=None,
        peers=dict.fromkeys(PEERS) | {"bowtie": "1.3.1", "razers3": "3.5.8"},
        programs={},
        cuda="12.8",
    )
    monkeypatch.setattr(check, "gpu_description", lambda: parts.gpu)
    monkeypatch.setattr(check, "driver_cuda_version", lambda: parts.cuda)
    monkeypatch.setattr(check, "package_versions", lambda: parts.versions)
    monkeypatch.setattr(check, "peer_versions", lambda: parts.peers)
    monkeypatch.setattr(check, "_cupy_version", lambda: parts.cupy)

    def version(command: list[str], pattern: str) -> str | None:
        found = re.search(pattern, parts.programs.get(command[0], ""))
        return found.group(1) if found else None

    monkeypatch.setattr(check, "program_version", version)
    monkeypatch.setattr(check.shutil, "which", lambda name: f"/bin/{name}" if name in parts.programs else None)

    def compute() -> None:
        if parts.trouble is not None:
            raise parts.trouble

    monkeypatch.setattr(check, "_compute_on_gpu", compute)
    parts.said = lambda: dict(line.split(": ", 1) for line in describe_machine()[1:])
    return parts


def test_this_machine() -> None:
    lines = describe_machine()
    assert all(line and "\n" not in line and "None" not in line for line in lines)
    assert [line.split(":")[0] for line in lines[1:]] == [
        "CPU", "Memory", "Compiler", "GPU", "numba-cuda", "cupy", "GPU kernels", "Devices", *PEERS, "snakemake",
        "conda",
    ]  # fmt: skip


@pytest.mark.parametrize("parts", ["fast", "fast,paper"])
@pytest.mark.parametrize("memory", [250 << 20, 1 << 30, 16 << 30, 40 << 30])
def test_the_largest_genome_is_the_largest(memory: int, parts: str) -> None:
    bases = largest_genome(memory, parts)
    assert needed_memory(bases, parts) <= memory
    assert bases == (1 << 32) - 1 or needed_memory(bases + 1, parts) > memory


def test_more_parts_need_more() -> None:
    fast, both = needed_memory(10**8), needed_memory(10**8, ("fast", "paper"))
    assert fast < both < fast + 10**8
    assert needed_memory(10**8, "forward") <= fast


def test_the_largest_genome_at_the_ends() -> None:
    assert largest_genome(0) == 0
    assert largest_genome(1 << 50) == (1 << 32) - 1


def test_a_human_genome_is_indexed_in_less_than_32_gb() -> None:
    assert 8.75 * 3_100_000_000 < needed_memory(3_100_000_000, "fast") < 30e9


def test_memory_is_said_as_genomes(machine: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "memory_bytes", lambda: 17_000_000_000)
    monkeypatch.setattr(check, "available_memory", lambda: 16_000_000_000)
    said = machine.said()["Memory"]
    assert said.startswith("16.0 GB available of 17.0 GB; the largest genome that can be indexed is about 1.")
    monkeypatch.setattr(check, "available_memory", lambda: 260_000_000)
    assert " Mbp" in machine.said()["Memory"]
    monkeypatch.setattr(check, "available_memory", lambda: 100_000_000)
    assert machine.said()["Memory"].endswith("too little to index any genome: free some, or use a machine with more")


def test_a_machine_without_a_gpu(machine: types.SimpleNamespace) -> None:
    machine.versions["numba-cuda"] = machine.cupy = None
    machine.trouble = DeviceError("no GPU answers.")
    said = machine.said()
    assert said["GPU"] == "none (nvidia-smi is not installed, so there is no NVIDIA driver); everything runs on the CPU"
    assert said["cupy"] == said["numba-cuda"] == "not installed, which matters only where there is a GPU"
    assert said["GPU kernels"] == "cannot run, for want of a GPU"
    assert said["Devices"] == "'devices: auto' measures the CPU only, and --device gpu is refused"
    machine.programs["nvidia-smi"] = "No devices were found"
    assert machine.said()["GPU"].startswith("none (nvidia-smi lists none)")


def test_a_machine_with_a_gpu(machine: types.SimpleNamespace) -> None:
    machine.gpu = H200
    said = machine.said()
    assert said["GPU"] == "NVIDIA H200, 139 GiB, driver 570.1, CUDA up to 12.8"
    assert said["numba-cuda"] == "0.30.4" and said["cupy"] == "14.2.0"
    assert said["GPU kernels"] == "compiled and run, with the right result"
    assert said["Devices"] == "'devices: auto' measures the CPU and the GPU, and --device gpu works"
    machine.gpu = H200 | {"gpu_count": 4, "gpu_memory_bytes": None}
    machine.cuda = None
    assert machine.said()["GPU"] == "4 x NVIDIA H200, driver 570.1, CUDA up to unknown"


def test_a_gpu_without_its_packages(machine: types.SimpleNamespace) -> None:
    machine.gpu, machine.cupy, machine.versions["numba-cuda"] = H200, None, None
    machine.trouble = DeviceError("device gpu needs the package cupy; install requirements-gpu.txt.")
    said = machine.said()
    for name in ("numba-cuda", "cupy"):
        assert said[name] == "not installed; install requirements-gpu.txt (pip install -r requirements-gpu.txt)"
    assert said["GPU kernels"] == ("cannot run; device gpu needs the package cupy; install requirements-gpu.txt")
    assert "'devices: auto' would choose the GPU and fail" in said["Devices"] and "devices: [cpu]" in said["Devices"]


def test_a_driver_that_is_too_old(machine: types.SimpleNamespace) -> None:
    machine.gpu = H200
    machine.trouble = RuntimeError("CUDA_ERROR_UNSUPPORTED_PTX_VERSION\nand a page of text")
    assert machine.said()["GPU kernels"] == (
        "cannot run; the GPU answers, but a test kernel failed (RuntimeError: CUDA_ERROR_UNSUPPORTED_PTX_VERSION); "
        "update the driver, or reinstall requirements-gpu.txt"
    )
    machine.trouble = RuntimeError()
    assert "test kernel failed (RuntimeError: )" in machine.said()["GPU kernels"]


def test_a_gpu_that_nvidia_smi_does_not_list(machine: types.SimpleNamespace) -> None:
    assert "write 'devices: [cpu, gpu]'" in machine.said()["Devices"]


def test_peers_and_the_workflow(machine: types.SimpleNamespace) -> None:
    machine.trouble = DeviceError("no GPU answers.")
    said = machine.said()
    assert said["bowtie"] == "1.3.1; 'peers: auto' measures it beside warpseed: k-mers, reads"
    assert said["bwa"].startswith(
        "not installed; install it with apt-get or conda (envs/peers.yaml), to have it beside"
    )
    assert said["razers3"] == "3.5.8; 'peers: auto' measures it beside warpseed: reads"
    assert said["yara"] == (
        "not installed; install seqan-apps with apt-get, or yara with conda, to have it beside warpseed: reads"
    )
    assert said["snakemake"] == "9.27.1"
    assert said["conda"].startswith("neither conda nor mamba is on PATH; use 'make run'")
    machine.peers, machine.versions["snakemake"] = (
        dict.fromkeys(PEERS) | {"bwa": "0.7.17-r1188", "mummer": "3"},
        None,
    )
    machine.programs["mamba"] = "mamba 1.5.8"
    said = machine.said()
    assert said["bowtie"].startswith("not installed; ") and said["bowtie"].endswith("beside warpseed: k-mers, reads")
    assert said["bwa"].startswith("0.7.17-r1188; 'peers: auto' measures it beside warpseed: matches")
    assert said["mummer"] == "3; 'peers: auto' measures it beside warpseed: matches"
    assert said["snakemake"].startswith("not installed; install requirements.txt")
    assert said["conda"].startswith("only mamba is on PATH, and Snakemake calls conda")
    machine.programs["conda"] = "conda 24.1.2\n"
    assert machine.said()["conda"] == "24.1.2, with mamba; snakemake --use-conda works"


def test_a_cache_that_cannot_be_written(machine: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/proc/1/no/such/folder")
    assert machine.said()["Compiler"].endswith("set NUMBA_CACHE_DIR to a folder that you may write to")
    monkeypatch.setattr(check.os, "access", lambda *_: True)
    assert machine.said()["Compiler"].endswith("and keeps it in /proc/1/no/such/folder")


def test_cupy_goes_by_several_names(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name != "cupy":
            raise metadata.PackageNotFoundError(name)
        return "13.0"

    monkeypatch.setattr(metadata, "version", version)
    assert check._cupy_version() == "13.0 (cupy)"


@pytest.mark.gpu
def test_the_gpu_here_computes() -> None:
    assert check._gpu_trouble() is None
