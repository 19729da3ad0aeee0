"""Long reads beside other tools: the same reads in the same file, processes in turns, and their matches held to ours.

Each kind of match has tools of its own: *super* is what ``bwa fastmap`` finds, *maximal* what ``mummer -maxmatch``
does. All sides print every match at every place, so the sets are compared match by match.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from warpseed.batches import Options
from warpseed.fm_index.store import open_index
from warpseed.measure.beside import Beside, HitsOfSides, build_rows, hit_rows, our_stages
from warpseed.measure.numbered import write_numbered
from warpseed.measure.peers import bwa, mummer
from warpseed.measure.peers.matches import PEER_MATCH
from warpseed.measure.peers.process import HitLines, Process, parse_hits
from warpseed.measure.processes import our_process, tool_run, tool_side
from warpseed.measure.records import join_parameters
from warpseed.measure.searches import file_to_file, outcome_of_rows
from warpseed.measure.timing import Outcome, Run, Side, side_fields, time_sides
from warpseed.mems import mem_search
from warpseed.mems.matches import KINDS, Criteria
from warpseed.mems.output import LINES
from warpseed.mems.timing import Case, chosen_reads, parameters_of
from warpseed.output.rows import order_rows

__all__ = ["TOOLS", "matches_in_common", "time_beside_peers"]

TSV_MATCHES = HitLines(
    dict(enumerate(("query", "contig", "start", "end", "strand", "read_start", "read_end", "occurrences"))),
    row_type=np.dtype([*PEER_MATCH.descr, ("read_end", "<i8"), ("occurrences", "<i8")]),
    heading=1,
    as_long=False,
)
"""Our TSV of matches."""


_OURS = Options("fast", "cpu", 1)


class _Work(NamedTuple):
    """The reads of a data set, as a tool takes them."""

    reads: str
    """their path"""
    few: str
    """the path of the first one of them, for how long loading takes"""
    lengths: np.ndarray
    min_length: int


class _Tool(NamedTuple):
    """Another tool: the kind of match that it finds, how it is run on a file of reads, and how its matches are read."""

    kind: str
    build: Callable[[Beside], Process] | None
    run: Callable[[Beside, str, int, str], Process]
    """with the reads' path, the least length, the output"""
    parse: Callable[[str, Sequence[str], np.ndarray], np.ndarray]


def _bwa_prefix(beside: Beside) -> str:
    return str(beside.folder / "bwa")


def _run_fastmap(beside: Beside, reads: str, min_length: int, output: str) -> Process:
    return bwa.run_fastmap(_bwa_prefix(beside), reads, min_length=min_length, output=output)


def _run_mummer(program: str, beside: Beside, reads: str, min_length: int, output: str) -> Process:
    return mummer.run_mummer(beside.reference, reads, min_length=min_length, output=output, program=program)


TOOLS = {
    "bwa": _Tool("super", lambda b: bwa.build_bwa_index(b.reference, _bwa_prefix(b)), _run_fastmap, bwa.parse_fastmap),
    **{name: _Tool("maximal", None, partial(_run_mummer, name), mummer.parse_mummer) for name in mummer.PROGRAMS},
}


def matches_in_common(some: np.ndarray, others: np.ndarray) -> int:
    """How many matches (PEER_MATCH, each once) are the same."""
    both = order_rows(np.concatenate([some, others]), PEER_MATCH.names or ())
    return int((both[1:] == both[:-1]).sum())


def _parse_ours(path: Path, beside: Beside, work: _Work) -> np.ndarray:
    found = parse_hits(path, TSV_MATCHES, beside.contigs, work.lengths)
    rows = np.empty(len(found), PEER_MATCH)
    for name in PEER_MATCH.names or ():
        rows[name] = found[name]
    return order_rows(rows, PEER_MATCH.names or ())


def _peer(beside: Beside, name: str, work: _Work, matches: HitsOfSides) -> Side:
    """A tool's process, its loading, and as `total` the one less the other."""
    tool, output = TOOLS[name], str(beside.folder / f"{name}.out")

    def start(reads: str) -> Process:
        return tool.run(beside, reads, work.min_length, output)

    def outcome() -> Outcome:
        return matches.told(name, lambda: tool.parse(output, beside.contigs, work.lengths))

    return tool_side("mems", name, 1, tool_run(partial(start, work.few), partial(start, work.reads), outcome))


def _our_process(beside: Beside, kind: str, work: _Work, matches: HitsOfSides) -> Side:
    """Our command line: index opened, reads read, TSV written, and that TSV read back."""
    output = beside.folder / "matches.tsv"
    command = ["mems", beside.our_index, work.reads, "--min-length", str(work.min_length), "--kind", kind]

    def outcome() -> Outcome:
        return matches.told("warpseed", partial(_parse_ours, output, beside, work))

    return our_process("mems", command, _OURS, output, outcome)


def _our_stages(beside: Beside, kind: str, work: _Work, matches: HitsOfSides) -> Side:
    """The same in this process, with the index open."""
    index = open_index(beside.our_index)

    def outcome(path: Path) -> Outcome:
        return matches.told("warpseed", partial(_parse_ours, path, beside, work))

    def run_of(reads: str) -> Run:
        search = partial(mem_search, index, min_length=work.min_length, kind=kind, **_OURS._asdict())
        return file_to_file(reads, search, beside.folder / "stages.tsv", LINES["tsv"], outcome)

    return our_stages("mems", run_of, work.reads, work.few, _OURS)


def time_beside_peers(beside: Beside, case: Case, *, tools: Sequence[str], repeats: int) -> list[dict[str, Any]]:
    """Time other tools, which have one thread, and our fast tier on one with the same reads, in turns.

    Parameters
    ----------
    beside : Beside
    case : Case; both strands are searched, with each of its least lengths
    tools : names among those of TOOLS
    repeats : runs of each side after one that does not count

    Returns
    -------
    list of records: of item 'super' or 'maximal' the stages of ours with the index open, `process` of both sides with
    its peak memory, of the other also `load` (the same with one read) and, as `total`, the difference; how many matches
    are the same; of item 'index' what a tool's index took
    """
    reads = chosen_reads(case.reads, case.most)
    first = beside.folder / "first"
    first.mkdir()
    whole, few = write_numbered(reads, beside.folder), write_numbered(reads.slice(0, 1), first)
    rows: list[dict[str, Any]] = []
    for name in tools:
        build = TOOLS[name].build
        if build is not None:
            rows += build_rows("mems", name, 1, build(beside))
    for kind in dict.fromkeys(TOOLS[name].kind for name in tools):
        for min_length in case.min_lengths:
            work = _Work(whole, few, reads.lengths, min_length)
            parameters = join_parameters(parameters_of(Criteria(min_length, KINDS[kind], 2)))
            fields = {"item": kind, "case": case.name, "parameters": parameters}
            matches = HitsOfSides(partial(outcome_of_rows, lengths=reads.lengths), {})
            sides = [_peer(beside, name, work, matches) for name in tools if TOOLS[name].kind == kind]
            sides += [_our_process(beside, kind, work, matches), _our_stages(beside, kind, work, matches)]
            rows += time_sides(sides, repeats, fields)
            shared = side_fields("mems", tier="-", device="cpu", threads=1) | fields
            rows += hit_rows(matches, shared | {"queries": len(reads)}, matches_in_common)
    return rows
