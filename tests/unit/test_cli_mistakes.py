"""The one sentence that the command line says for every mistake in files and arguments."""

from __future__ import annotations

import functools
import gzip
import io
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import warpseed
from bgzf_files import END_BLOCK, block
from command_line import CHROMOSOME, CONTIGS, fasta, program, save
from warpseed.fm_index import build, cpu_build
from warpseed.sequences import queries as sequences

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
    ("old Mac line ends", b">one\rACGT\r", "the lines end with carriage returns only, as on old Macs"),
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


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("command", ["kmers", "ebwt", "index"])
def test_of_gzip_whose_check_comes_later_a_record_is_doubted(
    tmp_path: Path, index: str, refused: Callable[..., str], command: str, threads: str
) -> None:
    """A bit that is flipped in a large file becomes a letter, and gzip tells at its end only."""
    text = b"".join(b">r%d\n%s\n" % (i, CHROMOSOME[:80].encode()) for i in range(40_000))
    at = text.index(b">r777\n") + 20
    wrong = text[:at] + bytes([text[at] ^ 128]) + text[at + 1 :]
    stored = gzip.compress(text, 0)  # as it is
    begin = stored.index(b">r777\n") + 20
    contents = {
        "in.fa": wrong,
        "blocks.fa.gz": b"".join(block(wrong[i : i + 60_000]) for i in range(0, len(wrong), 60_000)) + END_BLOCK,
        "in.fa.gz": stored[:begin] + wrong[at : at + 1] + stored[begin + 1 :],
    }
    for name, content in contents.items():
        source = save(tmp_path, name, content)
        arguments = [index, source] if command == "kmers" else [source]
        sentence = refused(command, *arguments, "-o", str(tmp_path / "x.bed"), "--threads", threads)
        place, _, said = sentence.removeprefix(source).partition(": ")
        assert place == ", record 778 ('r777'), line 1556" and said.startswith("found the byte 0x")
        doubt = "; as the file is compressed, it may be damaged: 'gzip -t FILE' tells."
        assert said.endswith(doubt if name == "in.fa.gz" else " are allowed.")


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
        (b">a x\nACGT\n>b\nAC\n>a y\nGT\n", "record 3, line 5: the contig name 'a' is that of record 1 (line 1)"),
        (b">\nACGT\n", "record 1, line 1: the contig has no name"),
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
    for command in ("kmers", "reads", "mems"):
        assert refused(command, index, missing).startswith(f"{missing}: there is no such file")


@pytest.mark.parametrize("name", ["", " "])
def test_names_that_are_empty(tmp_path: Path, index: str, refused: Callable[..., str], name: str) -> None:
    sentence = "the name of the input file is empty; name a file, or '-' for standard input."
    for command in ("index", "ebwt", "stream"):
        assert refused(command, name, "-o", str(tmp_path / "x.tsv")) == sentence
    for command in ("kmers", "reads", "mems"):
        assert refused(command, index, name) == sentence
    for call in (warpseed.ebwt_distances, warpseed.match_stream, functools.partial(warpseed.find_kmers, index)):
        with pytest.raises(warpseed.WarpseedError, match=f"^{re.escape(sentence)}$"):
            call(name)
    refusal = "the name of the dictionary is empty; give a file that '--save-dictionary' wrote."
    assert refused("stream", save(tmp_path, "s.fa", fasta(CONTIGS)), "--dictionary", name, "-k", "5") == refusal
    with pytest.raises(warpseed.WarpseedError, match="^the name of the reference is empty; give"):
        warpseed.open_index(index, reference=name)
    (tmp_path / " ").write_text(">a\nACGT\n")
    assert len(warpseed.ebwt_transform(tmp_path / " ").last) == 4


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
        (("--k", "0"), "k is 0, but 1 to 255 was expected."),
        (("--k", "256"), "k is 256, but 1 to 255 was expected."),
        (("--k", "20", "--step", "0"), "step is 0, but 1 or more was expected."),
        (("--step", "5"), "step is 5, but there is no k; name both, or none where the sequences are k-mers."),
        (("--max-hits", "-1"), "max_hits is -1, but 1 or more, or None for all hits, was expected."),
        (("--max-hits", "0"), "max_hits is 0, but 1 or more, or None for all hits, was expected."),
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


@pytest.mark.parametrize(("command", "output"), [("kmers", "h.bed"), ("reads", "-"), ("mems", "-")])
def test_the_gpu_where_there_is_none(tmp_path: Path, index: str, kmers: str, command: str, output: str) -> None:
    target = output if output == "-" else str(tmp_path / output)
    with program(command, index, kmers, "-o", target, "--device", "gpu", stdout=subprocess.PIPE) as process:
        out, told = process.communicate()
    lines = told.decode().splitlines()
    assert process.returncode == 1 and out == b""
    assert len(lines) == 2 and lines[1].startswith("Error: device gpu ") and "use device cpu" in lines[1]
    assert sorted(tmp_path.iterdir()) == [Path(kmers)]


@pytest.mark.parametrize("threads", ["1", "2"])
def test_too_little_memory_is_said_beforehand(
    tmp_path: Path, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch, threads: str
) -> None:
    def sort(*arguments: object) -> None:
        raise AssertionError("the work has begun")

    monkeypatch.setattr(build, "available_memory", lambda: 50_000_000)
    monkeypatch.setattr(cpu_build, "sort_with_marks", sort)
    sentence = refused("index", save(tmp_path, "g.fa", fasta(CONTIGS)), "-o", str(tmp_path / "i"), "--threads", threads)
    assert "needs about 0.2 GB of memory, but 0.1 GB are available; use a machine with more" in sentence


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_while_the_command_line_is_read(number: int) -> None:
    script = f"import os, sys, warpseed.cli as cli; cli._parser = lambda: os.kill(os.getpid(), {int(number)})"
    with program(script=f"{script}; sys.exit(cli.main())") as process:
        _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number and b"Traceback" not in said
    assert said.decode().splitlines()[-1].endswith("; no half-written file is left.")
