"""Other tools as processes: found on PATH, run and timed, and the hits they print as our rows.

Our own command line is timed and read back by the same functions, so that both sides of a comparison are treated alike.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from warpseed.errors import PeerError
from warpseed.output.rows import HIT_ROW

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "HitLines",
    "Process",
    "find_program",
    "parse_hits",
    "program_version",
    "run_process",
    "run_warpseed",
]

_LIBRARY = str(Path(__file__).resolve().parents[3])

_LINES_AT_ONCE = 4_000_000
_TIMEOUT_S = 20

# The peak that the system reports for a child is at least that of the process which started it, so a small one does.
_STARTER = """
import json, os, sys, time
writing = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
to_file = [(os.POSIX_SPAWN_OPEN, 1, sys.argv[1], writing, 0o666)]
began = time.perf_counter()
process = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ, file_actions=to_file)
_, status, usage = os.wait4(process, 0)
seconds = time.perf_counter() - began
print(json.dumps([os.waitstatus_to_exitcode(status), seconds, usage.ru_maxrss]))
"""


class HitLines(NamedTuple):
    """How a tool writes hits: a line each, its columns separated by tabs."""

    columns: Mapping[int, str]
    """which column, from 0, is `query`, `contig`, `start` (0-based), `strand` (+ or -), `distance`, and which are other
    fields of the rows; `end` too where there is one"""
    decode: Mapping[str, Callable[[str], int]] = {}
    """turns the text of a column into a number, where it is none"""
    row_type: np.dtype = HIT_ROW
    """what a line is read as"""
    heading: int = 0
    """lines before the first hit"""
    as_long: bool = True
    """whether every hit is as long as its query"""
    tool: str = "warpseed"
    """who writes such lines, for the error"""


class Process(NamedTuple):
    """What running a process took."""

    seconds: float
    """wall time, from its start to its end"""
    peak_bytes: int
    """peak resident memory"""


def find_program(name: str, advice: str) -> str:
    """Path of a program on PATH.

    Raises
    ------
    PeerError
        If it is not there; `advice` says how to get it.
    """
    found = shutil.which(name)
    if found is None:
        raise PeerError(f"{name} is not on PATH: {advice}, or leave it out of this run")
    return found


def program_version(command: Sequence[str], pattern: str) -> str | None:
    """What `pattern`'s group finds in what a command prints on either stream, whatever its exit status.

    None where the program is not installed, hangs, or prints no such thing.
    """
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(pattern, done.stdout.decode(errors="replace"), re.MULTILINE)
    return found.group(1) if found else None


def run_process(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    output: str | os.PathLike[str] = os.devnull,
) -> Process:
    """Run a command to its end.

    Parameters
    ----------
    command
        Its first word is the path of a program.
    environment
        Variables beside those of this process.
    output
        File that takes what it prints, which is not kept by default.

    Raises
    ------
    PeerError
        If it fails, with the last thing it said.
    """
    starter = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _STARTER, os.fspath(output), *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **(environment or {})},
        process_group=0,
    )
    with starter:
        try:
            out, errors = starter.communicate()
        except BaseException:  # we are to end: so is what was started, and what that has started
            with suppress(ProcessLookupError):
                os.killpg(starter.pid, signal.SIGKILL)
            raise
    said = errors.decode(errors="replace").splitlines()
    status, seconds, peak = json.loads(out) if starter.returncode == 0 else (starter.returncode, 0.0, 0)
    if status != 0:
        told = [line.strip() for line in said if line.strip() and not line.startswith(("Command:", "Warning:"))]
        raise PeerError(
            f"{Path(command[0]).name} ended with status {status}"
            f"{' and said: ' + told[-1] if told else ''} (command: {' '.join(command)})"
        )
    return Process(seconds, peak * (1 if sys.platform == "darwin" else 1024))


def run_warpseed(arguments: Sequence[str]) -> Process:
    """Run our command line with this Python, this library and what else PYTHONPATH names to its end, as `run_process`
    does.

    Raises
    ------
    PeerError
        If it fails, with the last thing it said.
    """
    path = os.pathsep.join(filter(None, [_LIBRARY, os.environ.get("PYTHONPATH")]))
    # -P: no file in the working folder that is called as a module is.
    return run_process([sys.executable, "-P", "-m", "warpseed", *arguments], environment={"PYTHONPATH": path})


def parse_hits(
    path: str | os.PathLike[str], lines: HitLines, contigs: Sequence[str], query_lengths: np.ndarray
) -> np.ndarray:
    """Lines of hits as our rows, in the order of the lines.

    Parameters
    ----------
    path
        Hits of queries named by number (`number_queries`).
    lines
        How they are written.
    contigs
        Names of the contigs, in the order of the reference.
    query_lengths
        int64[queries], bases in each query.

    Returns
    -------
    numpy.ndarray
        `lines.row_type`.

    Raises
    ------
    PeerError
        If a line is none of the tool's, or names a query or contig that is not known.
    """
    import pandas as pd

    numbers = {name: number for number, name in enumerate(contigs)}
    decoders: dict[str, Callable[[str], int]] = {
        "contig": numbers.__getitem__,
        "strand": "+-".index,
        "distance": int,
        **lines.decode,
    }
    dtypes = {name: "category" if name in decoders else "int64" for name in lines.columns.values()}
    try:
        reader = pd.read_csv(
            path,
            sep="\t",
            header=None,
            skiprows=lines.heading,
            names=[lines.columns.get(i, str(i)) for i in range(max(lines.columns) + 1)],
            usecols=list(lines.columns.values()),
            dtype=dtypes,
            keep_default_na=False,
            quoting=3,
            chunksize=_LINES_AT_ONCE,
        )
        with reader:
            parts = [_rows(chunk, decoders, np.asarray(query_lengths), lines) for chunk in reader]
    except pd.errors.EmptyDataError:
        return np.empty(0, lines.row_type)
    except (ValueError, KeyError, IndexError) as error:
        tool = lines.tool
        raise PeerError(
            f"{path} is not what {tool} prints for queries named 0 to {len(query_lengths) - 1} on this "
            f"reference ({error!r}); run {tool} again on the same queries and reference"
        ) from error
    return np.concatenate(parts)


def _rows(
    chunk: pd.DataFrame, decoders: Mapping[str, Callable[[str], Any]], lengths: np.ndarray, lines: HitLines
) -> np.ndarray:
    """Rows of one chunk of lines; each distinct name, strand, distance and the like is decoded once."""
    rows = np.empty(len(chunk), lines.row_type)
    query = chunk["query"].to_numpy()
    if query.size and query.min() < 0:
        raise ValueError(f"query {query.min()}")
    rows["end"] = chunk["start"].to_numpy() + lengths[query]
    if lines.as_long and "end" in chunk and not np.array_equal(rows["end"], chunk["end"]):
        raise ValueError("a hit is not as long as its query")
    for name in chunk.columns:
        if name not in decoders:
            rows[name] = chunk[name].to_numpy()
            continue
        distinct = chunk[name].cat
        decoded = np.array([decoders[name](value) for value in distinct.categories], rows.dtype[name])
        rows[name] = decoded[distinct.codes.to_numpy()]
    return rows
