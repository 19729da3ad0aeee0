"""yara (seqan-apps): reads against an FM-index, every place within a share of edits, one alignment a place.

What yara_mapper 0.9.11 does with our inputs (each tried): ``-e 1 -s 1 -y full -sa record`` prints reads of 100 to 199
bases with one edit, all places as records of their own. Where the pieces of a read (halves with one edit, thirds with
two) have more than 300 exact hits together, it takes larger ones (the whole read, its halves) in which it allows a
substitution: a place that has an insertion or deletion in each of these is left out, whatever the sensitivity, and no
option moves the limit.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from warpseed.measure.peers.process import Process, find_program, program_version, run_process
from warpseed.measure.peers.sam import parse_sam

__all__ = ["build_yara_index", "parse_yara", "run_yara", "yara_version"]

_ADVICE = "install seqan-apps (with apt-get), or yara (envs/peers.yaml and conda)"


def yara_version() -> str | None:
    """Version of the installed yara, such as "0.9.11"; None where there is none that says one."""
    return program_version(["yara_mapper", "--version"], r"yara_mapper version: (\S+)")


def build_yara_index(reference: str | os.PathLike[str], prefix: str | os.PathLike[str]) -> Process:
    """Run ``yara_indexer`` on a FASTA file.

    Raises
    ------
    PeerError
        If yara_indexer is missing or fails.
    """
    return run_process([find_program("yara_indexer", _ADVICE), os.fspath(reference), "-o", os.fspath(prefix)])


def run_yara(
    prefix: str | os.PathLike[str],
    reads: str | os.PathLike[str],
    *,
    percent: int,
    threads: int = 1,
    output: str | os.PathLike[str],
) -> Process:
    """Run ``yara_mapper -e PERCENT -s PERCENT -y full -sa record`` from file to file.

    Parameters
    ----------
    prefix
        Index from `build_yara_index`.
    reads
        FASTQ or FASTA; named by number where the alignments are to be parsed.
    percent
        Edits allowed, per 100 bases of a read.
    output
        SAM, whatever the name.

    Raises
    ------
    PeerError
        If yara_mapper is missing or fails.
    """
    options = ["-t", str(threads), "-e", str(percent), "-s", str(percent), "-y", "full", "-sa", "record"]
    written = f"{os.fspath(output)}.sam"
    command = [find_program("yara_mapper", _ADVICE), *options, "-o", written, os.fspath(prefix), os.fspath(reads)]
    took = run_process(command)
    os.replace(written, output)
    return took


def parse_yara(output: str | os.PathLike[str], contigs: Sequence[str], query_lengths: np.ndarray) -> np.ndarray:
    """yara's alignments as our rows; see `warpseed.measure.peers.sam.parse_sam`."""
    return parse_sam(output, contigs, len(query_lengths), "yara_mapper")
