"""MUMmer: every maximal exact match of reads with a genome (`mummer -maxmatch`), from files to standard output.

What mummer 3.23 does with our inputs (each tried): ``-b -n`` searches both strands, and matches nothing but A, C, G and
T; ``-F`` names the contig even where there is one. Its suffix tree is made anew in each run. It takes FASTA that is not
compressed. With ``-c`` it would tell places of the reverse complement as those of the read.

MUMmer 4 has a mummer too, with the same options and lines (each tried). It takes all cores unless told how many
threads. With ``-c`` it tells wrong lengths (its issue 76): so that is left out of both. Where both are installed,
MUMmer 4's is found by the name mummer4, such as a link to it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np

from warpseed.measure.peers.matches import match_rows
from warpseed.measure.peers.process import Process, find_program, program_version, run_process

__all__ = ["PROGRAMS", "mummer_version", "parse_mummer", "run_mummer"]

PROGRAMS = ("mummer", "mummer4")
"""The names that a mummer has on PATH: of whichever version, and of MUMmer 4's beside it."""

_ADVICE = {
    "mummer": "install mummer (with apt-get, or envs/peers.yaml and conda)",
    "mummer4": "link MUMmer 4's mummer there by that name",
}


def mummer_version(program: str = "mummer") -> str | None:
    """Version of the mummer of that name, such as "4.0.1", or "3", which tells no more; None where there is none."""
    command = [program, "--version"]
    is_old = program_version(command, r'(illegal option "--version")')
    return "3" if is_old else program_version(command, r"^(\d[\w.]*)")


def run_mummer(
    reference: str | os.PathLike[str],
    reads: str | os.PathLike[str],
    *,
    min_length: int,
    output: str | os.PathLike[str],
    program: str = "mummer",
) -> Process:
    """Run ``mummer -maxmatch -b -n -F -l MIN_LENGTH``, on one thread; `program` is one of PROGRAMS.

    Raises
    ------
    PeerError
        If mummer is missing or fails.
    """
    path = find_program(program, _ADVICE[program])
    # Version 3 knows no threads.
    threads = [] if mummer_version(program) == "3" else ["-qthreads", "1"]
    options = ["-maxmatch", "-b", "-n", "-F", "-l", str(min_length), *threads]
    return run_process([path, *options, os.fspath(reference), os.fspath(reads)], output=output)


def parse_mummer(output: str | os.PathLike[str], contigs: Sequence[str], query_lengths: np.ndarray) -> np.ndarray:
    """What mummer found of reads named by number, as rows (see `warpseed.measure.peers.matches`).

    Raises
    ------
    PeerError
        If a line is none of mummer's, or names a read or contig that is not known.
    """
    numbers = {name: number for number, name in enumerate(contigs)}

    def matches() -> Iterator[tuple[int, ...]]:
        query, strand = -1, 0
        with open(output, encoding="ascii") as handle:
            for line in handle:
                fields = line.split()
                if fields[0] == ">":
                    query, strand = int(fields[1]), int(fields[-1] == "Reverse")
                    continue
                start, place, length = map(int, fields[-3:])
                # Places count from 1, on strand 1 in the reverse complement of the read.
                begin = int(query_lengths[query]) - (place - 1) - length if strand else place - 1
                yield query, numbers[" ".join(fields[:-3])], start - 1, start - 1 + length, strand, begin

    return match_rows(output, matches(), len(query_lengths), "mummer")
