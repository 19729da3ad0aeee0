"""Reading, cutting and writing sequences: what is accepted, and the sentence for what is not."""

from __future__ import annotations

import gzip
import hashlib
import io
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sequence_files import plain, records, save
from warpseed.errors import InputError
from warpseed.sequences import files
from warpseed.sequences import queries as sequences
from warpseed.sequences.alphabet import BASE_CODE, DECODE
from warpseed.sequences.files import atomic_path
from warpseed.sequences.queries import iter_queries, read_queries
from warpseed.sequences.reference import read_reference

IUPAC = "ACGTURYSWKMBDHVN"


def bgzip_like(content: bytes, size: int) -> bytes:
    parts = [gzip.compress(content[i : i + size]) for i in range(0, len(content), size)]
    return b"".join(parts) + gzip.compress(b"")


# ------------------------------------------------------------------------------------------ what is accepted


def test_codes_and_letters_are_inverse() -> None:
    assert BASE_CODE.dtype == np.uint8 and BASE_CODE.shape == (256,)
    assert BASE_CODE[np.frombuffer(b"ACGTacgtNURx-", np.uint8)].tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 4, 4, 4, 4, 4]
    assert DECODE[BASE_CODE[np.frombuffer(b"gattacaN", np.uint8)]].tobytes() == b"GATTACAN"


@pytest.mark.parametrize(
    "text",
    [
        ">a first\nACGT\nNNac\n>b\nG\n",
        ">a first\r\nACGT\r\nNNac\r\n>b\r\nG\r\n",
        ">a\tfirst\nACGTNNac\n>b\nG",
        ">a first\r\nACGTNNac\r\n>b\r\nG\r",
        "\n\n>a first\n\nAC\nGT\n\nRYac\n\n\n>b\n\nG\n\n",
        "\r\n>a\r\nACGTUNAC\r\n\r\n>b\r\nG\r\n\r\n",
        "\ufeff>a first\nACGT\nNNac\n>b\nG\n",
    ],
    ids=["plain", "crlf", "no final newline", "final cr", "blank lines", "blank crlf lines", "byte-order mark"],
)
@pytest.mark.parametrize("piece_bytes", [1, 2, 3, 7, 1 << 20])
def test_every_kind_of_line_end_gives_the_same_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, piece_bytes: int
) -> None:
    monkeypatch.setattr(sequences, "_PIECE_BYTES", piece_bytes)
    path = save(tmp_path, text)
    reference = read_reference(path)
    assert reference.names == ("a", "b")
    assert reference.lengths.tolist() == [8, 1] and reference.lengths.dtype == np.int64
    assert reference.offsets.tolist() == [0, 8, 9]
    assert reference.codes.tolist() == [0, 1, 2, 3, 4, 4, 0, 1, 2] and reference.codes.dtype == np.uint8
    assert reference.digest == hashlib.sha256(text.encode()).hexdigest()
    assert reference.path == str(path)


@pytest.mark.parametrize("pack", [gzip.compress, lambda b: bgzip_like(b, 5), lambda b: gzip.compress(b) + bytes(99)])
@pytest.mark.parametrize("piece_bytes", [1, 2, 5, 1 << 20])
def test_gzip_is_told_by_its_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack, piece_bytes: int) -> None:
    monkeypatch.setattr(sequences, "_PIECE_BYTES", piece_bytes)
    content = pack(b">a\nACGT\nACGT\n>b x\nNNN\n")
    reference = read_reference(save(tmp_path, content, "named_like_plain.fa"))
    assert reference.names == ("a", "b") and reference.lengths.tolist() == [8, 3]
    assert reference.digest == hashlib.sha256(content).hexdigest()


def test_plain_text_may_be_named_gz(tmp_path: Path) -> None:
    assert read_reference(save(tmp_path, ">a\nACGT\n", "x.fa.gz")).names == ("a",)


def test_arrays_hold_one_byte_a_base(tmp_path: Path) -> None:
    letters = "ACGTTGCA" * 250_000
    lines = "\n".join(letters[i : i + 60] for i in range(0, len(letters), 60))
    for content in (f">a\n{lines}\n".encode(), gzip.compress(f">a\n{lines}\n".encode())):
        codes = read_reference(save(tmp_path, content)).codes
        memory = codes if codes.base is None else codes.base
        assert codes.nbytes == len(letters) and memory.nbytes <= 1.05 * len(letters)


@pytest.mark.parametrize("read", [read_reference, read_queries])
def test_tens_of_thousands_of_tiny_records_take_little_memory(tmp_path: Path, read: Callable[..., Any]) -> None:
    path = save(tmp_path, "".join(f">{number}\nA\n" for number in range(50_000)))
    tracemalloc.start()
    try:
        parsed = read(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(parsed.codes) == 50_000
    assert peak < 50e6


def test_strange_names_are_kept_as_they_are(tmp_path: Path) -> None:
    names = ["a'b\"c", "<b>&amp;</b>", "chr1|x;y,z", "größe", ">x", "a" * 5000]
    path = save(tmp_path, "".join(f">{name} rest of <the> line > here\nACGT\n" for name in names))
    assert read_reference(path).names == tuple(names)
    assert [name for name, _ in records(read_queries(path))] == names


def test_query_names_may_repeat_and_be_empty(tmp_path: Path) -> None:
    path = save(tmp_path, ">a\nAC\n>a\nGT\n>\nTT\n> b\nGG\n")
    assert records(read_queries(path)) == [("a", "AC"), ("a", "GT"), ("", "TT"), ("", "GG")]


def test_fastq_with_quality_lines_that_look_like_headers(tmp_path: Path) -> None:
    path = save(tmp_path, "\n@a x\nACGT\n+\n@@@@\n@b\nRYA\n+b again\n+>~\n\n@c\nG\n+\n!", "in.fq")
    assert records(read_queries(path)) == [("a", "ACGT"), ("b", "NNA"), ("c", "G")]


def test_a_very_long_read_on_one_line(tmp_path: Path) -> None:
    read = "".join(np.random.default_rng(1).choice(list("ACGT"), 400_000))
    path = save(tmp_path, f">long\n{read}\n>short\nA\n")
    assert records(read_queries(path)) == [("long", read), ("short", "A")]
    assert [len(batch) for batch in iter_queries(path, batch_bases=1000)] == [1, 1]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files.sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b">a\nACGT\n"))))
    assert records(read_queries("-")) == [("a", "ACGT")]


@pytest.mark.parametrize("packed", [False, True])
def test_rna_is_noted_and_dna_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str], packed: bool) -> None:
    rna = [">a U\nACGU\nAAA\n", "\n>a\r\nacgu\r\n", "@a\nGGU\n+\nTTT\n"]
    dna = [">U\nACGA\n", ">a\nACGTU\n", "@a\nGGA\n+\nUUU\n", ">a\nAAN\n>b\nU\n"]
    for text, notes in [*((text, 1) for text in rna), *((text, 0) for text in dna)]:
        content = gzip.compress(text.encode()) if packed else text.encode()
        path = save(tmp_path, content)
        read_queries(path)
        said = capsys.readouterr().err
        assert (
            said.count("are written with U (RNA), which are taken as N; write T.") == notes
            and said.count("\n") == notes
        )
    read_reference(save(tmp_path, rna[0]))
    assert "in.fa: the bases are written with U" in capsys.readouterr().err


@given(
    data=st.lists(
        st.tuples(
            st.text("ab<>'|.0", max_size=5), st.text(IUPAC + IUPAC.lower(), min_size=1, max_size=30), st.integers(1, 9)
        ),
        min_size=1,
        max_size=8,
    ),
    end=st.sampled_from(["\n", "\r\n"]),
    fastq=st.booleans(),
    packed=st.booleans(),
    piece_bytes=st.integers(1, 50),
    batch_bases=st.integers(1, 60),
)
def test_batches_joined_are_the_file(
    tmp_path: Path, data, end: str, fastq: bool, packed: bool, piece_bytes: int, batch_bases: int
) -> None:
    lines: list[str] = []
    for name, sequence, width in data:
        if fastq:
            lines += [f"@{name} c", sequence, "+", "".join("!@+>~"[i % 5] for i in range(len(sequence)))]
        else:
            lines += [f">{name}", *(sequence[i : i + width] for i in range(0, len(sequence), width))]
    content = (end.join(lines) + end).encode()
    path = save(tmp_path, gzip.compress(content) if packed else content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequences, "_PIECE_BYTES", piece_bytes)
        batches = list(iter_queries(path, batch_bases=batch_bases))
    assert [record for batch in batches for record in records(batch)] == [(n, plain(s)) for n, s, _ in data]
    assert all(len(batch) > 0 for batch in batches)
    for batch in batches:
        assert batch.offsets[0] == 0 and batch.offsets[-1] == len(batch.codes)
        assert batch.name_offsets[0] == 0 and batch.name_offsets[-1] == len(batch.name_bytes)


def test_batches_have_bounded_bases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequences, "_PIECE_BYTES", 100)
    path = save(tmp_path, "".join(f">r{i}\n{'ACGT' * 5}\n" for i in range(500)))
    batches = list(iter_queries(path, batch_bases=400))
    assert all(len(batch.codes) <= 400 + 100 for batch in batches) and len(batches) >= 20


# --------------------------------------------------------------------------------------- what is not accepted

BAD_FILES = {
    "empty": (b"", "the file is empty; a FASTA or FASTQ file was expected"),
    "blank": (b"\n \r\n\n", "the file is empty"),
    "packed nothing": (gzip.compress(b""), "the file is empty"),
    "text": (b"hello\n", r"starts with 'h'; a FASTA file \(starts with '>'\) or a FASTQ file"),
    "bam": (gzip.compress(b"BAM\1" + bytes(40)), "this is a BAM file; a FASTA or FASTQ file"),
    "sam": (b"@HD\tVN:1.6\n", "this is a SAM file"),
    "zip": (b"PK\3\4" + bytes(40), "this is a zip file"),
    "bzip2": (b"BZh91AY&SY", "this is a bzip2 file"),
    "html": (b"<!DOCTYPE html>\n<html>", "this is an HTML or XML file"),
    "binary": (bytes(range(1, 90)), "starts with the byte 0x01"),
    "digit": (b">a\nACGT\n>b x\nAC\nA1\n", r"record 2 \('b'\), line 5: found '1' in a sequence; only IUPAC"),
    "gap": (b">a\nAC-GT\n", r"record 1 \('a'\), line 2: found '-' in a sequence"),
    "stop": (b">a\nACGT*\n", r"line 2: found '\*' in a sequence"),
    "space": (b">a\nAC GT\n", r"line 2: found ' ' in a sequence"),
    "protein": (b">p\nMKVLAE\n", r"line 2: found 'L' in a sequence"),
    "nul": (b">a\nAC\0GT\n", r"line 2: found the byte 0x00 in a sequence"),
    "high": (b">a\nAC\xe9GT\n", r"line 2: found the byte 0xe9 in a sequence"),
    "name": (b">a\0b\nACGT\n", r"line 1: found the byte 0x00 in a record's name; this is no text file"),
    "old mac": (b">a\nACGT\rACGT\r", r"line 2: found a carriage return without a newline"),
    "no bases": (b">a\nAC\n>b\n>c\nGT\n", r"record 2 \('b'\), line 4: the record has no bases; remove"),
    "no bases at end": (b">a\nAC\n>b\n", r"record 2 \('b'\), line 4: the record has no bases"),
    "header only": (b">a", r"record 1 \('a'\), line 1: the record has no bases"),
    "cut gzip": (gzip.compress(b">a\nACGT\n" * 9)[:-9], "gzip data end too early, after .* bytes; the file was cut"),
    "cut gzip header": (b"\x1f\x8b\x08\0", "the gzip data end too early, after 0 uncompressed bytes"),
    "bad checksum": (gzip.compress(b">a\nACGT\n")[:-8] + bytes(8), "the gzip data are damaged after"),
    "bytes behind gzip": (gzip.compress(b">a\nACGT\n") + b"junk", "other bytes follow the gzip data"),
    "byte behind gzip": (gzip.compress(b">a\nACGT\n") + b"j", "other bytes follow the gzip data"),
    "zeros and a byte": (gzip.compress(b">a\nACGT\n") + b"\0\0j", "other bytes follow the gzip data"),
    "half a magic": (gzip.compress(b">a\nACGT\n") + b"\x1f", "the gzip data end too early"),
    "gzip twice": (gzip.compress(gzip.compress(b">a\nACGT\n")), "the file was compressed twice with gzip; decompress"),
    "one byte of gzip": (b"\x1f", "the file has a single byte, the first of gzip data; it was cut"),
    "carriage returns only": (b">a x\rACGT\rACGT\r>b\rA\r", "the lines end with carriage returns only, as on old Macs"),
    "the same, one record": (b">a\rACGT\r", "the lines end with carriage returns only"),
}
BAD_FASTQ = {
    "carriage returns only": (b"@a\rACGT\r+\rIIII\r", "the lines end with carriage returns only, as on old Macs"),
    "cut in header": (b"@a\nAC\n+\nII\n@b", r"record 2 \('b'\), line 5: the file ends in the middle of a FASTQ"),
    "cut in bases": (b"@a\nAC", r"record 1 \('a'\), line 2: the file ends in the middle of a FASTQ record"),
    "cut behind bases": (b"@a\nAC\n", r"line 3: the file ends in the middle of a FASTQ record"),
    "cut behind plus": (b"@a\nAC\n+\n", r"line 4: the file ends in the middle of a FASTQ record"),
    "cut in quality": (b"@a\nAC\n+\nI", r"line 4: the file ends in the middle of a FASTQ record"),
    "short quality": (b"@a\nACG\n+\nII\n@b\nA\n+\nI\n", r"'a'\), line 4: the quality string is shorter"),
    "long quality": (b"@a\nACG\n+\nIIII\n", r"line 4: the quality string is longer than the sequence"),
    "bad quality": (b"@a\nACG\n+\nI I\n", r"line 4: found ' ' in a quality string; only characters from '!'"),
    "several lines": (b"@a\nACG\nTTT\n+\nIIIIII\n", r"line 3: found 'T' where the '\+' line .* four lines a record"),
    "no bases": (b"@a\n\n+\n\n", r"record 1 \('a'\), line 2: the record has no bases"),
    "no at": (b"@a\nAC\n+\nII\nb\nAC\n+\nII\n", r"record 2, line 5: found 'b' where a record's '@' was expected"),
    "bad base": (b"@a\nA.C\n+\nIII\n", r"line 2: found '\.' in a sequence"),
    "fasta inside": (b"@a\nAC\n+\nII\n>b\nAC\n", r"record 2, line 5: found '>' where a record's '@' was expected"),
    "lone return": (b"@a\nAC\r+\nII\n", r"line 2: found a carriage return without a newline"),
}


@pytest.mark.parametrize("piece_bytes", [1, 3, 1 << 20])
@pytest.mark.parametrize(("content", "sentence"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_is_refused_with_its_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, sentence: str, piece_bytes: int
) -> None:
    monkeypatch.setattr(sequences, "_PIECE_BYTES", piece_bytes)
    path = save(tmp_path, content)
    for read in (read_reference, read_queries):
        with pytest.raises(InputError, match=sentence) as caught:
            read(path)
        assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


@pytest.mark.parametrize("piece_bytes", [1, 3, 1 << 20])
@pytest.mark.parametrize(("content", "sentence"), BAD_FASTQ.values(), ids=BAD_FASTQ)
def test_a_bad_fastq_is_refused_with_its_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, sentence: str, piece_bytes: int
) -> None:
    monkeypatch.setattr(sequences, "_PIECE_BYTES", piece_bytes)
    with pytest.raises(InputError, match=sentence):
        read_queries(save(tmp_path, content))


def test_a_record_is_counted_across_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequences, "_PIECE_BYTES", 16)
    path = save(tmp_path, "".join(f">r{i}\nACGTACGT\n" for i in range(40)) + ">bad\nAC!\n")
    with pytest.raises(InputError, match=r"record 41 \('bad'\), line 82: found '!'"):
        list(iter_queries(path, batch_bases=10))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            ">a x\nAC\n\n>b\nAC\n>a y\nGT\n",
            r"record 3, line 6: the contig name 'a' is that of record 1 \(line 1\) too",
        ),
        (">a\nAC\n>\nGT\n", "record 2, line 3: the contig has no name; put one right after its '>'"),
        ("> a\nAC\n", "record 1, line 1: the contig has no name"),
        ("@a\nAC\n+\nII\n", "this is a FASTQ file; a reference must be a FASTA file"),
        (
            ">a\nAC\n>gr\xf6\xdfe\nGT\n".encode("latin-1"),
            "record 2, line 3: the contig name holds the byte 0xf6, which",
        ),
    ],
)
@pytest.mark.parametrize("piece_bytes", [1, 1 << 20])
def test_what_only_a_reference_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | bytes, sentence: str, piece_bytes: int
) -> None:
    monkeypatch.setattr(sequences, "_PIECE_BYTES", piece_bytes)
    with pytest.raises(InputError, match=sentence):
        read_reference(save(tmp_path, text))


def test_a_sentence_shows_the_start_of_a_long_name(tmp_path: Path) -> None:
    name = "ö" * 1_000_000
    for text in (f">{name}\nAC\n>{name}\nAC\n", f">{name}\nA!\n"):
        with pytest.raises(InputError, match="ö{60}…'") as caught:
            read_reference(save(tmp_path, text))
        assert len(str(caught.value)) < 1000


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        read_reference(tmp_path / "nothing.fa")
    with pytest.raises(InputError, match="this is a folder, but a file was expected"):
        read_queries(tmp_path)
    with pytest.raises(InputError, match="cannot be opened for reading"):
        read_queries("with a \0 in it")


def test_atomic_path_leaves_nothing_half_done(tmp_path: Path) -> None:
    path = save(tmp_path, "before", "x.txt")
    with pytest.raises(RuntimeError), atomic_path(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError), atomic_path(path):
        pass
    assert path.read_text() == "before"
