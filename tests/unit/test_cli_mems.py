"""The command `mems`: what it writes and refuses."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pysam
import pytest
from command_line import CHROMOSOME, CONTIGS, fasta, save
from oracles.kmers import reverse_complement
from oracles.mems import find_mems
from warpseed import cli

READS = {
    "there": CHROMOSOME[20:380],
    "back": reverse_complement(CHROMOSOME[90:300]) + "N" + CHROMOSOME[500:560],
    "pieces": CHROMOSOME[100:130] + "T" + reverse_complement(CHROMOSOME[600:640]) + CHROMOSOME[110:150],
    "nowhere": "ACGT" * 10,
    "short": "ACGTACG",
}


def expected(kind: str, length: int) -> list[tuple[object, ...]]:
    """The oracle's matches: names, coordinates and strand, in output order."""
    lines = []
    for name, read in READS.items():
        matches = find_mems(list(CONTIGS.values()), read, length, kind)
        for strand, contig, start, begin, bases in sorted(matches, key=lambda of: (of[1], of[2], of[0], of[4], of[3])):
            lines.append((name, list(CONTIGS)[contig], start, start + bases, "+-"[strand], begin, begin + bases))
    return lines


@pytest.mark.parametrize("kind", ["super", "paper", "maximal"])
@pytest.mark.parametrize("threads", ["1", "3"])
def test_tsv_is_the_oracles(tmp_path: Path, index: str, kind: str, threads: str) -> None:
    output, reads = tmp_path / "matches.tsv", save(tmp_path, "reads.fa", fasta(READS))
    arguments = ["--min-length", "12", "--kind", kind, "--threads", threads]
    assert cli.main(["mems", index, reads, "-o", str(output), *arguments]) == 0
    heading, *lines = output.read_text().splitlines()
    assert heading == "query\tcontig\tstart\tend\tstrand\tread_start\tread_end\toccurrences"
    true = expected(kind, 12)
    counts = Counter((line[0], *line[5:]) for line in true)
    assert lines == ["\t".join(map(str, (*line, counts[line[0], *line[5:]]))) for line in true] and len(lines) > 5


def test_both_tiers_write_the_same(tmp_path: Path, index: str) -> None:
    """The paper tier's matches, from file to file."""
    reads = save(tmp_path, "reads.fa", fasta(READS))
    for tier in ("fast", "paper"):
        arguments = ["--min-length", "12", "--kind", "paper", "--tier", tier, "--threads", "2"]
        assert cli.main(["mems", index, reads, "-o", str(tmp_path / f"{tier}.tsv"), *arguments]) == 0
    assert (tmp_path / "fast.tsv").read_bytes() == (tmp_path / "paper.tsv").read_bytes()


def test_paf_says_the_same(tmp_path: Path, index: str) -> None:
    """Lengths of reads and contigs, the match as a CIGAR string; packed, and on standard output in TSV's order."""
    output, reads = tmp_path / "matches.paf.gz", save(tmp_path, "reads.fa", fasta(READS))
    assert cli.main(["mems", index, reads, "-o", str(output)]) == 0
    lines = [line.split("\t") for line in gzip.decompress(output.read_bytes()).decode().splitlines()]
    assert [
        (query, contig, int(start), int(end), strand, int(first), int(last))
        for query, _, first, last, strand, contig, _, start, end, *_ in lines
    ] == expected("super", 20)
    for query, length, first, last, _, contig, contig_length, _, _, *rest in lines:
        bases = int(last) - int(first)
        assert int(length) == len(READS[query]) and int(contig_length) == len(CONTIGS[contig])
        occurrences = sum(line[0] == query and line[2:4] == [first, last] for line in lines)
        assert rest == [str(bases), str(bases), "255", f"NH:i:{occurrences}", f"cg:Z:{bases}="]


def test_a_sorted_paf_is_read_by_place(tmp_path: Path, index: str) -> None:
    """Its index says of the columns what tabix would."""
    reads = save(tmp_path, "reads.fa", fasta(READS))
    path, theirs = str(tmp_path / "m.paf.gz"), str(tmp_path / "theirs.tbi")
    assert cli.main(["mems", index, reads, "-o", path, "--sorted", "--min-length", "12", "--kind", "maximal"]) == 0
    lines = gzip.decompress(Path(path).read_bytes()).decode().splitlines()
    places = [(fields[5], int(fields[7]), int(fields[8])) for fields in (line.split("\t") for line in lines)]
    with pysam.TabixFile(path) as table:
        assert list(table.fetch()) == lines
        for name, length in ((name, len(contig)) for name, contig in CONTIGS.items()):
            for begin in range(0, length, 50):
                there = [contig == name and start < begin + 9 and end > begin for contig, start, end in places]
                expected = [line for line, is_there in zip(lines, there, strict=True) if is_there]
                assert (list(table.fetch(name, begin, begin + 9)) if name in table.contigs else []) == expected
    pysam.tabix_index(path, seq_col=5, start_col=7, end_col=8, zerobased=True, meta_char="#", index=theirs)
    ours, of_tabix = (gzip.decompress(Path(each).read_bytes())[8:32] for each in (f"{path}.tbi", theirs))
    assert ours == of_tabix and len(lines) > 5


def mummer_lines(kind: str, length: int, strands: str) -> str:
    """The oracle's matches as MUMmer has them, in our order."""
    matches, width = expected(kind, length), max(map(len, CONTIGS))
    text = ""
    for name, strand in ((name, strand) for name in READS for strand in strands):
        text += f"> {name}{' Reverse' if strand == '-' else ''}\n"
        for _, contig, start, end, _, first, last in (m for m in matches if (m[0], m[4]) == (name, strand)):
            place = first + 1 if strand == "+" else last  # type: ignore[operator]
            text += f"  {contig:{width}}  {start + 1:8}  {place:8}  {end - start:8}\n"  # type: ignore[operator]
    return text


@pytest.mark.parametrize("threads", ["1", "3"])
def test_the_text_of_mummer(tmp_path: Path, index: str, threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the matches of a read have no room, and come part by part of the text."""
    output, reads = tmp_path / "matches.mums", save(tmp_path, "reads.fa", fasta(READS))
    kind = ["--min-length", "9", "--kind", "maximal"]
    for strands, option in (("+-", []), ("+", ["--one-strand"])):
        for room in (1 << 17, 2):
            monkeypatch.setattr("warpseed.tasks._ROOM", room)
            monkeypatch.setattr("warpseed.tasks._LARGE_ROOM", room)
            assert cli.main(["mems", index, reads, "-o", str(output), "--threads", threads, *kind, *option]) == 0
            assert output.read_text() == mummer_lines("maximal", 9, strands)


@pytest.mark.parametrize("options", [["maximal"], ["paper"], ["paper", "--tier", "paper"]])
def test_lines_below_a_heading_are_in_the_order_of_the_tsv(tmp_path: Path, options: list[str]) -> None:
    """By contig, start, and length, and then by the place in the read."""
    genome, read = save(tmp_path, "genome.fa", ">c\nCAACG\n"), save(tmp_path, "read.fa", ">r\nAATAATAAC\n")
    assert cli.main(["index", genome, "-o", str(tmp_path / "index"), "--parts", "fast,paper"]) == 0
    command = ["mems", str(tmp_path / "index"), read, "--min-length", "1", "--one-strand", "--kind", *options]
    for ending in ("mums", "tsv"):
        assert cli.main([*command, "-o", str(tmp_path / f"m.{ending}")]) == 0
    _, *lines = (line.split() for line in (tmp_path / "m.mums").read_text().splitlines())
    rows = [(contig, int(start), int(length), int(place)) for contig, start, place, length in lines]
    _, *table = (line.split("\t") for line in (tmp_path / "m.tsv").read_text().splitlines())
    assert rows == [(row[1], int(row[2]) + 1, int(row[3]) - int(row[2]), int(row[5]) + 1) for row in table]
    assert rows == sorted(rows) and len(rows) > 5
    if options == ["maximal"]:  # by place before length is another order
        assert rows != sorted(rows, key=lambda row: (*row[:2], row[3]))


@pytest.mark.parametrize("ending", ["mums", "paf", "tsv"])
def test_a_full_disk(tmp_path: Path, index: str, refused: Callable[..., str], ending: str) -> None:
    reads, link = save(tmp_path, "reads.fa", fasta(READS)), tmp_path / f"matches.{ending}"
    link.symlink_to("/dev/full")
    expected = f"{link}: cannot be written (No space left on device); free some space, or write elsewhere."
    assert refused("mems", index, reads, "-o", str(link)) == expected


def test_the_text_of_mummer_is_not_sorted(tmp_path: Path, index: str, refused: Callable[..., str]) -> None:
    reads = save(tmp_path, "reads.fa", fasta(READS))
    assert "stand below the names" in refused("mems", index, reads, "-o", str(tmp_path / "x.mums.gz"), "--sorted")


def test_what_has_too_many_occurrences_is_said(tmp_path: Path, index: str, capsys: pytest.CaptureFixture[str]) -> None:
    output, reads = tmp_path / "matches.tsv", save(tmp_path, "reads.fa", fasta(READS))
    command = ["mems", index, reads, "-o", str(output), "--min-length", "12", "--max-occurrences", "1"]
    true = expected("super", 12)
    counts = Counter((line[0], *line[5:]) for line in true)
    rare = sum(counts[line[0], *line[5:]] == 1 for line in true)
    for more, sentence in (
        ([], f"{len(true) - rare} hits of parts with more than 1 occurrence dropped"),
        (
            ["--max-hits", "999"],
            f"at least {len(true) - rare} hits of theirs, or of parts with more than 1 occurrence",
        ),
    ):
        assert cli.main([*command, *more]) == 0
        assert sentence in capsys.readouterr().err
        assert len(output.read_text().splitlines()) == 1 + rare < 1 + len(true)


def test_bed_may_be_sorted_and_reads_have_a_limit(tmp_path: Path, index: str) -> None:
    output, reads = tmp_path / "matches.bed", save(tmp_path, "reads.fa", fasta(READS))
    limit = ["--max-hits", "2", "--one-strand"]
    assert cli.main(["mems", index, reads, "-o", str(output), "--sorted", "--min-length", "25", *limit]) == 0
    kept = {line[0] for line in expected("super", 25)}
    lines = [line.split("\t") for line in output.read_text().splitlines()]
    assert lines == sorted(lines, key=lambda line: (line[0], int(line[1]), int(line[2])))
    assert {line[3] for line in lines} <= kept and {line[5] for line in lines} == {"+"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--min-length", "0"], "min_length is 0"),
        (["--max-occurrences", "0"], "max_occurrences is 0, but 1 to 2147483646, or None for all matches"),
        (["--tier", "paper"], "the paper tier finds 'paper' alone"),
        (["--device", "tpu"], "device is 'tpu'"),
        (["--threads", "0"], "threads is 0"),
        (["-o", "x.bam"], "x.bam"),
    ],
)
def test_refusals(tmp_path: Path, index: str, refused: Callable[..., str], arguments: list[str], sentence: str) -> None:
    reads = save(tmp_path, "reads.fa", fasta(READS))
    assert sentence in refused("mems", index, reads, "-o", str(tmp_path / "x.tsv"), *arguments)


def test_an_empty_read_is_a_sentence(tmp_path: Path, index: str, refused: Callable[..., str]) -> None:
    reads = save(tmp_path, "reads.fa", ">a\nACGT\n>b\n\n>c\nACGT\n")
    assert "'b'" in refused("mems", index, reads, "-o", str(tmp_path / "x.tsv"))
