"""Files of hits from any device, for tests that compare their bytes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from oracles.kmers import reverse_complement
from warpseed.batches import write_results
from warpseed.compute.stopwatch import Stopwatch
from warpseed.fm_index.text import unpack_text
from warpseed.kmer_seeds import kmer_search
from warpseed.kmer_seeds.output import LINES as KMER_LINES
from warpseed.mems import mem_search
from warpseed.mems.output import LINES as MEM_LINES
from warpseed.one_error import read_search
from warpseed.one_error.output import LINES as READ_LINES
from warpseed.output.writers import open_writer


class How(NamedTuple):
    """A search, and the file that its hits are written to."""

    search: Any
    lines: Any
    ending: str
    options: dict[str, Any]
    on_device: bool = True
    """whether a device makes the lines"""
    sorted: bool = False


SEARCHES = pytest.mark.parametrize(
    "how",
    [
        How(kmer_search, KMER_LINES["bed"], "bed", {"max_mismatches": 0}),
        How(kmer_search, KMER_LINES["tsv"], "tsv", {"max_mismatches": 2, "max_hits": 40}),
        How(kmer_search, KMER_LINES["bed"], "bed.gz", {"k": 15, "step": 2, "max_mismatches": 1}),
        How(kmer_search, KMER_LINES["bed"], "bed", {"tier": "paper", "max_mismatches": 1}, on_device=False),
        How(kmer_search, KMER_LINES["bed"], "bed", {"max_mismatches": 1}, on_device=False, sorted=True),
        How(read_search, READ_LINES["tsv"], "tsv", {}),
        How(read_search, READ_LINES["bed"], "bed", {"max_edits": 2, "max_hits": 40}),
        How(read_search, READ_LINES["tsv"], "tsv.gz", {"report": "best"}, on_device=False),
        How(mem_search, MEM_LINES["paf"], "paf", {"min_length": 12, "kind": "super"}, on_device=False),
        How(mem_search, MEM_LINES["tsv"], "tsv", {"min_length": 12, "kind": "maximal"}, on_device=False),
    ],
)


def write_queries(index: Any, path: Path, count: int, name: str) -> Path:
    """A file of queries cut from the genome of an index, with an error here and there; some have many hits."""
    draw = random.Random(count)
    bases = genome_of(index).replace("N", "")
    queries: list[str] = []
    while len(queries) < count:
        first = draw.randrange(len(bases) - 40)
        letters = list(bases[first : first + draw.randint(16, 36)])
        letters[draw.randrange(len(letters))] = draw.choice("ACGTN")
        query = "".join(letters)
        queries.append(query if draw.random() < 0.5 else reverse_complement(query))
    path.write_text("".join(f">{name.format(i)}\n{query}\n" for i, query in enumerate(queries)))
    return path


def genome_of(index: Any) -> str:
    """The bases of an index, with an N between its segments."""
    return "".join("NACGT"[code] for code in unpack_text(index.text, index.segments).tolist())


def write_file(how: How, index: Any, reads: Path, folder: Path, device: str, threads: int) -> bytes:
    """The bytes of the file that a search writes."""
    folder.mkdir(exist_ok=True)
    path = folder / f"hits.{how.ending}"
    search = how.search(index, device=device, threads=threads, **how.options)
    write_results(reads, search, open_writer(path, how.lines, sorted=how.sorted, threads=threads), watch=Stopwatch())
    return path.read_bytes()
