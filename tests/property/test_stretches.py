"""A plain genome that is parsed in stretches is what it is when it is parsed in order, and so is what is wrong."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from warpseed.errors import InputError
from warpseed.sequences import reference, stretches
from warpseed.sequences.reference import Reference, read_reference

ENDS = st.sampled_from([b"\n", b"\r\n", b"\n\n", b"\r\n\r\n"])
HEADERS = st.sampled_from(
    [b">a", b">a b", b">chr2 ACGT", b">", b">" + b"ACGT" * 9, b">b >c", b" >d", b">\xff", b">e\tACG"]
)
BASES = st.text("ACGTNacgtnRU", min_size=1, max_size=30).map(str.encode)
WRONG = st.sampled_from([b"AC>GT", b"A-C", b"AC GT", b"@r", b"A\rC", b"", b"\x00", b"+"])
LINES = st.one_of(BASES, BASES, BASES, HEADERS, WRONG)
TEXTS = st.tuples(st.lists(st.tuples(st.one_of(BASES, BASES, HEADERS), ENDS)), st.lists(st.tuples(LINES, ENDS))).map(
    lambda parts: b">first\nACGT\n" + b"".join(line + end for part in parts for line, end in part)
)


def read(path: Path, threads: int) -> Reference | str:
    try:
        return read_reference(path, threads)
    except InputError as error:
        return str(error)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "_LARGE_BYTES", 1)
    monkeypatch.setattr(stretches, "_LINE_BYTES", 9)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(text=TEXTS, size=st.integers(1, 40), strip=st.integers(0, 12))
@example(text=b">a\nACGT\n>b\n>c\nAC\n", size=3, strip=0)
@example(text=b">a\nAC\n\n\n\n>b\nAC\n", size=1, strip=0)
@example(text=b"\n\n  \n>a\nAC\n>a\nAC\n", size=4, strip=0)
@example(text=b"\xef\xbb\xbf>a\nAC\n>b\nAC", size=4, strip=0)
@example(text=b">a\nACGTACGTACGTACGTACGTACGT>ACGT\nAC", size=1, strip=0)
@example(text=b">a\rAC\r", size=1, strip=0)
@example(text=b">a\nAC\n>b", size=6, strip=0)
def test_stretches_are_the_file(
    tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch, text: bytes, size: int, strip: int
) -> None:
    """With stretches of a few bytes, cut files, lines of all lengths and ends, and what is wrong in them."""
    monkeypatch.setattr(stretches, "STRETCH_BYTES", size)
    path = tmp_path / "genome.fa"
    path.write_bytes(text[: len(text) - strip])
    whole, shared = read(path, 1), read(path, 2)
    if isinstance(whole, str) or isinstance(shared, str):
        assert whole == shared
        return
    assert (shared.names, shared.digest) == (whole.names, hashlib.sha256(path.read_bytes()).hexdigest())
    assert np.array_equal(shared.lengths, whole.lengths) and np.array_equal(shared.codes, whole.codes)
    assert shared.lengths.dtype == whole.lengths.dtype and shared.codes.dtype == whole.codes.dtype


@pytest.mark.parametrize("width", [60, 1 << 20])
def test_a_good_file_is_parsed_once(tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """Wherever it is cut: in lines of any length, before headers and behind them."""
    rng, joined = np.random.default_rng(5), []
    monkeypatch.setattr(stretches, "STRETCH_BYTES", 1000)
    whole_of = stretches.read_stretches
    monkeypatch.setattr(stretches, "read_stretches", lambda *given: joined.append(whole_of(*given)) or joined[-1])
    path = tmp_path / "genome.fa"
    with path.open("w") as handle:
        for name in range(40):
            bases = "".join(rng.choice(list("ACGTN"), rng.integers(1, 5000)))
            handle.write(f">{name} of forty\n")
            handle.writelines(bases[at : at + width] + "\n" for at in range(0, len(bases), width))
    whole = read_reference(path)
    assert np.array_equal(read_reference(path, 3).codes, whole.codes)
    assert len(joined) == 1 and joined[0] is not None


def test_a_file_that_shrinks_is_told_of(tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left of it is what is read."""
    path = tmp_path / "genome.fa"
    path.write_text(">a\n" + "ACGT\n" * 50)
    monkeypatch.setattr(stretches, "STRETCH_BYTES", 20)
    cut = stretches._cut

    def cut_and_shrink(*given: object) -> object:
        path.write_text(">a\n" + "ACGT\n" * 20)
        return cut(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(stretches, "_cut", cut_and_shrink)
    assert len(read_reference(path, 2).codes) == 80
