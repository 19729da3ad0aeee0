"""BGZF: blocks that any gzip reader and tabix take, the same for any number of threads and any sizes of writes."""

from __future__ import annotations

import gzip
import hashlib
import io
import random
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from warpseed.errors import InputError
from warpseed.sequences import bgzf
from warpseed.sequences.bgzf import BLOCK_BYTES, BgzfWriter, block_offsets, pack_blocks
from warpseed.sequences.bgzf_format import END_BLOCK
from warpseed.sequences.files import open_for_writing

DRAW = random.Random(3)
LINES = b"".join(b"chr%d\t%d\n" % (DRAW.randint(1, 9), DRAW.randint(0, 10**8)) for _ in range(400_000))
NOISE = DRAW.randbytes(3 * BLOCK_BYTES + 17)


def packed(data: bytes, sizes: Iterator[int], threads: int = 1) -> bytes:
    raw, begin = io.BytesIO(), 0
    with BgzfWriter(raw, threads) as writer:
        while begin < len(data):
            size = next(sizes)
            assert writer.write(memoryview(data)[begin : begin + size]) == len(data[begin : begin + size])
            begin += size
    return raw.getvalue()


def blocks_of(packed: bytes) -> list[bytes]:
    """The blocks, by the sizes that their headers say."""
    blocks, begin = [], 0
    while begin < len(packed):
        magic, extra, one, two, size = struct.unpack_from("<4s6xH2sHH", packed, begin)
        assert (magic, extra, one, two) == (b"\x1f\x8b\x08\x04", 6, b"BC", 2)
        blocks.append(packed[begin : begin + size + 1])
        begin += size + 1
    assert begin == len(packed)
    return blocks


@pytest.mark.parametrize("data", [b"", b"x", LINES, NOISE, LINES[:BLOCK_BYTES]], ids=len)
def test_any_gzip_reader_has_the_bytes_back(data: bytes) -> None:
    whole = packed(data, iter([1 << 30]))
    assert gzip.decompress(whole) == data
    *blocks, end = blocks_of(whole)
    assert end == END_BLOCK == gzip_end()
    assert [len(gzip.decompress(block)) for block in blocks] == [
        len(data[i : i + BLOCK_BYTES]) for i in range(0, len(data), BLOCK_BYTES)
    ]
    assert all(len(block) <= 1 << 16 for block in blocks)


def gzip_end() -> bytes:
    """What the SAM specification says a file ends with, section 4.1.2."""
    return bytes.fromhex("1f8b0804 00000000 00ff 0600 4243 0200 1b00 0300 00000000 00000000".replace(" ", ""))


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_threads_and_sizes_of_writes_do_not_change_a_byte(threads: int, seed: int) -> None:
    draw = random.Random(seed)
    data, task = LINES + NOISE, 16 * BLOCK_BYTES
    sizes = [0, 1, 7, BLOCK_BYTES, 300_000, task - 1, task, task + 1, task + BLOCK_BYTES, 2_000_000]
    assert packed(data, iter(lambda: draw.choice(sizes), -1), threads) == b"".join(
        [*(pack_blocks(data[at : at + BLOCK_BYTES]) for at in range(0, len(data), BLOCK_BYTES)), END_BLOCK]
    )


def test_the_bytes_are_the_same_in_every_process_and_on_every_machine() -> None:
    # Another version of the library may pack otherwise: then every file that is written changes, and this with it.
    assert hashlib.sha256(pack_blocks(LINES)).hexdigest()[:24] == "7c5ca1681d995e31ef478cfa"


def test_text_becomes_smaller_and_noise_hardly_larger() -> None:
    assert len(pack_blocks(LINES)) < len(LINES) / 2
    assert len(pack_blocks(NOISE)) < len(NOISE) + 4 * 32


@pytest.mark.parametrize("threads", [1, 2])
def test_what_fails_is_raised_and_the_file_does_not_end_as_a_whole_one(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = io.BytesIO()
    with pytest.raises(ValueError, match="a bug"), BgzfWriter(raw, threads) as writer:
        writer.write(LINES)
        raise ValueError("a bug")
    assert not raw.getvalue().endswith(END_BLOCK)
    monkeypatch.setattr(bgzf, "_pack_block", lambda data: 1 / 0)
    with pytest.raises(ZeroDivisionError), BgzfWriter(io.BytesIO(), threads) as writer:
        writer.write(LINES)


@pytest.mark.parametrize(
    ("data", "at"),
    [
        (b"", 0),
        (b"plain text, and more of it than a header has", 0),
        (gzip.compress(LINES, mtime=0), 0),
        (pack_blocks(LINES)[:-1], None),
        (pack_blocks(b"a") + b"\x1f\x8b", len(pack_blocks(b"a"))),
    ],
)
def test_a_file_that_is_no_bgzf_has_no_blocks(tmp_path: Path, data: bytes, at: int | None) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(data)
    where = r"\d+" if at is None else str(at)
    with pytest.raises(InputError, match=f"x.gz: from byte {where} on it is no BGZF, .*; compress it with bgzip"):
        block_offsets(path)
    whole = packed(LINES, iter([len(LINES)]))
    path.write_bytes(whole)
    assert [whole[offset:][:4] for offset in block_offsets(path)] == [block[:4] for block in blocks_of(whole)]
    assert block_offsets(path)[-1] == len(whole) - len(END_BLOCK)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_full_disk_names_the_file(threads: int, tmp_path: Path) -> None:
    link = tmp_path / "full.gz"
    link.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left") as caught, open_for_writing(link, threads=threads) as handle:
        for _ in range(20):
            handle.write(LINES)
    assert caught.value.filename == str(link)
