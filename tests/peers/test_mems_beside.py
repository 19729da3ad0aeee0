"""Maximal exact matches beside MUMmer and bwa fastmap, match by match: the oracle's, and those of the search."""

from __future__ import annotations

import gzip
import random
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest
import warpseed
from oracles.kmers import differences, reverse_complement
from oracles.mems import Match, find_mems
from warpseed import build_index, cli
from warpseed.sequences.queries import write_fasta
from warpseed.sequences.reference import read_reference
from warpseed.sequences.simulate import simulate_reads

REPEAT = 300


def genome_of(draw: random.Random, bases: int) -> str:
    """Random bases with five copies of a repeat, some of them changed or turned round, a tandem repeat and a run."""
    family = "".join(draw.choices("ACGT", k=REPEAT))
    parts = []
    for _ in range(5):
        copy = "".join(draw.choice("ACGT") if draw.random() < 0.03 else base for base in family)
        parts += [draw.choice([copy, reverse_complement(copy)]), "".join(draw.choices("ACGT", k=bases // 5 - REPEAT))]
    return "".join([*parts[:5], "GATTACA" * 12, "A" * 40, "GAATTC" * 6, *parts[5:]])


def reads_of(genome: str, draw: random.Random, letters: str = "ACGT") -> list[str]:
    """Pieces of either strand of up to 1,500 bases, with 12 % of substitutions, insertions and deletions."""
    reads = []
    for number in range(40):
        length = draw.randint(30, 1500)
        start = draw.randint(100, len(genome) - length - 100)
        changed = []
        for base in genome[start : start + length]:
            dice = draw.random() if number % 5 else 1
            changed.append("" if dice < 0.04 else draw.choice(letters) if dice < 0.08 else base)
            changed.append(draw.choice(letters) if 0.08 <= dice < 0.12 else "")
        reads.append(draw.choice([str, reverse_complement])("".join(changed)))
    return [*reads, "A" * 100, "GATTACA" * 20, "GAATTC" * 8]


def run(*arguments: str | Path) -> list[str]:
    return subprocess.run(arguments, check=True, capture_output=True, text=True).stdout.splitlines()


def mummer_matches(fasta: Path, reads_path: Path, reads: Sequence[str], min_length: int) -> list[set[Match]]:
    """What `mummer -maxmatch` finds of each read: places are counted from 1, of the reverse complement of a piece of
    the read its last one."""
    matches: list[set[Match]] = [set() for _ in reads]
    options = ("-maxmatch", "-b", "-c", "-n", "-F", "-l", str(min_length))
    read = strand = 0
    for line in run("mummer", *options, fasta, reads_path):
        if line.startswith(">"):
            read, strand = int(line.split()[1].removeprefix("r")), line.endswith("Reverse")
            continue
        contig, start, place, length = line.split()
        read_start = int(place) - (int(length) if strand else 1)
        match = int(strand), int(contig.removeprefix("c")), int(start) - 1, read_start, int(length)
        assert match not in matches[read]
        matches[read].add(match)
    return matches


def fastmap_matches(
    fasta: Path, reads_path: Path, reads: Sequence[str], min_length: int
) -> tuple[list[set[Match]], dict[tuple[int, int, int], int]]:
    """What `bwa fastmap` finds of each read, in a genome of one contig; and its count of each part of a read."""
    subprocess.run(["bwa", "index", fasta], check=True, capture_output=True)
    matches: list[set[Match]] = [set() for _ in reads]
    counts = {}
    read = 0
    for line in run("bwa", "fastmap", "-l", str(min_length), "-w", "1000000", fasta, reads_path):
        fields = line.split("\t")
        if fields[0] == "SQ":
            read = int(fields[1].removeprefix("r"))
        elif fields[0] == "EM":
            first, end, count, *places = fields[1:]
            assert len(places) == int(count)
            counts[read, int(first), int(end)] = int(count)
            for strand, start in ((place[3], place[4:]) for place in places):
                matches[read].add(("+-".index(strand), 0, int(start) - 1, int(first), int(end) - int(first)))
    return matches, counts


def assert_same(
    found: Sequence[set[Match]], contigs: Sequence[str], fasta: Path, reads: Sequence[str], min_length: int, kind: str
) -> np.ndarray:
    rows = warpseed.find_mems(build_index(fasta), list(reads), min_length=min_length, kind=kind).rows()
    for number, (read, matches) in enumerate(zip(reads, found, strict=True)):
        true = find_mems(contigs, read, min_length, kind)
        assert matches == true, (differences(list(matches), list(true)), read)
        mine = rows[rows["query"] == number]
        columns = (mine[name].tolist() for name in ("strand", "contig", "start", "read_start", "length"))
        assert set(zip(*columns, strict=True)) == true and len(mine) == len(true)
    return rows


def plain(path: Path) -> bytes:
    """What a file holds, unpacked."""
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def sections(lines: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Headings, and the lines below each, in the order of the lines."""
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        if line.startswith(">"):
            found.append((line, []))
        else:
            found[-1][1].append(line)
    return [(heading, sorted(below)) for heading, below in found]


def written(reads: Sequence[str], path: Path) -> Path:
    path.write_text("".join(f">r{number}\n{read}\n" for number, read in enumerate(reads)))
    return path


@pytest.mark.peer("mummer")
@pytest.mark.parametrize("min_length", [10, 14, 20, 33])
def test_maximal_is_what_mummer_finds(write_reference: Callable[..., Path], tmp_path: Path, min_length: int) -> None:
    """Three contigs with holes; reads have holes too, some span the end of one contig and the start of the next, and
    some are a contig."""
    draw = random.Random(min_length)
    contigs = [genome_of(draw, 6000), "".join(draw.choices("ACGT", k=700)), genome_of(draw, 3000)]
    contigs[2] = contigs[2][:500] + "NNN" + contigs[2][500:900] + "R" + contigs[2][901:].lower()
    whole = "".join(contigs).upper().replace("R", "N")
    reads = [*reads_of(whole, draw, "ACGTACGTN"), contigs[0][-200:] + contigs[1][:200], contigs[1], "N" * 50]
    reads += [contigs[2][100:1200], reverse_complement(contigs[2]), contigs[0][-60:], contigs[2][:60], "ACGTACG"]
    path = written(reads, tmp_path / "reads.fa")
    fasta = write_reference(contigs)
    found = mummer_matches(fasta, path, reads, min_length)
    assert_same(found, contigs, fasta, reads, min_length, "maximal")
    assert sum(map(len, found)) > 100


@pytest.mark.peer("mummer")
@pytest.mark.parametrize("options", [("-b", "-c"), pytest.param((), marks=pytest.mark.thorough)])
def test_its_text_is_mummers(real_genome: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    """Headings and lines, byte by byte, in the order of the reads; a heading's lines have another order."""
    genome, reads, output = tmp_path / "genome.fa", tmp_path / "reads.fa", tmp_path / "matches.mums"
    genome.write_bytes(plain(real_genome))
    long_reads = real_genome.parent / "ecoli_k12_ont_ultralong.fa.gz"
    if long_reads.is_file():
        reads.write_bytes(b"".join(plain(long_reads).splitlines(keepends=True)[:120]))
    else:
        simulated = simulate_reads(read_reference(genome), count=100, length=[500, 20_000], error_rate=0.12, seed=3)
        write_fasta(simulated, reads)
    build_index(genome).save(tmp_path / "index")
    command = ["mems", str(tmp_path / "index"), str(reads), "-o", str(output), "--kind", "maximal"]
    assert cli.main([*command, *([] if options else ["--one-strand"])]) == 0
    found = sections(run("mummer", "-maxmatch", *options, "-n", "-F", "-l", "20", genome, reads))
    assert sections(output.read_text().splitlines()) == found
    assert sum(len(below) for _, below in found) > 1000


@pytest.mark.peer("bwa")
@pytest.mark.parametrize("min_length", [10, 14, 20, 33])
def test_super_is_what_fastmap_finds(write_reference: Callable[..., Path], tmp_path: Path, min_length: int) -> None:
    """One contig without a hole. At its end, where bwa goes on with the reverse complement, stands what no read has."""
    draw = random.Random(min_length)
    contigs = [genome_of(draw, 8000) + "C" * 100]
    reads = [*reads_of(contigs[0], draw, "ACGTACGTN"), contigs[0][:400], "N" * 50, "ACGTACG"]
    path = written(reads, tmp_path / "reads.fa")
    fasta = write_reference(contigs)
    found, counts = fastmap_matches(fasta, path, reads, min_length)
    rows = assert_same(found, contigs, fasta, reads, min_length, "super")
    parts = zip(*(rows[name].tolist() for name in ("query", "read_start", "read_end", "occurrences")), strict=True)
    assert {(query, first, end): occurrences for query, first, end, occurrences in parts} == counts
    assert sum(map(len, found)) > 100
