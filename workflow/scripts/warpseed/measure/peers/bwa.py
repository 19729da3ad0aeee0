"""bwa: the time and memory of its index beside ours, and reads with a few edits against it, the old way (`bwa aln`)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from warpseed.measure.peers.process import Process, find_program, program_version, run_process
from warpseed.measure.peers.sam import parse_sam

__all__ = ["time_bwa_index", "bwa_version", "build_bwa_index", "parse_bwa", "run_bwa"]

_ADVICE = "install bwa 0.7 (with apt-get, or envs/peers.yaml and conda)"
_MOST_HITS = "1000000"


def bwa_version() -> str | None:
    """Version of the installed bwa, such as "0.7.17-r1188"; None where there is none that says one."""
    return program_version(["bwa"], r"^Version:\s*(\S+)")


def build_bwa_index(reference_path: str | os.PathLike[str], prefix: str | os.PathLike[str]) -> Process:
    """Run ``bwa index`` on a FASTA file (plain or gzip), on its one thread.

    Raises
    ------
    PeerError
        If bwa is missing or fails.
    """
    return run_process([find_program("bwa", _ADVICE), "index", "-p", os.fspath(prefix), os.fspath(reference_path)])


def time_bwa_index(reference_path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> Process:
    """As `build_bwa_index`; the index is removed again.

    Parameters
    ----------
    reference_path
        The genome.
    folder
        Where the index is written for as long as it takes.
    """
    with tempfile.TemporaryDirectory(dir=folder, prefix=".bwa-") as scratch:
        return build_bwa_index(reference_path, Path(scratch) / "index")


def run_bwa(
    prefix: str | os.PathLike[str],
    reads: str | os.PathLike[str],
    *,
    edits: int,
    threads: int = 1,
    output: str | os.PathLike[str],
) -> Process:
    """Run ``bwa aln`` for every alignment with so many edits, without a seed, and ``bwa samse``, from file to file.

    Parameters
    ----------
    prefix
        Index from `build_bwa_index`.
    reads
        FASTQ or FASTA; named by number where the alignments are to be parsed.
    edits
        Edits allowed.
    threads
        Of ``bwa aln``; ``bwa samse`` has one.
    output
        SAM.

    Returns
    -------
    Process
        The seconds of both, and the larger peak.

    Raises
    ------
    PeerError
        If bwa is missing or fails.
    """
    bwa, several = find_program("bwa", _ADVICE), str(edits)
    found = f"{os.fspath(output)}.sai"
    options = ["-n", several, "-o", several, "-e", "0", "-i", "0", "-l", "1000", "-k", several]
    options += ["-R", _MOST_HITS, "-N", "-t", str(threads)]
    aligned = run_process([bwa, "aln", *options, "-f", found, os.fspath(prefix), os.fspath(reads)])
    wanted = ["-n", _MOST_HITS, "-f", os.fspath(output)]
    told = run_process([bwa, "samse", *wanted, os.fspath(prefix), found, os.fspath(reads)])
    os.remove(found)
    return Process(aligned.seconds + told.seconds, max(aligned.peak_bytes, told.peak_bytes))


def parse_bwa(output: str | os.PathLike[str], contigs: Sequence[str], query_lengths: np.ndarray) -> np.ndarray:
    """bwa's alignments as our rows; see `warpseed.measure.peers.sam.parse_sam`."""
    return parse_sam(output, contigs, len(query_lengths), "bwa")
