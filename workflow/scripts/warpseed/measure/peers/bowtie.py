"""Tools that answer the same question, run as processes and parsed to our rows: bowtie (version 1).

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
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from warpseed.errors import PeerError
from warpseed.sequences.files import atomic_path

if TYPE_CHECKING:
    from warpseed.sequences.queries import Queries

__all__ = ["bowtie_version", "build_bowtie_index", "number_queries", "parse_bowtie", "run_bowtie"]

ALIGNER, BUILDER = "bowtie-align-s", "bowtie-build"
_LINES_AT_ONCE = 4_000_000
_MOST_MISMATCHES = 3


def bowtie_version() -> str:
    """Version of the installed bowtie, such as "1.3.1".

    Raises
    ------
    PeerError
        If it is not installed, fails, or does not print a version.
    """
    done = subprocess.run([_program(ALIGNER), "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"version (\d[\w.]*)", done.stdout)
    if done.returncode != 0 or found is None:
        raise PeerError(f"{ALIGNER} --version printed no version (status {done.returncode}); install bowtie 1.3")
    return found.group(1)


def build_bowtie_index(
    reference_path: str | os.PathLike[str], prefix: str | os.PathLike[str], threads: int = 1
) -> float:
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
    float
        Wall time of the process in seconds.

    Raises
    ------
    PeerError
        If bowtie-build is missing or fails (a reference without any base, a file that is no FASTA).
    """
    prefix = Path(prefix)
    prefix.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=prefix.parent, prefix=".bowtie-") as folder:
        command = [_program(BUILDER), "-q", "--threads", str(threads), str(reference_path)]
        seconds = _timed([*command, str(Path(folder) / "index")])
        for part in Path(folder).iterdir():
            os.replace(part, prefix.with_name(prefix.name + part.name.removeprefix("index")))
    return seconds


def number_queries(queries: Queries) -> Queries:
    """The same queries, named 0, 1, 2, …: what bowtie prints back then says which query a hit is of."""
    names = np.arange(len(queries)).astype("S")
    width = names.dtype.itemsize
    letters = names.view(np.uint8).reshape(len(queries), width)
    used = letters != 0
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(used.sum(axis=1), dtype=np.int64)])
    return replace(queries, name_bytes=letters[used], name_offsets=offsets)


def run_bowtie(
    prefix: str | os.PathLike[str],
    kmers_path: str | os.PathLike[str],
    *,
    max_mismatches: int,
    threads: int = 1,
    output: str | os.PathLike[str],
    max_hits: int | None = None,
) -> dict[str, Any]:
    """Run ``bowtie-align-s -f -v D -a -p T`` from file to file, and once more for its first query only.

    Parameters
    ----------
    prefix
        Index from `build_bowtie_index`.
    kmers_path
        FASTA, plain or gzip; named by number where the hits are to be parsed.
    max_mismatches
        0 to 3.
    threads
        Alignment threads.
    output
        Bowtie's own format: name, strand, contig, 0-based start, bases, qualities, count, mismatches.
    max_hits
        Bowtie's ``-m``; None keeps all.

    Returns
    -------
    dict
        `seconds`: wall time of the whole process; `load_seconds`: wall time when it stops after the
        first query; `output`: the path.

    Raises
    ------
    PeerError
        If bowtie is missing or fails, or `max_mismatches` is beyond what it can do.
    """
    if not 0 <= max_mismatches <= _MOST_MISMATCHES:
        raise PeerError(f"bowtie allows 0 to {_MOST_MISMATCHES} mismatches, not {max_mismatches}")
    command = [_program(ALIGNER), "--quiet", "-f", "-v", str(max_mismatches), "-a", "-p", str(threads)]
    if max_hits is not None:
        command += ["-m", str(max_hits)]
    command += ["-x", str(prefix)]
    load_seconds = _timed([*command, "-u", "1", str(kmers_path), os.devnull])
    with atomic_path(output) as temporary:
        seconds = _timed([*command, str(kmers_path), str(temporary)])
    return {
        "seconds": seconds,
        "load_seconds": load_seconds,
        "output": Path(output),
    }


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
    import pandas as pd

    from warpseed.output.rows import HIT_ROW, order_rows

    if Path(output).stat().st_size == 0:
        return np.empty(0, HIT_ROW)
    columns = {0: "query", 1: "strand", 2: "contig", 3: "start", 7: "mismatches"}
    dtypes = {"query": "int64", "strand": "category", "contig": "category", "start": "int64"}
    numbers = {name: number for number, name in enumerate(contigs)}
    parts = []
    try:
        reader = pd.read_csv(
            output,
            sep="\t",
            header=None,
            names=[columns.get(i, str(i)) for i in range(8)],
            usecols=list(columns.values()),
            dtype={**dtypes, "mismatches": "category"},
            keep_default_na=False,
            quoting=3,
            chunksize=_LINES_AT_ONCE,
        )
        with reader:
            parts = [_rows(chunk, numbers, np.asarray(query_lengths), HIT_ROW) for chunk in reader]
    except (ValueError, KeyError, IndexError) as error:
        raise PeerError(
            f"{output} is not what bowtie prints for queries named 0 to {len(query_lengths) - 1} on this "
            f"reference ({error!r}); run bowtie again on the same k-mers and reference"
        ) from error
    return order_rows(np.concatenate(parts))


def _rows(chunk: Any, contig_numbers: dict[str, int], lengths: np.ndarray, row_dtype: np.dtype) -> np.ndarray:
    """Rows of one chunk of lines; each distinct name, strand and mismatch list is decoded once."""
    rows = np.empty(len(chunk), row_dtype)
    query = chunk["query"].to_numpy()
    if query.size and query.min() < 0:
        raise ValueError(f"query {query.min()}")
    rows["query"] = query
    rows["start"] = chunk["start"].to_numpy()
    rows["end"] = rows["start"] + lengths[query]
    for column, decode in (
        ("contig", lambda name: contig_numbers[name]),
        ("strand", lambda sign: "+-".index(sign)),
    ):
        distinct = chunk[column].cat
        decoded = np.array([decode(value) for value in distinct.categories], row_dtype[column])
        rows[column] = decoded[distinct.codes.to_numpy()]
    # A list such as "6:T>G,12:A>C" has one '>' a mismatch.
    lists = chunk["mismatches"].cat
    counts = np.strings.count(lists.categories.to_numpy().astype("U"), ">")
    rows["distance"] = counts[lists.codes.to_numpy()]
    return rows


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise PeerError(
            f"{name} is not on PATH: install bowtie 1.3 (with apt-get, or envs/peers.yaml and conda) "
            "or leave it out of this run"
        )
    return found


def _timed(command: list[str]) -> float:
    """Run a command: its wall time in seconds, or PeerError with the last thing it said."""
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").splitlines()
        told = [line.strip() for line in lines if line.strip() and not line.startswith(("Command:", "Warning:"))]
        raise PeerError(
            f"{Path(command[0]).name} ended with status {done.returncode}"
            f"{' and said: ' + told[-1] if told else ''} (command: {' '.join(command)})"
        )
    return seconds
