"""Sources as pieces: shares, pipes, what is read where, and what ends early. (tests/property has the sentences.)"""

from __future__ import annotations

import gzip
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bgzf_files import END_BLOCK, bgzf
from sequence_files import records, save
from warpseed.errors import InputError
from warpseed.sequences.files import open_bytes
from warpseed.sequences.pieces import Pieces, open_pieces
from warpseed.sequences.queries import Queries, read_queries

FASTA = "".join(f">r{i} x\n{'ACGTTGCA' * (1 + i % 5)}\n{'N' * (i % 3)}\n" for i in range(300)).encode()
FASTQ = "".join(f"@r{i}\n{'ACGTTGCA' * (1 + i % 5)}\n+\n{'@>IIA@I+' * (1 + i % 5)}\n" for i in range(300)).encode()


def parsed(pieces: Pieces) -> list[tuple[str, str]]:
    return [record for piece in pieces for record in records(pieces.parse(piece).queries)]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bgzf], ids=["plain", "gzip", "blocks"])
@pytest.mark.parametrize("content", [FASTA, FASTQ], ids=["fasta", "fastq"])
@pytest.mark.parametrize("shares", [1, 2, 7])
def test_shares_are_dealt_out_piece_by_piece(
    tmp_path: Path, content: bytes, pack: Callable[[bytes], bytes], shares: int
) -> None:
    path = save(tmp_path, pack(content))
    found: dict[int, list[tuple[str, str]]] = {}
    for share in range(shares):
        with open_pieces(path, piece_bytes=500, share=(share, shares)) as pieces:
            for piece in pieces:
                assert piece.number % shares == share
                found[piece.number] = records(pieces.parse(piece).queries)
    assert sorted(found) == list(range(len(found))) and len(found) > 10
    assert [record for number in sorted(found) for record in found[number]] == records(read_queries(path))


@pytest.mark.parametrize("share", [(0, 1), (0, 3), (1, 3)])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, bgzf], ids=["plain", "gzip", "blocks"])
def test_a_share_counts_the_records_of_the_file(
    tmp_path: Path, pack: Callable[[bytes], bytes], share: tuple[int, int]
) -> None:
    path = save(tmp_path, pack(FASTA + b">bad\nAC!\n" + FASTA))
    with open_pieces(path, piece_bytes=len(FASTA) + 5, share=share) as pieces:
        (piece,) = list(pieces)[:1]
        with pytest.raises(InputError, match=r"record 301 \('bad'\), line 902: found '!'"):
            pieces.explain(piece, 0, 0)


def test_lines_and_records_of_earlier_pieces_are_counted(tmp_path: Path) -> None:
    path = save(tmp_path, FASTA + b">bad\nAC!\n")
    with open_pieces(path, piece_bytes=200) as pieces:
        lines = count = 0
        for piece in pieces:
            try:
                parsed = pieces.parse(piece)
            except InputError as error:
                assert "record 301" not in str(error)
                break
            lines += parsed.lines
            count += len(parsed.queries)
        with pytest.raises(InputError, match=r"record 301 \('bad'\), line 902: found '!'"):
            pieces.explain(piece, count, lines)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bgzf], ids=["plain", "gzip", "blocks"])
@pytest.mark.parametrize("content", [FASTA, FASTQ], ids=["fasta", "fastq"])
def test_blank_lines_before_the_first_record_may_fill_pieces(
    tmp_path: Path, pack: Callable[[bytes], bytes], content: bytes
) -> None:
    before = b"\n" * 4001
    with open_pieces(save(tmp_path, pack(before + content)), piece_bytes=1000) as pieces:
        assert parsed(pieces) == [record for record in records(read_queries(save(tmp_path, content, "plain")))]
    bad = before + content + content[:1] + b"bad\n!\n"
    with open_pieces(save(tmp_path, pack(bad)), piece_bytes=1000) as pieces:
        *good, last = pieces
        lines = sum(pieces.parse(piece).lines for piece in good)
        with pytest.raises(InputError, match=rf"line {bad.count(bytes([10]))}: found '!'"):
            pieces.explain(last, 0, lines)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("tail", [b"", gzip.compress(FASTA)], ids=["blocks", "and gzip"])
def test_blocks_without_the_one_that_ends_a_file_are_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], threads: int, tail: bytes
) -> None:
    whole = bgzf(FASTA)
    cut = save(tmp_path, whole.removesuffix(END_BLOCK) + tail, "cut.fa.gz")
    note = f"Note: {cut}: BGZF without the empty block that a whole file ends with: it may have been cut.\n"
    with open_pieces(cut, threads=threads, piece_bytes=1000) as pieces:
        assert len(parsed(pieces)) == (600 if tail else 300)
    assert capsys.readouterr().err == note
    with open_bytes(cut) as stream:
        list(stream.pieces(100))
    assert capsys.readouterr().err == note
    for name, content in (("a.gz", whole), ("b.gz", whole + bytes(40)), ("c.gz", gzip.compress(FASTA))):
        with open_pieces(save(tmp_path, content, name), threads=threads) as pieces:
            parsed(pieces)
        with open_bytes(tmp_path / name) as stream:
            list(stream.pieces(100))
    assert capsys.readouterr().err == ""


def test_places_of_plain_files_and_blocks_are_read_by_who_parses_them(tmp_path: Path) -> None:
    for name, content in (("a.fa", FASTA), ("b.fa.gz", bgzf(FASTA))):
        with open_pieces(save(tmp_path, content, name), piece_bytes=1000) as pieces:
            assert all(piece.text is None for piece in pieces)
    with open_pieces(save(tmp_path, gzip.compress(FASTA)), piece_bytes=1000) as pieces:
        assert all(piece.text is not None for piece in pieces)


def test_a_damaged_block_is_refused_by_who_reads_it(tmp_path: Path) -> None:
    packed = bytearray(bgzf(FASTA))
    packed[len(packed) // 2] ^= 0x55
    damaged = pytest.raises(InputError, match="the gzip data are damaged after [1-9][0-9]* uncompressed bytes; get or")
    with open_pieces(save(tmp_path, bytes(packed)), piece_bytes=300) as pieces, damaged:
        parsed(pieces)


def test_blocks_may_be_followed_by_anything_that_gzip_takes(tmp_path: Path) -> None:
    for tail in (gzip.compress(FASTA), END_BLOCK + gzip.compress(FASTA), gzip.compress(FASTA) + bytes(99)):
        with open_pieces(save(tmp_path, bgzf(FASTA) + tail), piece_bytes=1000) as pieces:
            assert len(parsed(pieces)) == 600
    other = pytest.raises(InputError, match="other bytes follow the gzip data")
    with open_pieces(save(tmp_path, bgzf(FASTA) + b"junk"), piece_bytes=1000) as pieces, other:
        parsed(pieces)


def test_a_record_may_be_larger_than_pieces_and_windows(tmp_path: Path) -> None:
    long = "ACGT" * 700_000
    fasta = f">a\nAC\n>long {'x' * 9000}\n{long}\n>b\nGT\n"
    fastq = f"@a\nAC\n+\n@@\n@long {'x' * 9000}\n{long}\n+\n@{'I' * (len(long) - 1)}\n@b\nGT\n+\n@@\n"
    for text in (fasta, fastq):
        for content in (text.encode(), bgzf(text.encode(), 60_000), gzip.compress(text.encode(), 1)):
            with open_pieces(save(tmp_path, content), piece_bytes=5) as pieces:
                line = list(pieces)
                assert len(line) == 3
                assert [len(pieces.parse(piece).queries.codes) for piece in line] == [2, len(long), 2]


def test_sequences_in_memory_are_pieces_too() -> None:
    queries = Queries.from_sequences(["ACGT", "A", "CCC", "GGTTN"] * 50)
    for source in (queries, ["ACGT", "A", "CCC", "GGTTN"] * 50):
        with open_pieces(source, piece_bytes=30) as pieces:
            assert pieces.name == "the sequences"
            assert len(list(pieces)) > 5 and parsed(pieces) == records(queries)
        with open_pieces(source, piece_bytes=30, share=(1, 2)) as pieces:
            assert [piece.number % 2 for piece in pieces] == [1] * len(list(pieces))
    with open_pieces([]) as pieces:
        assert list(pieces) == []


@pytest.mark.parametrize("share", [(0, 0), (2, 2), (-1, 2)])
def test_a_share_that_is_none(share: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="share"), open_pieces(["A"], share=share):
        pass


# ----------------------------------------------------------------------------------------------------- pipes


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[tuple[Path, Callable[[list[bytes]], int]]]:
    """A named pipe, and what writes into it, slowly, and leaves it open."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    opened: list[int] = []

    def write(parts: list[bytes]) -> None:
        opened.append(os.open(path, os.O_WRONLY))
        for part in parts:
            os.write(opened[0], part)
            time.sleep(0.02)

    def start(parts: list[bytes], close: bool = True) -> threading.Thread:
        def run() -> None:
            write(parts)
            if close:
                os.close(opened.pop())

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    yield path, start
    for each in opened:
        os.close(each)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, bgzf], ids=["plain", "gzip", "blocks"])
def test_a_pipe_is_read_as_a_file(tmp_path: Path, pipe, pack: Callable[[bytes], bytes], threads: int) -> None:
    path, write = pipe
    content = pack(FASTQ)
    writer = write([content[:1], content[1:7], content[7:3000], content[3000:]])
    with open_pieces(path, threads=threads, piece_bytes=500) as pieces:
        assert parsed(pieces) == records(read_queries(save(tmp_path, FASTQ)))
    writer.join()


def test_leaving_early_does_not_wait_for_a_pipe(pipe) -> None:
    path, write = pipe
    writer = write([FASTA], close=False)
    with open_pieces(path, threads=2, piece_bytes=500) as pieces:
        first = next(iter(pieces))
        assert len(pieces.parse(first).queries) > 0
        writer.join()
        began = time.perf_counter()
    assert time.perf_counter() - began < 5
    assert not any(thread.name == "warpseed reading" for thread in threading.enumerate())


def test_a_share_of_an_empty_file_is_refused_as_the_file_is(tmp_path) -> None:
    (tmp_path / "empty.fq").touch()
    with pytest.raises(InputError, match="the file is empty"), open_pieces(tmp_path / "empty.fq", share=(1, 2)):
        pass


def test_a_pipe_has_no_shares(pipe) -> None:
    path, write = pipe
    writer = write([FASTA])
    refused = pytest.raises(InputError, match="a pipe cannot be read in shares; give the path of a file")
    with refused, open_pieces(path, share=(0, 2)):
        pass
    writer.join()


# -------------------------------------------------------------------------------------------- what goes wrong


def test_a_file_that_shrinks_while_it_is_read(tmp_path: Path) -> None:
    path = save(tmp_path, FASTA)
    with open_pieces(path, piece_bytes=len(FASTA) // 2) as pieces:
        first, second = pieces
        os.truncate(path, first.end + FASTA[first.end :].index(b"\n>") + 1)
        with pytest.raises(InputError, match="the file was changed while it was read; read it again"):
            pieces.parse(second)
        with pytest.raises(InputError, match="the file was changed while it was read; read it again"):
            pieces.explain(second, 150, 450)


def test_what_fails_in_the_reading_thread_is_raised_where_pieces_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(tmp_path, gzip.compress(FASTA))
    with open_pieces(path, threads=2, piece_bytes=100) as pieces:

        def fail(*_: object) -> None:
            raise MemoryError("none left")

        monkeypatch.setattr(sys.modules["warpseed.sequences.pieces"], "find_border", fail)
        with pytest.raises(MemoryError, match="none left"):
            list(pieces)
