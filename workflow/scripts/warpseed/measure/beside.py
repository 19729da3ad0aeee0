"""Other tools and ours with the same queries in the same file: what the sides read, and what each of them found."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from warpseed.batches import Options
from warpseed.measure.peers.process import Process
from warpseed.measure.timing import Outcome, Run, Side, add_total, side_fields
from warpseed.sequences.names import Names
from warpseed.sequences.queries import Queries, write_fasta
from warpseed.sequences.reference import read_reference

__all__ = ["Beside", "HitsOfSides", "build_rows", "hit_rows", "new_beside", "our_stages"]


class Beside(NamedTuple):
    """What all sides read, and where they write."""

    reference: str
    """a FASTA file, not compressed"""
    our_index: str
    """its folder"""
    contigs: Sequence[str]
    """names of the contigs, in the order of the reference"""
    folder: Path
    """an empty folder, for indexes, queries and hits"""


@contextmanager
def new_beside(reference: str | os.PathLike[str], our_index: str) -> Iterator[Beside]:
    """A folder for the sides, which is removed behind. The reference is written there, plain, and with N for what is no
    A, C, G or T: not every tool reads gzip, nor all letters of IUPAC."""
    genome = read_reference(reference)
    with tempfile.TemporaryDirectory() as folder:
        plain = os.path.join(folder, "reference.fa")
        write_fasta(Queries(genome.codes, genome.offsets, *Names.of(genome.names), genome.path), plain)
        yield Beside(plain, our_index, genome.names, Path(folder))


def build_rows(system: str, tool: str, threads: int, process: Process) -> list[dict[str, Any]]:
    """What another tool's index took, built once: records of item 'index', time and peak memory of the process."""
    shared = {"system": system, "tool": tool, "item": "index", "case": "build", "threads": threads, "stage": "process"}
    peak = {"metric": "memory", "value": process.peak_bytes, "unit": "bytes"}
    return [{**shared, "metric": "time", "value": process.seconds, "unit": "s"}, {**shared, **peak}]


class HitsOfSides(NamedTuple):
    """The hits of the last run of each side, rows by the side's tool."""

    outcome_of: Callable[[np.ndarray], Outcome]
    """what a side found, by which the sides are held to each other"""
    rows: dict[str, np.ndarray]

    def told(self, tool: str, parse: Callable[[], np.ndarray]) -> Outcome:
        """What a side found, worked out from its file."""
        self.rows[tool] = parse()
        return self.outcome_of(self.rows[tool])


def our_stages(system: str, run_of: Callable[[str], Run], queries: str, few: str, options: Options) -> Side:
    """Our search in this process, with the index open.

    Parameters
    ----------
    system : of the records
    run_of : of the path of some queries
    queries, few : their path, and that of some that warm it up
    """
    tier, device, threads, _ = options
    fields = side_fields(system, tier=tier, device=device, threads=threads)
    return Side(add_total(run_of(queries)), lambda watch: run_of(few)(watch)(), fields)


def hit_rows(
    hits: HitsOfSides, fields: Mapping[str, Any], in_common: Callable[[np.ndarray, np.ndarray], int]
) -> list[dict[str, Any]]:
    """How many hits each tool printed, how many of them we have, and how many of ours it has.

    Parameters
    ----------
    fields : the other columns of the records
    in_common : of some hits, how many of them are among the others
    """
    ours = hits.rows["warpseed"]
    rows = []
    for tool in (tool for tool in hits.rows if tool != "warpseed"):
        theirs = hits.rows[tool]
        counts = {"hits": len(theirs), "hits_of_theirs": in_common(theirs, ours)}
        counts |= {"our_hits": len(ours), "hits_of_ours": in_common(ours, theirs)}
        shared = {**fields, "tool": tool, "tier": "-", "stage": "-", "unit": "hits"}
        rows += [{**shared, "metric": metric, "value": value} for metric, value in counts.items()]
    return rows
