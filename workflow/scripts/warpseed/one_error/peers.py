"""Reads beside other tools: the same reads in the same file, processes in turns, and their hits held to ours.

Two questions. *Substitutions*: bowtie's hits are ours that are as long as their read, one by one. *Edits*: razers3,
yara and bwa print one alignment a place, each by a rule of its own; so both sides are held to which reads have a place,
and it is counted how many of their hits we have within `NEAR` bases, and they of ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from warpseed.batches import Options
from warpseed.errors import PeerError
from warpseed.fm_index.store import open_index
from warpseed.measure.beside import Beside, HitsOfSides, build_rows, hit_rows, our_stages
from warpseed.measure.numbered import write_numbered
from warpseed.measure.peers import bowtie, bwa, razers3, yara
from warpseed.measure.peers.process import Process, parse_hits
from warpseed.measure.processes import our_process, tool_run, tool_side
from warpseed.measure.records import join_parameters
from warpseed.measure.searches import file_to_file, outcome_of_rows
from warpseed.measure.timing import Outcome, Run, Side, side_fields, time_sides
from warpseed.one_error import read_search
from warpseed.one_error.output import LINES
from warpseed.one_error.timing import TSV_HITS, Case, chosen_reads
from warpseed.output.rows import HIT_ROW
from warpseed.sequences.queries import Queries

__all__ = ["NEAR", "error_percent", "hits_near", "time_beside_peers"]

NEAR = 2
"""Bases that the starts of one place may be apart: an insertion or deletion in a repeat is put anywhere in it."""
_PERCENT = 100


class _Work(NamedTuple):
    """The reads of a data set, as a tool takes them."""

    reads: str
    """their path"""
    few: str
    """the path of the first two of them, for how long loading takes: of one, razers3 cannot tell the length"""
    lengths: np.ndarray
    edits: int
    fastq: bool


def error_percent(lengths: np.ndarray, edits: int) -> int:
    """Edits per 100 bases that allow each read just so many.

    Raises
    ------
    PeerError
        If there is no such whole number: reads are too unlike in length.
    """
    shortest, longest = int(lengths.min()), int(lengths.max())
    percent = -(-_PERCENT * edits // shortest)
    if percent * longest // _PERCENT != edits:
        raise PeerError(
            f"reads of {shortest} to {longest} bases cannot be compared with razers3 and yara, which take edits per "
            f"hundred bases: choose those of 100 to 199 (length: [100, 199] of the data set), or others as alike"
        )
    return percent


class _Tool(NamedTuple):
    """Another tool: how its index is made, how it is run on a file of reads, and how its hits are read."""

    build: Callable[[Beside, str, int], Process] | None
    run: Callable[[Beside, str, _Work, str, int, str], Process]
    """with the index's prefix, the work, the reads' path, threads, the output"""
    parse: Callable[[str, Sequence[str], np.ndarray], np.ndarray]


def _run_bowtie(beside: Beside, prefix: str, work: _Work, reads: str, threads: int, output: str) -> Process:
    return bowtie.run_bowtie(prefix, reads, max_mismatches=work.edits, threads=threads, output=output, fastq=work.fastq)


def _run_razers3(beside: Beside, prefix: str, work: _Work, reads: str, threads: int, output: str) -> Process:
    percent = error_percent(work.lengths, work.edits)
    return razers3.run_razers3(beside.reference, reads, percent=percent, threads=threads, output=output)


def _run_yara(beside: Beside, prefix: str, work: _Work, reads: str, threads: int, output: str) -> Process:
    percent = error_percent(work.lengths, work.edits)
    return yara.run_yara(prefix, reads, percent=percent, threads=threads, output=output)


def _run_bwa(beside: Beside, prefix: str, work: _Work, reads: str, threads: int, output: str) -> Process:
    return bwa.run_bwa(prefix, reads, edits=work.edits, threads=threads, output=output)


_TOOLS = {
    "razers3": _Tool(None, _run_razers3, razers3.parse_razers3),
    "yara": _Tool(lambda b, prefix, _: yara.build_yara_index(b.reference, prefix), _run_yara, yara.parse_yara),
    "bwa": _Tool(lambda b, prefix, _: bwa.build_bwa_index(b.reference, prefix), _run_bwa, bwa.parse_bwa),
    "bowtie": _Tool(
        lambda b, prefix, threads: bowtie.build_bowtie_index(b.reference, prefix, threads),
        _run_bowtie,
        bowtie.parse_bowtie,
    ),
}
_QUESTIONS = {"edits": ("razers3", "yara", "bwa"), "substitutions": ("bowtie",)}
"""Items of the records, and the tools that answer each."""


def _outcome(item: str, rows: np.ndarray, lengths: np.ndarray) -> Outcome:
    """What a side found, by which the sides of an item are held to each other."""
    if item == "substitutions":
        same = rows[rows["end"] - rows["start"] == lengths[rows["query"]]]
        own = np.empty(len(same), HIT_ROW)
        for name in HIT_ROW.names or ():
            own[name] = same[name]
        return outcome_of_rows(own, lengths)
    placed = np.zeros(len(lengths), np.bool_)
    placed[rows["query"]] = True
    return Outcome(len(lengths), int(placed.sum()), hashlib.sha256(np.packbits(placed).tobytes()).hexdigest())


def hits_near(rows: np.ndarray, others: np.ndarray) -> int:
    """How many hits have one of the others on the same strand of the same contig, for the same query, within NEAR."""
    if not len(rows) or not len(others):
        return 0
    contigs = 1 + max(int(rows["contig"].max()), int(others["contig"].max()))
    width = 1 + 2 * NEAR + max(int(rows["start"].max()), int(others["start"].max()))

    def keys(hits: np.ndarray) -> np.ndarray:
        place = (hits["query"].astype(np.int64) * 2 + hits["strand"]) * contigs + hits["contig"]
        return place * width + NEAR + hits["start"]

    there = np.sort(keys(others))
    mine = keys(rows)
    return int((np.searchsorted(there, mine + NEAR, "right") > np.searchsorted(there, mine - NEAR, "left")).sum())


def _peer(beside: Beside, name: str, work: _Work, threads: int, hits: HitsOfSides) -> Side:
    """A tool's process, its loading, and as `total` the one less the other."""
    tool, output = _TOOLS[name], str(beside.folder / f"{name}.out")
    prefix = str(beside.folder / name)

    def start(reads: str) -> Process:
        return tool.run(beside, prefix, work, reads, threads, output)

    def outcome() -> Outcome:
        return hits.told(name, lambda: tool.parse(output, beside.contigs, work.lengths))

    return tool_side(
        "one_error", name, threads, tool_run(partial(start, work.few), partial(start, work.reads), outcome)
    )


def _our_process(beside: Beside, work: _Work, threads: int, hits: HitsOfSides) -> Side:
    """Our command line: index opened, reads read, TSV written, and that TSV read back."""
    output = beside.folder / "placements.tsv"
    command = ["reads", beside.our_index, work.reads, "--max-edits", str(work.edits)]

    def outcome() -> Outcome:
        parse = partial(parse_hits, output, TSV_HITS, beside.contigs, work.lengths)
        return hits.told("warpseed", parse)

    return our_process("one_error", command, Options("fast", "cpu", threads), output, outcome)


def _our_stages(beside: Beside, work: _Work, threads: int, hits: HitsOfSides) -> Side:
    """The same in this process, with the index open."""
    index = open_index(beside.our_index)
    options = Options("fast", "cpu", threads)

    def outcome(path: Path) -> Outcome:
        parse = partial(parse_hits, path, TSV_HITS, beside.contigs, work.lengths)
        return hits.told("warpseed", parse)

    def run_of(reads: str) -> Run:
        search = partial(read_search, index, max_edits=work.edits, **options._asdict())
        return file_to_file(reads, search, beside.folder / "stages.tsv", LINES["tsv"], outcome)

    return our_stages("one_error", run_of, work.reads, work.few, options)


def _work_of(case: Case, folder: Path) -> _Work:
    reads: Queries = chosen_reads(case.reads, case.most, case.length)
    whole = write_numbered(reads, folder)
    first = folder / "first"
    first.mkdir()
    few = write_numbered(reads.slice(0, 2), first)
    return _Work(whole, few, reads.lengths, case.criteria.max_edits, reads.qualities is not None)


def time_beside_peers(
    beside: Beside, case: Case, *, tools: Sequence[str], threads: Sequence[int], repeats: int
) -> list[dict[str, Any]]:
    """Time other tools and our fast tier on the CPU with the same reads, in turns, with each number of threads.

    Parameters
    ----------
    beside : Beside
    case : Case; both strands are searched
    tools : names among 'razers3', 'yara', 'bwa', 'bowtie'
    threads : CPU threads, of all sides
    repeats : runs of each side after one that does not count

    Returns
    -------
    list of records: of item 'edits' or 'substitutions' the stages of ours with the index open, `process` of all sides
    with its peak memory, of the others also `load` (the same with two reads) and, as `total`, the difference; how many
    hits are the same; of item 'index' what the tools' indexes took
    """
    work = _work_of(case, beside.folder)
    parameters = join_parameters({"edits": case.criteria.max_edits, "strands": 2})
    rows: list[dict[str, Any]] = []
    for name in tools:
        build = _TOOLS[name].build
        if build is not None:
            most = max(threads)
            rows += build_rows("one_error", name, most, build(beside, str(beside.folder / name), most))
    for item, asked in _QUESTIONS.items():
        named = {"item": item, "case": case.name, "parameters": parameters}
        chosen = [name for name in asked if name in tools]
        for count in threads if chosen else ():
            hits = HitsOfSides(partial(_outcome, item, lengths=work.lengths), {})
            sides = [_peer(beside, name, work, count, hits) for name in chosen]
            sides += [_our_process(beside, work, count, hits), _our_stages(beside, work, count, hits)]
            rows += time_sides(sides, repeats, named)
            fields = side_fields("one_error", tier="-", device="cpu", threads=count) | named
            rows += hit_rows(hits, fields | {"queries": len(work.lengths)}, hits_near)
    return rows
