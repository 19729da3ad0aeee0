"""A file read in pieces is the file read from its beginning: the same queries, or the same sentence."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from bgzf_files import END_BLOCK, block
from hypothesis import given
from hypothesis import strategies as st
from sequence_files import records, save
from warpseed.errors import InputError
from warpseed.sequences.bgzf_format import block_bytes
from warpseed.sequences.fastx import FastxParser, sniff_format
from warpseed.sequences.pieces import Parsed, Piece, Pieces, open_pieces
from warpseed.sequences.queries import Queries


def from_the_beginning(content: bytes, name: str, as_written: bool, packed: bytes = END_BLOCK) -> Queries | str:
    """What the parser makes of a text that it is given whole, or its sentence, which is another one where the text
    comes from gzip without blocks, as which it was `packed`."""
    text = content.removeprefix(b"\xef\xbb\xbf")
    doubt = block_bytes(packed) == 0
    try:
        format = sniff_format(text.lstrip(), name)
        parser = FastxParser(name, format, qualities=as_written, letters=as_written, unchecked=doubt)
        parser.feed(text)
        parser.finish()
    except InputError as error:
        return str(error)
    taken = parser.take(all_records=True)
    return Queries(*taken[:4], name, taken.qualities if parser.keeps_qualities else None)


def tried(pieces: Pieces, piece: Piece) -> Parsed | None:
    try:
        return pieces.parse(piece)
    except InputError:
        return None


def joined(pieces: Pieces, results: Iterable[tuple[Piece, Parsed | None]]) -> Queries:
    """What a reader of pieces makes of them; the first that failed is explained."""
    parts: list[Queries] = []
    lines = 0
    for piece, parsed in results:
        if parsed is None:
            pieces.explain(piece, sum(map(len, parts)), lines)
        assert len(parsed.queries) > 0
        parts.append(parsed.queries)
        lines += parsed.lines
    return Queries.concatenate(parts)


def in_pieces(path: Path, threads: int, piece_bytes: int, as_written: bool) -> tuple[list[tuple], Queries | str]:
    """Where the pieces are that were read, and the queries or the sentence."""
    places = []
    try:
        with (
            open_pieces(path, threads=threads, piece_bytes=piece_bytes, as_written=as_written) as pieces,
            ThreadPoolExecutor(threads) as pool,
        ):
            line = list(pieces)
            places = [(piece.number, piece.begin, piece.end) for piece in line]
            return places, joined(pieces, zip(line, pool.map(partial(tried, pieces), line), strict=True))
    except InputError as error:
        return places, str(error)


def same(one: Queries | str, other: Queries | str) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    qualities = [None if each.qualities is None else each.qualities.tolist() for each in (one, other)]
    return records(one) == records(other) and qualities[0] == qualities[1]


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """A FASTA or FASTQ file, with a few things wrong more often than not."""
    fastq = draw(st.booleans())
    end = draw(st.sampled_from(["\n", "\r\n"]))
    lines = []
    for _ in range(draw(st.integers(1, 12))):
        name = draw(st.text("ab@> ", max_size=6))
        bases = draw(st.text("ACGTacgtNRu", min_size=1, max_size=40))
        if fastq:
            quality = draw(st.text("@+>I!~A", min_size=len(bases), max_size=len(bases)))
            lines += [f"@{name}", bases, "+" + draw(st.sampled_from(["", "b @"])), quality]
        else:
            width = draw(st.integers(1, 40))
            lines += [f">{name}", *(bases[i : i + width] for i in range(0, len(bases), width))]
        lines += [""] * draw(st.sampled_from([0, 0, 0, 1, 2]))
    for _ in range(draw(st.sampled_from([0, 1, 1, 2]))):  # whole lines
        at = draw(st.integers(0, len(lines) - 1))
        change = draw(st.sampled_from(["leave out", "twice", "cut"]))
        lines[at : at + 1] = {"leave out": [], "twice": lines[at : at + 1] * 2, "cut": [lines[at][:3]]}[change]
        lines = lines or [""]
    text = bytearray((end.join(lines) + draw(st.sampled_from([end, ""]))).encode())
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):  # and bytes
        at = draw(st.integers(0, len(text)))
        text[at : at + draw(st.integers(0, 3))] = draw(
            st.sampled_from([b"", b"\n", b"\r", b"\n@", b"\n>", b"@", b">", b"+", b"A", b"\n+\n", b"!", b"\0", b"~"])
        )
    bom = draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf"]))
    return bom + bytes(text[: draw(st.integers(0, len(text)))] if draw(st.integers(0, 5)) == 0 else text)


def pack(content: bytes, how: str) -> bytes:
    """Content as gzip, in one member or several, or in blocks of BGZF with other members behind them or not."""
    size = len(content) + 1 if how == "gzip" else 50
    parts = [content[i : i + size] for i in range(0, len(content), size)]
    blocks = {"gzip": 0, "members": 0, "blocks": len(parts), "blocks and members": len(parts) // 2}[how]
    packed = [block(part) if i < blocks else gzip.compress(part) for i, part in enumerate(parts)]
    return b"".join(packed) + (END_BLOCK if how == "blocks" else gzip.compress(b""))


@given(
    content=files(),
    piece_bytes=st.one_of(st.integers(1, 64), st.sampled_from([100, 1000, 1 << 20])),
    threads=st.integers(1, 3),
    packed=st.sampled_from(["", "gzip", "members", "blocks", "blocks and members"]),
    as_written=st.booleans(),
)
def test_pieces_joined_are_the_file(
    tmp_path: Path, content: bytes, piece_bytes: int, threads: int, packed: str, as_written: bool
) -> None:
    path = save(tmp_path, content)
    places, _ = in_pieces(path, 1, piece_bytes, as_written)
    stored = pack(content, packed) if packed else content
    save(tmp_path, stored)
    expected = from_the_beginning(content, str(path), as_written, stored if packed else END_BLOCK)
    again, result = in_pieces(path, threads, piece_bytes, as_written)
    assert same(result, expected)
    assert again == places
    for (_, _, end), (_, begin, _) in zip(places, places[1:], strict=False):
        assert end == begin and content[begin - 1 : begin + 1] in (b"\n>", b"\n@")


@given(
    content=files(),
    piece_bytes=st.integers(1, 200),
    threads=st.integers(1, 3),
    packed=st.sampled_from(["gzip", "members", "blocks", "blocks and members"]),
    data=st.data(),
)
def test_damaged_gzip_is_refused_or_is_the_file(
    tmp_path: Path, content: bytes, piece_bytes: int, threads: int, packed: str, data: st.DataObject
) -> None:
    path = save(tmp_path, content)
    damaged = bytearray(pack(content, packed))
    expected = from_the_beginning(content, str(path), False, damaged)
    at = data.draw(st.integers(0, len(damaged) - 1))
    change = data.draw(st.sampled_from(["flip", "cut", "zeros", "more"]))
    if change == "flip":
        damaged[at] ^= 1 << data.draw(st.integers(0, 7))
    elif change == "cut":
        del damaged[at:]
    else:
        damaged += bytes(20) + (b"\1" if change == "more" else b"")
    save(tmp_path, bytes(damaged))
    _, result = in_pieces(path, threads, piece_bytes, False)
    assert same(result, expected) or isinstance(result, str)
    if change == "zeros":
        assert same(result, expected)
