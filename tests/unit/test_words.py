"""Words of Python strings and of files, and what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from warpseed.ebwt.transform import Transform, inverse
from warpseed.ebwt.words import BASES, read_words, words_of
from warpseed.errors import InputError


def test_words_of_strings() -> None:
    words = words_of(["banana", b"nab"], ["x", "y"])
    assert words.letters == b"abn"
    assert words.codes.tolist() == [1, 0, 2, 0, 2, 0, 2, 0, 1] and words.codes.dtype == np.uint8
    assert words.offsets.tolist() == [0, 6, 9] and words.offsets.dtype == np.int64
    assert words.lengths.tolist() == [6, 3] and [words.word(0), words.word(1)] == [b"banana", b"nab"]
    assert words.names.decoded().tolist() == ["x", "y"]


def test_any_bytes_are_letters() -> None:
    words = words_of([bytes(range(255, -1, -1)), b"\0"])
    assert words.letters == bytes(range(256))
    assert words.codes.tolist() == [*range(255, -1, -1), 0]
    assert words.names.decoded().tolist() == ["0", "1"]


@pytest.mark.parametrize(
    ("strings", "names", "sentence"),
    [
        ([], None, "There are no words; give at least one."),
        (["a", ""], None, "Word number 1 is empty; text or bytes of at least one letter were expected."),
        (["a", None], None, "Word number 1 is None; text or bytes of at least one letter were expected."),
        (["a", "ä"], None, "Word number 1, 'ä', has letters beyond ASCII; give it as bytes."),
        (["a", "b"], ["x"], "There are 2 words but 1 names; give one each."),
    ],
)
def test_what_are_no_words_is_refused(strings: list[str], names: list[str] | None, sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        words_of(strings, names)
    assert str(refused.value) == sentence


@pytest.mark.parametrize("compressed", [False, True])
def test_words_of_files(compressed: bool, tmp_path: Path) -> None:
    text = b">one of them\nacgtN\nRyA\n>two\nT\n"
    path = tmp_path / "words.fa"
    path.write_bytes(gzip.compress(text) if compressed else text)
    words = read_words(path)
    assert words.letters == BASES == b"ACGNT"
    assert [words.word(0), words.word(1)] == [b"ACGTNNNA", b"T"]
    assert words.names.decoded().tolist() == ["one", "two"]


@pytest.mark.parametrize("text", ["", ">a\n>b\nACGT\n", ">a\nAC*T\n"])
def test_files_without_words_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "words.fa"
    path.write_text(text)
    with pytest.raises(InputError, match=r"words\.fa"):
        read_words(path)


@pytest.mark.parametrize(
    ("last", "indices"),
    [("", []), ("ab", []), ("ab", [2]), ("ab", [-1]), ("ab", [0]), ("ab", [0, 0]), ("aab", [0, 1]), ("ba", [0, 1])],
)
def test_what_is_no_transform_is_refused(last: str, indices: list[int]) -> None:
    codes = np.array([ord(letter) - ord("a") for letter in last], np.uint8)
    with pytest.raises(InputError, match="transform"):
        inverse(Transform(codes, np.array(indices, np.int64), b"ab"))
