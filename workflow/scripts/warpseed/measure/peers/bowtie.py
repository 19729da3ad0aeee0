"""bowtie (version 1), run as a process and parsed to our rows: k-mers and reads with up to three substitutions.

What bowtie 1.3.1 does with our inputs (each tried):

* ``-v D -a`` reports the same set as `warpseed.find_kmers`: both strands, a palindrome on both, never across
  contigs, never over anything but ACGT in the reference, N or any IUPAC letter in a query is a mismatch.
* It reads gzip (reference and queries) and lower case. A contig's name is cut at the first blank. Contigs
  without a single base are left out; short ones, even of one base, are kept.
* A query's name is the whole header line, and duplicates cannot be told apart: `number_queries` first.
* ``-v 1`` stops at a query of one base, ``-v 2`` and ``-v 3`` leave out queries below 4 bases (a warning).
* ``-m N`` drops a query with more than N hits, both strands together: our ``max_hits``.
* ``-t`` prints its loading time in whole seconds only: too coarse for a genome that loads in 5 ms. Loading
  is timed as the same command stopped after its first query (``-u 1``), process start included; taking
  that off the whole run favours bowtie.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from warpseed.errors import PeerError
from warpseed.measure.peers.process import HitLines, Process, find_program, parse_hits, program_version, run_process
from warpseed.output.rows import order_rows
from warpseed.sequences.files import atomic_path

__all__ = ["bowtie_version", "build_bowtie_index", "parse_bowtie", "run_bowtie"]

ALIGNER, BUILDER = "bowtie-align-s", "bowtie-build"
_ADVICE = "install bowtie 1.3 (with apt-get, or envs/peers.yaml and conda)"
# A list of mismatches such as "6:T>G,12:A>C" has one '>' a mismatch.
_HITS = HitLines(
    {0: "query", 1: "strand", 2: "contig", 3: "start", 7: "distance"},
    decode={"distance": lambda mismatches: mismatches.count(">")},
    tool="bowtie",
)
_MOST_MISMATCHES = 3


def bowtie_version() -> str | None:
    """Version of the installed bowtie, such as "1.3.1"; None where there is none that says one."""
    return program_version([ALIGNER, "--version"], r"version (\d[\w.]*)")


def build_bowtie_index(
    reference_path: str | os.PathLike[str], prefix: str | os.PathLike[str], threads: int = 1
) -> Process:
    """Build bowtie's index of a FASTA file (plain or gzip).

    Parameters
    ----------
    reference_path
        The genome.
    prefix
        Where the index goes: PREFIX.1.ebwt and five more files, each renamed into place when all are whole.
    threads
        Threads of bowtie-build.

    Returns
    -------
    Process

    Raises
    ------
    PeerError
        If bowtie-build is missing or fails (a reference without any base, a file that is no FASTA).
    """
    prefix = Path(prefix)
    prefix.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=prefix.parent, prefix=".bowtie-") as folder:
        command = [find_program(BUILDER, _ADVICE), "-q", "--threads", str(threads), str(reference_path)]
        process = run_process([*command, str(Path(folder) / "index")])
        for part in Path(folder).iterdir():
            os.replace(part, prefix.with_name(prefix.name + part.name.removeprefix("index")))
    return process


def run_bowtie(
    prefix: str | os.PathLike[str],
    queries: str | os.PathLike[str],
    *,
    max_mismatches: int,
    threads: int = 1,
    output: str | os.PathLike[str],
    max_hits: int | None = None,
    fastq: bool = False,
    first_only: bool = False,
) -> Process:
    """Run ``bowtie-align-s -v D -a -p T`` from file to file.

    Parameters
    ----------
    prefix
        Index from `build_bowtie_index`.
    queries
        FASTA or FASTQ, plain or gzip; named by number where the hits are to be parsed.
    max_mismatches
        0 to 3.
    threads
        Alignment threads.
    output
        Bowtie's own format: name, strand, contig, 0-based start, bases, qualities, count, mismatches.
    max_hits
        Bowtie's ``-m``; None keeps all.
    fastq
        Whether the queries are FASTQ (``-q``) and not FASTA (``-f``).
    first_only
        Whether it stops after the first query (``-u 1``): what it takes then is loading.

    Raises
    ------
    PeerError
        If bowtie is missing or fails, or `max_mismatches` is beyond what it can do.
    """
    if not 0 <= max_mismatches <= _MOST_MISMATCHES:
        raise PeerError(f"bowtie allows 0 to {_MOST_MISMATCHES} mismatches, not {max_mismatches}")
    command = [find_program(ALIGNER, _ADVICE), "--quiet", "-q" if fastq else "-f", "-v", str(max_mismatches), "-a"]
    command += ["-p", str(threads), *([] if max_hits is None else ["-m", str(max_hits)])]
    command += [*(["-u", "1"] if first_only else []), "-x", str(prefix)]
    with atomic_path(output) as temporary:
        return run_process([*command, str(queries), str(temporary)])


def parse_bowtie(output: str | os.PathLike[str], contigs: Sequence[str], query_lengths: np.ndarray) -> np.ndarray:
    """Bowtie's hits as our rows, in our output order.

    Parameters
    ----------
    output
        What `run_bowtie` wrote for queries named by number (`number_queries`).
    contigs
        Names of the contigs, in the order of the reference.
    query_lengths
        int64[queries], bases in each query.

    Returns
    -------
    numpy.ndarray
        HIT_ROW (see `warpseed.output.rows`), in the order of HIT_ORDER.

    Raises
    ------
    PeerError
        If a line is none of bowtie's, or names a query or contig that is not known.
    """
    return order_rows(parse_hits(output, _HITS, contigs, query_lengths))
