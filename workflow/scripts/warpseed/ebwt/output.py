"""The files of the command `ebwt`: the transform, the words that it is of, their distances and their tree."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import combinations
from pathlib import Path
from typing import BinaryIO

import numpy as np

from warpseed.compute.ranges import steps
from warpseed.ebwt.transform import Transform
from warpseed.ebwt.words import BASES, Words, letters_of
from warpseed.errors import InputError
from warpseed.output.opening import open_output, remove_old_output, same_output

__all__ = [
    "FIGURES",
    "HEADER",
    "TABLES",
    "TRANSFORM",
    "WORDS",
    "open_all",
    "put_lines",
    "put_transform",
    "read_transform",
    "words_as_fasta",
]

TRANSFORM, WORDS = "ebwt.txt", "words.tsv"
TABLES = ("distances.tsv", "phylip", "newick")
FIGURES = ("heatmap.svg", "dendrogram.svg")
_ENDINGS = (TRANSFORM, WORDS, *TABLES, *FIGURES)
"""How the names of all files end that a run may write."""
HEADER = "record\tlength\tindex\n"
_MOST_LETTERS, _MOST_DIGITS = 1 << 62, 20


@contextmanager
def open_all(prefix: str, endings: Sequence[str], source: str) -> Iterator[dict[str, BinaryIO]]:
    """Streams to the files ``prefix.ending``, by their endings; all have their names when the block succeeds, and
    those of an earlier run that are none of them are removed. Else none is there, or the older one still is.

    Parameters
    ----------
    source : the file that is read, which none of them must be

    Raises
    ------
    InputError : no file is named so, or one of them cannot be written, or two are one by a link, or one of an earlier
        run cannot be removed
    """
    if prefix == "-" or not Path(prefix).name or prefix.endswith((os.sep, "..")):
        raise InputError(
            f"the output is {prefix!r}, but the beginning of the names of several files was expected, such as "
            "'results/phages'."
        )
    with ExitStack() as stack:
        streams = {ending: stack.enter_context(open_output(f"{prefix}.{ending}", [source])) for ending in endings}
        for one, other in combinations([f"{prefix}.{ending}" for ending in endings], 2):
            if same_output(one, other):
                raise InputError(f"{one}: this and {other} are one file by a link; remove it, or choose other names.")
        yield streams
        for stream in streams.values():  # a disk that is full is so before the first of them has its name
            stream.flush()
    for ending in _ENDINGS:
        if ending not in endings:
            remove_old_output(f"{prefix}.{ending}", source)


def put_lines(stream: BinaryIO, lines: Iterable[str]) -> None:
    """Write lines as UTF-8."""
    for line in lines:
        stream.write(line.encode())


def put_transform(
    streams: dict[str, BinaryIO], transform: Transform, names: Sequence[str], lengths: np.ndarray
) -> None:
    """Write the letters of L as one line, and of each word its name, how long it is and its index, 1-based.

    Parameters
    ----------
    streams : of TRANSFORM and WORDS
    names, lengths : of the words, int64[m]
    """
    for first, last in steps(0, len(transform.last)):
        streams[TRANSFORM].write(letters_of(transform.last[first:last], transform.letters))
    streams[TRANSFORM].write(b"\n")
    put_lines(streams[WORDS], [HEADER])
    rows = zip(names, lengths.tolist(), transform.indices.tolist(), strict=True)
    put_lines(streams[WORDS], (f"{name}\t{length}\t{index + 1}\n" for name, length, index in rows))


def read_transform(prefix: str) -> tuple[Transform, list[str], np.ndarray]:
    """What `put_transform` wrote: the transform, and names and lengths, int64[m], of its words.

    Raises
    ------
    InputError : with file and line, where one of the two is not there, or not as it is written
    """
    last = _letters_from(f"{prefix}.{TRANSFORM}")
    names, lengths, indices = _rows_from(f"{prefix}.{WORDS}")
    if sum(lengths) != len(last):
        raise InputError(
            f"{prefix}.{WORDS}: the lengths of the records add up to {sum(lengths):,}, but {prefix}.{TRANSFORM} has "
            f"{len(last):,} letters; make both anew, or take those of one run."
        )
    return Transform(last, np.array(indices, np.int64) - 1, BASES), names, np.array(lengths, np.int64)


def _letters_from(path: str) -> np.ndarray:
    """The letters of a transform, which of BASES each is, uint8[N]."""
    text = _content(path)
    if not text.endswith(b"\n") or len(text) < 2:
        raise InputError(f"{path}, line 1: one line of letters was expected, with its end; the file was cut.")
    codes = np.full(256, len(BASES), np.uint8)
    codes[np.frombuffer(BASES, np.uint8)] = np.arange(len(BASES))
    last = codes[np.frombuffer(text, np.uint8)[:-1]]
    if (last == len(BASES)).any():
        place = int((last == len(BASES)).argmax())
        raise InputError(
            f"{path}, line 1: letter {place + 1:,} is {text[place : place + 1]!r}, but A, C, G, T or N was expected."
        )
    return last


def _rows_from(path: str) -> tuple[list[str], list[int], list[int]]:
    lines = _content(path).decode("utf-8", "replace").split("\n")
    if lines[0] + "\n" != HEADER or lines[-1] or len(lines) < 3:
        raise InputError(f"{path}: the header line {HEADER.split()} was expected, and whole lines behind it.")
    names, lengths, indices = [], [], []
    for number, line in enumerate(lines[1:-1], start=2):
        fields = line.split("\t")
        if len(fields) != 3 or not fields[0] or not all(_is_count(field) for field in fields[1:]):
            raise InputError(
                f"{path}, line {number}: {line!r:.60}, but record, length and 1-based index were expected."
            )
        names.append(fields[0])
        lengths.append(int(fields[1]))
        indices.append(int(fields[2]))
    return names, lengths, indices


def _is_count(field: str) -> bool:
    """Whether a field is a number from 1 on, below `_MOST_LETTERS`; of thousands of digits Python makes none."""
    return field.isascii() and field.isdigit() and len(field) <= _MOST_DIGITS and 0 < int(field) < _MOST_LETTERS


def _content(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); name the beginning of the files that warpseed ebwt wrote."
        ) from error


def words_as_fasta(words: Words, names: Sequence[str], lengths: np.ndarray) -> Iterator[bytes]:
    """Records of words, each on one line behind its name.

    Raises
    ------
    InputError : the words have not these lengths
    """
    for number in np.flatnonzero(words.lengths != lengths)[:1]:
        raise InputError(
            f"record {names[number]} has {words.lengths[number]:,} letters by the transform, but {lengths[number]:,} "
            f"by the file {WORDS}; make both anew, or take those of one run."
        )
    for number, name in enumerate(names):
        yield f">{name}\n".encode() + words.word(number) + b"\n"
