"""The command line: what it writes."""

from __future__ import annotations

import functools
import gzip
import io
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import warpseed
from command_line import CHROMOSOME, CONTIGS, QUERIES, expected_bed, fasta, program, save
from warpseed import cli, kmer_seeds
from warpseed.compute.stopwatch import Stopwatch
from warpseed.errors import how_many
from warpseed.kmer_seeds import kmer_search
from warpseed.kmer_seeds.output import TSV_HEADER
from warpseed.output import lines as output
from warpseed.sequences import queries as sequences
from warpseed.sequences.queries import Queries


@pytest.mark.parametrize("tier", ["fast", "paper"])
@pytest.mark.parametrize("mismatches", [0, 1, 2])
def test_bed_is_the_oracles(tmp_path: Path, index: str, kmers: str, tier: str, mismatches: int) -> None:
    path = tmp_path / "new folder" / "hits.bed"
    arguments = ["kmers", index, kmers, "-o", str(path), "--tier", tier, "--max-mismatches", str(mismatches)]
    assert cli.main(arguments) == 0
    assert path.read_text() == expected_bed(CONTIGS, QUERIES, mismatches)
    assert list(path.parent.iterdir()) == [path]


def test_standard_input_to_standard_output_is_bed_and_nothing_else(
    index: str, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(fasta(QUERIES).encode()))))
    assert cli.main(["kmers", index, "-", "--max-mismatches", "1"]) == 0
    out, err = capsysbinary.readouterr()
    assert out.decode() == expected_bed(CONTIGS, QUERIES, 1)
    said = err.decode()
    cores = len(os.sched_getaffinity(0))
    settings = f"  # tier fast, device cpu, threads {cores}"
    assert f"warpseed {warpseed.__version__}: kmers {index} - --max-mismatches 1{settings}\n" in said
    assert "4 k-mers, " in said and "seconds: load " in said and "peak memory: " in said


def test_seconds_of_no_stage_are_those_of_none(
    index: str, kmers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`write` is measured; what is left of `total` is not printed under its name."""

    def late(*arguments: Any, **options: Any) -> Any:
        time.sleep(0.4)
        return kmer_search(*arguments, **options)

    monkeypatch.setattr(kmer_seeds, "kmer_search", late)
    assert cli.main(["kmers", index, kmers, "-o", str(tmp_path / "h.bed")]) == 0
    (line,) = (line for line in capsys.readouterr().err.splitlines() if line.startswith("seconds: "))
    stages = dict(stage.split() for stage in line.removeprefix("seconds: ").split(", "))
    assert list(stages) == ["load", "read", "pack", "search", "format", "write", "total"]
    assert float(stages["write"]) < 0.4 < float(stages["total"])


def test_a_genome_from_standard_input(tmp_path: Path, kmers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(fasta(CONTIGS).encode())))
    assert cli.main(["index", "-", "-o", str(tmp_path / "i"), "--threads", "1"]) == 0
    assert cli.main(["kmers", str(tmp_path / "i"), kmers, "-o", str(tmp_path / "hits.bed")]) == 0
    assert (tmp_path / "hits.bed").read_text() == expected_bed(CONTIGS, QUERIES, 0)


def reshape_lower(text: str) -> bytes:
    return "".join(line if line.startswith(">") else line.lower() for line in text.splitlines(True)).encode()


@pytest.mark.parametrize(
    "reshape",
    [
        reshape_lower,
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.replace(">", "\n\n>").encode(),
        lambda text: text.rstrip("\n").encode(),
        lambda text: gzip.compress(text.encode()),
        lambda text: gzip.compress(text[:99].encode()) + gzip.compress(text[99:].encode()),
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.replace("NNNNN", "RYKM-N".replace("-", "")).encode(),
    ],
    ids=[
        "lower case",
        "CRLF",
        "blank lines",
        "no last newline",
        "gzip",
        "two gzip members",
        "byte-order mark",
        "IUPAC",
    ],
)
def test_the_shape_of_a_file_does_not_matter(tmp_path: Path, reshape: Callable[[str], bytes]) -> None:
    genome = save(tmp_path, "genome.txt", reshape(fasta(CONTIGS)))
    queries = save(tmp_path, "kmers.txt", reshape(fasta(QUERIES, width=7)))
    assert cli.main(["index", genome, "-o", str(tmp_path / "i"), "--threads", "1"]) == 0
    assert (
        cli.main(["kmers", str(tmp_path / "i"), queries, "-o", str(tmp_path / "hits.bed"), "--max-mismatches", "1"])
        == 0
    )
    assert (tmp_path / "hits.bed").read_text() == expected_bed(CONTIGS, QUERIES, 1)


def test_fastq_is_read_and_written_like_fasta(tmp_path: Path, index: str) -> None:
    fastq = "".join(f"@{name}\n{bases}\n+\n{'I' * len(bases)}\n" for name, bases in QUERIES.items())
    assert cli.main(["kmers", index, save(tmp_path, "k.fq", fastq), "-o", str(tmp_path / "hits.bed")]) == 0
    assert (tmp_path / "hits.bed").read_text() == expected_bed(CONTIGS, QUERIES, 0)


def test_the_same_bytes_for_any_number_of_threads_and_any_batch(
    tmp_path: Path, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(3)
    queries = {}
    for i in range(300):
        k = draw.randint(4, 40)
        start = draw.randrange(len(CHROMOSOME) - k)
        queries[f"q{i % 50}"] = queries[f"q{i}"] = CHROMOSOME[start : start + k]
    source = save(tmp_path, "kmers.fa", fasta(queries))
    iter_queries = sequences.iter_queries
    contents: dict[str, set[bytes]] = {"bed": set(), "tsv.gz": set()}
    for threads, batch, at_once in [(1, 1 << 20, 1 << 16), (2, 1 << 20, 100), (3, 50, 1 << 16), (3, 1, 7), (1, 333, 1)]:
        monkeypatch.setattr(sequences, "iter_queries", functools.partial(iter_queries, batch_bases=batch))
        monkeypatch.setattr(output, "_ROWS_AT_ONCE", at_once)
        for ending, found in contents.items():
            path = tmp_path / f"hits.{ending}"
            arguments = ["-o", str(path), "--max-mismatches", "1", "--threads", str(threads)]
            assert cli.main(["kmers", index, source, *arguments]) == 0
            found.add(path.read_bytes())
    assert [len(found) for found in contents.values()] == [1, 1]
    assert contents["bed"].pop().decode() == expected_bed(CONTIGS, queries, 1)


READS = {
    "r1": CHROMOSOME[:50],
    "r2": CHROMOSOME[95:115] + "N" + CHROMOSOME[116:140],
    "r3": "ACGTACGTAC",
    "r4 comment": "A" * 33,
}
CUT = {
    f"{name.split()[0]}:{offset}": bases[offset : offset + 20]
    for name, bases in READS.items()
    for offset in range(0, len(bases) - 19, 7)
}
"""The k-mers of 20 bases that lie 7 apart, by hand."""


@pytest.mark.parametrize("device", ["file", "gzip", "FASTQ", "standard input"])
def test_kmers_are_cut_from_reads_and_can_be_traced(
    tmp_path: Path, index: str, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    text = fasta(READS)
    if device == "FASTQ":
        text = "".join(f"@{name}\n{bases}\n+\n{'I' * len(bases)}\n" for name, bases in READS.items())
    content = gzip.compress(text.encode()) if device == "gzip" else text.encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    source = "-" if device == "standard input" else save(tmp_path, "reads", content)
    arguments = ["--k", "20", "--step", "7", "--max-mismatches", "1"]
    assert cli.main(["kmers", index, source, *arguments]) == 0
    out, err = capsysbinary.readouterr()
    assert out.decode() == expected_bed(CONTIGS, CUT, 1) and b"\tr1:14\t0\t+\n" in out
    said = err.decode().splitlines()
    assert said[1] == "4 reads, 1 of them shorter than a k-mer: it gives none"
    assert said[2] == f"{len(CUT)} k-mers, {len(out.splitlines()):,} hits written to -"


def test_reads_that_are_all_too_short_are_said(tmp_path: Path, index: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["kmers", index, save(tmp_path, "r.fa", fasta(READS)), "--k", "60"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines()[1:3] == [
        "Note: all 4 reads are shorter than a k-mer: there was nothing to search.",
        "0 k-mers, 0 hits written to -",
    ]


def test_kmers_are_cut_in_python_too(index: str) -> None:
    watch = Stopwatch()
    reads = Queries.from_sequences(READS.values(), [name.split()[0] for name in READS])
    cut = warpseed.find_kmers(index, reads, k=20, step=7, max_mismatches=1, watch=watch)
    kmers = Queries.from_sequences(CUT.values(), CUT.keys())
    assert cut == warpseed.find_kmers(index, kmers, max_mismatches=1)
    assert watch.counts == {"reads": 4, "short_reads": 1}
    assert len(warpseed.find_kmers(index, ["ACGTTGCATG"] * 3, k=5).counts) == 6
    assert len(warpseed.find_kmers(index, ["ACGTTGCATG"] * 3, k=11).counts) == 0


def test_kmers_longer_than_a_contig_and_genomes_of_one_base(tmp_path: Path) -> None:
    contigs, queries = {"a": "A", "cg": "CG", "none": "NN"}, {"1": "A", "2": "CG", "3": "ACGT", "4": "C" * 255}
    genome = save(tmp_path, "g.fa", fasta(contigs))
    assert cli.main(["index", genome, "-o", str(tmp_path / "i"), "--parts", "fast,paper"]) == 0
    for tier in ("fast", "paper"):
        arguments = ["-o", str(tmp_path / "hits.bed"), "--max-mismatches", "2", "--tier", tier]
        assert cli.main(["kmers", str(tmp_path / "i"), save(tmp_path, "k.fa", fasta(queries)), *arguments]) == 0
        assert (tmp_path / "hits.bed").read_text() == expected_bed(contigs, queries, 2)


def test_no_hits_give_an_empty_bed_and_a_tsv_with_its_header(tmp_path: Path, index: str) -> None:
    source = save(tmp_path, "k.fa", ">x\n" + "ACGT" * 20 + "\n")
    for ending, content in (("bed", b""), ("tsv", TSV_HEADER)):
        assert cli.main(["kmers", index, source, "-o", str(tmp_path / f"hits.{ending}")]) == 0
        assert (tmp_path / f"hits.{ending}").read_bytes() == content


def test_hundreds_of_thousands_of_hits_of_one_kmer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    size, k = 300_000, 20
    genome = save(tmp_path, "g.fa", f">a\n{'A' * size}\n")
    source = save(tmp_path, "k.fa", f">as\n{'A' * k}\n>ts\n{'T' * k}\n>c\nC\n")
    assert cli.main(["index", genome, "-o", str(tmp_path / "i"), "--parts", "fast,paper"]) == 0
    for tier in ("fast", "paper"):
        assert cli.main(["kmers", str(tmp_path / "i"), source, "-o", str(tmp_path / "h.bed"), "--tier", tier]) == 0
        lines = [f"a\t{s}\t{s + k}\tas\t0\t+\n" for s in range(size - k + 1)]
        lines += [f"a\t{s}\t{s + k}\tts\t0\t-\n" for s in range(size - k + 1)]
        assert (tmp_path / "h.bed").read_text() == "".join(lines)
        capsys.readouterr()
        limit = ["--max-hits", str(size - k), "--tier", tier]
        assert cli.main(["kmers", str(tmp_path / "i"), source, "-o", str(tmp_path / "h.bed"), *limit]) == 0
        assert (tmp_path / "h.bed").read_text() == ""
        assert (
            "2 k-mers with more than 299,980 hits dropped, at least 599,962 hits of theirs" in capsys.readouterr().err
        )


def test_max_hits_counts_both_strands_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    contigs = {"c": "ACGTACGT" + "C" * 9 + "GATTACA"}
    queries = {"palindrome": "ACGT", "once": "GATTACA"}
    assert cli.main(["index", save(tmp_path, "g.fa", fasta(contigs)), "-o", str(tmp_path / "i")]) == 0
    source = save(tmp_path, "k.fa", fasta(queries))
    for limit in (1, 3, 4):
        arguments = ["-o", str(tmp_path / "h.bed"), "--max-hits", str(limit)]
        assert cli.main(["kmers", str(tmp_path / "i"), source, *arguments]) == 0
        assert (tmp_path / "h.bed").read_text() == expected_bed(contigs, queries, 0, limit)
        dropped = {1: 1, 3: 1, 4: 0}[limit]
        told = f"{how_many(dropped, 'k-mer')} with more than {how_many(limit, 'hit')} dropped"
        assert told in capsys.readouterr().err


def test_a_limit_beyond_64_bits_drops_nothing(tmp_path: Path, index: str, kmers: str) -> None:
    arguments = ["-o", str(tmp_path / "h.bed"), "--max-hits", "9" * 30]
    assert cli.main(["kmers", index, kmers, *arguments]) == 0
    assert (tmp_path / "h.bed").read_text() == expected_bed(CONTIGS, QUERIES, 0)


def test_names_go_through_as_they_are(tmp_path: Path) -> None:
    odd = [
        "with",
        '"quoted"',
        "<b>bold</b>&amp;",
        "it's",
        "a,b;c=d",
        "número-1-日本",
        "\\n",
        "%s{0}",
        "-",
        "=1+1",
        "x" * 5000,
    ]
    contigs = {name: CHROMOSOME[40 * i : 40 * i + 40] for i, name in enumerate(odd)}
    queries = {name: bases[:30] for name, bases in contigs.items()}
    written = {name if name != "with" else "with a comment\tand tabs": bases for name, bases in contigs.items()}
    assert cli.main(["index", save(tmp_path, "g.fa", fasta(written)), "-o", str(tmp_path / "i")]) == 0
    source = save(tmp_path, "k.fa", fasta(queries))
    assert cli.main(["kmers", str(tmp_path / "i"), source, "-o", str(tmp_path / "h.bed")]) == 0
    assert (tmp_path / "h.bed").read_text(encoding="utf-8") == expected_bed(contigs, queries, 0)


def test_version_check_and_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with program("--version", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read().decode() == f"warpseed {warpseed.__version__}\n"
    assert process.returncode == 0
    assert cli.main(["check"]) == 0
    said = capsys.readouterr()
    assert said.err == "" and said.out.startswith(f"warpseed {warpseed.__version__} on Python ")
    for wrong in ([], ["seed"], ["kmers", "only-an-index"], ["kmers", "i", "k", "--threads", "two"]):
        with pytest.raises(SystemExit) as stopped:
            cli.main(wrong)
        assert stopped.value.code == 2
        assert "usage: warpseed" in capsys.readouterr().err


def test_compiled_code_goes_to_a_folder_of_its_own_where_the_home_cannot_be_written() -> None:
    """Numba refuses to work without one. (/proc takes no new folders, not even from root.)"""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"XDG_CACHE_HOME": "/proc/none", "PYTHONPATH": str(Path(warpseed.__file__).parents[1])}
    show = "import os, warpseed; print(path := os.environ['NUMBA_CACHE_DIR'], os.stat(path).st_mode & 0o777)"
    done = subprocess.run([sys.executable, "-c", show], env=environment, capture_output=True, text=True, check=True)
    folder, mode = done.stdout.split()
    assert int(mode) == 0o700  # nobody else can plant code in it
    assert not folder.startswith("/proc/") and not Path(folder).exists()
