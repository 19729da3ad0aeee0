"""Building an index beside bwa's: in this process, and as processes whose time and peak memory are told."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from warpseed.compute.stopwatch import Stopwatch
from warpseed.fm_index.build import build_index
from warpseed.measure.peers.bwa import time_bwa_index
from warpseed.measure.peers.process import Process, run_warpseed
from warpseed.measure.processes import process_run
from warpseed.measure.timing import Outcome, Run, Side, side_fields, time_sides

__all__ = ["time_builds"]

_NOTHING_FOUND = Outcome(-1, -1, "")


def _in_process(fasta: str, threads: int) -> Run:
    """Build what the fast tier needs; the index is not saved."""

    def run(watch: Stopwatch) -> Callable[[], Outcome]:
        for stage, seconds in build_index(fasta, threads=threads).seconds.items():
            watch.add(stage, seconds)
        return lambda: _NOTHING_FOUND

    return run


def _as_process(start: Callable[[], Process]) -> Run:
    return process_run(start, lambda: _NOTHING_FOUND)


def _our_process(fasta: str, folder: str, threads: int) -> Process:
    """`warpseed index`: FASTA read, index built and saved."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        return run_warpseed(["index", fasta, "-o", os.path.join(scratch, "index"), "--threads", str(threads)])


def time_builds(
    fasta: str | os.PathLike[str], *, system: str, threads: Sequence[int], repeats: int, beside_bwa: bool
) -> list[dict[str, Any]]:
    """Time building the index that the fast tier needs, in turns with bwa's.

    Parameters
    ----------
    fasta : the genome, plain or gzip
    system : of the records
    threads : of our builds; bwa's has one
    repeats : builds of each kind after a warm-up, which is a tiny genome for ours
    beside_bwa : whether bwa is measured too

    Returns
    -------
    list of records of item "index", case "build": the stages of a build in this process; stage `process` of ours and
    of bwa's, with metric `time`, and metric `memory` (peak resident bytes)
    """
    fasta = os.fspath(fasta)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        tiny = os.path.join(folder, "tiny.fa")
        Path(tiny).write_text(">tiny\n" + "ACGTTGCATGCCATGANN" * 20 + "\n")
        for count in threads:
            ours = {"item": "index", "case": "build", **side_fields(system, tier="fast", device="cpu", threads=count)}
            process = _as_process(partial(_our_process, fasta, folder, count))
            bwa = _as_process(partial(time_bwa_index, fasta, folder))
            sides = [
                Side(_in_process(fasta, count), _in_process(tiny, count), ours),
                Side(process, _as_process(partial(_our_process, tiny, folder, count)), ours),
            ]
            if beside_bwa and count == threads[0]:
                sides.append(Side(bwa, lambda _: None, ours | {"tool": "bwa", "tier": "-", "threads": 1}))
            rows += time_sides(sides, repeats)
    return rows
