"""bwa: the time and memory of its index beside ours, and what is searched with it: reads with a few edits, the old way
(`bwa aln`), and maximal exact matches that lie in no longer one (`bwa fastmap`)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from warpseed.measure.peers.matches import match_rows
from warpseed.measure.peers.process import Process, find_program, program_version, run_process
from warpseed.measure.peers.sam import parse_sam

__all__ = [
    "bwa_version",
    "build_bwa_index",
    "parse_bwa",
    "parse_fastmap",
    "run_bwa",
    "run_fastmap",
    "time_bwa_index",
]

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


def run_fastmap(
    prefix: str | os.PathLike[str],
    reads: str | os.PathLike[str],
    *,
    min_length: int,
    output: str | os.PathLike[str],
) -> Process:
    """Run ``bwa fastmap -l MIN_LENGTH -w 1000000``, on its one thread: every place of every match.

    Raises
    ------
    PeerError
        If bwa is missing or fails.
    """
    options = ["fastmap", "-l", str(min_length), "-w", _MOST_HITS, os.fspath(prefix), os.fspath(reads)]
    return run_process([find_program("bwa", _ADVICE), *options], output=output)


def parse_fastmap(output: str | os.PathLike[str], contigs: Sequence[str], query_lengths: np.ndarray) -> np.ndarray:
    """What ``bwa fastmap`` found of reads named by number, as rows (see `warpseed.measure.peers.matches`).

    Raises
    ------
    PeerError
        If a line is none of bwa's, names a read or contig that is not known, or tells no places.
    """
    numbers = {name: number for number, name in enumerate(contigs)}

    def matches() -> Iterator[tuple[int, ...]]:
        query = -1
        with open(output, encoding="ascii") as handle:
            for line in handle:
                kind, *fields = line.split()
                if kind == "SQ":
                    query = int(fields[0])
                elif kind == "EM":
                    begin, end, count = map(int, fields[:3])
                    if len(fields) != 3 + count:
                        raise ValueError(f"{count} places, of which {len(fields) - 3} stand there")
                    for place in fields[3:]:
                        contig, _, signed = place.rpartition(":")
                        start = int(signed[1:]) - 1
                        strand = "+-".index(signed[0])
                        yield query, numbers[contig], start, start + end - begin, strand, begin

    return match_rows(output, matches(), len(query_lengths), "bwa fastmap")
