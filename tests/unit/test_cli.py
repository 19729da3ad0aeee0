"""The command line: what it writes, and the one sentence that it says for every mistake."""

from __future__ import annotations

import functools
import gzip
import io
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import warpseed
from oracles.kmers import find_kmers, reverse_complement
from warpseed import cli
from warpseed.fm_index import build, store
from warpseed.kmer_seeds.output import TSV_HEADER
from warpseed.output import hits as hits_module
from warpseed.output import lines as output
from warpseed.sequences import queries as sequences

DRAW = random.Random(5)
CHROMOSOME = "".join(DRAW.choices("ACGT", k=700))
CONTIGS = {"chr1": CHROMOSOME[:400] + "NNNNN" + CHROMOSOME[400:], "chr2": CHROMOSOME[100:160] + "A" * 60}
QUERIES = {
    "there": CHROMOSOME[10:30],
    "back": reverse_complement(CHROMOSOME[120:141]),
    "nowhere": "ACGT" * 10,
    "N": "AAANAAA",
}


def fasta(records: dict[str, str], width: int = 70) -> str:
    return "".join(
        f">{name}\n" + "".join(f"{bases[i : i + width]}\n" for i in range(0, len(bases), width))
        for name, bases in records.items()
    )


def save(folder: Path, name: str, content: str | bytes) -> str:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def expected_bed(contigs: dict[str, str], queries: dict[str, str], mismatches: int, max_hits: int | None = None) -> str:
    names, labels = list(contigs), list(queries)
    hits = find_kmers(list(contigs.values()), list(queries.values()), mismatches, max_hits)
    return "".join(f"{names[c]}\t{s}\t{e}\t{labels[q]}\t{d}\t{'+-'[strand]}\n" for q, c, s, e, strand, d in hits)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of an index of CONTIGS."""
    folder = tmp_path_factory.mktemp("index")
    genome = save(folder, "genome.fa", fasta(CONTIGS))
    assert cli.main(["index", genome, "-o", str(folder / "index"), "--parts", "fast,paper"]) == 0
    return str(folder / "index")


@pytest.fixture
def kmers(tmp_path: Path) -> str:
    """The path of a FASTA file of QUERIES."""
    return save(tmp_path, "kmers.fa", fasta(QUERIES))


@pytest.fixture
def refused(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> Callable[..., str]:
    """A function that runs a command which must fail, leaving nothing behind; returns its sentence."""

    def run(*arguments: str) -> str:
        capsysbinary.readouterr()
        before = sorted(tmp_path.rglob("*"))
        status = cli.main(arguments)
        out, err = capsysbinary.readouterr()
        assert status == 1
        assert out == b""
        assert sorted(tmp_path.rglob("*")) == before
        lines = err.decode().splitlines()
        assert [line.split(":")[0] for line in lines] == [f"warpseed {warpseed.__version__}", "Error"]
        return lines[-1].removeprefix("Error: ")

    return run


def program(*arguments: str, **options: object) -> subprocess.Popen[bytes]:
    """A command as a process of its own; it finds the library where the tests find it."""
    library = str(Path(warpseed.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-m", "warpseed", *arguments],
        env=os.environ | {"PYTHONPATH": library, "CUDA_VISIBLE_DEVICES": ""},
        stderr=subprocess.PIPE,
        **options,  # type: ignore[call-overload]
    )


# ------------------------------------------------------------------------------------------ what it writes


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
    assert f"warpseed {warpseed.__version__}: kmers {index} - --max-mismatches 1\n" in said
    assert "4 k-mers, " in said and "seconds: load " in said and "peak memory: " in said


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
    for limit in (0, 1, 3, 4):
        arguments = ["-o", str(tmp_path / "h.bed"), "--max-hits", str(limit)]
        assert cli.main(["kmers", str(tmp_path / "i"), source, *arguments]) == 0
        assert (tmp_path / "h.bed").read_text() == expected_bed(contigs, queries, 0, limit)
        dropped = {0: 2, 1: 1, 3: 1, 4: 0}[limit]
        assert f"{dropped} k-mers with more than {limit} hits dropped" in capsys.readouterr().err


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


def test_a_reader_that_stops_early_is_no_mistake(tmp_path: Path) -> None:
    genome = save(tmp_path, "g.fa", f">a\n{'A' * 400_000}\n")
    assert cli.main(["index", genome, "-o", str(tmp_path / "i")]) == 0
    source = save(tmp_path, "k.fa", f">as\n{'A' * 20}\n")
    with program("kmers", str(tmp_path / "i"), source, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == b"a\t0\t20\tas\t0\t+\n"
        process.stdout.close()
        said = process.stderr.read().decode()
    assert process.returncode == 141
    assert "Error" not in said and "Traceback" not in said


def test_a_job_that_a_scheduler_ends_leaves_nothing(tmp_path: Path, index: str) -> None:
    folder = tmp_path / "out"
    process = program("kmers", index, "-", "-o", str(folder / "h.bed.gz"), stdin=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not (folder.is_dir() and list(folder.iterdir())) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert list(folder.iterdir())  # it has begun to write
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.decode().splitlines()[-1] == "Interrupted; no file was written."
    assert list(folder.iterdir()) == []


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


# ------------------------------------------------------------------------------------------ mistakes in files

BAM = gzip.compress(b"BAM\x01" + bytes(200))
CUT = gzip.compress(fasta(CONTIGS).encode())[:-20]
BOTH_WRONG = [
    ("empty", b"", "the file is empty; a FASTA"),
    ("only newlines", b"\n\r\n\n", "the file is empty; a FASTA"),
    ("empty gzip", gzip.compress(b""), "the file is empty; a FASTA"),
    ("cut gzip", CUT, "the file was cut: get or compress it again"),
    ("damaged gzip", CUT[:40] + b"\xff\xff\xff" + CUT[43:], "gzip data"),
    ("BAM", BAM, "this is a BAM file; a FASTA or FASTQ file"),
    ("SAM", b"@HD\tVN:1.6\n", "this is a SAM file"),
    ("2bit", b"\x43\x27\x41\x1a" + bytes(50), "this is a 2bit file"),
    ("zip", b"PK\x03\x04" + bytes(50), "this is a zip file"),
    ("HTML", b"<!doctype html><html></html>", "this is an HTML or XML file"),
    ("plain text", b"ACGTACGT\n", "the file starts with 'A'; a FASTA file (starts with '>')"),
    ("binary", bytes(range(256)), "the file starts with the byte 0x00"),
    ("no sequence", b">one\nACGT\n>two\n>three\nACGT\n", "record 2 ('two'), line 4: the record has no bases"),
    ("no sequence at the end", b">one\nACGT\n>two\n", "record 2 ('two')"),
    ("a digit", b">one\nACGT\n>two x\nAC\nG7T\n", "record 2 ('two'), line 5: found '7' in a sequence"),
    ("a space", b">one\nAC GT\n", "record 1 ('one'), line 2: found ' ' in a sequence"),
    ("a gap", b">one\nAC-GT\n", "found '-' in a sequence; only IUPAC letters"),
    ("a NUL", b">one\nAC\x00GT\n", "found the byte 0x00 in a sequence"),
    ("old Mac line ends", b">one\rACGT\r", "record 1 ('one')"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "words"), [pytest.param(*case[1:], id=case[0]) for case in BOTH_WRONG])
def test_files_that_are_no_sequences(
    tmp_path: Path, index: str, refused: Callable[..., str], content: bytes, words: str
) -> None:
    source = save(tmp_path, "in.fa", content)
    for ending in ("bed", "tsv", "bed.gz"):
        sentence = refused("kmers", index, source, "-o", str(tmp_path / f"hits.{ending}"))
        assert sentence.startswith(source) and words in sentence
    sentence = refused("index", source, "-o", str(tmp_path / "index"))
    assert sentence.startswith(source) and words in sentence


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"@one\nACGT\n+\nIII", "line 4"),
        (b"@one\nACGT\n+\nIII\n@two\nA\n+\nI\n", "record 1 ('one'), line 4: the quality string is shorter"),
        (b"@one\nACGT\n+\nIIIII\n", "record 1 ('one'), line 4: the quality string is longer"),
        (b"@one\nACGT\nACGT\n+\nIIIIIIII\n", "four lines a record"),
        (b"@one\nACGT\n+\nIIII\n@two\nAC", "the file ends in the middle of a FASTQ record"),
        (f">ok\nACGT\n>long one\n{'A' * 256}\n".encode(), "k-mer number 2 ('long') has 256 bases, but 1 to 255"),
        (f">genome\n{'ACGT' * 100_000}\n".encode(), "('genome') has 400000 bases, but 1 to 255 were expected; cut"),
    ],
)
def test_files_that_are_no_kmers(
    tmp_path: Path, index: str, refused: Callable[..., str], content: bytes, words: str
) -> None:
    source = save(tmp_path, "in.fq", content)
    sentence = refused("kmers", index, source, "-o", str(tmp_path / "hits.bed.gz"))
    assert sentence.startswith(source) and words in sentence


def test_a_kmer_that_is_too_long_is_numbered_in_the_whole_file(
    tmp_path: Path, index: str, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sequences, "iter_queries", functools.partial(sequences.iter_queries, batch_bases=16))
    queries = {f"n{i}": CHROMOSOME[i : i + 8] for i in range(50)} | {"n" * 9000: "A" * 300}
    sentence = refused("kmers", index, save(tmp_path, "k.fa", fasta(queries)), "-o", str(tmp_path / "h.bed"))
    assert "k-mer number 51 ('nnn" in sentence and len(sentence) < 400


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b">a x\nACGT\n>b\nAC\n>a y\nGT\n", "record 3: the contig name 'a' is that of record 1 too"),
        (b">\nACGT\n", "record 1: the contig has no name"),
        (b"@one\nACGT\n+\nIIII\n", "this is a FASTQ file; a reference must be a FASTA file"),
        (b">a\nNNNN\n>b\nRYK\n", "none of its 2 contigs has a base A, C, G or T"),
    ],
)
def test_files_that_are_no_genome(tmp_path: Path, refused: Callable[..., str], content: bytes, words: str) -> None:
    source = save(tmp_path, "in.fa", content)
    sentence = refused("index", source, "-o", str(tmp_path / "index"))
    assert sentence.startswith(source) and words in sentence


def test_files_that_are_not_there(tmp_path: Path, index: str, refused: Callable[..., str]) -> None:
    missing, target = str(tmp_path / "missing.fa"), str(tmp_path / "hits.bed")
    assert refused("index", missing, "-o", str(tmp_path / "i")) == (
        f"{missing}: there is no such file; give the path of an existing file."
    )
    assert refused("kmers", index, missing, "-o", target).startswith(f"{missing}: there is no such file")
    assert "this is a folder, but a file was expected" in refused("kmers", index, str(tmp_path), "-o", target)


def test_nothing_on_standard_input(
    tmp_path: Path, index: str, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    assert refused("kmers", index, "-", "-o", str(tmp_path / "h.bed")).startswith("standard input: the file is empty")


# ------------------------------------------------------------------------------------------ mistakes in arguments


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--max-mismatches", "4"), "max_mismatches is 4, but the fast tier takes 0 to 3."),
        (("--max-mismatches", "-1"), "max_mismatches is -1, but the fast tier takes 0 to 3."),
        (("--max-mismatches", "3", "--tier", "paper"), "the paper tier takes 0 to 2 (the fast tier takes 3)."),
        (("--threads", "0"), "threads is 0, but 1 or more was expected."),
        (("--threads", "-2"), "threads is -2, but 1 or more was expected."),
        (("--max-hits", "-1"), "max_hits is -1, but 0 or more, or None for all hits, was expected."),
    ],
)
def test_numbers_out_of_range(
    tmp_path: Path, index: str, kmers: str, refused: Callable[..., str], arguments: tuple[str, ...], words: str
) -> None:
    assert refused("kmers", index, kmers, "-o", str(tmp_path / "hits.bed.gz"), *arguments).endswith(words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--threads", "0"), "threads is 0, but 1 or more was expected."),
        (("--occ-interval", "100"), "occ_interval is 100, but a power of two"),
        (("--occ-interval", "16"), "occ_interval is 16, but a power of two from 32"),
        (("--occ-interval", str(1 << 40)), "but a power of two"),
        (("--sa-interval", "0"), "sa_interval is 0, but a whole number from 1"),
        (("--sa-interval", str(1 << 70)), "but a whole number from 1 to 65536"),
        (("--table-length", "16"), "table_length is 16, but a whole number from 1 to 15 was expected."),
        (("--table-length", "0"), "table_length is 0, but a whole number from 1 to 15 was expected."),
    ],
)
def test_index_parameters_out_of_range(
    tmp_path: Path, refused: Callable[..., str], arguments: tuple[str, ...], words: str
) -> None:
    genome = save(tmp_path, "g.fa", fasta(CONTIGS))
    assert words in refused("index", genome, "-o", str(tmp_path / "i"), *arguments)


def test_the_gpu_where_there_is_none(tmp_path: Path, index: str, kmers: str) -> None:
    with program("kmers", index, kmers, "-o", str(tmp_path / "h.bed"), "--device", "gpu") as process:
        assert process.stderr is not None
        lines = process.stderr.read().decode().splitlines()
    assert process.returncode == 1
    assert len(lines) == 2 and lines[1].startswith("Error: device='gpu' ") and "use device='cpu'" in lines[1]
    assert sorted(tmp_path.iterdir()) == [Path(kmers)]


@pytest.mark.parametrize("threads", ["1", "2"])
def test_too_little_memory_is_said_beforehand(
    tmp_path: Path, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch, threads: str
) -> None:
    def sort(text: object) -> None:
        raise AssertionError("the work has begun")

    monkeypatch.setattr(build, "available_memory", lambda: 50_000_000)
    monkeypatch.setattr(build, "sort_suffixes", sort)
    sentence = refused("index", save(tmp_path, "g.fa", fasta(CONTIGS)), "-o", str(tmp_path / "i"), "--threads", threads)
    assert "needs about 0.2 GB of memory, but 0.1 GB are available; use a machine with more" in sentence


# ------------------------------------------------------------------------------------------ mistakes in where to write


@pytest.mark.parametrize("name", ["hits", "hits.bam", "hits.BED", "hits.bed.bz2", "bed", "", "."])
def test_endings_that_say_no_format(
    tmp_path: Path, index: str, kmers: str, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    sentence = refused("kmers", index, kmers, "-o", name)
    assert sentence == f"{name}: the ending says no output format; end it in .bed or .tsv, or .gz behind these."


def test_outputs_that_cannot_be_written(tmp_path: Path, index: str, kmers: str, refused: Callable[..., str]) -> None:
    folder = tmp_path / "folder.bed"
    folder.mkdir()
    assert refused("kmers", index, kmers, "-o", str(folder)).startswith(
        f"{folder}: this is a folder, but the hits go to"
    )
    for target, reason in (
        (f"{kmers}/hits.bed", "a file stands where its folder should be"),
        (f"{tmp_path}/{'x' * 300}.bed", "File name too long"),
    ):
        sentence = refused("kmers", index, kmers, "-o", target)
        assert sentence == f"{target}: cannot be written ({reason}); free some space, or write elsewhere."


class FullDisk(io.BytesIO):
    def write(self, data: object) -> int:
        raise OSError(28, "No space left on device")


def test_a_full_disk(
    tmp_path: Path, index: str, kmers: str, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    full = "cannot be written (No space left on device); free some space"
    monkeypatch.setattr(output, "open_for_writing", lambda path: Path(path).touch() or FullDisk())
    target = str(tmp_path / "hits.tsv")
    assert refused("kmers", index, kmers, "-o", target).startswith(f"{target}: {full}")
    with open("/dev/full", "wb") as sink, program("kmers", index, kmers, stdout=sink) as process:
        assert process.stderr is not None
        said = process.stderr.read().decode().splitlines()[-1]
    assert process.returncode == 1 and said.startswith(f"Error: standard output: {full}")


def test_a_disk_that_fills_while_the_index_is_saved(
    tmp_path: Path, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(name: object, folder: object, array: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "write_array", full)
    sentence = refused("index", save(tmp_path, "g.fa", fasta(CONTIGS)), "-o", str(tmp_path / "i"))
    assert sentence.startswith(f"{tmp_path / 'i'}: cannot be written (No space left on device); the index takes ")


def test_an_allocation_that_fails(
    tmp_path: Path, index: str, kmers: str, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 512. GiB")

    monkeypatch.setattr(hits_module, "format_rows", fail)
    sentence = refused("kmers", index, kmers, "-o", str(tmp_path / "h.bed"))
    assert sentence == "there is not enough memory (Unable to allocate 512. GiB); use a machine with more."


def test_an_old_output_stays_until_the_new_one_is_whole(
    tmp_path: Path, index: str, refused: Callable[..., str]
) -> None:
    target = tmp_path / "hits.bed"
    target.write_text("precious\n")
    refused("kmers", index, save(tmp_path, "k.fa", f">a\n{CHROMOSOME[:20]}\n>b\nAC!\n"), "-o", str(target))
    assert target.read_text() == "precious\n"


def test_index_targets_that_are_something_else(
    tmp_path: Path, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def build_nothing(*_: object, **__: object) -> None:
        raise AssertionError("the work has begun")

    genome = save(tmp_path, "g.fa", fasta(CONTIGS))
    results = tmp_path / "results"
    results.mkdir()
    (results / "thesis.txt").write_text("years of work")
    monkeypatch.setattr(build, "build_index", build_nothing)
    assert refused("index", genome, "-o", genome).startswith(f"{genome}: exists and is no folder")
    for _ in range(2):
        sentence = refused("index", genome, "-o", str(results))
        assert (
            sentence.startswith(f"{results}: exists, and holds ")
            and "is not overwritten; name a new folder" in sentence
        )
        (results / "index.json").write_text("{}")  # anybody's: many programs write a file of that name
    assert (results / "thesis.txt").read_text() == "years of work"


def test_a_damaged_index_is_found(tmp_path: Path, kmers: str, refused: Callable[..., str]) -> None:
    folder = tmp_path / "i"
    assert cli.main(["index", save(tmp_path, "g.fa", fasta(CONTIGS)), "-o", str(folder)]) == 0
    assert cli.main(["verify", str(folder)]) == 0
    part = folder / "fast.table.npy"
    content = part.read_bytes()
    part.write_bytes(content[:-1])
    expected = f"{part}: {len(content) - 1:,} bytes, but {len(content):,} were expected; build the index again."
    assert refused("kmers", str(folder), kmers, "-o", str(tmp_path / "h.bed")) == expected
    part.unlink()
    assert refused("kmers", str(folder), kmers).startswith(f"{part}: missing from the index")
    missing = tmp_path / "none"
    sentence = refused("kmers", str(missing), kmers)
    assert sentence.startswith(f"{missing}: there is no such folder")
    assert "python -m warpseed index GENOME.fa" in sentence


def test_verify_finds_a_changed_byte(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "i"
    assert cli.main(["index", save(tmp_path, "g.fa", fasta(CONTIGS)), "-o", str(folder)]) == 0
    capsys.readouterr()
    assert cli.main(["verify", str(folder)]) == 0
    assert capsys.readouterr().err.startswith(f"{folder}: ")
    part = folder / "fast.suffix_array.npy"
    content = bytearray(part.read_bytes())
    content[-5] ^= 1
    part.write_bytes(content)
    assert cli.main(["verify", str(folder)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"Error: {part}: its SHA-256 is not the recorded one; build the index again.\n"


def test_compiled_code_goes_to_a_folder_of_its_own_where_the_home_cannot_be_written() -> None:
    """Numba refuses to work without one. (/proc takes no new folders, not even from root.)"""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"XDG_CACHE_HOME": "/proc/none", "PYTHONPATH": str(Path(warpseed.__file__).parents[1])}
    show = "import os, warpseed; print(path := os.environ['NUMBA_CACHE_DIR'], os.stat(path).st_mode & 0o777)"
    done = subprocess.run([sys.executable, "-c", show], env=environment, capture_output=True, text=True, check=True)
    folder, mode = done.stdout.split()
    assert int(mode) == 0o700  # nobody else can plant code in it
    assert not folder.startswith("/proc/") and not Path(folder).exists()
