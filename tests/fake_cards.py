"""GPUs that are not there: a program `nvidia-smi` that lists them."""

from __future__ import annotations

from pathlib import Path

__all__ = ["UUIDS", "install_nvidia_smi"]

UUIDS = [f"GPU-{number}ab-c{number}" for number in range(3)]


def install_nvidia_smi(folder: Path) -> Path:
    """Write into a folder, which is to be put on PATH, a program that lists the GPUs of `UUIDS`; return its path."""
    listed = "".join(f"GPU {number}: NVIDIA H200 (UUID: {uuid})\\n" for number, uuid in enumerate(UUIDS))
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\nprintf '{listed}'\n")
    program.chmod(0o755)
    return program
