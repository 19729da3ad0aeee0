"""razers3 (seqan-apps): every place of a read within a number of edits, one alignment a place.

What razers3 3.5.8 does with our inputs (each tried): ``-i 99 -rr 100`` finds reads of 100 to 199 bases with one edit on
both strands, the genome read and searched anew each time, without an index; ``-tc 0`` is one thread; a ``.razers`` file
has tabs between its columns, and 0-based places. Where several placements of a read lie at one place, it prints one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from warpseed.measure.peers.process import HitLines, Process, find_program, parse_hits, program_version, run_process
from warpseed.output.rows import order_rows

__all__ = ["parse_razers3", "razers3_version", "run_razers3"]

_ADVICE = "install seqan-apps (with apt-get), or razers3 (envs/peers.yaml and conda)"
_MOST_HITS = 1_000_000
_HITS = HitLines(
    {0: "query", 3: "strand", 4: "contig", 5: "start", 6: "end", 7: "distance"},
    # The last column is the share of the read's bases that agree: what is not 100 has an edit.
    decode={"strand": "FR".index, "distance": lambda identity: int(float(identity) < 100)},
    as_long=False,
    tool="razers3",
)


def razers3_version() -> str | None:
    """Version of the installed razers3, such as "3.5.8"; None where there is none that says one."""
    return program_version(["razers3", "--version"], r"razers3 version: (\S+)")


def run_razers3(
    reference: str | os.PathLike[str],
    reads: str | os.PathLike[str],
    *,
    percent: int,
    threads: int = 1,
    output: str | os.PathLike[str],
) -> Process:
    """Run ``razers3 -i 100-PERCENT -rr 100`` from file to file.

    Parameters
    ----------
    reference
        FASTA.
    reads
        FASTQ or FASTA; named by number where the hits are to be parsed.
    percent
        Edits allowed, per 100 bases of a read.
    threads
        1 is its sequential mode.
    output
        Its own format, whatever the name.

    Raises
    ------
    PeerError
        If razers3 is missing or fails.
    """
    mode = "0" if threads == 1 else str(threads)
    options = ["-i", str(100 - percent), "-rr", "100", "-m", str(_MOST_HITS), "-tc", mode]
    # It tells the format by the ending.
    written = f"{os.fspath(output)}.razers"
    command = [find_program("razers3", _ADVICE), *options, "-o", written, os.fspath(reference), os.fspath(reads)]
    took = run_process(command)
    os.replace(written, output)
    return took


def parse_razers3(output: str | os.PathLike[str], contigs: Sequence[str], query_lengths: np.ndarray) -> np.ndarray:
    """razers3's hits as our rows (HIT_ROW), in our output order; a `distance` of 1 means at least one edit.

    Raises
    ------
    PeerError
        If a line is none of razers3's, or names a read or contig that is not known.
    """
    return order_rows(parse_hits(output, _HITS, contigs, query_lengths))
