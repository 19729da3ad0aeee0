"""Weighted sequences of paper 004: of each position, the probabilities of A, C, G and T.

Files are TSV (`position A C G T`, one line a position), motifs of JASPAR, whose counts are normalised, or motifs of
MEME's minimal format, or of the text that MEME itself writes.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, NoReturn

import numpy as np

from warpseed.compute.machine import require_memory
from warpseed.errors import InputError, check_number, check_real, how_many
from warpseed.output.opening import open_output
from warpseed.sequences.alphabet import show_name
from warpseed.sequences.files import open_bytes

__all__ = [
    "DRAWN",
    "LETTERS",
    "MOST_BYTES",
    "TOLERANCE",
    "Weighted",
    "check_weighted",
    "generate_weighted",
    "read_all_weighted",
    "read_weighted",
    "write_weighted",
]

LETTERS = b"ACGT"
TOLERANCE = 1e-3
"""How far from 1 the probabilities of a position may add up, as they are written with few digits."""
MOST_BYTES = 1 << 26
"""Of a file: a million positions fit."""
_HEADING = ("position", "A", "C", "G", "T")
_NUMBER = r"[-+]?\.?\d"
"""How a line of numbers begins."""
_FORMATS = (
    "a TSV with the columns position, A, C, G and T was expected, a motif of JASPAR, which begins with '>', or one of "
    "MEME, which begins with 'MEME version'"
)
DRAWN = 0.25, 0.75
"""Between these a weighted position that is drawn has the probability of each of its two letters."""
_DRAWN_BYTES = 80
"""Of memory that a position takes while it is drawn."""


class Weighted(NamedTuple):
    """A weighted sequence."""

    name: str
    """one word"""
    probabilities: np.ndarray
    """float64[n, 4], of A, C, G and T at each position"""


class _Line(NamedTuple):
    """A line of a file that is not blank."""

    number: int
    """counted from 1"""
    text: str


class _File:
    """The lines of a file one by one, and sentences about them."""

    def __init__(self, name: str, lines: Sequence[_Line]) -> None:
        self.name, self._lines, self._next = name, lines, 0

    def peek(self) -> _Line | None:
        """The next line; None behind the last."""
        return self._lines[self._next] if self._next < len(self._lines) else None

    def take(self, expected: str) -> _Line:
        """The next line, gone with that; InputError, saying what was expected, where there is none."""
        line = self.peek()
        if line is None:
            raise InputError(f"{self.name}: the file ends before {expected}; was it cut?")
        self._next += 1
        return line

    def fail(self, line: _Line, sentence: str) -> NoReturn:
        raise InputError(f"{self.name}, line {line.number}: {sentence}")

    def numbers(self, line: _Line, words: Sequence[str], what: str) -> list[float]:
        """Words as numbers that are finite and not negative."""
        values = []
        for word in words:
            try:
                value = float(word.replace("_", " "))  # Python's own digits may have _ between them
            except ValueError:
                self.fail(line, f"{word[:40]!r} was found, but {what} was expected, a number.")
            if not math.isfinite(value) or value < 0:
                self.fail(line, f"{what} is {word[:40]}, but a number from 0 on was expected.")
            values.append(value)
        return values

    def probabilities(self, line: _Line, words: Sequence[str]) -> list[float]:
        """Those of one position, which add up to 1."""
        if len(words) != len(LETTERS):
            self.fail(
                line,
                f"{how_many(len(words), 'number')} stand there, but the four probabilities of A, C, G and T were "
                "expected.",
            )
        values = self.numbers(line, words, "a probability")
        if abs((total := math.fsum(values)) - 1) > TOLERANCE:
            self.fail(
                line,
                f"the probabilities of A, C, G and T add up to {total:g}, but 1 was expected, {TOLERANCE:g} more or "
                "less; divide counts by their sum, or give them as a motif of JASPAR.",
            )
        return values


# ---- the formats


def _from_tsv(file: _File) -> Iterator[Weighted]:
    first = file.peek()
    if first is not None and not re.match(_NUMBER, first.text):
        heading = file.take("").text.upper().split()
        if heading != [word.upper() for word in _HEADING]:
            file.fail(first, f"{first.text[:60]!r} was found, but {_FORMATS}.")
    rows: list[list[float]] = []
    while file.peek() is not None:
        line = file.take("")
        position, *words = line.text.split()
        if position != str(len(rows) + 1):
            file.fail(
                line,
                f"the position is {position[:40]!r}, but {len(rows) + 1} was expected: a line has a position and the "
                "probabilities of A, C, G and T, and positions are numbered from 1 on.",
            )
        rows.append(file.probabilities(line, words))
    if not rows:
        raise InputError(f"{file.name}: there is no position; {_FORMATS}.")
    yield Weighted(_stem(file.name), np.array(rows))


def _stem(path: str) -> str:
    """What a sequence is called whose file has no name for it: the file's, without endings."""
    return re.sub(r"\s+", "_", os.path.basename(path).removesuffix(".gz").rpartition(".")[0]) or "weighted"


def _from_jaspar(file: _File) -> Iterator[Weighted]:
    while file.peek() is not None:
        heading = file.take("")
        if not heading.text.startswith(">"):
            file.fail(heading, f"{heading.text[:60]!r} was found, but the next motif was expected, '>' and its name.")
        counts: dict[str, list[float]] = {}
        for expected in LETTERS.decode():
            line = file.take(f"the counts of {expected}")
            found = re.fullmatch(r"(?:([A-Za-z])(?![A-Za-z]))?\s*(?:\[([^][]*)\]|([^][]*))", line.text)
            if found is None or line.text.startswith(">"):
                file.fail(
                    line,
                    f"{line.text[:60]!r} was found, but the counts of {expected} were expected, as in 'A [ 3 0 9 ]', "
                    "'A 3 0 9' or '3 0 9'; a motif has four such lines.",
                )
            letter = (found[1] or expected).upper()
            if letter != expected:
                file.fail(
                    line, f"the counts of {letter} were found, but those of {expected} were expected: A, C, G, T."
                )
            counts[letter] = file.numbers(line, (found[2] or found[3] or "").split(), "a count")
            if not counts[letter] or len(counts[letter]) != len(counts["A"]):
                file.fail(
                    line,
                    f"{how_many(len(counts[letter]), 'count')} of {letter}, but "
                    f"{'as many as of A' if counts['A'] else 'one or more'} were expected, one a position.",
                )
        rows = np.array(list(counts.values())).T
        with np.errstate(over="ignore"):
            totals = rows.sum(axis=1)
        for wrong, told in ((totals == 0, "no counts"), (totals == np.inf, "counts beyond all numbers")):
            if wrong.any():
                position = int(np.argmax(wrong)) + 1
                file.fail(heading, f"position {position} of this motif has {told}, but some were expected.")
        yield Weighted(_first_word(heading.text[1:]), rows / totals[:, None])


def _first_word(text: str) -> str:
    return (text.split() or ["weighted"])[0]


def _from_meme(file: _File) -> Iterator[Weighted]:
    name = "weighted"
    while file.peek() is not None:
        line = file.take("")
        key, *rest = line.text.split(None, 1)
        if key.startswith("ALPHABET"):
            alphabet = line.text.removeprefix("ALPHABET").lstrip("= ").strip()
            if alphabet.upper() not in ("ACGT", '"DNA"', "DNA", '"DNA" DNA-LIKE'):
                file.fail(line, f"the alphabet is {alphabet[:40]!r}, but ACGT was expected.")
        elif key == "MOTIF":
            name = _first_word("".join(rest))
        elif line.text.startswith("letter-probability matrix"):
            yield Weighted(name, np.array(_rows_of_meme(file, line)))
            name = "weighted"


def _rows_of_meme(file: _File, heading: _Line) -> list[list[float]]:
    """The rows of a letter-probability matrix: as many as `w=` says, or as there are lines of numbers."""
    facts = dict(re.findall(r"(\w+)=\s*(\S+)", heading.text))
    if facts.get("alength", "4") != "4":
        file.fail(heading, f"the matrix has alength= {facts['alength']}, but 4 letters were expected, A, C, G and T.")
    width = facts.get("w")
    if width is not None and (not width.isdecimal() or int(width) < 1):
        file.fail(heading, f"the matrix has w= {width[:40]}, but a number of positions from 1 on was expected.")
    rows: list[list[float]] = []
    while width is not None and len(rows) < int(width):
        line = file.take(f"row {len(rows) + 1} of {width} of the matrix of line {heading.number}")
        rows.append(file.probabilities(line, line.text.split()))
    while width is None and (following := file.peek()) is not None and re.match(_NUMBER, following.text):
        rows.append(file.probabilities(following, file.take("").text.split()))
    if not rows:
        file.fail(heading, "the matrix has no rows, but one or more were expected, four probabilities each.")
    if (more := file.peek()) is not None and re.match(_NUMBER, more.text):
        file.fail(
            more, f"{more.text[:60]!r} was found, but the matrix of line {heading.number} has w= {width}, no more."
        )
    return rows


# ---- reading and writing


def read_all_weighted(path: str | os.PathLike[str]) -> list[Weighted]:
    """Read every weighted sequence of a file: a TSV has one, a file of motifs one or more.

    Parameters
    ----------
    path : plain or gzip; '-' is standard input

    Raises
    ------
    InputError : the file, its line, what was found there and what was expected
    """
    file = _File(*_lines_of(path))
    first = file.peek()
    if first is None:
        raise InputError(f"{file.name}: the file is empty, but {_FORMATS}.")
    read: Callable[[_File], Iterator[Weighted]] = _from_tsv
    if first.text.startswith(">"):
        read = _from_jaspar
    elif re.match(r"MEME version\b|\*+$", first.text):  # what MEME itself writes begins with a line of asterisks
        read = _from_meme
    found = list(read(file))
    if not found:
        raise InputError(
            f"{file.name}: there is no motif; a line 'letter-probability matrix:' and its rows were expected."
        )
    return found


def read_weighted(path: str | os.PathLike[str], name: str | None = None) -> Weighted:
    """Read one weighted sequence of a file.

    Parameters
    ----------
    path : as of `read_all_weighted`
    name : which motif; None where there is one

    Raises
    ------
    InputError : as of `read_all_weighted`; or there is none of that name, or there are several
    """
    found = read_all_weighted(path)
    matching = [weighted for weighted in found if name in (None, weighted.name)]
    if len(matching) != 1:
        some = ", ".join(show_name(weighted.name) for weighted in found[:5]) + (", …" if len(found) > 5 else "")
        wanted = "one was expected" if name is None else f"one called {show_name(name)} was expected"
        raise InputError(f"{os.fspath(path)}: it has {how_many(len(found), 'motif')} ({some}), but {wanted}; name one.")
    return matching[0]


def _lines_of(path: str | os.PathLike[str]) -> tuple[str, list[_Line]]:
    """What sentences call a file, and its lines that are neither blank nor comments."""
    with open_bytes(path) as stream:
        data = bytearray()
        for piece in stream.pieces():
            data += piece
            if len(data) > MOST_BYTES:
                raise InputError(f"{stream.name}: it has more than {MOST_BYTES:,} bytes, but {_FORMATS}.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{stream.name}: it is no text, but {_FORMATS}.") from None
    lines = (_Line(number, line.strip()) for number, line in enumerate(re.split(r"\r\n|\n|\r", text), 1))
    return stream.name, [line for line in lines if line.text and not line.text.startswith("#")]


def check_weighted(weighted: Weighted) -> Weighted:
    """A weighted sequence of plain values, which are what they should be.

    Raises
    ------
    InputError : it has no position, or one whose four numbers are no probabilities
    """
    if not isinstance(weighted, Weighted):
        raise InputError(f"A weighted sequence is {type(weighted).__name__}, but a Weighted was expected.")
    try:
        rows = np.asarray(weighted.probabilities, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"the probabilities of {show_name(weighted.name)} are no numbers ({error}).") from error
    if rows.ndim != 2 or rows.shape[1] != len(LETTERS) or not len(rows):
        raise InputError(
            f"the probabilities of {show_name(weighted.name)} have the shape {rows.shape}, but four of each position "
            "were expected, and one position or more."
        )
    wrong = ~np.isfinite(rows).all(axis=1) | (rows < 0).any(axis=1) | ~(abs(rows.sum(axis=1) - 1) <= TOLERANCE)
    if wrong.any():
        position = int(np.argmax(wrong))
        raise InputError(
            f"position {position + 1} of {show_name(weighted.name)} has the probabilities {rows[position].tolist()}, "
            "but four numbers from 0 on were expected that add up to 1."
        )
    return Weighted(str(weighted.name), rows)


def write_weighted(weighted: Weighted, path: str | os.PathLike[str]) -> None:
    """Write a weighted sequence as TSV, which reads back as the same numbers; '-' is standard output.

    Raises
    ------
    InputError : it is no weighted sequence, or the file cannot be written
    """
    lines = ["\t".join(_HEADING)]
    for position, row in enumerate(check_weighted(weighted).probabilities.tolist(), 1):
        lines.append("\t".join([str(position), *(f"{value!r}".removesuffix(".0") for value in row)]))
    with open_output(path) as handle:
        handle.write(("\n".join(lines) + "\n").encode())


# ---- drawing


def generate_weighted(
    positions: int, share: float, seed: int, *, most: int | None = None, name: str = "weighted"
) -> Weighted:
    """Draw a weighted sequence at random, as section VII does.

    Parameters
    ----------
    positions : how many it has
    share : how many of them are weighted, 0 to 1, rounded: two letters, each with a probability of 0.25 to 0.75. The
        others have one letter
    seed : of the random numbers; the same one gives the same sequence
    most : weighted positions at most
    name : what it is called

    Raises
    ------
    InputError : a number is out of its range
    MemoryLimitError : there is no memory for so many positions
    """
    positions, seed = check_number("positions", positions, 1), check_number("seed", seed, 0)
    if not 0 <= check_real("share", share) <= 1:
        raise InputError(f"share is {share!r}, but a number from 0 to 1 was expected.")
    weighted = min(math.floor(positions * share + 0.5), positions if most is None else check_number("most", most, 0))
    require_memory(_DRAWN_BYTES * positions, f"A weighted sequence of {positions:,} positions takes", "draw fewer")
    draw = np.random.default_rng(seed)
    first = draw.integers(0, len(LETTERS), positions)
    second = (first + draw.integers(1, len(LETTERS), positions)) % len(LETTERS)
    rows = np.zeros((positions, len(LETTERS)))
    rows[np.arange(positions), first] = 1
    chosen = np.sort(draw.choice(positions, weighted, replace=False))
    shares = np.round(draw.uniform(*DRAWN, weighted), 2)
    rows[chosen, first[chosen]] = shares
    rows[chosen, second[chosen]] = np.round(1 - shares, 2)
    return Weighted(name, rows)
