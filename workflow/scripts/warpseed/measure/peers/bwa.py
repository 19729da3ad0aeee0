"""bwa's index of a genome: the time and memory of building it, beside ours."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from warpseed.measure.peers.process import Process, find_program, program_version, run_process

__all__ = ["build_bwa_index", "bwa_version"]

_ADVICE = "install bwa 0.7 (with apt-get, or envs/peers.yaml and conda)"


def bwa_version() -> str | None:
    """Version of the installed bwa, such as "0.7.17-r1188"; None where there is none that says one."""
    return program_version(["bwa"], r"^Version:\s*(\S+)")


def build_bwa_index(reference_path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> Process:
    """Run ``bwa index`` on a FASTA file (plain or gzip), on its one thread; the index is removed again.

    Parameters
    ----------
    reference_path
        The genome.
    folder
        Where the index is written for as long as it takes.

    Raises
    ------
    PeerError
        If bwa is missing or fails.
    """
    with tempfile.TemporaryDirectory(dir=folder, prefix=".bwa-") as scratch:
        prefix = str(Path(scratch) / "index")
        return run_process([find_program("bwa", _ADVICE), "index", "-p", prefix, str(reference_path)])
