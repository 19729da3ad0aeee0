"""bedtools, bgzip and tabix read what is written: its order, its blocks and its index."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from made_up_hits import CONTIGS, draw_hits, sorted_text
from warpseed.kmer_seeds.output import write_hits
from warpseed.output.hits import Hits


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, Hits]:
    """A sorted file, and its hits."""
    hits = draw_hits(7, hits=20_000)
    write_hits(tmp_path / "h.bed.gz", hits, sorted=True, threads=2)
    return tmp_path / "h.bed.gz", hits


def output_of(*command: str | Path) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == ""
    return done.stdout


@pytest.mark.peer("bedtools")
def test_bedtools_takes_it_as_sorted(tmp_path: Path, written: tuple[Path, Hits]) -> None:
    path, hits = written
    draw = random.Random(8)
    sizes = tmp_path / "sizes"
    sizes.write_text("".join(f"{name}\t{length}\n" for name, length in CONTIGS.items() if length))
    regions = sorted((number, draw.randrange(length)) for number, length in enumerate(CONTIGS.values()) if length)
    others = tmp_path / "others.bed"
    names = list(CONTIGS)
    others.write_text("".join(f"{names[number]}\t{start}\t{start + 30}\n" for number, start in regions))
    command = ("bedtools", "intersect", "-nonamecheck", "-u", "-a", path, "-b", others)
    found = output_of(*command, "-sorted", "-g", sizes)
    assert found == output_of(*command) and len(found.splitlines()) > 10
    # (bedtools sorts by contig and start; what is equal stays in no order that is promised.)
    ordered = output_of("bedtools", "sort", "-g", sizes, "-i", path).splitlines()
    expected = sorted_text(hits, "bed").decode().splitlines()
    assert [line.split("\t")[:2] for line in ordered] == [line.split("\t")[:2] for line in expected]


@pytest.mark.peer("tabix")
def test_tabix_and_bgzip_read_it(tmp_path: Path, written: tuple[Path, Hits]) -> None:
    path, hits = written
    lines = sorted_text(hits, "bed").decode()
    output_of("bgzip", "-t", path)
    assert output_of("bgzip", "-dc", path) == lines
    assert output_of("tabix", "-l", path).split() == [name for name in CONTIGS if name != "empty"]
    begin = 1_000_000
    found = output_of("tabix", path, f"{{chr1:10-20}}:{begin + 1}-{2 * begin}").splitlines()
    assert found == [
        line for line in lines.splitlines()
        if line.startswith("chr1:") and int(line.split()[1]) < 2 * begin and int(line.split()[2]) > begin
    ]  # fmt: skip
    assert len(found) > 500
    # What tabix makes itself of the same lines finds the same.
    (tmp_path / "own.bed").write_text(lines)
    output_of("bgzip", tmp_path / "own.bed")
    output_of("tabix", "-p", "bed", tmp_path / "own.bed.gz")
    assert output_of("tabix", tmp_path / "own.bed.gz", "chr2:100-200") == output_of("tabix", path, "chr2:100-200")
