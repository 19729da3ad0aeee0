"""Numbers in sentences: one of something is said as one."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from warpseed import build_index
from warpseed.cli import main
from warpseed.errors import how_many

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("number", "said"), [(0, "0 reads"), (1, "1 read"), (2, "2 reads"), (20_000, "20,000 reads")])
def test_how_many_there_are(number: int, said: str) -> None:
    assert how_many(number, "read") == said


def test_the_command_says_one_as_one(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    genome, reads = tmp_path / "genome.fa", tmp_path / "reads.fa"
    genome.write_text(">c\nACGTTGCAAGGCTTAACCGATTGACCAGTA\n")
    reads.write_text(">r\nTTGCAAGGCTTA\n")
    index = str(tmp_path / "index")
    build_index(genome, parts=["fast"]).save(index)
    found = ["kmers", index, str(reads), "-o", str(tmp_path / "hits.tsv"), "--max-hits", "1"]
    for command in (found, ["stream", str(reads), "-k", "12", "-o", str(tmp_path / "kmers.tsv")]):
        assert main(command) == 0
    said = capfd.readouterr().err
    assert "1 k-mer, 1 hit written" in said and "with more than 1 hit dropped" in said
    assert "1 record, 12 bases" in said
    ends = [line for line in said.splitlines() if "written" in line or "dropped" in line]
    assert len(ends) == 3 and not re.search(r"\b1 (hits|records|bases|k-mers)\b", "\n".join(ends))


def test_make_says_what_samples_have(tmp_path: Path) -> None:
    """The lines below `make seeds`, of samples that are searched and of those that are counted."""
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8")
    (program,) = re.findall(r"awk -F '\\t'.*?'(NR == 1 .*?)' \\\n", recipe, re.DOTALL)
    program = program.replace("$$", "$")
    table = [
        "sample\tseeds\tqueries\thits\tkmers\tnew\trecords\tpairs",
        "a\ta.bed.gz\t1\t1\t\t\t\t",
        "b\tb.kmers.tsv.gz\t\t\t12\t1\t4\t",
        "c\tc.bed.gz\t3\t0\t\t\t\t",
        "d\td.distances.tsv\t\t\t\t\t3\t3",
    ]
    lines = ["x/a.bed.gz: 1 seed of 1 query", "x/b.kmers.tsv.gz: 12 k-mers, 1 of them distinct"]
    lines += ["x/c.bed.gz: 0 seeds of 3 queries", "x/d.distances.tsv: 3 pairs of 3 records"]
    assert printed(program, tmp_path, table) == lines
    searched = ["sample\tseeds\tqueries\thits", "a\ta.bam\t2\t5"]
    assert printed(program, tmp_path, searched) == ["x/a.bam: 5 seeds of 2 queries"]


def printed(program: str, folder: Path, table: list[str]) -> list[str]:
    path = folder / "samples.tsv"
    path.write_text("".join(f"{line}\n" for line in table))
    command = ["awk", "-F", "\t", "-v", "folder=x", program, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
