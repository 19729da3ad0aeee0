"""The command `reads`: what it writes and refuses."""

from __future__ import annotations

import gzip
import subprocess
from pathlib import Path

import pytest
from command_line import CHROMOSOME, CONTIGS, fasta, save
from oracles.kmers import reverse_complement
from oracles.reads import find_reads, leftmost_edit
from warpseed import cli

BASES = CHROMOSOME[200:260]
READS = {
    "there": BASES,
    "back": reverse_complement(BASES),
    "changed": BASES[:20] + ("A" if BASES[20] != "A" else "C") + BASES[21:],
    "longer": BASES[:30] + "GT"[BASES[30] == "G"] + BASES[30:],
    "shorter": BASES[:40] + BASES[41:],
    "nowhere": "ACGT" * 10,
    "N": BASES[:5] + "N" + BASES[6:],
}


def expected(columns: str, strands: tuple[int, ...] = (0, 1), max_edits: int = 1) -> list[str]:
    """The oracle's placements as lines, in its order."""
    names, contigs, lines = list(READS), list(CONTIGS.values()), []
    for query, contig, start, end, strand, distance in find_reads(
        contigs, list(READS.values()), max_edits, None, strands
    ):
        read = list(READS.values())[query]
        bases = contigs[contig][start:end]
        edit = leftmost_edit(reverse_complement(read) if strand else read, bases) if distance < 2 else ("several", 0)
        kind, offset, *_ = edit
        letter = {"match": "=", "mismatch": "X", "insertion": "D", "deletion": "I", "several": "*"}[kind]
        place, sign = (list(CONTIGS)[contig], start, end), "+-"[strand]
        line = (names[query], *place, sign, distance, letter, offset) if columns == "tsv" else (
            *place, names[query], distance, sign
        )  # fmt: skip
        lines.append("\t".join(map(str, line)))
    return lines


@pytest.mark.parametrize("tier", ["fast", "paper"])
@pytest.mark.parametrize("threads", ["1", "3"])
def test_tsv_is_the_oracles(tmp_path: Path, index: str, tier: str, threads: str) -> None:
    output = tmp_path / "placements.tsv"
    reads = save(tmp_path, "reads.fa", fasta(READS))
    assert cli.main(["reads", index, reads, "-o", str(output), "--tier", tier, "--threads", threads]) == 0
    heading, *lines = output.read_text().splitlines()
    assert heading == "query\tcontig\tstart\tend\tstrand\tdistance\tkind\toffset"
    assert lines == expected("tsv") and len(lines) == 14


def test_two_edits(tmp_path: Path, index: str, capsys: pytest.CaptureFixture[str]) -> None:
    reads = save(tmp_path, "reads.fa", fasta(READS))
    assert cli.main(["reads", index, reads, "--max-edits", "2", "-q"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert lines == expected("tsv", max_edits=2) and sum(line.endswith("\t2\t*\t0") for line in lines) > 20


def test_one_strand_without_edits(tmp_path: Path, index: str, capsys: pytest.CaptureFixture[str]) -> None:
    reads = save(
        tmp_path, "reads.fq", "".join(f"@{name}\n{read}\n+\n{'I' * len(read)}\n" for name, read in READS.items())
    )
    assert cli.main(["reads", index, reads, "--one-strand", "--max-edits", "0"]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines()[1:] == expected("tsv", (0,), 0)
    assert "7 reads, 1 hits written to -" in told.err


def test_sorted_bed_has_an_index(tmp_path: Path, index: str) -> None:
    reads, output = save(tmp_path, "reads.fa", fasta(READS)), tmp_path / "x.bed.gz"
    assert cli.main(["reads", index, reads, "-o", str(output), "--sorted", "-q"]) == 0
    lines = gzip.decompress(output.read_bytes()).decode().splitlines()
    assert sorted(lines) == sorted(expected("bed"))
    keys = [(list(CONTIGS).index(line.split("\t")[0]), *map(int, line.split("\t")[1:3])) for line in lines]
    assert keys == sorted(keys) and (tmp_path / "x.bed.gz.tbi").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--max-edits", "3"], "max_edits is 3, but the fast tier takes 0 to 2."),
        (["--max-edits", "2", "--tier", "paper"], "max_edits is 2, but the paper tier takes 1 alone."),
        (["-o", "x.bam"], "x.bam: the ending says no output format; end it in .tsv or .bed, or .gz behind these."),
    ],
)
def test_what_cannot_be_is_a_sentence(
    tmp_path: Path, index: str, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    reads = save(tmp_path, "reads.fa", fasta(READS))
    assert cli.main(["reads", index, reads, *arguments, "-q"]) == 1
    assert capsys.readouterr().err == f"Error: {sentence}\n"


def test_reads_come_from_a_pipe_and_go_to_one(tmp_path: Path, index: str) -> None:
    from command_line import program

    with program("reads", index, "-", "-q", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        out, said = process.communicate(fasta(READS).encode())
    assert process.returncode == 0 and not said
    assert out.decode().splitlines()[1:] == expected("tsv")
